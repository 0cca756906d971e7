"""Pairs: an environment and the baseline in the same rounds, ready to be looked at (METHOD 1.7, 1.8)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vtax.analysis.estimate.columns import UNLOGGED, Floats, Group, Ints, Series
from vtax.analysis.estimate.failures import SPEEDS, Lost, Place, Timeouts
from vtax.analysis.estimate.paired import INTERVAL_FROM, LEVEL, adjustable, fit, log_differences
from vtax.analysis.estimate.summary import Key, absent, nothing_of, place_of_level, series_of, target_of
from vtax.analysis.records import VERDICT_FROM, Level
from vtax.analysis.sequential.group_sequential import LookLevel, Tables, level_of
from vtax.analysis.sequential.sequential_test import Look, looks_at
from vtax.analysis.verdict import Effect
from vtax.model.finding import Finding
from vtax.model.metric import Direction
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.model.trial import Status, TrialRecord
from vtax.tools import benchmarks


@dataclass(frozen=True)
class Frame:
    """What of plan and trials the pairs need. `finished` rounds are over, the first ones; `places` is who ran when.

    `planned` is where the plan has which entry, and its benchmark; `timeouts` and `lost` are measured runs that gave
    no number.
    """

    study: Study
    places: Mapping[tuple[int, str], int]
    finished: int
    complete: int
    planned: Mapping[Place, str] = field(default_factory=dict)
    timeouts: Timeouts = field(default_factory=dict)
    lost: Lost = field(default_factory=dict)
    tables: Tables = field(default_factory=dict)

    @property
    def look(self) -> int | None:
        """The last planned look that was reached."""
        return max((look for look in self.study.looks if look <= self.finished), default=None)


def frame_of(
    plan: Plan, trials: Sequence[TrialRecord], measured: int, late: Timeouts, gone: Lost, tables: Tables
) -> Frame:
    """`measured` is the last round that has a measurement; it counts where no trial was recorded.

    The last round with any record is over, and so are those before it: what has no record there is lost, like a run
    that failed. (At a look while a campaign runs, the last round is the one that has just ended.)
    """
    done = {trial.id for trial in trials if trial.status is Status.OK}
    rounds: dict[int, list[str]] = {}
    places: dict[tuple[int, str], int] = {}
    for place, cell in enumerate(plan.cells):
        places[cell.round, cell.environment] = place
        rounds.setdefault(cell.round, []).extend(trial.id for trial in cell.trials if not trial.warmup)
    finished = max((trial.round for trial in trials), default=measured)
    complete = sum(all(trial in done for trial in several) for several in rounds.values())
    known = {spec.name for spec in plan.environments}
    planned = {
        (work.environment, work.label, work.target.label): work.benchmark
        for work in plan.work
        if work.environment in known
    }
    return Frame(plan.study, places, finished, complete, planned, late, gone, tables)


def missing_levels(found: Mapping[Key, Level], frame: Frame) -> dict[Key, Level]:
    """Each series that some environment has, in those that were to have it and do not: nothing of it succeeded there.

    Of an entry that succeeded nowhere: the primary metrics that its benchmark declares.
    """
    known = {series_of(level): level for level in found.values()}
    measured = {(series.label, target_of(series)) for series in known}
    for place in sorted(frame.lost):
        if place in frame.planned and place[1:] not in measured:
            known |= {series_of(level): level for level in _declared(frame.planned[place], *place)}
    planned: dict[tuple[str, str], list[str]] = {}
    for environment, label, target in sorted(frame.planned):
        planned.setdefault((label, target), []).append(environment)
    return {
        (environment, series): absent(level, environment)
        for series, level in known.items()
        for environment in planned.get((series.label, target_of(series)), ())
        if (environment, series) not in found
    }


def _declared(benchmark: str, environment: str, label: str, target: str) -> list[Level]:
    """The primary metrics that a benchmark declares, without a number; none of one that is not known here."""
    known = benchmarks().get(benchmark)
    return [
        nothing_of(
            Group(
                environment,
                Series(benchmark, label, metric.name, (("target", target),)),
                metric.unit,
                metric.kind,
                metric.direction,
                metric.primary,
            )
        )
        for metric in (known.metrics if known is not None else ())
        if metric.primary
    ]


Rounds = frozenset[int]
NEVER: Rounds = frozenset()


@dataclass(frozen=True)
class Pair:
    """A series in an environment and in the baseline; the arrays have one entry for each round that both have.

    `first` is +1 where the environment ran before the baseline, else -1; None where the plan does not know.
    `effect` is None without a common round, `look` below six.
    """

    level: Level
    base: Level | None
    rounds: Ints
    differences: Floats
    first: Floats | None
    dropped: int
    slow: tuple[Rounds, Rounds]  # in which this environment, or the baseline, ran into its time limit, and not both
    calibration: LookLevel
    effect: Effect | None
    look: Look | None
    blocker: Finding | None
    control: bool
    planned: bool  # in both environments

    @property
    def logged(self) -> bool:
        return self.level.kind not in UNLOGGED

    @property
    def late(self) -> bool:
        """Whether a run that met its time limit belongs to a cell of the common rounds."""
        rounds = set(self.rounds.tolist())
        several = (self.level, self.base) if self.base is not None else (self.level,)
        return any(cell.timed_out for level in several for cell in level.cells if cell.round in rounds)

    @property
    def adjusted(self) -> bool:
        return self.look is not None and self.look.fit.carry_over is not None

    @property
    def judged(self) -> bool:
        """Whether it makes a claim at all, so that the correction counts it."""
        return self.look is not None and self.blocker is None and not self.control


def pair(level: Level, found: Mapping[Key, Level], frame: Frame, blocker: Finding | None) -> Pair:
    """What `level` is against the baseline's level of the same series."""
    study, series = frame.study, series_of(level)
    base = found.get((study.baseline, series))
    rounds, differences = _differences(level, base)
    slow = _slow(level, base, frame)
    made = estimate(rounds, differences, level.environment, frame, slow, plain=level.kind in UNLOGGED)
    places = {(name, *place_of_level(level)[1:]) for name in (level.environment, study.baseline)}
    return Pair(
        level=level,
        base=base,
        rounds=rounds,
        differences=differences,
        first=made.first,
        dropped=_dropped(level, base, rounds, frame.finished),
        slow=slow,
        calibration=made.calibration,
        effect=made.effect,
        look=made.look,
        blocker=blocker,
        control=level.environment == study.control_name,
        planned=places <= frame.planned.keys(),
    )


@dataclass(frozen=True)
class Estimate:
    """What differences of an environment, one a round, come to; see `Pair`."""

    first: Floats | None
    calibration: LookLevel
    effect: Effect | None
    look: Look | None


def estimate(
    rounds: Ints,
    differences: Floats,
    environment: str,
    frame: Frame,
    slow: tuple[Rounds, Rounds] = (NEVER, NEVER),
    *,
    plain: bool = False,
) -> Estimate:
    """The effect, adjusted for the order where that is possible, and the last look; `plain` ones have no look. `slow`
    are rounds beside those of `differences`, see `Pair`."""
    study = frame.study
    first = _first(rounds, environment, frame)
    if not study.order_adjust or not adjustable(first):
        first = None
    levels = level_of(study, adjusted=first is not None, tables=frame.tables)
    look = None
    if rounds.size >= VERDICT_FROM and not plain:
        delta, beyond = float(np.log1p(study.margin)), (len(slow[0]), len(slow[1]))
        look = looks_at(differences, first, _sizes(rounds, study.looks), levels, delta, beyond)
    return Estimate(first, levels, _effect(differences, levels, look, plain=plain), look)


def _differences(level: Level, base: Level | None) -> tuple[Ints, Floats]:
    """One difference for each round that both have, in order of rounds: above zero is better than the baseline."""
    if base is None or level.direction is Direction.NONE:
        return np.empty(0, np.int64), np.empty(0)
    theirs = {cell.round: cell.value for cell in base.cells}
    both = [(cell.round, cell.value, theirs[cell.round]) for cell in level.cells if cell.round in theirs]
    rounds = np.array([number for number, _, _ in both], np.int64)
    mine, other = np.array([a for _, a, _ in both]), np.array([b for _, _, b in both])
    if level.kind in UNLOGGED:
        return rounds, mine - other  # a plain difference keeps its sign: more is more
    return rounds, log_differences(mine, other, higher_is_better=level.direction is Direction.HIGHER)


def _first(rounds: Ints, environment: str, frame: Frame) -> Floats | None:
    places, baseline = frame.places, frame.study.baseline
    if not all((number, name) in places for number in rounds.tolist() for name in (environment, baseline)):
        return None
    before = [places[number, environment] < places[number, baseline] for number in rounds.tolist()]
    return np.where(np.array(before, bool), 1.0, -1.0)


def _sizes(rounds: Ints, looks: Sequence[int]) -> list[int]:
    """How many of the pairs each look so far had."""
    before = [int(np.searchsorted(rounds, look, side="right")) for look in looks if look < rounds[-1]]
    return sorted({*before, rounds.size})


def _effect(differences: Floats, levels: LookLevel, look: Look | None, *, plain: bool) -> Effect | None:
    n = differences.size
    if look is not None:
        return Effect(n, float(look.fit.theta), float(look.fit.sd), float(look.low), float(look.high))
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


def _slow(level: Level, base: Level | None, frame: Frame) -> tuple[Rounds, Rounds]:
    """Rounds in which one of both ran into its time limit and the other has a value, for metrics that say how fast
    something was."""
    if base is None or level.kind not in SPEEDS:
        return NEVER, NEVER
    mine, theirs = (frozenset(frame.timeouts.get(place_of_level(one), {})) for one in (level, base))
    ours, others = ({cell.round for cell in one.cells} for one in (level, base))
    return (mine - ours) & others, (theirs - others) & ours
