"""G4, G5, G8, G9: interim analyses and stopping, many metrics, diagnostics."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from vtax.analysis.estimate import diagnostics
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.paired import LEVEL, fit
from vtax.analysis.estimate.randomisation import p_randomised
from vtax.analysis.multiplicity import INVALID_BELOW
from vtax.analysis.sequential.anytime import Anytime
from vtax.analysis.sequential.group_sequential import calibration
from vtax.analysis.sequential.sequential_test import EQUIVALENT, FASTER, SLOWER, TRIVIAL
from vtax.selftest.campaigns import differences, ended, generator, times
from vtax.selftest.check import Check, amount, reference, share
from vtax.selftest.noise import BY_NAME, SCENARIOS, Scenario

LOOKS = (6, 10, 16, 24, 40, 60)
MARGIN = 0.02
DELTA = math.log1p(MARGIN)
METRICS, SHARED = 12, 0.3  # metrics of one campaign, share of their variance that they have in common
SLOW_SHARE, SLOW = 0.3, 0.05  # of the slower mode


def g4_g5(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Stopping at a verdict makes no more false claims than a fixed number of rounds, and ends soon."""
    for i, scenario in enumerate(SCENARIOS):
        for iterations in (1, 3):
            made = times(scenario, generator(seed, 4, i, iterations), first, iterations=iterations)
            end = ended(differences(made)[:, None], first, LOOKS, DELTA)
            what = f"{scenario.name}, {iterations} iterations"
            wrong = end.share(FASTER, SLOWER, TRIVIAL)
            yield share("G4", f"{what}: identical, declared different at any look", wrong, LEVEL, campaigns)
            missed = float(((end.low[:, 0] > 0) | (end.high[:, 0] < 0)).mean())
            yield share("G4", f"{what}: interval at the end misses", missed, LEVEL, campaigns)
            if iterations == 3:
                found = end.share(EQUIVALENT, TRIVIAL)
                yield share("G5", f"{what}: identical, found equivalent", found, 0.95, campaigns, at_most=False)
                error = float(end.rounds.std()) / math.sqrt(campaigns)
                mean = float(end.rounds.mean())
                yield amount("G5", f"{what}: identical, mean rounds", mean, 18.0, campaigns, error, "rounds")
            made = times(scenario, generator(seed, 5, i, iterations), first, iterations=iterations, effect=DELTA)
            end = ended(differences(made)[:, None], first, LOOKS, DELTA)
            wrong = end.share(EQUIVALENT, TRIVIAL)
            yield share("G5", f"{what}: at the margin, declared equivalent", wrong, 0.025, campaigns)
    yield reference("G4", "iid2: testing every round, stopping at p < .05", _peeking(seed, first), campaigns)


def anytime(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Analysing after every round, with intervals that allow it, makes no more false claims either."""
    looks = tuple(range(LOOKS[0], LOOKS[-1] + 1))
    level = Anytime(looks)
    for i, scenario in enumerate(SCENARIOS):
        truth = math.log1p(0.05)
        made = times(scenario, generator(seed, 4, i, 50), first, effect=truth)
        given, missed = differences(made), np.zeros(campaigns, bool)
        for n in looks:
            low, high = level.interval(fit(given[:, :n], first[:, :n]))
            missed |= (low > -truth) | (high < -truth)
        what = f"{scenario.name}, anytime: the interval of any round from {looks[0]} to {looks[-1]} misses"
        yield share("G4", what, float(missed.mean()), LEVEL, campaigns)
        made = times(scenario, generator(seed, 4, i, 51), first, iterations=3)
        end = ended(differences(made)[:, None], first, looks, DELTA, level)
        wrong = end.share(FASTER, SLOWER, TRIVIAL)
        yield share(
            "G4", f"{scenario.name}, anytime: identical, declared different at any round", wrong, LEVEL, campaigns
        )
        found = end.share(EQUIVALENT, TRIVIAL)
        yield reference("G5", f"{scenario.name}, anytime: identical, found equivalent", found, campaigns)
        made = times(scenario, generator(seed, 5, i, 51), first, iterations=3, effect=DELTA)
        end = ended(differences(made)[:, None], first, looks, DELTA, level)
        wrong = end.share(EQUIVALENT, TRIVIAL)
        yield share("G5", f"{scenario.name}, anytime: at the margin, declared equivalent", wrong, 0.025, campaigns)


def _peeking(seed: int, first: Floats) -> float:
    given = differences(times(BY_NAME["iid2"], generator(seed, 4, 99), first))
    found = np.zeros(len(given), bool)
    for n in range(LOOKS[0], LOOKS[-1] + 1):
        found |= fit(given[:, :n], None).p_difference <= LEVEL
    return float(found.mean())


def g8(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Twelve metrics and six looks together make a false claim in 5 % of campaigns at most."""
    random = generator(seed, 8)
    common = math.sqrt(SHARED) * random.standard_normal((campaigns, 1, first.shape[1]))
    own = math.sqrt(1 - SHARED) * random.standard_normal((campaigns, METRICS, first.shape[1]))
    given = 0.02 * math.sqrt(2) * (common + own)
    end = ended(given, first, LOOKS, DELTA)
    wrong = end.share(FASTER, SLOWER, TRIVIAL)
    yield share("G8", f"{METRICS} metrics, {len(LOOKS)} looks: any declared different", wrong, LEVEL, campaigns)
    raw = np.zeros(campaigns, bool)
    for n in LOOKS:
        raw |= (fit(given[..., :n], None).p_difference <= LEVEL).any(axis=1)
    yield reference("G8", "the same with p < .05 at any look and metric", float(raw.mean()), campaigns)


def g9(seed: int, campaigns: int, first: Floats) -> Iterator[Check]:
    """Diagnostics rarely give false alarms, and find two modes when there are enough runs."""
    quiet = Scenario("quiet")
    for n in (6, 10, 30):
        values = np.log(times(quiet, generator(seed, 9, n), first[:, :n]))[..., 0]
        centred = (values - values.mean(axis=-1, keepdims=True)).reshape(campaigns, -1)
        place = np.stack(((1 - first[:, :n]) / 2, (1 + first[:, :n]) / 2), axis=1)
        when = (2 * np.arange(n) + 1 - place).reshape(campaigns, -1)
        _, p = diagnostics.spearman(centred, when)
        wrong = float((p < diagnostics.ALPHA).mean())
        yield share("G9", f"DRIFT false alarm, {n} rounds", wrong, 0.02, campaigns)
    for n in (20, 30, 60):
        random = generator(seed, 9, n, 1)
        one = 0.01 * random.standard_normal((campaigns, n))
        limit = diagnostics.two_modes_critical(n)
        wrong = float((diagnostics.two_modes(one) > limit).mean())
        yield share("G9", f"BIMODAL false alarm, {n} runs", wrong, 0.02, campaigns)
        if n == diagnostics.MODES_FROM:
            two = one + SLOW * (random.random((campaigns, n)) < SLOW_SHARE)
            found = float((diagnostics.two_modes(two) > limit).mean())
            yield share("G9", f"BIMODAL found, 30 % of {n} runs 5 % slower", found, 0.6, campaigns, at_most=False)
    for n in (12, 20):
        given = differences(times(BY_NAME["all"], generator(seed, 9, n, 2), first[:, :n], iterations=3))
        wrong = float((p_randomised(given, first[:, :n], np.arange(n) // 2, seed) <= LEVEL).mean())
        yield share("G9", f"randomisation test: A/A differs, {n} rounds", wrong, LEVEL, campaigns)
    given = differences(times(BY_NAME["all"], generator(seed, 9, 99), first, iterations=3))
    level, smallest = calibration(LOOKS, adjusted=True), np.ones(campaigns)
    for n in LOOKS:
        smallest = np.minimum(smallest, fit(given[:, :n], first[:, :n]).p_difference)
    wrong = float((level.sequential(smallest) < INVALID_BELOW).mean())
    yield share("G9", "control arm: false alarm", wrong, 0.015, campaigns)
