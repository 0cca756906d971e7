"""Measurements as columns: what a million of them need to be sorted and grouped in seconds.

A *series* is what makes two numbers comparable: the same metric of the same benchmark entry, with the same labels.
A *group* is a series in one environment. Ranks of one program, and nodes that one trial ran on together, are not
samples of their own: they are kept apart only until they are collapsed to one number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vtax.analysis.estimate.blocks import ONE_MACHINE, Blocks
from vtax.errors import ParseError
from vtax.model.measurement import Measurement
from vtax.model.metric import Series, SeriesRecord
from vtax.model.nodes import Scope

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
TOGETHER = frozenset(one.value for one in (Scope.WORKERS, Scope.CLUSTER, Scope.PROVISIONING))  # nodes of one thing
NO_PART = ""


class Group(SeriesRecord):
    """A series in one environment, and what its numbers are."""

    environment: str


@dataclass(frozen=True)
class Columns:
    """One entry a measurement, warm-ups included, in an order that does not depend on that of the input.

    Sorted by group, block, warm-ups first, iteration, trial, part. `trial` and `source` are places in `trials` and
    `sources`; `part` tells ranks and nodes of one trial apart.
    """

    groups: tuple[Group, ...]
    trials: tuple[str, ...]
    sources: tuple[str, ...]
    group: Ints
    block: Ints  # see `Blocks`: the round, where there is one machine
    warmup: Bools
    iteration: Ints
    trial: Ints
    part: Ints
    source: Ints
    value: Floats
    blocks: Blocks


class _Names:
    """Texts by number, numbers by text; at the end renumbered in the order of the texts."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def place(self, name: str) -> int:
        return self.places.setdefault(name, len(self.places))

    def sorted(self) -> tuple[tuple[str, ...], Ints]:
        """The names in order, and the new place of each old one."""
        names = tuple(sorted(self.places))
        moved = np.empty(len(names), np.int64)
        for new, name in enumerate(names):
            moved[self.places[name]] = new
        return names, moved


def columns(measurements: Iterable[Measurement], blocks: Blocks = ONE_MACHINE) -> Columns:
    """The columns of `measurements`; nothing is kept of the objects themselves. `blocks` are those of the plan.

    Raises ParseError, naming the file, for a rate or cost that is not above zero or not finite, for one metric in two
    units, and for two values of one thing.
    """
    known: dict[object, tuple[int, str]] = {}
    groups: list[Group] = []
    places: dict[object, int] = {}
    trials, sources, parts = _Names(), _Names(), _Names()
    rows: list[tuple[int, int, bool, int, int, int, int]] = []
    values: list[float] = []
    for item in measurements:
        key = (item.environment, item.label, item.metric, item.unit, item.kind, *item.labels.items())
        found = known.get(key)
        if found is None:
            group, part = _group_of(item)
            same = (group.environment, group.series, group.unit, group.kind, group.direction, group.primary)
            found = known[key] = (places.setdefault(same, len(groups)), part)
            if found[0] == len(groups):
                groups.append(group)
        place, part = found
        rows.append(
            (
                place,
                blocks.number(item.round, item.cell),
                item.warmup,
                item.iteration,
                trials.place(item.trial),
                parts.place(part),
                sources.place(item.source),
            )
        )
        values.append(item.value)
    table = np.array(rows, np.int64).reshape(-1, 7)
    return _sorted(tuple(groups), table, np.array(values), trials, parts, sources, blocks)


def _group_of(item: Measurement) -> tuple[Group, str]:
    """The group of a measurement, and which rank or node of it."""
    labels = dict(item.labels)
    part = [labels.pop("rank", "")]
    if labels.get("target") in TOGETHER:
        part.append(labels.pop("node", ""))
    fields = item.series_fields | {"labels": dict(sorted(labels.items()))}
    group = Group.model_construct(environment=item.environment, **fields)
    return group, "/".join(part) if any(part) else NO_PART


def _sorted(
    groups: tuple[Group, ...],
    rows: Ints,
    values: Floats,
    trials: _Names,
    parts: _Names,
    sources: _Names,
    blocks: Blocks,
) -> Columns:
    order = sorted(range(len(groups)), key=lambda i: (groups[i].series, groups[i].environment, groups[i].unit))
    moved = np.empty(len(groups), np.int64)
    moved[order] = np.arange(len(groups))
    trial_names, trial_moved = trials.sorted()
    source_names, source_moved = sources.sorted()
    _, part_moved = parts.sorted()
    group, trial = moved[rows[:, 0]], trial_moved[rows[:, 4]]
    source, part = source_moved[rows[:, 6]], part_moved[rows[:, 5]]
    # the value comes last, so that even what will be refused is refused in the same words whatever the order
    sort = np.lexsort((values, source, part, trial, rows[:, 3], 1 - rows[:, 2], rows[:, 1], group))
    made = Columns(
        groups=tuple(groups[i] for i in order),
        trials=trial_names,
        sources=source_names,
        group=group[sort],
        block=rows[sort, 1],
        warmup=rows[sort, 2].astype(bool),
        iteration=rows[sort, 3],
        trial=trial[sort],
        part=part[sort],
        source=source[sort],
        value=values[sort],
        blocks=blocks,
    )
    _refuse_impossible(made)
    _refuse_two_units(made)
    _refuse_two_values(made)
    return made


def _refuse_impossible(table: Columns) -> None:
    logged = np.array([group.kind.has_ratio for group in table.groups], bool)[table.group]
    bad = np.flatnonzero(~np.isfinite(table.value) | (logged & (table.value <= 0)))
    if bad.size:
        group, value = table.groups[table.group[bad[0]]], table.value[bad[0]]
        raise ParseError(
            f"{table.sources[table.source[bad[0]]]}: {group.metric} is {value:g} {group.unit}, "
            f"and a {group.kind} is {'above zero' if np.isfinite(value) else 'a finite number'}",
            remedy="read the raw output; a metric that can be zero is declared as a count or a proportion",
        )


def _refuse_two_units(table: Columns) -> None:
    """A series has one unit, kind and direction in all environments, or a ratio would be one of units."""
    seen: dict[Series, int] = {}
    for place, group in enumerate(table.groups):
        first = table.groups[seen.setdefault(group.series, place)]
        if (group.unit, group.kind, group.direction) != (first.unit, first.kind, first.direction):
            raise ParseError(
                f"{_source_of(table, place)}: {group.metric} is a {group.kind} in {group.unit}, but a "
                f"{first.kind} in {first.unit} in {_source_of(table, seen[group.series])}",
                remedy="results of two versions of a benchmark cannot be compared",
            )


def _source_of(table: Columns, group: int) -> str:
    row = int(np.searchsorted(table.group, group))
    return table.sources[int(table.source[row])]


def _refuse_two_values(table: Columns) -> None:
    same = (np.diff(table.group) == 0) & (np.diff(table.trial) == 0) & (np.diff(table.part) == 0)
    twice = np.flatnonzero(same)
    if twice.size:
        first, second = int(twice[0]), int(twice[0]) + 1
        group = table.groups[table.group[second]]
        raise ParseError(
            f"{table.sources[table.source[second]]}: two values of {group.metric} with the same labels in one trial",
            detail=f"{dict(group.labels)}: {sorted((float(table.value[first]), float(table.value[second])))}",
            remedy="the parser of this benchmark must tell them apart with a label",
        )
