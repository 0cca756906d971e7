"""Which figures a paper takes from a campaign: ratios, values of every entry, what the page draws as lines and maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vtax.analysis.records import Comparison, Level
from vtax.report.document.model import Document
from vtax.report.figures.chart import slug
from vtax.report.figures.drawn import charts
from vtax.report.figures.paper.chartplates import chart_plates
from vtax.report.figures.paper.plate import FORMATS, WIDTH_IN, Plate, draw
from vtax.report.figures.paper.rowplates import ratio_plates, value_plates
from vtax.report.figures.waterfall import waterfall
from vtax.report.records import ReportInput

__all__ = ["FORMATS", "WIDTH_IN", "Plate", "draw", "plates", "ratio_figures"]

LONGEST = 80  # letters of a name, which is one of a file
FEW = 8  # series of an entry whose ratios stand in one figure with those of others


def ratio_figures(report: ReportInput) -> tuple[Plate, ...]:
    """The ratios of all primary metrics."""
    return tuple(_ratios(report))


def plates(document: Document) -> tuple[Plate, ...]:
    """The ratios of all primary metrics, the values of every entry, then lines and maps, in parts that fit a page."""
    found: dict[str, Plate] = {}
    for plate in (*_ratios(document.source), *_values(document.source), *_charts(document)):
        name = plate.name[:LONGEST]
        while name in found:
            name = f"{plate.name[:LONGEST]}-{len(found)}"
        found[name] = replace(plate, name=name)
    return tuple(found.values())


def _ratios(report: ReportInput) -> Iterator[Plate]:
    found: dict[str, list[Comparison]] = {}
    for item in report.analysis.comparisons:
        if item.primary and item.ratio is not None:
            found.setdefault(item.label, []).append(item)
    many = {
        label: items for label, items in found.items() if len({(item.metric, str(item.labels)) for item in items}) > FEW
    }
    few = [item for label, items in found.items() if label not in many for item in items]
    if few:
        yield from ratio_plates("ratios", few, report.analysis)
    for label, items in many.items():
        yield from ratio_plates(f"ratios-{slug(label)}", items, report.analysis)


def _values(report: ReportInput) -> Iterator[Plate]:
    topics: dict[tuple[str, str], list[Level]] = {}
    for level in report.analysis.levels:
        if level.primary:
            topics.setdefault((_topic(level), level.unit), []).append(level)
    taken: dict[str, int] = {}
    for (name, _), items in topics.items():
        taken[name] = taken.get(name, 0) + 1
        yield from value_plates(name if taken[name] == 1 else f"{name}-{taken[name]}", items, report.analysis)


def _topic(item: Comparison | Level) -> str:
    """What one figure is about, as the name of a file: an entry; of many file operations each alone."""
    parts = [item.label, *(item.labels.get(name, "") for name in ("operation", "filesystem"))]
    return slug("-".join(parts))


def _charts(document: Document) -> Iterator[Plate]:
    """What the page draws besides bars."""
    report, environments = document.source, document.environments
    ladder = waterfall(report.analysis)
    yield from chart_plates("", (ladder,) if ladder else (), environments)
    for section in document.sections:
        for anchor, entry in section.anchored():
            yield from chart_plates(entry.label, charts(report, document.results, entry, anchor), environments)
