"""G13: several machines that each have whole rounds: unequal effects, unequal noise, one that is lost on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vtax.analysis.estimate.columns import Bools, Floats, Ints
from vtax.analysis.estimate.machines import adjustable_over, covered, fit_over, p_same, spread_over
from vtax.analysis.estimate.paired import LEVEL, fit
from vtax.analysis.sequential.group_sequential import calibration
from vtax.analysis.sequential.sequential_test import (
    FASTER,
    SLOWER,
    TRIVIAL,
    InterimResult,
    adjusted_words,
    result_of,
)
from vtax.selftest.campaigns import CONCLUSIVE, Ended, differences, generator, only, times
from vtax.selftest.check import Check, reference, share
from vtax.selftest.noise import BY_NAME, SCENARIOS, Random, Scenario

LOOKS = (6, 10, 16)
DELTA = math.log1p(0.02)
FALSE = (FASTER, SLOWER, TRIVIAL)
UNLIKE = 0.03  # the deviation of the effect from machine to machine
CARRIED = 0.02
SHARED = 0.01  # of what hits one environment on all machines at once
NOISIER = 3.0  # one machine than the others
LOST_AFTER = 8  # rounds
DIFFER = 0.01  # the level at which machines are said to differ


@dataclass(frozen=True)
class Campaigns:
    """Paired differences, shape (campaigns, machines, rounds), NaN where a machine was lost; who ran first, alike; and
    the true effect on each machine, shape (campaigns, machines)."""

    given: Floats
    first: Floats
    effects: Floats

    def about(self, rounds: int) -> Bools:
        """The machines that an estimate after so many rounds is about."""
        return covered(~np.isnan(self.given[0, :, :rounds]))

    def until(self, rounds: int) -> tuple[Floats, Floats]:
        """Of the first rounds: the differences on these machines, and who ran first."""
        about = self.about(rounds)
        return self.given[:, about, :rounds], self.first[:, about, :rounds]

    def truth(self, rounds: int) -> Floats:
        """The mean over these machines of the true effect, shape (campaigns,)."""
        return np.asarray(self.effects[:, self.about(rounds)].mean(axis=-1))


def made(
    scenario: Scenario,
    random: Random,
    first: Floats,
    *,
    unlike: float = 0.0,
    carry_over: float = 0.0,
    shared: float = 0.0,
    noisier: float = 1.0,
    missing: Bools | None = None,
) -> Campaigns:
    """Campaigns of machines whose effects differ by `unlike`, of which the last is `noisier`. `missing` are the rounds
    that a machine lacks, shape (machines, rounds)."""
    campaigns, machines, rounds = first.shape
    flat = times(scenario, random, first.reshape(-1, rounds), iterations=3, carry_over=carry_over)
    given = differences(flat).reshape(first.shape)
    given[:, -1] *= noisier
    effects = unlike * random.standard_normal((campaigns, machines))
    given += effects[..., None] + shared * random.standard_normal((campaigns, 1, rounds))
    if missing is not None:
        given[:, missing] = np.nan
    return Campaigns(given, first, effects)


def ended(several: Campaigns) -> Ended:
    """Campaigns of one metric that stop at the first look with a verdict."""
    campaigns = len(several.given)
    word = np.zeros((campaigns, 1), np.int64)
    low, high = np.empty((campaigns, 1)), np.empty((campaigns, 1))
    rounds = np.zeros(campaigns, np.int64)
    alive, before = np.arange(campaigns), None
    for look in LOOKS:
        if not alive.size:
            break
        given, first = several.until(look)
        seen = _seen(given[alive], first[alive], before)
        word[alive, 0] = adjusted_words(seen.word, seen.p_sequential, seen.p_within_sequential)
        low[alive, 0], high[alive, 0], rounds[alive] = seen.low, seen.high, look
        open_ = np.asarray(~np.isin(word[alive, 0], CONCLUSIVE))
        alive, before = alive[open_], only(seen, open_)
    return Ended(word, low, high, rounds)


def looked(several: Campaigns) -> InterimResult:
    """The result of the last look, whatever the ones before it said."""
    seen = None
    for look in LOOKS:
        seen = _seen(*several.until(look), seen)
    assert seen is not None
    return seen


def _seen(given: Floats, first: Floats, before: InterimResult | None) -> InterimResult:
    level = calibration(LOOKS, adjusted=True)
    estimate, left = fit_over(given, first if adjustable_over(given, first) else None)
    return result_of(estimate, left, level, DELTA, before)


def lost(machines: int) -> Bools:
    """The last machine is gone after some rounds, and the one before it has no result in every fourth round."""
    missing = np.zeros((machines, LOOKS[-1]), bool)
    missing[-1, LOST_AFTER:] = True
    missing[-2, 3::4] = True
    return missing


def on(machines: int, first: Floats) -> Floats:
    """The planner's orders, as those of campaigns on so many machines: (campaigns, machines, rounds)."""
    campaigns = len(first) // machines
    return first[: campaigns * machines, : LOOKS[-1]].reshape(campaigns, machines, -1)


def g13(seed: int, first: Floats) -> Iterator[Check]:
    """The interval holds the mean over the machines, however unlike they are, and one machine more is no more risk."""
    for i, scenario in enumerate(SCENARIOS):
        for j, machines in enumerate((2, 4, 8)):
            random, order = generator(seed, 13, i, j), on(machines, first)
            what = f"{scenario.name}: {machines} machines"
            yield from _identical(what, made(scenario, random, order))
            yield from _covers(f"{what} that differ by 3 %", made(scenario, random, order, unlike=UNLIKE))
        random, order = generator(seed, 13, i, 3), on(3, first)
        several = made(scenario, random, order, unlike=UNLIKE, noisier=NOISIER, missing=lost(3))
        yield from _covers(f"{scenario.name}: 3 machines, one noisier and lost after 8 rounds", several)
    yield from _alike(seed, first)
    yield from _general(seed, first)
    yield from _elsewhere(seed, first)


def _identical(what: str, several: Campaigns) -> Iterator[Check]:
    end = ended(several)
    yield share("G13", f"{what}: identical, declared different", end.share(*FALSE), LEVEL, len(end.word))


def _covers(what: str, several: Campaigns) -> Iterator[Check]:
    campaigns, end = len(several.given), ended(several)
    truth = np.choose(np.searchsorted(LOOKS, end.rounds), [several.truth(look) for look in LOOKS])
    missed = (end.low[:, 0] > truth) | (end.high[:, 0] < truth)
    yield share("G13", f"{what}: interval at the end misses", float(missed.mean()), LEVEL, campaigns)
    for n in (LOOKS[0], LOOKS[-1]):
        estimate, _ = fit_over(*several.until(n))
        low, high = estimate.interval(LEVEL)
        held = float(((low <= several.truth(n)) & (high >= several.truth(n))).mean())
        yield share("G13", f"{what}: coverage, {n} rounds", held, 1 - LEVEL, campaigns, at_most=False)


def _alike(seed: int, first: Floats) -> Iterator[Check]:
    """What machines have in common in a round, and what running second costs, is in the interval."""
    order, quiet = on(4, first), BY_NAME["iid2"]
    several = made(quiet, generator(seed, 13, 90), order, shared=SHARED)
    yield from _identical("4 machines, 1 % that hits one environment on all of them", several)
    rounds = several.given[..., : LOOKS[0]]
    low, high = fit(rounds.reshape(len(order), -1), None).interval(LEVEL)
    wrong = float(((low > 0) | (high < 0)).mean())
    yield reference(
        "G13", "the same, all machines' rounds counted as rounds: identical, declared different", wrong, len(order)
    )
    several = made(quiet, generator(seed, 13, 91), order, unlike=UNLIKE, carry_over=CARRIED)
    yield from _covers("4 machines that differ, carry-over 2 %", several)
    several = made(quiet, generator(seed, 13, 92), on(3, first), unlike=UNLIKE, carry_over=CARRIED, missing=lost(3))
    yield from _covers("3 machines that differ, one lost, carry-over 2 %", several)


def _general(seed: int, first: Floats) -> Iterator[Check]:
    """What is said of machines of which these are a sample, and what the interval for these alone would say of them."""
    for machines in (2, 3, 4, 8):
        several = made(BY_NAME["all"], generator(seed, 13, 93, machines), on(machines, first), unlike=UNLIKE)
        given, order = several.until(LOOKS[0])
        estimate, _ = fit_over(given, order)
        low, high = estimate.interval(LEVEL)
        held = float(((low <= 0) & (high >= 0)).mean())
        what = (
            f"{machines} machines that differ by 3 %: the interval for these alone covers the mean of all such machines"
        )
        yield reference("G13", what, held, len(given))
        means, errors, counts = _each(given)
        spread = spread_over(means, errors, counts, (low, high), LEVEL)
        if spread.low is not None and spread.high is not None:
            held = float(((spread.low <= 0) & (spread.high >= 0)).mean())
            what = f"{machines} machines that differ by 3 %: the interval for others like them covers their mean"
            yield share("G13", what, held, 1 - LEVEL, len(given), at_most=False)
        found = float((p_same(means, errors, counts) < DIFFER).mean())
        yield reference("G13", f"{machines} machines that differ by 3 %, 6 rounds: said to differ", found, len(given))
        alike = made(BY_NAME["all"], generator(seed, 13, 94, machines), on(machines, first), noisier=NOISIER)
        wrong = float((p_same(*_each(alike.given[..., : LOOKS[0]])) < DIFFER).mean())
        yield share(
            "G13", f"{machines} machines, identical effects, one noisier: said to differ", wrong, 0.02, len(given)
        )


def _each(given: Floats) -> tuple[Floats, Floats, Ints]:
    alone = fit(given, None)
    return alone.theta, alone.se, np.full(given.shape[1], given.shape[-1])


def _elsewhere(seed: int, first: Floats) -> Iterator[Check]:
    """What is wrong without pairs inside machines: each environment on a machine of its own."""
    order = on(2, first)
    random = generator(seed, 13, 95)
    apart = made(BY_NAME["iid2"], random, order).given[:, 0, : LOOKS[0]]
    apart = apart + UNLIKE * random.standard_normal((len(order), 1))
    low, high = fit(apart, None).interval(LEVEL)
    wrong = float(((low > 0) | (high < 0)).mean())
    yield reference(
        "G13",
        "environments on machines of their own, which differ by 3 %: identical, declared different",
        wrong,
        len(order),
    )
