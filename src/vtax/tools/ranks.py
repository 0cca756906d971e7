"""Values of several ranks in one run: kept apart where the log says whose they are, in order of size where it does not.

A sum needs no names, and neither does "the smallest of four": both mean the same in every run and every environment.
"The first one printed" would not: the ranks of a run end in any order.
"""

from __future__ import annotations

from collections import defaultdict

from vtax.model.metric import Kind, Metric
from vtax.model.record import Labels
from vtax.tools.reading import Reading, Value

SUMMED = frozenset({Kind.RATE_FIXED_TIME, Kind.RATE_FIXED_WORK, Kind.COUNT})
Combined = tuple[Metric, float, Labels, tuple[int, ...]]


def combined(reading: Reading) -> list[Combined]:
    """Metric, value, labels and lines of everything a reading holds, no two with the same labels."""
    found: list[Combined] = []
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Value]] = defaultdict(list)
    for value in reading.values:
        if value.of_ranks and reading.ranks > 1:
            groups[value.metric.name, tuple(sorted(value.labels.items()))].append(value)
        else:
            found.append((value.metric, value.value, value.labels, (value.line,)))
    totals: dict[tuple[str, tuple[tuple[str, str], ...]], list[Value]] = defaultdict(list)
    for (name, labels), values in groups.items():
        found += _each(values, dict(labels), reading.ranks)
        totals[name, tuple(label for label in labels if label[0] != "node")] += values
    for (_, labels), values in totals.items():
        found.append(_together(values, dict(labels), reading.ranks))
    return found


def _each(values: list[Value], labels: dict[str, str], ranks: int) -> list[Combined]:
    """The values one by one: under the rank's number when all have one, else by size. None of them is a headline."""
    named = all(value.ordinal for value in values) and len({value.ordinal for value in values}) == len(values)
    each: list[Combined] = []
    for place, value in enumerate(sorted(values, key=lambda value: value.value), start=1):
        own = {"rank": value.ordinal} if named else {"by_size": str(place)}
        metric = value.metric.model_copy(update={"primary": False})
        each.append((metric, value.value, {**labels, "ranks": str(ranks), **own}, (value.line,)))
    return each


def _together(values: list[Value], labels: dict[str, str], ranks: int) -> Combined:
    """One number for the run: what ranks do at the same time adds up; of times the longest counts."""
    metric = values[0].metric
    word = "sum" if metric.kind in SUMMED else "largest"
    numbers = sorted(value.value for value in values)
    total = sum(numbers) if word == "sum" else numbers[-1]
    lines = tuple(value.line for value in values)
    return metric, total, {**labels, "ranks": str(ranks), "over_ranks": word}, lines
