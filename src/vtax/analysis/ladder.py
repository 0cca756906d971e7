"""The ladder: what each step from one environment to the next costs, paired within rounds. Intervals, no verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from vtax.analysis import verdict
from vtax.analysis.estimate.paired import INTERVAL_FROM, LEVEL, exponential, fit, log_differences
from vtax.analysis.prepared import Prepared
from vtax.analysis.records import Ladder, LadderStep, Level
from vtax.analysis.sequential.group_sequential import LookLevel, level_of
from vtax.model.finding import Finding
from vtax.model.metric import Direction

Rounds = tuple[int, ...]
Forbidden = Callable[[Level, Level], str]


def ladders(numbers: Prepared, findings: Sequence[Finding]) -> tuple[Ladder, ...]:
    """One ladder for each series over the steps of the study that have it; two at least.

    Intervals are at the level of the planned looks, once the first is reached. A step that was left out or emulated is
    skipped: the next one then leads from the step before it, and says so in `previous`.
    """
    context, found = numbers.context, numbers.levels
    at = None if context.look is None else level_of(context.study, adjusted=False, tables=context.tables)
    forbidden = partial(_forbidden, numbers, findings)
    steps = [step for step in context.study.ladder if step not in context.emulated]
    several = []
    for series in dict.fromkeys(level.series for level in numbers.in_order(found.values())):
        levels = [found[step, series] for step in steps if (step, series) in found]
        if len(levels) < 2 or not levels[0].kind.has_ratio or levels[0].direction is Direction.NONE:
            continue
        common = frozenset.intersection(*(frozenset(cell.round for cell in level.cells) for level in levels))
        if common:
            several.append(_ladder(levels, tuple(sorted(common)), forbidden, at))
    return tuple(several)


def _forbidden(numbers: Prepared, findings: Sequence[Finding], level: Level, previous: Level) -> str:
    """Why two steps do not compare; "" when nothing says so."""
    block = verdict.blocker(findings, (level.environment, previous.environment), level, numbers.plan)
    return numbers.control.excluded if block is None else block.message


def _ladder(levels: Sequence[Level], rounds: Rounds, forbidden: Forbidden, at: LookLevel | None) -> Ladder:
    first = levels[0]
    return Ladder(
        **first.series_fields,
        n=len(rounds),
        rungs=tuple(_step(level, previous, rounds, forbidden, at) for previous, level in pairwise(levels)),
        total=_step(levels[-1], first, rounds, forbidden, at),
    )


def _step(level: Level, previous: Level, rounds: Rounds, forbidden: Forbidden, at: LookLevel | None) -> LadderStep:
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
    return LadderStep(
        environment=level.environment,
        previous=previous.environment,
        effect=effect,
        sd=float(made.sd) if made is not None else None,
        ratio=exponential(effect),
        low=None if bounds is None else exponential(bounds[0]),
        high=None if bounds is None else exponential(bounds[1]),
        blocker=forbidden(level, previous),
    )
