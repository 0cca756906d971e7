"""iozone's heat maps: file size by record size, one colour scale for all environments and operations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vtax.report.document.numbers import label_value
from vtax.report.document.page_cache import cached_below
from vtax.report.document.results import Results
from vtax.report.figures.chart import Chart, Trace, choice, plain, short
from vtax.report.figures.grid import (
    FILE,
    RECORD,
    Corner,
    Grid,
    Look,
    cache_note,
    for_paper,
    measured,
    said,
    sheet,
    spot,
    values_of,
)
from vtax.report.figures.palette import SEQUENTIAL, plotly_scale, shade_class
from vtax.report.figures.svg import Scale, cut, document, element, label, line, num, tick_text
from vtax.report.records import ReportInput

MANY = 9000  # cells, about 20 bytes each
PANEL_W, PANEL_H = 216.0, 118.0
SHEET = (PANEL_W + 14, PANEL_H + 30)


def chart(report: ReportInput, results: Results, grid: Grid, look: Look, anchor: str) -> Chart:
    """The maps of one grid, for a chosen operation."""
    factor, unit, scale = look.factor, look.unit, look.scale
    environments = measured(results, grid)
    drawn, left_out = for_paper(grid, environments, MANY)
    parts: list[str] = []
    traces: list[Trace] = []
    options = []
    for operation in grid.operations:
        first = len(traces)
        for column, name in enumerate(environments):
            values = values_of(results, grid, operation, name, factor)
            traces.append(_trace(grid, values, column, scale, unit, name))
            if operation in drawn:
                x, y = spot(drawn.index(operation), column, len(environments), SHEET)
                origin = (x, y + 4)
                limit = None if grid.direct else cached_below(report, name)
                parts += _map(grid, values, scale, origin, f"{said(operation)} · {name}", limit)
        options.append((said(operation), range(first, len(traces))))
    width, bottom = sheet(len(drawn), len(environments), SHEET)
    parts += _key(scale, unit, bottom)
    note = cache_note(report, results, grid) + (f" Drawn for paper: {', '.join(map(said, drawn))}." if left_out else "")
    return Chart(
        anchor=anchor,
        title=f"Throughput over file and record size · {grid.place}",
        alt=f"Heat maps of throughput over file size and record size on {grid.place}, one for each operation and "
        f"environment, one colour scale from {tick_text(short(scale.low))} to {tick_text(short(scale.high))} {unit}. "
        "The tables hold every number.",
        svg=document(width, bottom + 40, parts, "wide"),
        traces=tuple(traces),
        layout=_layout(report, grid, environments),
        caption=f"One colour scale for all environments and operations. {note}",
        choices=(choice("Operation", options),),
        height=360,
        wide=True,
    )


def _trace(grid: Grid, values: Mapping[Corner, float], column: int, scale: Scale, unit: str, name: str) -> Trace:
    axis = "" if column == 0 else str(column + 1)
    rows = [[values.get((i, j)) for j in range(len(grid.records))] for i in range(len(grid.files))]
    return {
        "type": "heatmap",
        "name": plain(name, 28),
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "z": [[round(math.log10(value), 4) if value else None for value in row] for row in rows],
        "x": [label_value(RECORD, record) for record in grid.records],
        "y": [label_value(FILE, file) for file in grid.files],
        "hovertemplate": "file %{y}, record %{x}<br>%{text}<extra></extra>",
        "meta": {"role": "heat", "unit": plain(unit)},
        "colorscale": plotly_scale(),
        "zmin": round(math.log10(scale.low), 4),
        "zmax": round(math.log10(scale.high), 4),
        "showscale": column == 0,
        "colorbar": colorbar(scale, unit),
        "xgap": 1,
        "ygap": 1,
    }


def _layout(report: ReportInput, grid: Grid, environments: Sequence[str]) -> dict[str, object]:
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
        limit = None if grid.direct else cached_below(report, name)
        inside = 0 if limit is None else sum(int(file) < limit for file in grid.files)
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


def colorbar(scale: Scale, unit: str) -> dict[str, object]:
    """The key of the colours, in numbers that are not logarithms."""
    ticks = scale.ticks(6)
    return {
        "title": {"text": plain(unit), "side": "right"},
        "tickvals": [round(math.log10(tick), 4) for tick in ticks],
        "ticktext": [tick_text(tick) for tick in ticks],
        "thickness": 12,
    }
