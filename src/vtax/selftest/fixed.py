"""G0 to G3, G6, G7: a fixed number of rounds against the classical procedure."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from vtax.analysis.estimate.bootstrap import bootstrapped
from vtax.analysis.estimate.columns import Bools, Floats
from vtax.analysis.estimate.paired import LEVEL, fit
from vtax.analysis.estimate.signed_rank import hodges_lehmann
from vtax.analysis.sequential.sequential_test import SLOWER, TRIVIAL, words
from vtax.model.metric import Kind
from vtax.selftest.campaigns import classical_p, differences, generator, times
from vtax.selftest.check import Check, amount, reference, reproduced, share
from vtax.selftest.noise import BY_NAME, SCENARIOS, Scenario

WELCH = {"ar1": 0.30, "rw": 0.30, "thermal": 0.62, "step": 0.38, "boot": 0.37}  # at five runs, published
EFFECTS = (0.0, 0.01, 0.02, 0.05)
CARRIED = 0.02


def g0(seed: int, campaigns: int) -> Iterator[Check]:
    """The classical procedure is as wrong here as published, so the harness is not rigged against it."""
    for i, (name, published) in enumerate(WELCH.items()):
        wrong = classical_p(BY_NAME[name], generator(seed, 0, i), campaigns, 5) <= LEVEL
        yield reproduced("G0", f"{name}: A/A differs by Welch's t", float(wrong.mean()), published, 0.015, campaigns)


def _misses(given: Floats, first: Floats | None, truth: float = 0.0) -> Bools:
    low, high = fit(given, first).interval(LEVEL)
    return np.asarray((low > truth) | (high < truth))


def g1(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Identical systems differ in 5 % of campaigns at most."""
    for i, scenario in enumerate(SCENARIOS):
        classical = float((classical_p(scenario, generator(seed, 1, i, 99), campaigns, 5) <= LEVEL).mean())
        yield reference("G1", f"{scenario.name}: classical, 5 runs", classical, campaigns)
        for n in (3, 5, 10):
            given = differences(times(scenario, generator(seed, 1, i, n), first[:, :n]))
            wrong = float(_misses(given, None).mean())
            yield share("G1", f"{scenario.name}: A/A differs, plain t, {n} rounds", wrong, LEVEL, campaigns)
        for n in (6, 10, 20):
            given = differences(times(scenario, generator(seed, 1, i, n, 3), first[:, :n], iterations=3))
            wrong = float(_misses(given, first[:, :n]).mean())
            yield share("G1", f"{scenario.name}: A/A differs, default, {n} rounds", wrong, LEVEL, campaigns)


def g2(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """The 95 % interval holds the truth in 95 % of campaigns or more."""
    for i, scenario in enumerate(SCENARIOS):
        for j, effect in enumerate(EFFECTS):
            truth = math.log1p(effect)
            for n in (6, 10, 20):
                made = times(scenario, generator(seed, 2, i, j, n), first[:, :n], iterations=3, effect=truth)
                held = 1 - float(_misses(differences(made), first[:, :n], -truth).mean())
                what = f"{scenario.name}: coverage, {100 * effect:g} % slower, {n} rounds"
                yield share("G2", what, held, 1 - LEVEL, campaigns, at_most=False)


def means(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """How often the bootstrap of the ratio of means holds it; it has no guarantee to keep."""
    for i, scenario in enumerate(SCENARIOS):
        for n in (20, 40):
            made = times(scenario, generator(seed, 2, i, n, 9), first[:, :n], iterations=3, effect=math.log1p(0.02))
            mine, theirs = (list(np.ascontiguousarray(made[:, place].transpose(1, 2, 0))) for place in (1, 0))
            low, high = bootstrapped(mine, theirs, Kind.COST, seed)
            held = float(((low <= math.log1p(0.02)) & (high >= math.log1p(0.02))).mean())
            yield reference("G2", f"{scenario.name}: ratio of means, bootstrap, coverage, {n} rounds", held, campaigns)


def g3(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Differences that matter are found: by the interval, and by the verdict that needs the companion too."""
    for i, scenario in enumerate(SCENARIOS):
        for effect, n, goal in ((0.05, 6, 0.95), (0.02, 10, 0.75)):
            truth = math.log1p(effect)
            made = times(scenario, generator(seed, 3, i, n), first[:, :n], iterations=3, effect=truth)
            given = differences(made)
            found = fit(given, first[:, :n])
            _, high = found.interval(LEVEL)
            what = f"{scenario.name}: {100 * effect:g} % found in {n} rounds"
            yield share("G3", what, float((high < 0).mean()), goal, campaigns, at_most=False)
            yield reference("G3", f"{what}, companion agrees", _both(given, first[:, :n]), campaigns)


def _both(given: Floats, first: Floats) -> float:
    """The share that both intervals call slower."""
    found = fit(given, first)
    carried = np.zeros(len(given)) if found.carry_over is None else found.carry_over
    _, low, high = hodges_lehmann(given - carried[:, None] * first)
    delta = math.log1p(0.02)
    slower = (SLOWER, TRIVIAL)
    by_interval, by_ranks = words(*found.interval(LEVEL), delta), words(low, high, delta)
    return float((np.isin(by_interval, slower) & np.isin(by_ranks, slower) & (high < 0)).mean())


def g6(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """What the first run of a round leaves to the second is no effect."""
    quiet = Scenario("quiet")
    for n in (6, 10):
        given = differences(times(quiet, generator(seed, 6, n), first[:, :n], carry_over=CARRIED))
        wrong = float(_misses(given, first[:, :n]).mean())
        yield share("G6", f"carry-over 2 %: A/A differs, order-adjusted, {n} rounds", wrong, LEVEL, campaigns)
        if n == 10:
            low, high = fit(given, first[:, :n]).interval(LEVEL)
            half = 100 * np.expm1((high - low) / 2)
            error = 1.2533 * float(half.std()) / math.sqrt(campaigns)  # of a median
            yield amount(
                "G6",
                "carry-over 2 %: median half-width, 10 rounds",
                float(np.median(half)),
                1.05,
                campaigns,
                error,
                "% of the baseline",
            )
    fixed = differences(times(quiet, generator(seed, 6, 99), np.ones((campaigns, 10)), carry_over=CARRIED))
    yield reference(
        "G6", "carry-over 2 %: A/A differs, always in the same order", float(_misses(fixed, None).mean()), campaigns
    )


def g7(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Iterations in one boot are no rounds."""
    boot = BY_NAME["boot"]
    pooled = float((classical_p(boot, generator(seed, 7, 0), campaigns, 30) <= LEVEL).mean())
    yield reference("G7", "one boot, 30 iterations counted as runs: A/A differs", pooled, campaigns)
    given = differences(times(boot, generator(seed, 7, 1), first[:, :6], iterations=5))
    wrong = float(_misses(given, first[:, :6]).mean())
    yield share("G7", "6 boots, 5 iterations each, by rounds: A/A differs", wrong, LEVEL, campaigns)
