"""iozone's throughput over the record size at a chosen file size, for all environments."""

from __future__ import annotations

from collections.abc import Mapping

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Level
from vtax.report.document.numbers import label_value
from vtax.report.document.results import Results
from vtax.report.figures import lines
from vtax.report.figures.chart import Chart, Trace, choice, switchable
from vtax.report.figures.grid import FILE, RECORD, Grid, Look, cache_note, said
from vtax.report.figures.svg import document, label
from vtax.report.records import ReportInput

MANY = 10_000  # runs, beyond which the live figure holds whiskers instead of points


def chart(report: ReportInput, results: Results, grid: Grid, look: Look, anchor: str) -> Chart:
    """The lines of one grid, for a chosen operation and file size."""
    factor, unit = look.factor, look.unit
    axes = lines.Axes(
        x="record size",
        y=f"{unit} (higher is better)",
        factor=factor,
        x_text=lambda size: label_value(RECORD, str(int(size))),
    )
    several: dict[tuple[str, str], Mapping[str, lines.Curve]] = {
        (operation, file): _curves(results, by_sizes, file)
        for operation, by_sizes in grid.operations.items()
        for file in grid.files
    }
    points = sum(level.n for curves in several.values() for curve in curves.values() for level in curve.values())
    traces: list[Trace] = []
    by_operation: dict[str, list[int]] = {}
    by_file: dict[str, list[int]] = {}
    for (operation, file), curves in several.items():
        made = lines.traces(results, curves, axes, runs=points <= MANY)
        places = range(len(traces), len(traces) + len(made))
        by_operation.setdefault(operation, []).extend(places)
        by_file.setdefault(file, []).extend(places)
        traces += made
    files = [(label_value(FILE, file), by_file[file]) for file in grid.files]
    operations = [(said(operation), places) for operation, places in by_operation.items()]
    largest = grid.files[-1]
    caption = f"File of {label_value(FILE, largest)} unless another is chosen."
    if points > MANY:
        caption += " Whiskers end at the least and the largest run."
    shown = list(grid.operations)[:2] if len(grid.operations) > 1 else list(grid.operations)
    return Chart(
        anchor=anchor,
        title=f"Throughput over record size · {grid.place}",
        alt=f"Lines of throughput over record size for each environment on {grid.place}. "
        f"The drawing shows {' and '.join(map(said, shown))} at file size {label_value(FILE, largest)}; "
        "the tables hold every size and operation.",
        svg=_panels(results, {name: several[name, largest] for name in shown}, axes),
        traces=tuple(traces),
        layout=lines.layout(list(several.values()), axes),
        caption=f"{caption} {cache_note(report, results, grid)}",
        unit=switchable("y", "byte/s", factor, unit),
        choices=(choice("Operation", operations), choice("File size", files, len(files) - 1)),
        height=340,
        wide=True,
    )


def _curves(results: Results, by_sizes: Mapping[tuple[str, str], Series], file: str) -> Mapping[str, lines.Curve]:
    curves: dict[str, dict[float, Level]] = {}
    for (size, record), series in by_sizes.items():
        if size == file:
            for name, level in results.levels[series].items():
                curves.setdefault(name, {})[float(record)] = level
    return curves


def _panels(results: Results, several: Mapping[str, Mapping[str, lines.Curve]], axes: lines.Axes) -> str:
    parts: list[str] = []
    names = dict.fromkeys(name for curves in several.values() for name in curves)
    for i, (operation, curves) in enumerate(several.items()):
        left = i * lines.WIDTH
        if curves:
            parts += lines.panel(results, curves, axes, (left, 20.0, lines.WIDTH, lines.HEIGHT))
            parts.append(label(left + lines.LEFT, 40, said(operation), "head"))
    parts += lines.legend(results.environments, list(names))
    return document(lines.WIDTH * len(several), lines.HEIGHT + 20, parts, "wide")
