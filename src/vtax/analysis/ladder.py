"""The ladder: what each step from one environment to the next costs, paired within rounds. Intervals, no verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from vtax.analysis import verdict
from vtax.analysis.estimate.differences import RoundDifferences, grid_of, within
from vtax.analysis.estimate.machines import fit_over
from vtax.analysis.estimate.paired import INTERVAL_FROM, LEVEL, exponential, fit
from vtax.analysis.prepared import Prepared
from vtax.analysis.records import Ladder, LadderStep, Level
from vtax.analysis.sequential.group_sequential import LookLevel, level_of
from vtax.model.finding import Finding
from vtax.model.metric import Direction

Forbidden = Callable[[Level, Level], str]


def ladders(numbers: Prepared, findings: Sequence[Finding]) -> tuple[Ladder, ...]:
    """One ladder for each series over the steps of the study that have it; two at least.

    Intervals are at the level of the planned looks, once the first is reached. A step that was left out or emulated is
    skipped: the next one then leads from the step before it, and says so in `previous`.
    """
    context, found = numbers.context, numbers.levels
    at = None if context.look is None else level_of(context.study, adjusted=False, tables=context.tables)
    forbidden = partial(_forbidden, numbers, findings)
    names = [name for name in context.study.ladder if name not in context.emulated]
    several = []
    for series in dict.fromkeys(level.series for level in numbers.in_order(found.values())):
        levels = [found[name, series] for name in names if (name, series) in found]
        if len(levels) < 2 or not levels[0].kind.has_ratio or levels[0].direction is Direction.NONE:
            continue
        steps = [(level, previous) for previous, level in pairwise(levels)] + [(levels[-1], levels[0])]
        apart = [context.differences(level, previous) for level, previous in steps]
        common = frozenset.intersection(*(frozenset(one.rounds.tolist()) for one in apart))
        if common:
            made = [
                _step(level, previous, within(one, common), forbidden, at)
                for (level, previous), one in zip(steps, apart, strict=True)
            ]
            fields = levels[0].series_fields
            several.append(Ladder(**fields, n=len(common), rungs=tuple(made[:-1]), total=made[-1]))
    return tuple(several)


def _forbidden(numbers: Prepared, findings: Sequence[Finding], level: Level, previous: Level) -> str:
    """Why two steps do not compare; "" when nothing says so."""
    block = verdict.blocker(findings, (level.environment, previous.environment), level, numbers.plan)
    return numbers.control.excluded if block is None else block.message


def _step(
    level: Level, previous: Level, apart: RoundDifferences, forbidden: Forbidden, at: LookLevel | None
) -> LadderStep:
    differences = apart.differences
    made = fit(differences, None) if differences.size > 1 else None
    if made is not None and apart.alone:
        made, _ = fit_over(grid_of(apart.alone)[0], None)
    shown = made is not None and differences.size >= INTERVAL_FROM
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
