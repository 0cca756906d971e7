"""How long most of something takes, and the slowest of it: quantiles of one latency, for tools that report several."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from vtax.analysis.records import Level
from vtax.figures.entry import EntryData
from vtax.figures.figure import Figure
from vtax.figures.lines import Sizes
from vtax.figures.sweep import KIND, Options, Words, sweep
from vtax.figures.theme import slug
from vtax.units import format_quantity

QUANTILE = re.compile(r"^(\w+?)_?p(\d{1,2}(?:\.\d{1,6})?)$")  # read_latency_p99.9


class _Of(NamedTuple):
    """What quantiles are of: the rest of a metric's name, and its labels."""

    name: str
    labels: tuple[tuple[str, str], ...]


def quantiles(entry: EntryData) -> Iterator[Figure]:
    """A figure for every latency of an entry of which two or more quantiles were measured."""
    found: dict[_Of, dict[str, dict[float, Level]]] = {}
    for series, levels in entry.levels.items():
        if named := QUANTILE.match(series.metric):
            for environment, level in levels.items():
                curves = found.setdefault(_Of(named[1], series.labels), {})
                curves.setdefault(environment, {})[_one_in(named[2])] = level
    for of, curves in found.items():
        if any(len(curve) > 1 for curve in curves.values()):
            yield _figure(entry, of, curves)


def _one_in(percent: str) -> float:
    """One in how many is slower than a quantile: 2 for p50, 1000 for p99.9. It spreads the slow ones out."""
    return round(100 / (100 - float(percent)), 6)


def _shown(one_in: float) -> str:
    return f"p{100 - 100 / one_in:.6g}"


def _figure(entry: EntryData, of: _Of, curves: Mapping[str, Mapping[float, Level]]) -> Figure:
    every = [level for curve in curves.values() for level in curve.values()]
    top = max(level.mean for level in every)
    where = ", ".join(value for name, value in of.labels if name != "target")
    title = f"{entry.label} quantiles of {of.name}" + (f" ({where})" if where else "")
    said = "; ".join(
        f"{name} " + ", ".join(f"{_shown(x)} {format_quantity(curve[x].mean, curve[x].unit)}" for x in sorted(curve))
        for name, curve in curves.items()
    )
    words = Words(
        name=f"{entry.name}-{slug(f'quantiles {of.name} {where}')}",
        kind=KIND,
        title=title,
        alt=f"Lines, {title}, for each environment. {said}.",
        caption="Mean of the rounds; points are single runs. Further right are the slower ones.",
    )
    return sweep(
        words,
        entry.environments,
        Sizes("quantile", _shown, log=True),
        Options("", {"": curves}, ""),
        top,
        every[0].unit,
        direction="lower is better",
    )
