"""Pairs: an environment and the baseline in the same rounds, ready to be looked at (METHOD 1.7, 1.8)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vtax.analysis.columns import UNLOGGED, Floats, Ints, Series
from vtax.analysis.decide import Look, looks_at
from vtax.analysis.estimate import INTERVAL_FROM, LEVEL, adjustable, fit, log_differences
from vtax.analysis.failures import Censored
from vtax.analysis.looks import LookLevel, Tables, level_of
from vtax.analysis.records import VERDICT_FROM, Level
from vtax.analysis.summary import Key, series_of
from vtax.analysis.verdict import Effect
from vtax.model.finding import Finding
from vtax.model.metric import Direction, Kind
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.model.trial import Status, TrialRecord


@dataclass(frozen=True)
class Frame:
    """What of plan and trials the pairs need. `finished` rounds are over, the first ones; `places` is who ran when."""

    study: Study
    places: Mapping[tuple[int, str], int]
    finished: int
    complete: int
    censored: Censored = field(default_factory=dict)
    tables: Tables = field(default_factory=dict)

    @property
    def look(self) -> int | None:
        """The last planned look that was reached."""
        return max((look for look in self.study.looks if look <= self.finished), default=None)


def frame_of(plan: Plan, trials: Sequence[TrialRecord], measured: int, censored: Censored, tables: Tables) -> Frame:
    """`measured` is the last round that has a measurement; it counts where no trial was recorded."""
    recorded = {trial.id for trial in trials}
    done = {trial.id for trial in trials if trial.status is Status.OK}
    rounds: dict[int, list[str]] = {}
    places: dict[tuple[int, str], int] = {}
    for place, cell in enumerate(plan.cells):
        places[cell.round, cell.environment] = place
        rounds.setdefault(cell.round, []).extend(trial.id for trial in cell.trials if not trial.warmup)
    finished = 0
    for number in sorted(rounds):
        if not all(trial in recorded for trial in rounds[number]):
            break
        finished = number
    complete = sum(all(trial in done for trial in several) for several in rounds.values())
    return Frame(plan.study, places, finished if trials else measured, complete, censored, tables)


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
    slow: tuple[int, int]  # rounds in which this environment, or the baseline, ran into a time limit
    calibration: LookLevel
    effect: Effect | None
    look: Look | None
    blocker: Finding | None
    control: bool

    @property
    def logged(self) -> bool:
        return self.level.kind not in UNLOGGED

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
    made = estimate(rounds, differences, level.environment, frame, plain=level.kind in UNLOGGED)
    return Pair(
        level=level,
        base=base,
        rounds=rounds,
        differences=differences,
        first=made.first,
        dropped=_dropped(level, base, rounds, frame.finished),
        slow=_slow(frame.censored, level, study.baseline, series, set(rounds.tolist())),
        calibration=made.calibration,
        effect=made.effect,
        look=made.look,
        blocker=blocker,
        control=level.environment == study.control_name,
    )


@dataclass(frozen=True)
class Estimate:
    """What differences of an environment, one a round, come to; see `Pair`."""

    first: Floats | None
    calibration: LookLevel
    effect: Effect | None
    look: Look | None


def estimate(rounds: Ints, differences: Floats, environment: str, frame: Frame, *, plain: bool = False) -> Estimate:
    """The effect, adjusted for the order where that is possible, and the last look; `plain` ones have no look."""
    study = frame.study
    first = _first(rounds, environment, frame)
    if not study.order_adjust or not adjustable(first):
        first = None
    levels = level_of(study, adjusted=first is not None, tables=frame.tables)
    look = None
    if rounds.size >= VERDICT_FROM and not plain:
        look = looks_at(differences, first, _sizes(rounds, study.looks), levels, float(np.log1p(study.margin)))
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


def _slow(censored: Censored, level: Level, baseline: str, series: Series, paired: set[int]) -> tuple[int, int]:
    """Rounds in which only one of both ran into its time limit, for metrics that say how fast something was."""
    target = dict(series.labels).get("target", "")
    if level.kind in (Kind.PROPORTION, Kind.COUNT, Kind.RATIO, Kind.LATENCY_QUANTILE):
        return 0, 0
    mine = censored.get((level.environment, series.label, target), frozenset()) - paired
    theirs = censored.get((baseline, series.label, target), frozenset()) - paired
    return len(mine - theirs), len(theirs - mine)
