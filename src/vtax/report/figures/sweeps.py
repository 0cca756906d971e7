"""Entries of one sweep: their primary metrics over each parameter that the study's `matrix` varies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Level
from vtax.figures.figure import Figure
from vtax.figures.lines import Sizes
from vtax.figures.sweep import KIND, Options, Words, sweep
from vtax.figures.theme import slug
from vtax.model.study import BenchmarkSpec
from vtax.report.document.answer.wording import shown
from vtax.report.document.model import Document
from vtax.report.document.numbers import labels_text
from vtax.units import format_quantity
from vtax.wording import listed

WIDE = 16  # times that the largest value of a parameter is the smallest, from which on its axis is logarithmic
Values = Mapping[str, str | int | float]
Labels = tuple[tuple[str, str], ...]


def sweeps(document: Document) -> Iterator[Figure]:
    """A figure for each primary metric of each sweep and each of its parameters that is a number. What was emulated is
    not drawn next to what is compared: it would only set the scale."""
    named: dict[str, list[BenchmarkSpec]] = {}
    for spec in document.source.plan.study.benchmarks:
        if spec.sweep_of:
            named.setdefault(spec.sweep_of, []).append(spec)
    for name, entries in named.items():
        points = {spec.label: spec.point for spec in entries}
        for (metric, labels), own in _metrics(document, points).items():
            for key in entries[0].point:
                if _varies(points, key):
                    yield _figure(document, name, (metric, labels), points, own, key)


def _metrics(document: Document, points: Mapping[str, Values]) -> dict[tuple[str, Labels], list[Series]]:
    """The series of a sweep by metric and by the labels that are not its parameters."""
    found: dict[tuple[str, Labels], list[Series]] = {}
    for series in document.results.levels:
        if series.label in points and document.results.main(series) and _drawn(document, series):
            labels = tuple(one for one in series.labels if one[0] not in points[series.label])
            found.setdefault((series.metric, labels), []).append(series)
    return found


def _drawn(document: Document, series: Series) -> Mapping[str, Level]:
    """The levels of a series by environment, without emulated ones, unless there are no others in the campaign."""
    levels, compared = document.results.levels[series], document.results.compared
    return {name: level for name, level in levels.items() if name in compared} if compared else levels


def _left_out(document: Document, own: Sequence[Series]) -> str:
    """A sentence about emulated environments that have values and are not drawn."""
    left = {name for one in own for name in document.results.levels[one].keys() - _drawn(document, one).keys()}
    names = [shown(name) for name in document.results.environments if name in left]
    verb = "was" if len(names) == 1 else "were"
    return f" {listed(names)} {verb} emulated and {verb} not drawn; the table has the values." if names else ""


def _varies(points: Mapping[str, Values], key: str) -> bool:
    values = {point[key] for point in points.values()}
    return len(values) > 1 and not any(isinstance(value, str) for value in values)


def _figure(
    document: Document,
    name: str,
    metric: tuple[str, Labels],
    points: Mapping[str, Values],
    own: Sequence[Series],
    key: str,
) -> Figure:
    options: dict[str, dict[str, dict[float, Level]]] = {}
    for series in own:
        point = points[series.label]
        option = ", ".join(f"{other} {value}" for other, value in point.items() if other != key)
        for environment, level in _drawn(document, series).items():
            options.setdefault(option, {}).setdefault(environment, {})[float(point[key])] = level
    where = labels_text(dict(metric[1]))
    title = f"{name} {metric[0]} over {key}" + (f" ({where})" if where else "")
    xs = [float(points[series.label][key]) for series in own]
    first = next(iter(options))
    level = document.results.first(own[0])
    top = max(level.mean for series in own for level in _drawn(document, series).values())
    words = Words(
        name=f"fig-sweep-{slug(f'{name} {metric[0]} {key} {where}')}",
        kind=KIND,
        title=title,
        alt=f"Lines, {title}, for each environment{f', at {first}' if first else ''}, from {key} {min(xs):g} to "
        f"{max(xs):g}. The largest mean is {format_quantity(top, level.unit)}. The tables hold every point.",
        caption="Mean of the rounds; points are single runs." + _left_out(document, own),
    )
    log = min(xs) > 0 and max(xs) >= WIDE * min(xs)
    return sweep(
        words,
        document.results.environments,
        Sizes(key, lambda value: f"{value:g}", log=log),
        Options("with" if len(options) > 1 else "", options, first),
        top,
        level.unit,
        direction=level.direction.value,
    )
