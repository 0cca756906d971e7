"""What iozone measured on one file system of one node, as a grid of file sizes and record sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.estimate.summary import Series
from vtax.report.document.numbers import label_value, natural
from vtax.report.document.page_cache import cached_below
from vtax.report.document.results import Results
from vtax.report.figures.chart import scaled
from vtax.report.figures.svg import Scale, log_around
from vtax.report.records import ReportInput
from vtax.tools.iozone.metrics import ALL, HEADLINES

FILE, RECORD, OPERATION = "file_bytes", "record_bytes", "operation"
METRIC = "throughput"
ACROSS = 4  # drawings beside each other on paper
Corner = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """All operations on one file system of one node: series by operation, file size and record size."""

    place: str
    direct: bool
    operations: Mapping[str, Mapping[tuple[str, str], Series]]
    files: tuple[str, ...]
    records: tuple[str, ...]

    def corner(self, file: str, record: str) -> Corner:
        return self.files.index(file), self.records.index(record)


def grids(report: ReportInput, several: Sequence[Series]) -> tuple[Grid, ...]:
    """The grids of one iozone entry, one for each file system and node."""
    found: dict[str, dict[str, dict[tuple[str, str], Series]]] = {}
    for series in several:
        labels = dict(series.labels)
        if series.metric == METRIC and {FILE, RECORD, OPERATION} <= labels.keys():
            place = f"{labels.get('filesystem', 'local')}, {labels.get('node', labels.get('target', ''))}".rstrip(", ")
            sizes = (labels[FILE], labels[RECORD])
            found.setdefault(place, {}).setdefault(labels[OPERATION], {})[sizes] = series
    ordered = {place: dict(sorted(named.items(), key=lambda item: order_of(item[0]))) for place, named in found.items()}
    return tuple(_grid(report, several[0].label, place, operations) for place, operations in ordered.items())


def order_of(operation: str) -> tuple[int, str]:
    """Headlines first, the others as iozone runs them."""
    named = (*HEADLINES, *ALL)
    return named.index(operation) if operation in named else len(named), operation


def _grid(
    report: ReportInput, entry: str, place: str, operations: Mapping[str, Mapping[tuple[str, str], Series]]
) -> Grid:
    sizes = [pair for by_sizes in operations.values() for pair in by_sizes]
    direct = any(work.params.get("direct") is True for work in report.plan.work if work.label == entry)
    files = tuple(sorted({file for file, _ in sizes}, key=natural))
    return Grid(place, direct, operations, files, tuple(sorted({record for _, record in sizes}, key=natural)))


@dataclass(frozen=True)
class Look:
    """What all figures of an entry share: the unit, and the scale of the colours and of the heights, from 0 to 1."""

    factor: float
    unit: str
    scale: Scale


def look_of(results: Results, several: Sequence[Grid]) -> Look | None:
    """The look of an entry's figures; None when it measured nothing."""
    means = [
        level.mean
        for grid in several
        for by_sizes in grid.operations.values()
        for series in by_sizes.values()
        for level in results.levels[series].values()
    ]
    if not means:
        return None
    factor, unit = scaled(max(means), "byte/s")
    return Look(factor, unit, log_around([mean / factor for mean in means], 0.0, 1.0, room=0.0))


def cache_note(report: ReportInput, results: Results, grid: Grid) -> str:
    """What of the grid the page cache can hold, in words."""
    if grid.direct:
        return "The page cache is passed by (direct input and output)."
    limits = [limit for name in results.environments if (limit := cached_below(report, name)) is not None]
    if len(limits) < len(results.environments):
        return "How much of the files the page cache held is not known."
    least = min(limits)
    inside = [file for file in grid.files if int(file) < least]
    if len(inside) == len(grid.files):
        return "Every file is smaller than twice the memory: these figures measure the page cache, not the disk."
    if inside:
        return f"Files up to {label_value(FILE, inside[-1])} are smaller than twice the memory: the page cache region."
    return "Every file is larger than twice the memory."


def measured(results: Results, grid: Grid) -> tuple[str, ...]:
    """The environments that have a value in the grid, in their order."""
    seen = {name for by_sizes in grid.operations.values() for s in by_sizes.values() for name in results.levels[s]}
    return tuple(name for name in results.environments if name in seen)


def for_paper(grid: Grid, environments: Sequence[str], most: int) -> tuple[list[str], bool]:
    """The operations that are drawn for paper, and whether others are not: headlines only beyond `most` cells."""
    cells = sum(map(len, grid.operations.values())) * len(environments)
    every = list(grid.operations)
    if cells <= most:
        return every, False
    return [name for name in every if name in HEADLINES] or every[:1], True


def values_of(results: Results, grid: Grid, operation: str, environment: str, factor: float) -> dict[Corner, float]:
    """The means of one operation in one environment, by place in the grid."""
    return {
        grid.corner(*sizes): results.levels[series][environment].mean / factor
        for sizes, series in grid.operations[operation].items()
        if environment in results.levels[series]
    }


def spot(number: int, column: int, columns: int, size: tuple[float, float]) -> tuple[float, float]:
    """Where the drawing of an operation in an environment stands: whole operations side by side, as many as fit."""
    beside = max(1, ACROSS // columns)
    return (number % beside * columns + column) * size[0], number // beside * size[1]


def sheet(count: int, columns: int, size: tuple[float, float]) -> tuple[float, float]:
    """Width and height of all drawings of so many operations."""
    beside = max(1, ACROSS // columns)
    return max(ACROSS, columns) * size[0], -(-count // beside) * size[1]


def said(operation: str) -> str:
    """An operation as a person says it."""
    return operation.replace("_", " ")
