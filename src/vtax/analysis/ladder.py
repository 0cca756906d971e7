"""The ladder: what each step from one environment to the next costs, paired within rounds. Intervals, no verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from vtax.analysis import verdict
from vtax.analysis.estimate.columns import UNLOGGED
from vtax.analysis.estimate.paired import INTERVAL_FROM, LEVEL, exponential, fit, log_differences
from vtax.analysis.estimate.pairs import Frame
from vtax.analysis.estimate.summary import Key, series_of
from vtax.analysis.records import Ladder, Level, Rung
from vtax.analysis.sequential.group_sequential import LookLevel, level_of
from vtax.model.finding import Finding
from vtax.model.metric import Direction

Rounds = tuple[int, ...]
Forbidden = Callable[[Level, Level], str]


def ladders(
    ordered: Sequence[Level], found: Mapping[Key, Level], findings: Sequence[Finding], frame: Frame, invalid: str
) -> tuple[Ladder, ...]:
    """One ladder for each series, in the order of `ordered`, over the steps of the study that have it; two at least.

    Intervals are at the level of the planned looks, once the first is reached. A step that was left out is skipped: the
    rung then leads from the step before it, and says so in `previous`. `invalid` is why nothing of the campaign
    compares, "" when nothing says so.
    """
    at = None if frame.look is None else level_of(frame.study, adjusted=False, tables=frame.tables)
    several = []
    for series in dict.fromkeys(map(series_of, ordered)):
        levels = [found[step, series] for step in frame.study.ladder if (step, series) in found]
        if len(levels) < 2 or levels[0].kind in UNLOGGED or levels[0].direction is Direction.NONE:
            continue
        common = frozenset.intersection(*(frozenset(cell.round for cell in level.cells) for level in levels))
        if common:
            forbidden = partial(_forbidden, findings, frame.study.names_of(series.benchmark, series.label), invalid)
            several.append(_ladder(levels, tuple(sorted(common)), forbidden, at))
    return tuple(several)


def _forbidden(findings: Sequence[Finding], names: Sequence[str], invalid: str, level: Level, previous: Level) -> str:
    """Why two steps do not compare; "" when nothing says so. `names` are those that a finding may call the entry."""
    block = verdict.blocker(findings, (level.environment, previous.environment), level, names)
    return invalid if block is None else block.message


def _ladder(levels: Sequence[Level], rounds: Rounds, forbidden: Forbidden, at: LookLevel | None) -> Ladder:
    first = levels[0]
    return Ladder(
        benchmark=first.benchmark,
        label=first.label,
        metric=first.metric,
        unit=first.unit,
        kind=first.kind,
        direction=first.direction,
        primary=first.primary,
        labels=first.labels,
        n=len(rounds),
        rungs=tuple(_rung(level, previous, rounds, forbidden, at) for previous, level in pairwise(levels)),
        total=_rung(levels[-1], first, rounds, forbidden, at),
    )


def _rung(level: Level, previous: Level, rounds: Rounds, forbidden: Forbidden, at: LookLevel | None) -> Rung:
    mine, theirs = ({cell.round: cell.value for cell in one.cells} for one in (level, previous))
    differences = log_differences(
        np.array([mine[number] for number in rounds]),
        np.array([theirs[number] for number in rounds]),
        higher_is_better=level.direction is Direction.HIGHER,
    )
    made = fit(differences, None) if len(rounds) > 1 else None
    shown = made is not None and len(rounds) >= INTERVAL_FROM
    ends = None if made is None or not shown else made.interval(LEVEL) if at is None else at.interval(made)
    bounds = None if ends is None or not np.isfinite(ends[0]) else (float(ends[0]), float(ends[1]))
    effect = float(differences.mean())
    return Rung(
        environment=level.environment,
        previous=previous.environment,
        effect=effect,
        sd=float(made.sd) if made is not None else None,
        ratio=exponential(effect),
        low=None if bounds is None else exponential(bounds[0]),
        high=None if bounds is None else exponential(bounds[1]),
        blocker=forbidden(level, previous),
    )
