"""What the rows of a figure or a table for a paper are called: what all share, and what tells each from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.records import Analysis, Comparison, Level
from vtax.analysis.sequential.anytime import ANYTIME
from vtax.report.document.numbers import label_value, natural

NBSP = "\u00a0"
Named = Level | Comparison
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Names:
    """`shared` is true of all rows, metric first; `own` is the shortest text for each that no other row has."""

    shared: tuple[str, ...]
    own: tuple[str, ...]


def names_of(items: Sequence[Named]) -> Names:
    """The names of rows. A row of which nothing is its own has its metric as name."""
    labels = _without_target([(item.metric, item.labels) for item in items])
    common = set.intersection(*(set(one.items()) for one in labels))
    one_metric = len({item.metric for item in items}) == 1
    own = []
    for item, all_labels in zip(items, labels, strict=True):
        rest = words({name: value for name, value in all_labels.items() if (name, value) not in common})
        own.append(", ".join([item.metric] * (not one_metric or not rest) + rest))
    named = one_metric and own[0] != items[0].metric
    return Names(tuple([items[0].metric] * named + words(dict(common))), tuple(own))


def _without_target(rows: Sequence[tuple[str, Labels]]) -> list[dict[str, str]]:
    """The labels of every row, without the target where the other labels tell the same rows apart."""
    bare = [{name: value for name, value in labels.items() if name != "target"} for _, labels in rows]
    metrics = [metric for metric, _ in rows]

    def different(several: Sequence[Labels]) -> int:
        return len({(metric, tuple(sorted(one.items()))) for metric, one in zip(metrics, several, strict=True)})

    whole = [dict(labels) for _, labels in rows]
    return bare if all(bare) and different(bare) == different(whole) else whole


def words(labels: Labels) -> list[str]:
    """Labels in a word each: the pair of nodes, words as they are, then numbers and sizes with their names."""
    rest = dict(labels)
    found = [f"{rest.pop('client')} → {rest.pop('server')}"] if {"client", "server"} <= rest.keys() else []
    for name, value in sorted(rest.items(), key=_sized):
        if value.isdecimal():
            short = name.removesuffix("_bytes").replace("_", " ")
            text = f"{short.upper() if len(short) < 3 else short} {label_value(name, value)}"
            found.append(text.replace(" ", NBSP))  # a line never ends inside a size
        else:
            found.append(value.replace("_", " ") if name == "operation" else value)
    return found


def _sized(item: tuple[str, str]) -> tuple[bool, bool, str]:
    """Words before sizes; of words the operation first, since it says most."""
    name, value = item
    return value.isdecimal(), name != "operation", name


def in_order(items: Sequence[Named]) -> list[Named]:
    """Primary metrics first, each metric together, then by labels: 64 before 128."""
    metrics = list(dict.fromkeys(item.metric for item in items))
    return sorted(items, key=lambda item: (not item.primary, metrics.index(item.metric), _by_labels(item.labels)))


def _by_labels(labels: Labels) -> list[tuple[str, object]]:
    return [(name, natural(value)) for name, value in sorted(labels.items(), key=_sized) if name != "target"]


def interval(analysis: Analysis) -> str:
    """What the interval of a ratio is."""
    if analysis.a_look_source == ANYTIME:
        return "anytime-valid 95 % intervals over rounds"
    if analysis.a_look is None or len(analysis.looks) < 2:
        return "95 % t intervals over rounds"
    level = f"{100 * (1 - analysis.a_look):.4g} %"
    return f"{level} t intervals over rounds, which miss in 5 % of campaigns at whatever planned look"
