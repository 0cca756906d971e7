"""Comparisons of runs that were not planned in rounds: other people's logs. A ratio of levels, and at most a pilot.

Run 3 here has nothing to do with run 3 there, so nothing is paired. The runs were neither fresh instances nor in random
order, so no interval would mean what it says.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from vtax.analysis.comparison import effect_fields
from vtax.analysis.prepared import Prepared
from vtax.analysis.records import Comparison, Level, Verdict
from vtax.analysis.verdict import UNPLANNED, Effect, blocker, difference_text, signed
from vtax.model.finding import Finding
from vtax.model.metric import Direction, Series
from vtax.model.plan import Plan

MACHINE_NAMES = frozenset({"client", "server", "node", "target"})  # labels with names that an environment gives itself
PILOT_FROM = 3  # runs on both sides
REMARK = "runs of unknown order, not fresh instances in randomised rounds (R01, R02)"


def independent_comparisons(numbers: Prepared, findings: Sequence[Finding]) -> tuple[Comparison, ...]:
    """One for every series that an environment and the baseline both have, on equally many machines."""
    groups: Mapping[tuple[str, Series], list[Level]] = defaultdict(list)
    for level in numbers.in_order(numbers.levels.values()):
        if level.direction is not Direction.NONE:
            groups[level.environment, _shared_series(level)].append(level)
    return tuple(_comparisons(groups, numbers.plan, findings))


def _shared_series(level: Level) -> Series:
    """What two environments may share: all but the names of machines."""
    labels = tuple(pair for pair in level.series.labels if pair[0] not in MACHINE_NAMES)
    return level.series._replace(labels=labels)


def _comparisons(
    groups: Mapping[tuple[str, Series], list[Level]], plan: Plan, findings: Sequence[Finding]
) -> Iterator[Comparison]:
    baseline = plan.study.baseline
    for (environment, series), mine in groups.items():
        theirs = groups.get((baseline, series)) if environment != baseline else None
        if theirs and len(mine) == len(theirs):
            yield _comparison(mine, theirs, series, plan, findings)


def _comparison(
    mine: Sequence[Level], theirs: Sequence[Level], series: Series, plan: Plan, findings: Sequence[Finding]
) -> Comparison:
    level, baseline = mine[0], theirs[0].environment
    ours, base = (fmean(one.typical for one in side) for side in (mine, theirs))
    sign = 1.0 if level.direction is Direction.HIGHER else -1.0
    difference = sign * math.log(ours / base) if level.kind.has_ratio else ours - base
    found = Effect(min(one.n for one in (*mine, *theirs)), difference, None, None, None)
    block = blocker(findings, (level.environment, baseline), level, plan, UNPLANNED)
    if block is not None:
        word, sentence = Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {block.message}"
    else:
        word, size = Verdict.DIFFERENCE_ONLY, difference_text(found, level.unit)
        if level.kind.has_ratio:
            word = Verdict.PILOT if found.n >= PILOT_FROM else Verdict.DATA_ONLY
            size = signed(math.exp(difference), None)
        runs = f"{level.n} run{'s' if level.n != 1 else ''} against {theirs[0].n}"
        sentence = f"{word} ({runs}): {size}"
    own_labels = {} if len(mine) == 1 else {"labels": dict(series.labels)}
    return Comparison(
        **(level.series_fields | own_labels),
        environment=level.environment,
        baseline=baseline,
        verdict=word,
        ruled_out_by=block.id if block is not None else "",
        sentence=sentence if level.primary else f"{sentence} (exploratory)",
        remark=REMARK if len(mine) == 1 else f"mean over {len(mine)} pairs or nodes; {REMARK}",
        **effect_fields(found, has_ratio=level.kind.has_ratio),
    )
