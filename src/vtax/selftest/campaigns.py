"""Many simulated campaigns at once, as arrays: the plan's orders, cells, differences, looks.

Environment 0 is the baseline, environment 1 what is compared with it. Values are times, so more is slower.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from vtax.analysis.estimate.columns import Bools, Floats, Ints
from vtax.analysis.estimate.differences import median_of_pairs
from vtax.analysis.estimate.paired import log_differences
from vtax.analysis.estimate.summary import cell_summary
from vtax.analysis.order import environment_orders
from vtax.analysis.sequential.group_sequential import LookLevel, calibration
from vtax.analysis.sequential.sequential_test import (
    EQUIVALENT,
    FASTER,
    SLOWER,
    TRIVIAL,
    InterimResult,
    adjusted_words,
    holm,
    interim_result,
)
from vtax.model.metric import Kind
from vtax.selftest.noise import Random, Scenario, independent

CONCLUSIVE = (EQUIVALENT, TRIVIAL, FASTER, SLOWER)


def generator(seed: int, *purpose: int) -> Random:
    """The random numbers of one purpose."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *purpose])))


def orders(seed: int, campaigns: int, rounds: int) -> Floats:
    """Shape (campaigns, rounds): +1 where environment 1 runs before the baseline, else -1, as the planner has it."""
    first = [[order[0] for order in environment_orders(seed + i, rounds, 2)] for i in range(campaigns)]
    return np.where(np.array(first) == 1, 1.0, -1.0)


def times(
    scenario: Scenario,
    random: Random,
    first: Floats,
    *,
    iterations: int = 1,
    effect: float = 0.0,
    carry_over: float = 0.0,
) -> Floats:
    """Times of every iteration, shape (campaigns, 2, rounds, iterations); a fresh instance for every cell.

    `effect` is by how much environment 1 is slower, `carry_over` by how much whatever runs second in a round; logs.
    """
    campaigns, rounds = first.shape
    course = scenario.over_time(random, campaigns, 2 * rounds).reshape(campaigns, rounds, 2)
    one_is_second = (first < 0).astype(int)
    place = np.stack((1 - one_is_second, one_is_second), axis=1)  # of each environment in each round
    cells = np.take_along_axis(course.transpose(0, 2, 1), place, axis=1) + carry_over * place
    cells[:, 1] += effect
    if scenario.boot:
        cells += scenario.boot * random.standard_normal(cells.shape)
    return np.asarray(np.exp(cells[..., None] + independent(scenario, random, (*cells.shape, iterations))))


def trial_times(
    scenario: Scenario,
    random: Random,
    first: Floats,
    *,
    iterations: int,
    alternating: bool = True,
    effect: float = 0.0,
    carry_over: float = 0.0,
) -> Floats:
    """As `times`, with noise that takes one step a trial instead of one a cell.

    `alternating`: the trials of a round alternate, in mirrored order; else each environment has its trials in a row.
    `carry_over` is by how much whatever runs second is slower: the second trial of a pair, or the second cell.
    """
    campaigns, rounds = first.shape
    slots = places(first, iterations, alternating=alternating)
    course = scenario.over_time(random, campaigns, 2 * rounds * iterations)
    begins = (2 * iterations * np.arange(rounds))[None, None, :, None]
    logs = np.take_along_axis(course, (begins + slots).reshape(campaigns, -1), axis=1).reshape(slots.shape)
    logs += carry_over * (slots % 2 if alternating else slots // iterations)
    logs[:, 1] += effect
    if scenario.boot:
        logs += scenario.boot * random.standard_normal(slots.shape[:3])[..., None]
    return np.asarray(np.exp(logs + independent(scenario, random, slots.shape)))


def places(first: Floats, iterations: int, *, alternating: bool) -> Ints:
    """At which place of its round each trial runs, counted from 0; shape (campaigns, 2, rounds, iterations)."""
    second = np.stack((first > 0, first < 0), axis=1).astype(np.int64)[..., None]  # each environment in the first pair
    number = np.arange(iterations)
    return 2 * number + (second ^ (number % 2)) if alternating else number + iterations * second


def pair_differences(values: Floats) -> Floats:
    """Log differences of paired trials, shape (campaigns, rounds, iterations): above zero, environment 1 is faster."""
    mine, theirs = np.ascontiguousarray(values[:, 1]), np.ascontiguousarray(values[:, 0])
    return log_differences(mine, theirs, higher_is_better=False)


def differences_by_trial(values: Floats) -> Floats:
    """What `differences` is where trials alternate."""
    return median_of_pairs(pair_differences(values))


def differences(values: Floats) -> Floats:
    """Paired log differences, shape (campaigns, rounds): above zero where environment 1 is faster."""
    cells = cell_summary(values, Kind.COST)
    mine, theirs = np.ascontiguousarray(cells[:, 1]), np.ascontiguousarray(cells[:, 0])
    return log_differences(mine, theirs, higher_is_better=False)


@dataclass(frozen=True)
class Ended:
    """How campaigns ended: the word of each metric (campaigns, metrics), the interval there, the rounds used."""

    word: Ints
    low: Floats
    high: Floats
    rounds: Ints

    def share(self, *words: int) -> float:
        """The share of campaigns in which any metric has one of the words."""
        return float(np.isin(self.word, words).any(axis=1).mean())


def ended(
    given: Floats, first: Floats | None, looks: tuple[int, ...], delta: float, level: LookLevel | None = None
) -> Ended:
    """Campaigns that stop at the first look at which every metric has its verdict; (campaigns, metrics, n).

    `first` is None where nothing is adjusted for the order. `level` is what makes intervals hold at all looks; that of
    planned ones where it is left out.
    """
    campaigns, metrics, _ = given.shape
    level = level or calibration(looks, adjusted=first is not None)
    word = np.zeros((campaigns, metrics), np.int64)
    low, high = np.empty((campaigns, metrics)), np.empty((campaigns, metrics))
    rounds = np.zeros(campaigns, np.int64)
    alive, before = np.arange(campaigns), None
    for look in looks:
        if not alive.size:
            break
        order = None if first is None else first[alive, None, :look]
        seen = interim_result(given[alive, :, :look], order, level, delta, before)
        word[alive] = adjusted_words(seen.word, holm(seen.p_sequential), holm(seen.p_within_sequential))
        low[alive], high[alive], rounds[alive] = seen.low, seen.high, look
        unsettled = np.asarray(~np.isin(word[alive], CONCLUSIVE).all(axis=1))
        alive, before = alive[unsettled], only(seen, unsettled)
    return Ended(word, low, high, rounds)


def only(look: InterimResult, which: Bools) -> InterimResult:
    """What the next look needs of some of the campaigns."""
    return replace(look, smallest_p=look.smallest_p[which], smallest_p_within=look.smallest_p_within[which])


def classical_p(scenario: Scenario, random: Random, campaigns: int, runs: int) -> Floats:
    """What most papers do: all runs of A in one boot, then all of B in another; p of Welch's t test of the times."""
    course = scenario.over_time(random, campaigns, 2 * runs) + independent(scenario, random, (campaigns, 2 * runs))
    if scenario.boot:
        course += np.repeat(scenario.boot * random.standard_normal((campaigns, 2)), runs, axis=1)
    values = np.exp(course)
    return np.asarray(stats.ttest_ind(values[:, :runs], values[:, runs:], axis=1, equal_var=False).pvalue)
