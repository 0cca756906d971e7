"""Pairs: an environment and its baseline in the same rounds, with the estimate and the interim results so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vtax.analysis.estimate.columns import Floats, Ints
from vtax.analysis.estimate.context import PairingContext
from vtax.analysis.estimate.differences import RoundDifferences, Rounds
from vtax.analysis.estimate.paired import INTERVAL_FROM, LEVEL, adjustable, fit
from vtax.analysis.estimate.summary import Key, place_of_level
from vtax.analysis.records import VERDICT_FROM, Level
from vtax.analysis.sequential.group_sequential import LookLevel, level_of
from vtax.analysis.sequential.sequential_test import InterimResult, last_interim
from vtax.analysis.verdict import Effect
from vtax.model.finding import Finding
from vtax.model.study import Interleave


@dataclass(frozen=True)
class Pair:
    """A series in an environment and in its baseline.

    `baseline` is the study's, or where `substituted` the environment that takes its place because it cannot have this.
    `by_round` has one difference for each round that both have. `first` is +1 where the environment ran before the
    baseline, else -1; None where the plan does not know, and where the order is mirrored within each round. `effect` is
    None without a common round, `interim` below six.
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
    return Pair(
        level=level,
        baseline=baseline,
        base=base,
        by_round=by_round,
        mirrored=mirrored,
        first=made.first,
        dropped=_dropped(level, base, by_round.rounds, context.finished),
        calibration=made.calibration,
        effect=made.effect,
        interim=made.interim,
        control=level.environment == study.control_name and baseline == study.baseline,
        planned=places <= context.planned.keys(),
        substituted=baseline != study.baseline,
    )


@dataclass(frozen=True)
class Estimate:
    """What differences of two environments, one a round, come to; see `Pair`."""

    first: Floats | None
    calibration: LookLevel
    effect: Effect | None
    interim: InterimResult | None


def estimate(
    given: RoundDifferences,
    both: tuple[str, str],
    context: PairingContext,
    *,
    plain: bool = False,
    mirrored: bool = False,
) -> Estimate:
    """The effect, adjusted for the order where that is possible and not `mirrored` within rounds already, and the last
    look; `plain` ones have no look."""
    study, rounds, differences = context.study, given.rounds, given.differences
    first = None if mirrored else _first(rounds, both, context)
    if not study.order_adjust or not adjustable(first):
        first = None
    levels = level_of(study, adjusted=first is not None, tables=context.tables)
    interim = None
    if rounds.size >= VERDICT_FROM and not plain:
        beyond = (len(given.slow[0]), len(given.slow[1]))
        interim = last_interim(differences, first, _sizes(rounds, study.looks), levels, study.equivalence.delta, beyond)
    return Estimate(first, levels, _effect(differences, levels, interim, plain=plain), interim)


def _first(rounds: Ints, both: tuple[str, str], context: PairingContext) -> Floats | None:
    places, (environment, baseline) = context.places, both
    if not all((number, name) in places for number in rounds.tolist() for name in both):
        return None
    before = [places[number, environment] < places[number, baseline] for number in rounds.tolist()]
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


def _dropped(level: Level, base: Level | None, rounds: Ints, finished: int) -> int:
    """Rounds so far without a pair, although one of the two had a value or both were planned."""
    if base is None:
        return 0
    either = {cell.round for cell in (*level.cells, *base.cells)} | set(range(1, finished + 1))
    return len(either) - rounds.size
