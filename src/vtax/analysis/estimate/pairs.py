"""Pairs: an environment and its baseline in the same rounds, with the estimate and the interim results so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from vtax.analysis.estimate.columns import Floats, Ints
from vtax.analysis.estimate.context import PairingContext
from vtax.analysis.estimate.differences import RoundDifferences, Rounds, grid_of, within
from vtax.analysis.estimate.machines import Spread, adjustable_over, fit_over, pooled, spread_over
from vtax.analysis.estimate.paired import INTERVAL_FROM, LEVEL, Fit, adjustable, fit
from vtax.analysis.estimate.summary import Key, place_of_level
from vtax.analysis.records import VERDICT_FROM, Level
from vtax.analysis.sequential.group_sequential import LookLevel, level_of
from vtax.analysis.sequential.sequential_test import (
    EQUIVALENT,
    FASTER,
    INCONCLUSIVE,
    SLOWER,
    TRIVIAL,
    InterimResult,
    last_interim,
    result_of,
)
from vtax.analysis.verdict import Effect
from vtax.model.finding import Finding
from vtax.model.study import Interleave


@dataclass(frozen=True)
class Pair:
    """A series in an environment and in its baseline.

    `baseline` is the study's, or where `substituted` the environment that takes its place because it cannot have this.
    `by_round` has one difference for each round that both have. `first` is +1 where the environment ran before the
    baseline, else -1; None where the plan does not know, and where the order is mirrored within each round. `effect` is
    None without a common round, `interim` below six. On several machines that each have whole rounds, `alone` is the
    same on each of them, and `spread` how they differ, from six rounds on; `contradicted` says that this leaves no
    verdict about their mean.
    """

    level: Level
    baseline: str
    base: Level | None
    by_round: RoundDifferences
    mirrored: bool
    first: Floats | None
    dropped: int
    calibration: LookLevel
    effect: Effect | None
    interim: InterimResult | None
    control: bool
    planned: bool  # in both environments
    substituted: bool = False
    blocker: Finding | None = None
    alone: Mapping[str, Pair] = field(default_factory=dict)
    spread: Spread | None = None
    contradicted: bool = False

    @property
    def both(self) -> tuple[str, str]:
        """The two environments."""
        return self.level.environment, self.baseline

    @property
    def against(self) -> str:
        """How a sentence names the baseline."""
        return self.baseline if self.substituted else "the baseline"

    @property
    def has_ratio(self) -> bool:
        return self.level.kind.has_ratio

    @property
    def rounds(self) -> Ints:
        return self.by_round.rounds

    @property
    def differences(self) -> Floats:
        return self.by_round.differences

    @property
    def slow(self) -> tuple[Rounds, Rounds]:
        """Rounds in which this environment, or the baseline, ran into its time limit, and not both."""
        return self.by_round.slow

    @property
    def late(self) -> bool:
        """Whether a run that met its time limit is part of the common rounds."""
        return self.by_round.late

    @property
    def interleave(self) -> Interleave:
        """What the differences are of: paired trials, or whole cells."""
        return "cell" if self.by_round.pairs is None else "trial"

    @property
    def adjusted(self) -> bool:
        return self.interim is not None and self.interim.fit.carry_over is not None

    @property
    def judged(self) -> bool:
        """Whether it makes a claim at all, so that the correction counts it."""
        return self.interim is not None and self.blocker is None and not self.control


def pair(level: Level, baseline: str, found: Mapping[Key, Level], context: PairingContext) -> Pair:
    """`level` against the level of `baseline` in the same series, as long as no finding rules that out."""
    study = context.study
    base = found.get((baseline, level.series))
    by_round = context.differences(level, base)
    mirrored = by_round.pairs is not None and context.mirrored(level.label)
    both = (level.environment, baseline)
    made = estimate(by_round, both, context, plain=not level.kind.has_ratio, mirrored=mirrored)
    places = {(name, *place_of_level(level)[1:]) for name in both}
    found_here = Pair(
        level=level,
        baseline=baseline,
        base=base,
        by_round=by_round,
        mirrored=mirrored,
        first=made.first,
        dropped=_dropped(level, base, by_round.rounds, context),
        calibration=made.calibration,
        effect=made.effect,
        interim=made.interim,
        control=level.environment == study.control_name and baseline == study.baseline,
        planned=places <= context.planned.keys(),
        substituted=baseline != study.baseline,
    )
    if not by_round.alone:
        return found_here
    alone = {name: _on_machine(name, found_here, context) for name in by_round.alone}
    return _weighed(replace(found_here, alone=alone, spread=_spread(found_here, alone)), study.equivalence.delta)


def _on_machine(machine: str, whole: Pair, context: PairingContext) -> Pair:
    """The same pair on one of its machines: an estimate of its own, which no look is planned for."""
    by_round, base = whole.by_round.alone[machine], whole.base
    made = estimate(by_round, whole.both, context, plain=not whole.has_ratio, mirrored=whole.mirrored, machine=machine)
    return replace(
        whole,
        alone={},
        level=_part(whole.level, machine),
        base=None if base is None else _part(base, machine),
        by_round=by_round,
        first=made.first,
        calibration=made.calibration,
        effect=made.effect,
        interim=made.interim,
    )


def _weighed(whole: Pair, delta: float) -> Pair:
    """A pair whose verdict none of its machines contradicts. Where they differ, and one of them alone is certainly
    beyond the margin that the mean is inside, or slower where the mean is faster, the mean supports no word."""
    interim, known = whole.interim, [one.effect for one in whole.alone.values() if one.effect is not None]
    if interim is None or whole.spread is None or not whole.spread.differ:
        return whole
    word = int(interim.word)
    inside, faster, slower = word in (EQUIVALENT, TRIVIAL), word == FASTER, word == SLOWER
    above, below = (delta, -delta) if inside else (0.0, 0.0)
    over = any(one.low is not None and one.low > above for one in known)
    under = any(one.high is not None and one.high < below for one in known)
    if not ((inside and (over or under)) or (faster and under) or (slower and over)):
        return whole
    nothing = np.array(INCONCLUSIVE)
    return replace(whole, contradicted=True, interim=replace(interim, word=nothing, by_interval=nothing))


def _part(level: Level, machine: str) -> Level:
    return level.model_copy(update={"cells": tuple(cell for cell in level.cells if cell.machine == machine)})


def _spread(whole: Pair, alone: Mapping[str, Pair]) -> Spread | None:
    """How the effects on machines differ; None unless each has its own estimate with an error."""
    made = [_fitted(one) for one in alone.values() if one.differences.size >= INTERVAL_FROM]
    if whole.interim is None or len(made) < max(2, len(alone)) or any(float(one.se) == 0 for one in made):
        return None
    means, errors = (
        np.array([float(value) for value in side]) for side in zip(*((m.theta, m.se) for m in made), strict=True)
    )
    counts = np.array([one.n for one in made])
    return spread_over(means, errors, counts, (whole.interim.low, whole.interim.high), whole.calibration.a_look)


def _fitted(one: Pair) -> Fit:
    """The estimate on one machine, also where it has too few rounds for a look."""
    return one.interim.fit if one.interim is not None else fit(one.differences, None)


@dataclass(frozen=True)
class Estimate:
    """What differences of two environments, one a round, come to; see `Pair`."""

    first: Floats | None
    calibration: LookLevel
    effect: Effect | None
    interim: InterimResult | None
    covered: tuple[str, ...] = ()  # the machines that it is about, where several have whole rounds
    few: tuple[str, ...] = ()  # those that have too few rounds for that


def estimate(
    given: RoundDifferences,
    both: tuple[str, str],
    context: PairingContext,
    *,
    plain: bool = False,
    mirrored: bool = False,
    machine: str = "",
) -> Estimate:
    """The effect, adjusted for the order where that is possible and not `mirrored` within rounds already, and the last
    look; `plain` ones have no look. The rounds are of one `machine`, where there are several, or of all."""
    if given.alone:
        return _over_machines(given, both, context, plain=plain, mirrored=mirrored)
    study, rounds, differences = context.study, given.rounds, given.differences
    first = None if mirrored else _first(rounds, both, context, machine)
    if not study.order_adjust or not adjustable(first):
        first = None
    levels = level_of(study, adjusted=first is not None, tables=context.tables)
    interim = None
    if rounds.size >= VERDICT_FROM and not plain:
        beyond = (len(given.slow[0]), len(given.slow[1]))
        interim = last_interim(differences, first, _sizes(rounds, study.looks), levels, study.equivalence.delta, beyond)
    return Estimate(first, levels, _effect(differences, levels, interim, plain=plain), interim)


def _over_machines(
    given: RoundDifferences, both: tuple[str, str], context: PairingContext, *, plain: bool, mirrored: bool
) -> Estimate:
    """`estimate` of several machines. Each look is of the rounds so far, and of the machines with enough of them."""
    study, rounds = context.study, given.rounds
    first = None if mirrored or not study.order_adjust else _first_over(given, both, context)
    if first is not None and not adjustable_over(grid_of(given.alone)[0], first):
        first = None
    levels = level_of(study, adjusted=first is not None, tables=context.tables)
    interim, beyond = None, (len(given.slow[0]), len(given.slow[1]))
    for size in _sizes(rounds, study.looks) if rounds.size and not plain else ():
        so_far = within(given, frozenset(rounds[:size].tolist()))
        if so_far.rounds.size < VERDICT_FROM:
            continue
        grid, _ = grid_of(so_far.alone)
        order = None if first is None else _first_over(so_far, both, context)
        made, left = fit_over(grid, order if order is not None and adjustable_over(grid, order) else None)
        interim = result_of(made, left, levels, study.equivalence.delta, interim, beyond)
    effect = _effect(given.differences, levels, interim, plain=plain)
    if interim is None and rounds.size >= INTERVAL_FROM:  # too few rounds for a look
        made, _ = fit_over(grid_of(given.alone)[0], None)
        low, high = map(float, made.interval(LEVEL) if plain else levels.interval(made))
        ends = (low, high) if made.df > 0 and math.isfinite(low) else (None, None)
        effect = Effect(rounds.size, float(made.theta), float(made.sd), *ends)
    order = None if first is None else pooled(first)
    return Estimate(order, levels, effect, interim, tuple(given.alone), tuple(given.few))


def _first_over(given: RoundDifferences, both: tuple[str, str], context: PairingContext) -> Floats | None:
    """Who ran first, by machine and round, NaN where there is no difference; None where the plan does not know."""
    known = {name: _first(one.rounds, both, context, name) for name, one in given.alone.items()}
    if any(one is None for one in known.values()):
        return None
    filled = {name: replace(given.alone[name], differences=one) for name, one in known.items() if one is not None}
    return grid_of(filled)[0]


def _first(rounds: Ints, both: tuple[str, str], context: PairingContext, machine: str) -> Floats | None:
    places, (environment, baseline) = context.places, both
    numbers = [context.blocks.on(machine, number) for number in rounds.tolist()]
    if not all((number, name) in places for number in numbers for name in both):
        return None
    before = [places[number, environment] < places[number, baseline] for number in numbers]
    return np.where(np.array(before, bool), 1.0, -1.0)


def _sizes(rounds: Ints, looks: Sequence[int]) -> list[int]:
    """How many of the pairs each look so far had."""
    before = [int(np.searchsorted(rounds, look, side="right")) for look in looks if look < rounds[-1]]
    return sorted({*before, rounds.size})


def _effect(differences: Floats, levels: LookLevel, interim: InterimResult | None, *, plain: bool) -> Effect | None:
    n = differences.size
    if interim is not None:
        fitted = interim.fit
        return Effect(n, float(fitted.theta), float(fitted.sd), float(interim.low), float(interim.high))
    if n < INTERVAL_FROM:
        return None if n == 0 else Effect(n, float(differences.mean()), _sd(differences), None, None)
    made = fit(differences, None)
    low, high = map(float, made.interval(LEVEL) if plain else levels.interval(made))
    finite = math.isfinite(low)
    return Effect(n, float(made.theta), float(made.sd), low if finite else None, high if finite else None)


def _sd(differences: Floats) -> float | None:
    return float(differences.std(ddof=1)) if differences.size > 1 else None


def _dropped(level: Level, base: Level | None, rounds: Ints, context: PairingContext) -> int:
    """Rounds so far without a pair, although one of the two had a value or both were planned."""
    if base is None:
        return 0
    either = {cell.round for cell in (*level.cells, *base.cells)} | set(range(1, context.finished + 1))
    both = {one for one in either if all(context.takes_part(name.environment, one) for name in (level, base))}
    return len(both) - rounds.size
