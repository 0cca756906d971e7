"""iozone's surfaces over file size and record size: what the heat maps show, to be turned around."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vtax.report.document.numbers import label_value
from vtax.report.document.results import Results
from vtax.report.figures import surface
from vtax.report.figures.chart import Chart, Trace, choice, plain
from vtax.report.figures.grid import FILE, RECORD, Corner, Grid, Look, for_paper, measured, said, sheet, spot, values_of
from vtax.report.figures.heatmaps import colorbar
from vtax.report.figures.palette import plotly_scale
from vtax.report.figures.svg import Scale, cut, document

MANY = 2000  # facets, about 70 bytes each
SHEET = (surface.WIDTH + 14, surface.HEIGHT + 10)


def chart(results: Results, grid: Grid, look: Look, anchor: str) -> Chart:
    """The surfaces of one grid, for a chosen operation and environment."""
    factor, unit, scale = look.factor, look.unit, look.scale
    environments = measured(results, grid)
    drawn, left_out = for_paper(grid, environments, MANY)
    axes = ([label_value(FILE, x) for x in grid.files], [label_value(RECORD, x) for x in grid.records])
    parts: list[str] = []
    traces: list[Trace] = []
    by_operation: dict[str, list[int]] = {}
    by_environment: dict[str, list[int]] = {name: [] for name in environments}
    for operation in grid.operations:
        for column, name in enumerate(environments):
            values = values_of(results, grid, operation, name, factor)
            by_operation.setdefault(operation, []).append(len(traces))
            by_environment[name].append(len(traces))
            traces.append(_trace(grid, values, scale, unit, name))
            if operation in drawn:
                x, y = spot(drawn.index(operation), column, len(environments), SHEET)
                origin = (x, y + 2)
                parts += surface.drawing(values, scale, axes, origin, cut(f"{said(operation)} · {name}", 36))
    width, height = sheet(len(drawn), len(environments), SHEET)
    options = [(said(operation), places) for operation, places in by_operation.items()]
    note = f" Drawn for paper: {', '.join(map(said, drawn))}." if left_out else ""
    return Chart(
        anchor=anchor,
        title=f"The same as surfaces · {grid.place}",
        alt=f"Surfaces of throughput over file size and record size on {grid.place}, height and colour on the scale of "
        "the heat maps. The tables hold every number.",
        svg=document(width, height + 6, parts, "wide"),
        traces=tuple(traces),
        layout={"scene": _scene(scale, unit, axes)},
        caption=f"Height and colour: throughput, on the scale of the heat maps.{note}",
        choices=(choice("Operation", options), choice("Environment", list(by_environment.items()))),
        height=440,
        wide=True,
    )


def _trace(
    grid: Grid,
    values: Mapping[Corner, float],
    scale: Scale,
    unit: str,
    name: str,
) -> Trace:
    rows = [[values.get((i, j)) for j in range(len(grid.records))] for i in range(len(grid.files))]
    return {
        "type": "surface",
        "name": plain(name, 28),
        "meta": {"role": "surface", "unit": plain(unit)},
        "x": list(range(len(grid.records))),
        "y": list(range(len(grid.files))),
        "z": [[round(math.log10(value), 4) if value else None for value in row] for row in rows],
        "hovertemplate": "%{text}<extra></extra>",
        "colorscale": plotly_scale(),
        "cmin": round(math.log10(scale.low), 4),
        "cmax": round(math.log10(scale.high), 4),
        "colorbar": colorbar(scale, unit),
    }


def _scene(scale: Scale, unit: str, axes: tuple[Sequence[str], Sequence[str]]) -> dict[str, object]:
    bar = colorbar(scale, unit)
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
        "camera": {"eye": {"x": -1.7, "y": -1.8, "z": 1.1}},
        "aspectmode": "manual",
        "aspectratio": {"x": 1.5, "y": 1.5, "z": 0.9},
    }
