"""iozone's figures: throughput over the record size, and heat maps over file size and record size.

A grid is what was measured on one file system of one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Level
from vtax.figures import lines, theme
from vtax.figures.entry import EntryData, ToolFigures
from vtax.figures.figure import (
    DRAWN,
    ENVIRONMENT,
    Axis,
    Choice,
    Colours,
    Figure,
    Layer,
    Mark,
    Medium,
    Panel,
    Row,
    Scale,
    rows,
    switchable,
)
from vtax.tools.iozone.metrics import ALL, HEADLINES
from vtax.wording import label_value, natural

FILE, RECORD, OPERATION = "file_bytes", "record_bytes", "operation"
METRIC = "throughput"
OVER_RECORD, OVER_SIZES = "throughput over record size", "throughput over file and record size"
MANY_RUNS = 10_000  # beyond which a figure holds whiskers instead of points
MANY_CELLS = 4000  # beyond which only headlines are drawn where nothing can be chosen
CACHE_TIMES = 2  # a file below so many times the memory is served from the page cache in part at least


@dataclass(frozen=True)
class Grid:
    """All operations on one file system of one node: series by operation, file size and record size."""

    place: str
    direct: bool
    operations: Mapping[str, Mapping[tuple[str, str], Series]]
    files: tuple[str, ...]
    records: tuple[str, ...]


def figures(entry: EntryData) -> Iterator[Figure]:
    """Lines and heat maps of every grid. Colours mean the same in all of an entry's figures."""
    found = grids(entry)
    colours = colours_of(entry, found)
    if colours is None:
        return
    factor, scale = colours
    for grid in found:
        name = f"{entry.name}-{theme.slug(grid.place)}"
        yield over_record(entry, grid, factor, scale.title, name)
        if len(grid.files) > 1 and len(grid.records) > 1:
            yield heat_map(entry, grid, factor, scale, f"{name}-heat")


def grids(entry: EntryData) -> tuple[Grid, ...]:
    """The grids of one entry, one for each file system and node."""
    found: dict[str, dict[str, dict[tuple[str, str], Series]]] = {}
    for series in entry.levels:
        labels = dict(series.labels)
        if series.metric == METRIC and {FILE, RECORD, OPERATION} <= labels.keys():
            place = f"{labels.get('filesystem', 'local')}, {labels.get('node', labels.get('target', ''))}".rstrip(", ")
            sizes = (labels[FILE], labels[RECORD])
            found.setdefault(place, {}).setdefault(labels[OPERATION], {})[sizes] = series
    ordered = {place: dict(sorted(named.items(), key=lambda item: order_of(item[0]))) for place, named in found.items()}
    return tuple(_grid(entry, place, operations) for place, operations in ordered.items())


def order_of(operation: str) -> tuple[int, str]:
    """Headlines first, the others as iozone runs them."""
    named = (*HEADLINES, *ALL)
    return named.index(operation) if operation in named else len(named), operation


def _grid(entry: EntryData, place: str, operations: Mapping[str, Mapping[tuple[str, str], Series]]) -> Grid:
    sizes = [pair for by_sizes in operations.values() for pair in by_sizes]
    works = entry.plan.work if entry.plan is not None else ()
    direct = any(work.params.get("direct") is True for work in works if work.label == entry.label)
    files = tuple(sorted({file for file, _ in sizes}, key=natural))
    return Grid(place, direct, operations, files, tuple(sorted({record for _, record in sizes}, key=natural)))


def colours_of(entry: EntryData, several: Sequence[Grid]) -> tuple[float, Colours] | None:
    """The factor of the unit and the scale of the colours of an entry's figures; None when it measured nothing."""
    means = [
        level.mean
        for grid in several
        for by_sizes in grid.operations.values()
        for series in by_sizes.values()
        for level in entry.levels[series].values()
    ]
    if not means:
        return None
    factor, unit = theme.scaled(max(means), "byte/s")
    low, high = min(means) / factor, max(means) / factor
    return factor, Colours(low, high if high > low else low * 1.1, unit, logarithmic=True)


def spoken(operation: str) -> str:
    """An operation as a person says it."""
    return operation.replace("_", " ")


# --- the page cache ---------------------------------------------------------------------------------------------------


def cached_below(entry: EntryData, environment: str) -> float | None:
    """The file size in bytes from which an environment must reach its disk.

    Twice the smallest limit of memory that its nodes read back; where they have none, twice the memory they see;
    where no node reported either, twice what the plan gives the smallest node. None where it is unknown, as for most
    logs.
    """
    facts = [node.values for cell in entry.cells if cell.environment == environment for node in cell.facts]
    for key in ("memory_limit_bytes", "memory_total_bytes"):
        known = [float(v) for values in facts if isinstance(v := values.get(key), (int, float)) and v > 0]
        if any(key in values for values in facts) and known:
            return CACHE_TIMES * min(known)
    sizes = [float(node.memory_bytes) for node in entry.plan.shape.nodes] if entry.plan is not None else []
    return CACHE_TIMES * min(sizes) if sizes else None


def cache_note(entry: EntryData, grid: Grid) -> str:
    """What of the grid the page cache can hold, in words."""
    if grid.direct:
        return "Direct I/O bypasses the page cache."
    limits = [limit for name in entry.environments if (limit := cached_below(entry, name)) is not None]
    if len(limits) < len(entry.environments):
        return "How much of the files the page cache held is not known."
    inside = [file for file in grid.files if int(file) < min(limits)]
    if len(inside) == len(grid.files):
        return "Every file is smaller than twice the memory: these figures measure the page cache, not the disk."
    if inside:
        return f"Files up to {label_value(FILE, inside[-1])} are smaller than twice the memory: the page cache region."
    return "Every file is larger than twice the memory."


# --- lines ------------------------------------------------------------------------------------------------------------


def over_record(entry: EntryData, grid: Grid, factor: float, unit: str, name: str) -> Figure:
    """Lines of one grid, for a chosen operation and file size."""
    several = {
        (operation, file): _curves(entry, by_sizes, file)
        for operation, by_sizes in grid.operations.items()
        for file in grid.files
    }
    runs = sum(level.n for curves in several.values() for curve in curves.values() for level in curve.values())
    points = runs <= MANY_RUNS
    sizes = lines.Sizes("record size", lambda size: label_value(RECORD, str(int(size))))
    largest = label_value(FILE, grid.files[-1])
    operations = tuple(map(spoken, grid.operations))
    drawn = operations[:2]
    caption = "Mean of the rounds; " + (
        "points are single runs." if points else "whiskers reach from the least to the largest run."
    )
    return Figure(
        name=name,
        kind=OVER_RECORD,
        title=f"Throughput over record size · {grid.place}",
        alt=f"Lines of throughput over record size for each environment on {grid.place}. "
        f"The drawing shows {' and '.join(drawn)} at file size {largest}; the tables hold every size and operation.",
        caption=f"{caption} File size {largest} unless another is chosen. {cache_note(entry, grid)}",
        data=tuple(
            row
            for (operation, file), curves in several.items()
            for row in lines.curve_rows(
                curves,
                factor,
                {"operation": spoken(operation), "size of the file": label_value(FILE, file)},
                sizes.text,
                runs=points,
            )
        ),
        panels=(
            lines.panel(
                lines.values_axis(list(several.values()), factor, f"{unit}, higher is better"), unit, runs=points
            ),
        ),
        x=sizes.axis(list(several.values())),
        environments=entry.environments,
        media=DRAWN if len(grid.records) > 1 else frozenset({Medium.PAGE}),  # one point is not a line
        unit=switchable(("value", "low", "high"), "byte/s", factor, unit),
        choices=(
            Choice("operation", "Operation", operations, operations[0], still=2),
            Choice("size of the file", "File size", tuple(label_value(FILE, file) for file in grid.files), largest),
        ),
        wide=True,
    )


def _curves(entry: EntryData, by_sizes: Mapping[tuple[str, str], Series], file: str) -> lines.Curves:
    curves: dict[str, dict[float, Level]] = {}
    for (size, record), series in by_sizes.items():
        if size == file:
            for name, level in entry.levels[series].items():
                curves.setdefault(name, {})[float(record)] = level
    return curves


# --- heat maps --------------------------------------------------------------------------------------------------------


def heat_map(entry: EntryData, grid: Grid, factor: float, colours: Colours, name: str) -> Figure:
    """Maps of one grid, one for each environment, for a chosen operation; a line ends the page cache region."""
    unit = colours.title
    data = [*_cells(entry, grid, factor), *_cache_lines(entry, grid)]
    operations = tuple(map(spoken, grid.operations))
    few = len(data) <= MANY_CELLS
    drawn = len(operations) if few else sum(operation in HEADLINES for operation in grid.operations) or 1
    hover = (("size_text", "file"), ("record_text", "record"), ("value", unit))
    return Figure(
        name=name,
        kind=OVER_SIZES,
        title=f"Throughput over file and record size · {grid.place}",
        alt=f"Heat maps of throughput over file size and record size on {grid.place}, one for each operation and "
        f"environment, one colour scale from {theme.tick_text(colours.low)} to {theme.tick_text(colours.high)} {unit}. "
        "The tables hold every number.",
        caption=f"One colour scale for all environments and operations. {cache_note(entry, grid)}"
        + (" Below the dashed line the page cache can hold the file." if any(r["of"] == "cache" for r in data) else "")
        + ("" if few else f" The drawing for paper shows {', '.join(operations[:drawn])}."),
        data=tuple(data),
        panels=(
            Panel(
                (Layer(Mark.CELL, "cell", by="value", hover=hover), Layer(Mark.LIMIT, "cache", y="size_text")),
                Axis(
                    "size_text",
                    "file",
                    Scale.CATEGORY,
                    values=tuple(label_value(FILE, f) for f in reversed(grid.files)),
                ),
            ),
        ),
        x=Axis("record_text", "record", Scale.CATEGORY, values=tuple(label_value(RECORD, r) for r in grid.records)),
        environments=entry.environments,
        choices=(Choice("operation", "Operation", operations, operations[0], still=drawn),),
        columns=ENVIRONMENT,
        across=4,
        colours=colours,
        wide=True,
    )


def _cells(entry: EntryData, grid: Grid, factor: float) -> Iterator[Row]:
    for operation, by_sizes in grid.operations.items():
        for (file, record), series in by_sizes.items():
            place = {"operation": spoken(operation), "size_text": label_value(FILE, file)}
            place |= {"record_text": label_value(RECORD, record)}
            yield from rows(
                "cell",
                [
                    {**place, ENVIRONMENT: name, "value": level.mean / factor}
                    for name, level in entry.levels[series].items()
                ],
            )


def _cache_lines(entry: EntryData, grid: Grid) -> Iterator[Row]:
    """The largest file of each environment that the page cache can hold."""
    for name in entry.environments:
        limit = None if grid.direct else cached_below(entry, name)
        inside = [] if limit is None else [file for file in grid.files if int(file) < limit]
        if inside:
            yield from rows("cache", [{ENVIRONMENT: name, "size_text": label_value(FILE, inside[-1])}])


FIGURES = (ToolFigures("iozone", figures, kinds=(OVER_RECORD, OVER_SIZES), instead_of_bars=True),)
