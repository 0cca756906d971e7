"""G11: trials that alternate within a round, against cells one after the other, with noise at the scale of trials."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.paired import LEVEL, fit
from vtax.analysis.sequential.forecast import expected_half_width
from vtax.analysis.sequential.group_sequential import calibration
from vtax.analysis.sequential.sequential_test import EQUIVALENT, FASTER, SLOWER, TRIVIAL
from vtax.selftest.campaigns import (
    differences,
    differences_by_trial,
    ended,
    generator,
    pair_differences,
    trial_times,
)
from vtax.selftest.check import Check, amount, reference, share, size
from vtax.selftest.noise import BY_NAME, TRIAL_SCENARIOS, Scenario

LOOKS = (6, 10)
ITERATIONS = 4
DELTA = math.log1p(0.05)  # the margin
CARRIED = 0.02
WIDER = 1.05  # than intervals of cells in a row: at most that, whatever the noise
FALSE = (FASTER, SLOWER, TRIVIAL)


def g11(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Alternating trials err as rarely as cells do, find what matters, and have intervals that are no wider."""
    first = first[:, : LOOKS[-1]]
    for i, scenario in enumerate(TRIAL_SCENARIOS):
        for carried in (0.0, CARRIED):
            made = _made(scenario, first, (seed, 12, i, 0), carry_over=carried)
            what = f"{scenario.name}: alternating trials" + (", carry-over 2 %" if carried else "")
            yield from _errors(what, differences_by_trial(made), campaigns)
        for j, effect in enumerate((0.05, 0.10)):
            truth = math.log1p(effect)
            made = _made(scenario, first, (seed, 12, i, 1 + j), effect=truth)
            yield from _found(f"{scenario.name}: {100 * effect:g} % slower", differences_by_trial(made), truth)
        yield from _widths(scenario, first, (seed, 12, i, 3))
    yield from _single(seed, campaigns, first)
    pairs = pair_differences(_made(BY_NAME["boot"], first, (seed, 12, 98)))
    low, high = fit(pairs.reshape(campaigns, -1), None).interval(LEVEL)
    wrong = float(((low > 0) | (high < 0)).mean())
    yield reference(
        "G11", "clusters that differ by 1 %, pairs counted as rounds: identical, declared different", wrong, campaigns
    )


def _made(
    scenario: Scenario,
    first: Floats,
    purpose: tuple[int, ...],
    *,
    iterations: int = ITERATIONS,
    alternating: bool = True,
    effect: float = 0.0,
    carry_over: float = 0.0,
) -> Floats:
    random = generator(*purpose)
    return trial_times(
        scenario,
        random,
        first,
        iterations=iterations,
        alternating=alternating,
        effect=effect,
        carry_over=carry_over,
    )


def _errors(what: str, given: Floats, campaigns: int) -> Iterator[Check]:
    end = ended(given[:, None], None, LOOKS, DELTA)
    yield share("G11", f"{what}: identical, declared different", end.share(*FALSE), LEVEL, campaigns)
    missed = float(((end.low[:, 0] > 0) | (end.high[:, 0] < 0)).mean())
    yield share("G11", f"{what}: interval at the end misses", missed, LEVEL, campaigns)
    low, high = fit(given[:, : LOOKS[0]], None).interval(LEVEL)
    held = float(((low <= 0) & (high >= 0)).mean())
    yield share("G11", f"{what}: coverage, {LOOKS[0]} rounds", held, 1 - LEVEL, campaigns, at_most=False)


def _found(what: str, given: Floats, truth: float) -> Iterator[Check]:
    """Whether a difference is found; one of the size of the margin must not be called equivalent."""
    end, campaigns = ended(given[:, None], None, LOOKS, DELTA), len(given)
    if truth <= DELTA:
        yield reference("G11", f"{what}, found", end.share(SLOWER), campaigns)
        wrong = end.share(EQUIVALENT, TRIVIAL)
        yield share("G11", f"{what} (the margin), declared equivalent", wrong, LEVEL / 2, campaigns)
    else:
        yield share("G11", f"{what}, found", end.share(SLOWER), 0.9, campaigns, at_most=False)


def _half_widths(given: Floats, first: Floats | None) -> Floats:
    """After the first look, as ratio - 1 in percent."""
    n = LOOKS[0]
    made = fit(given[:, :n], None if first is None else first[:, :n])
    low, high = calibration(LOOKS, adjusted=first is not None).interval(made)
    return np.asarray(100 * np.expm1((high - low) / 2))


def _widths(scenario: Scenario, first: Floats, purpose: tuple[int, ...]) -> Iterator[Check]:
    """Half-widths of the same noise, measured in three ways; and whether the forecast from adjacent pairs is right."""
    campaigns = len(first)
    rows, made = _made(scenario, first, purpose, alternating=False), _made(scenario, first, purpose)
    cells = float(np.median(_half_widths(differences(rows), first)))
    given, pairs = differences_by_trial(made), pair_differences(made)
    halves = _half_widths(given, None)
    for way, half in (
        ("cells in a row", cells),
        ("alternating, mean of pairs", float(np.median(_half_widths(pairs.mean(axis=-1), None)))),
        ("alternating, median of pairs", float(np.median(halves))),
    ):
        yield size("G11", f"{scenario.name}: half-width, 6 rounds of 4 iterations, {way}", half, campaigns)
    error = 1.2533 * float(halves.std()) / math.sqrt(campaigns) / cells  # of a median
    what = f"{scenario.name}: half-width of alternating trials, that of cells is 1"
    yield amount("G11", what, float(np.median(halves)) / cells, WIDER, campaigns, error, "")
    if scenario.name == "iid2":
        critical = calibration(LOOKS, adjusted=False).critical(LOOKS[0])
        expected = 100 * expected_half_width(float(pairs.std()), ITERATIONS, LOOKS[0], critical)
        what = f"{scenario.name}: forecast of the mean half-width is off by"
        error = float(halves.std()) / math.sqrt(campaigns)
        yield amount("G11", what, abs(expected - float(halves.mean())), 0.03, campaigns, error, "points")


def _single(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """An entry with one iteration a round has nothing to mirror: its order is adjusted for, as that of cells is."""
    for i, carried in enumerate((0.0, CARRIED)):
        made = _made(BY_NAME["iid2"], first, (seed, 12, 99, i), iterations=1, carry_over=carried)
        given, n = differences_by_trial(made), LOOKS[0]
        what = "one iteration a round, carry-over 2 %" if carried else "one iteration a round"
        end = ended(given[:, None], first, LOOKS, DELTA)
        yield share(
            "G11", f"{what}, order-adjusted: identical, declared different", end.share(*FALSE), LEVEL, campaigns
        )
        for way, order in (("order-adjusted", first), ("not adjusted", None)):
            half = float(np.median(_half_widths(given, order)))
            yield size("G11", f"{what}: half-width, {n} rounds, {way}", half, campaigns)
