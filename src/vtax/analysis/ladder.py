"""The ladder: what each step from one environment to the next costs, paired within rounds. Intervals, no verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from vtax.analysis import compare, verdict
from vtax.analysis.records import Ladder, Level, Rung
from vtax.analysis.summary import UNLOGGED, Series, series_of
from vtax.model import Direction, Finding


def ladders(
    steps: Sequence[str],
    ordered: Sequence[Level],
    found: Mapping[tuple[str, Series], Level],
    findings: Sequence[Finding],
) -> tuple[Ladder, ...]:
    """One ladder for each series, in the order of `ordered`, over the `steps` that have it; two are the fewest.

    A step that was left out is skipped: the rung then leads from the step before it, and says so in `previous`.
    """
    several = []
    for series in dict.fromkeys(map(series_of, ordered)):
        levels = [found[step, series] for step in steps if (step, series) in found]
        if len(levels) < 2 or levels[0].kind in UNLOGGED or levels[0].direction is Direction.NONE:
            continue
        rounds = frozenset.intersection(*(frozenset(cell.round for cell in level.cells) for level in levels))
        if rounds:
            several.append(_ladder(levels, rounds, findings))
    return tuple(several)


def _ladder(levels: Sequence[Level], rounds: frozenset[int], findings: Sequence[Finding]) -> Ladder:
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
        rungs=tuple(_rung(level, previous, rounds, findings) for previous, level in pairwise(levels)),
        total=_rung(levels[-1], first, rounds, findings),
    )


def _rung(level: Level, previous: Level, rounds: frozenset[int], findings: Sequence[Finding]) -> Rung:
    shared = level.model_copy(update={"cells": tuple(cell for cell in level.cells if cell.round in rounds)})
    estimate = compare.estimate(compare.paired_differences(shared, previous))
    if estimate is None:
        raise ValueError(f"{level.environment} and {previous.environment} share no round")
    block = verdict.blocker(findings, (level.environment, previous.environment), level)
    return Rung(
        environment=level.environment,
        previous=previous.environment,
        effect=estimate.mean,
        sd=estimate.sd,
        ratio=compare.exponential(estimate.mean),
        low=None if estimate.low is None else compare.exponential(estimate.low),
        high=None if estimate.high is None else compare.exponential(estimate.high),
        blocker=block.message if block is not None else "",
    )
