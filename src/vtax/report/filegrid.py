"""iozone's figures: lines over the record size, heat maps and surfaces over file size and record size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.summary import Series
from vtax.report import lines, surface
from vtax.report.chart import Chart, Trace, choice, plain, scaled, short, slug, switchable
from vtax.report.memory import cached_below
from vtax.report.numbers import label_value, natural
from vtax.report.palette import SEQUENTIAL, plotly_scale, shade_class
from vtax.report.records import ReportInput
from vtax.report.svg import Scale, cut, document, element, label, line, log_around, num, tick_text
from vtax.report.tables import Results

FILE, RECORD, OPERATION = "file_bytes", "record_bytes", "operation"
METRIC = "throughput"
MANY = 9000  # cells of all heat maps of a place, beyond which only HEADLINES are drawn for paper
HEADLINES = ("write", "read")
PANEL_W, PANEL_H = 216.0, 118.0
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
    return tuple(_grid(report, several[0].label, place, operations) for place, operations in found.items())


def _grid(
    report: ReportInput, entry: str, place: str, operations: Mapping[str, Mapping[tuple[str, str], Series]]
) -> Grid:
    sizes = [pair for by_sizes in operations.values() for pair in by_sizes]
    direct = any(work.params.get("direct") is True for work in report.plan.work if work.label == entry)
    files = tuple(sorted({file for file, _ in sizes}, key=natural))
    return Grid(place, direct, operations, files, tuple(sorted({record for _, record in sizes}, key=natural)))


def charts(report: ReportInput, results: Results, several: Sequence[Series], anchor: str) -> tuple[Chart, ...]:
    """Lines, heat maps and surfaces of every grid. Colours mean the same in all of an entry's figures."""
    made = []
    found = grids(report, several)
    means = [
        _mean(results, s, e)
        for g in found
        for o in g.operations.values()
        for s in o.values()
        for e in results.levels[s]
    ]
    if not means:
        return ()
    factor, unit = scaled(max(means), "byte/s")
    scale = log_around([mean / factor for mean in means], 0, 1, room=0.0)
    for grid in found:
        name = f"{anchor}-{slug(grid.place)}"
        made.append(_lines(report, results, grid, name, factor, unit))
        if len(grid.files) > 1 and len(grid.records) > 1:
            made.append(_heat(report, results, grid, f"{name}-heat", factor, unit, scale))
            made.append(_surfaces(results, grid, f"{name}-surface", factor, unit, scale))
    return tuple(made)


def _mean(results: Results, series: Series, environment: str) -> float:
    return results.levels[series][environment].mean


# --- lines over the record size -----------------------------------------------------------------------------------------


def _lines(report: ReportInput, results: Results, grid: Grid, anchor: str, factor: float, unit: str) -> Chart:
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
    traces: list[Trace] = []
    by_operation: dict[str, list[int]] = {}
    by_file: dict[str, list[int]] = {}
    for (operation, file), curves in several.items():
        made = lines.traces(results, curves, axes)
        places = range(len(traces), len(traces) + len(made))
        by_operation.setdefault(operation, []).extend(places)
        by_file.setdefault(file, []).extend(places)
        traces += made
    files = [(label_value(FILE, file), by_file[file]) for file in grid.files]
    operations = [(_said(operation), places) for operation, places in by_operation.items()]
    largest = grid.files[-1]
    shown = list(grid.operations)[:2] if len(grid.operations) > 1 else list(grid.operations)
    return Chart(
        anchor=anchor,
        title=f"Throughput over record size · {grid.place}",
        alt=f"Lines of throughput over record size for each environment on {grid.place}. "
        f"The drawing shows {' and '.join(map(_said, shown))} at file size {label_value(FILE, largest)}; "
        "the tables hold every size and operation.",
        svg=_line_panels(results, {name: several[name, largest] for name in shown}, axes),
        traces=tuple(traces),
        layout=lines.layout(list(several.values()), axes),
        caption=f"File of {label_value(FILE, largest)} unless another is chosen. {_cache_note(report, results, grid)}",
        unit=switchable("y", "byte/s", factor, unit),
        choices=(choice("Operation", operations), choice("File size", files, len(files) - 1)),
        height=340,
        wide=True,
    )


def _curves(results: Results, by_sizes: Mapping[tuple[str, str], Series], file: str) -> Mapping[str, lines.Curve]:
    curves: dict[str, dict[float, lines.Level]] = {}
    for (size, record), series in by_sizes.items():
        if size == file:
            for name, level in results.levels[series].items():
                curves.setdefault(name, {})[float(record)] = level
    return curves


def _line_panels(results: Results, several: Mapping[str, Mapping[str, lines.Curve]], axes: lines.Axes) -> str:
    parts: list[str] = []
    names = dict.fromkeys(name for curves in several.values() for name in curves)
    for i, (operation, curves) in enumerate(several.items()):
        left = i * lines.WIDTH
        if curves:
            parts += lines.panel(results, curves, axes, (left, 20.0, lines.WIDTH, lines.HEIGHT))
            parts.append(label(left + lines.LEFT, 40, _said(operation), "head"))
    parts += lines.legend(results.environments, list(names))
    return document(lines.WIDTH * len(several), lines.HEIGHT + 20, parts, "wide")


def _cache_note(report: ReportInput, results: Results, grid: Grid) -> str:
    """What of the grid the page cache can hold, in words."""
    if grid.direct:
        return "The page cache is passed by (direct input and output)."
    limits = {name: cached_below(report, name) for name in results.environments}
    least = min(limits.values())
    inside = [file for file in grid.files if int(file) < least]
    if len(inside) == len(grid.files):
        return "Every file is smaller than twice the memory: these figures measure the page cache, not the disk."
    if inside:
        return f"Files up to {label_value(FILE, inside[-1])} are smaller than twice the memory: the page cache region."
    return "Every file is larger than twice the memory."


# --- heat maps ----------------------------------------------------------------------------------------------------------


def _heat(
    report: ReportInput, results: Results, grid: Grid, anchor: str, factor: float, unit: str, scale: Scale
) -> Chart:
    environments = _measured(results, grid)
    drawn, left_out = _drawn(grid, environments)
    parts: list[str] = []
    traces: list[Trace] = []
    options = []
    for operation in grid.operations:
        first = len(traces)
        for column, name in enumerate(environments):
            values = _values(results, grid, operation, name, factor)
            traces.append(_heat_trace(grid, values, column, scale, unit, name))
            if operation in drawn:
                origin = (column * (PANEL_W + 14), drawn.index(operation) * (PANEL_H + 30) + 4)
                limit = None if grid.direct else cached_below(report, name)
                parts += _map(grid, values, scale, origin, f"{_said(operation)} · {name}", limit)
        options.append((_said(operation), range(first, len(traces))))
    bottom = len(drawn) * (PANEL_H + 30) + 10
    width = max(len(environments) * (PANEL_W + 14), 320.0)
    parts += _key(scale, unit, bottom)
    note = _cache_note(report, results, grid) + (
        f" Drawn for paper: {', '.join(map(_said, drawn))}." if left_out else ""
    )
    return Chart(
        anchor=anchor,
        title=f"Throughput over file and record size · {grid.place}",
        alt=f"Heat maps of throughput over file size and record size on {grid.place}, one for each operation and "
        f"environment, one colour scale from {tick_text(short(scale.low))} to {tick_text(short(scale.high))} {unit}. "
        "The tables hold every number.",
        svg=document(width, bottom + 40, parts, "wide"),
        traces=tuple(traces),
        layout=_heat_layout(report, results, grid, environments),
        caption=f"One colour scale for all environments and operations. {note}",
        choices=(choice("Operation", options),),
        height=360,
        wide=True,
    )


def _measured(results: Results, grid: Grid) -> tuple[str, ...]:
    seen = {name for by_sizes in grid.operations.values() for s in by_sizes.values() for name in results.levels[s]}
    return tuple(name for name in results.environments if name in seen)


def _drawn(grid: Grid, environments: Sequence[str]) -> tuple[list[str], bool]:
    """The operations that are drawn for paper, and whether others are not."""
    cells = sum(map(len, grid.operations.values())) * len(environments)
    every = list(grid.operations)
    if cells <= MANY:
        return every, False
    return [name for name in every if name in HEADLINES] or every[:1], True


def _values(results: Results, grid: Grid, operation: str, environment: str, factor: float) -> dict[Corner, float]:
    return {
        grid.corner(*sizes): results.levels[series][environment].mean / factor
        for sizes, series in grid.operations[operation].items()
        if environment in results.levels[series]
    }


def _heat_trace(grid: Grid, values: Mapping[Corner, float], column: int, scale: Scale, unit: str, name: str) -> Trace:
    axis = "" if column == 0 else str(column + 1)
    rows = [[values.get((i, j)) for j in range(len(grid.records))] for i in range(len(grid.files))]
    texts = [[f"{value:.4g} {unit}" if value else "" for value in row] for row in rows]
    return {
        "type": "heatmap",
        "name": plain(name),
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "z": [[round(math.log10(value), 4) if value else None for value in row] for row in rows],
        "text": texts,
        "x": [label_value(RECORD, record) for record in grid.records],
        "y": [label_value(FILE, file) for file in grid.files],
        "hovertemplate": "file %{y}, record %{x}<br>%{text}<extra>" + plain(name).replace("%", "%%") + "</extra>",
        "meta": {"role": "heat"},
        "colorscale": plotly_scale(),
        "zmin": round(math.log10(scale.low), 4),
        "zmax": round(math.log10(scale.high), 4),
        "showscale": column == 0,
        "colorbar": _colorbar(scale, unit),
        "xgap": 1,
        "ygap": 1,
    }


def _colorbar(scale: Scale, unit: str) -> dict[str, object]:
    ticks = scale.ticks(6)
    return {
        "title": {"text": plain(unit), "side": "right"},
        "tickvals": [round(math.log10(tick), 4) for tick in ticks],
        "ticktext": [tick_text(tick) for tick in ticks],
        "thickness": 12,
    }


def _heat_layout(report: ReportInput, results: Results, grid: Grid, environments: Sequence[str]) -> dict[str, object]:
    """One pair of axes for each environment, beside each other; the page cache region ends at a line."""
    count = len(environments)
    found: dict[str, object] = {}
    notes, shapes = [], []
    for i, name in enumerate(environments):
        axis = "" if i == 0 else str(i + 1)
        domain = [round(i / count + (0.02 if i else 0), 3), round((i + 1) / count - 0.02, 3)]
        found[f"xaxis{axis}"] = {
            "domain": domain,
            "anchor": f"y{axis}",
            "type": "category",
            "title": {"text": "record"},
        }
        found[f"yaxis{axis}"] = {
            "anchor": f"x{axis}",
            "type": "category",
            "showticklabels": i == 0,
            "title": {"text": "file" if i == 0 else ""},
        }
        notes.append({"text": plain(cut(name, 24)), "x": domain[0], "xref": "paper", "y": 1.02, "yref": "paper"})
        inside = 0 if grid.direct else sum(int(file) < cached_below(report, name) for file in grid.files)
        if inside:
            where = {"x0": -0.5, "x1": len(grid.records) - 0.5, "y0": -0.5, "y1": inside - 0.5}
            shapes.append({"type": "rect", **where, "xref": f"x{axis}", "yref": f"y{axis}", "line": {"dash": "dash"}})
    fixed = {"showarrow": False, "xanchor": "left", "yanchor": "bottom"}
    return {**found, "annotations": [{**note, **fixed} for note in notes], "shapes": shapes}


def _map(
    grid: Grid,
    values: Mapping[Corner, float],
    scale: Scale,
    origin: tuple[float, float],
    title: str,
    cached: float | None,
) -> list[str]:
    """One heat map for paper: a path for each shade; a dashed frame around what the page cache can hold."""
    left, top = origin[0] + 46, origin[1] + 16
    width, height = (PANEL_W - 50) / len(grid.records), (PANEL_H - 30) / len(grid.files)
    shades: dict[int, str] = {}
    for (row, column), value in values.items():
        x, y = left + column * width, top + (len(grid.files) - 1 - row) * height
        path = f"M{num(x)} {num(y)}h{num(width)}v{num(height)}h{num(-width)}z"
        place = shade_class(scale.share(value))
        shades[place] = shades.get(place, "") + path
    parts = [label(origin[0], origin[1] + 9, cut(title, 36), "head")]
    parts += [element("path", d=path, fill=SEQUENTIAL[place]) for place, path in sorted(shades.items())]
    for row in sorted({0, len(grid.files) // 2, len(grid.files) - 1}):
        y = top + (len(grid.files) - 0.5 - row) * height + 3.5
        parts.append(label(left - 4, y, label_value(FILE, grid.files[row]), "tick", "end"))
    base = top + height * len(grid.files)
    parts.append(label(left, base + 12, label_value(RECORD, grid.records[0]), "tick"))
    end = left + width * len(grid.records)
    parts.append(label(end, base + 12, f"record {label_value(RECORD, grid.records[-1])}", "tick", "end"))
    inside = 0 if cached is None else sum(int(file) < cached for file in grid.files)
    if inside:
        y = base - inside * height
        parts.append(element("rect", x=left, y=y, width=end - left, height=base - y, class_="cache"))
    return parts


def _key(scale: Scale, unit: str, top: float) -> list[str]:
    """The colour scale with its numbers, and the sign of the page cache region."""
    width = 14.0
    parts = [
        element("rect", x=46 + i * width, y=top, width=width + 0.5, height=9, fill=colour)
        for i, colour in enumerate(SEQUENTIAL)
    ]
    across = Scale(scale.low, scale.high, 46, 46 + width * len(SEQUENTIAL), logarithmic=True)
    for tick in scale.ticks(5):
        x = across(tick)
        parts += [line(x, top + 9, x, top + 13, "base"), label(x, top + 24, tick_text(tick), "tick", "middle")]
    parts.append(label(across.end + 8, top + 9, unit, "tick"))
    return parts


# --- surfaces -----------------------------------------------------------------------------------------------------------


def _surfaces(results: Results, grid: Grid, anchor: str, factor: float, unit: str, scale: Scale) -> Chart:
    environments = _measured(results, grid)
    drawn, left_out = _drawn(grid, environments)
    axes = ([label_value(FILE, x) for x in grid.files], [label_value(RECORD, x) for x in grid.records])
    parts: list[str] = []
    traces: list[Trace] = []
    by_operation, by_environment = {}, {name: list[int]() for name in environments}
    for operation in grid.operations:
        for column, name in enumerate(environments):
            values = _values(results, grid, operation, name, factor)
            by_operation.setdefault(operation, []).append(len(traces))
            by_environment[name].append(len(traces))
            traces.append(_surface_trace(grid, values, scale, unit, name, axes))
            if operation in drawn:
                origin = (column * (surface.WIDTH + 14), drawn.index(operation) * (surface.HEIGHT + 10) + 2)
                parts += surface.drawing(values, scale, axes, origin, cut(f"{_said(operation)} · {name}", 36))
    height = len(drawn) * (surface.HEIGHT + 10) + 6
    options = [(_said(operation), places) for operation, places in by_operation.items()]
    note = f" Drawn for paper: {', '.join(map(_said, drawn))}." if left_out else ""
    return Chart(
        anchor=anchor,
        title=f"The same as surfaces · {grid.place}",
        alt=f"Surfaces of throughput over file size and record size on {grid.place}, height and colour on the scale of "
        "the heat maps. The tables hold every number.",
        svg=document(max(len(environments) * (surface.WIDTH + 14), 320.0), height, parts, "wide"),
        traces=tuple(traces),
        layout={"scene": _scene(scale, unit, axes)},
        caption=f"Height and colour: throughput, on the scale of the heat maps.{note}",
        choices=(choice("Operation", options), choice("Environment", list(by_environment.items()))),
        height=440,
        wide=True,
    )


def _surface_trace(
    grid: Grid,
    values: Mapping[Corner, float],
    scale: Scale,
    unit: str,
    name: str,
    axes: tuple[Sequence[str], Sequence[str]],
) -> Trace:
    rows = [[values.get((i, j)) for j in range(len(grid.records))] for i in range(len(grid.files))]
    return {
        "type": "surface",
        "name": plain(name),
        "meta": {"role": "surface"},
        "x": list(range(len(grid.records))),
        "y": list(range(len(grid.files))),
        "z": [[round(math.log10(value), 4) if value else None for value in row] for row in rows],
        "text": [
            [
                f"file {axes[0][i]}, record {axes[1][j]}<br>{value:.4g} {unit}" if value else ""
                for j, value in enumerate(row)
            ]
            for i, row in enumerate(rows)
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "colorscale": plotly_scale(),
        "cmin": round(math.log10(scale.low), 4),
        "cmax": round(math.log10(scale.high), 4),
        "colorbar": _colorbar(scale, unit),
    }


def _scene(scale: Scale, unit: str, axes: tuple[Sequence[str], Sequence[str]]) -> dict[str, object]:
    bar = _colorbar(scale, unit)
    every = [max(1, len(names) // 6) for names in axes]
    return {
        "xaxis": {
            "title": {"text": "record"},
            "tickvals": list(range(0, len(axes[1]), every[1])),
            "ticktext": list(axes[1][:: every[1]]),
        },
        "yaxis": {
            "title": {"text": "file"},
            "tickvals": list(range(0, len(axes[0]), every[0])),
            "ticktext": list(axes[0][:: every[0]]),
        },
        "zaxis": {"title": {"text": plain(unit)}, "tickvals": bar["tickvals"], "ticktext": bar["ticktext"]},
        "camera": {"eye": {"x": -1.4, "y": -1.5, "z": 0.9}},
    }


def _said(operation: str) -> str:
    return operation.replace("_", " ")
