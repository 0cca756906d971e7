"""The matrix of pairs of nodes: throughput from client to server, one colour scale for all environments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vtax.analysis.estimate.summary import Series
from vtax.report.document.numbers import natural
from vtax.report.document.results import Results
from vtax.report.figures.chart import Chart, Trace, plain, scaled, short
from vtax.report.figures.palette import SEQUENTIAL, plotly_scale, shade_class
from vtax.report.figures.svg import Scale, cut, document, element, label, num, rect
from vtax.units import format_number

METRIC = "throughput"


def matrix(results: Results, several: Sequence[Series], anchor: str) -> Chart | None:
    """Client by server, one for each environment, one colour scale; None for fewer than two pairs."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for series in several:
        labels = dict(series.labels)
        if series.metric == METRIC and {"client", "server"} <= labels.keys():
            for name, level in results.levels[series].items():
                found.setdefault(name, {})[labels["client"], labels["server"]] = level.mean
    values = [value for by_pair in found.values() for value in by_pair.values()]
    if len(values) < 2 or len({pair for by_pair in found.values() for pair in by_pair}) < 2:
        return None
    factor, unit = scaled(max(values), "bit/s")
    low, high = min(values) / factor, max(values) / factor
    scale = Scale(low * 0.98, high * 1.02, 0, 1, logarithmic=high / low > 20)
    nodes = sorted({node for by_pair in found.values() for pair in by_pair for node in pair}, key=natural)
    environments = [name for name in results.environments if name in found]
    side = min(64.0, max(26.0, 240.0 / len(nodes)))
    width = 76 + side * len(nodes)
    parts, traces = [], []
    for column, name in enumerate(environments):
        parts += _square(found[name], nodes, scale, factor, (column * (width + 16), 0.0), side, name)
        traces.append(_matrix_trace(found[name], nodes, scale, factor, unit, column, name))
    count = len(environments)
    layout: dict[str, object] = {}
    notes = []
    for i, name in enumerate(environments):
        axis = "" if i == 0 else str(i + 1)
        domain = [round(i / count + (0.04 if i else 0), 3), round((i + 1) / count - 0.04, 3)]
        layout[f"xaxis{axis}"] = {
            "domain": domain,
            "anchor": f"y{axis}",
            "type": "category",
            "title": {"text": "server"},
        }
        layout[f"yaxis{axis}"] = {
            "anchor": f"x{axis}",
            "type": "category",
            "autorange": "reversed",
            "showticklabels": i == 0,  # those of the next would stand on this one
            "title": {"text": "client" if i == 0 else ""},
        }
        notes.append({"text": plain(cut(name, 24)), "x": domain[0], "xref": "paper", "y": 1.02, "yref": "paper"})
    fixed = {"showarrow": False, "xanchor": "left", "yanchor": "bottom"}
    return Chart(
        anchor=anchor,
        title=f"Pairs of nodes, {unit}",
        alt=f"Matrices of throughput from client to server, one for each environment, from {low:.4g} to {high:.4g} "
        f"{unit}. The table holds every number.",
        svg=document(max(440.0, count * (width + 16)), side * len(nodes) + 60, parts, "wide" if count > 2 else ""),
        traces=tuple(traces),
        layout={**layout, "annotations": [{**note, **fixed} for note in notes]},
        caption="Rows are clients, columns are servers; one colour scale for all environments.",
        height=330,
        wide=count > 2,
    )


def _square(
    values: Mapping[tuple[str, str], float],
    nodes: Sequence[str],
    scale: Scale,
    factor: float,
    origin: tuple[float, float],
    side: float,
    name: str,
) -> list[str]:
    left, top = origin[0] + 74, origin[1] + 34
    parts = [label(origin[0], origin[1] + 10, cut(name, 30), "head")]
    for i, node in enumerate(nodes):
        parts.append(label(left + (i + 0.5) * side, top - 5, cut(node, int(side / 6)), "tick", "middle"))
        parts.append(label(left - 5, top + (i + 0.5) * side + 3.5, cut(node, 11), "tick", "end"))
        for j, server in enumerate(nodes):
            value = values.get((node, server))
            x, y = left + j * side, top + i * side
            if value is None:
                parts.append(rect(x, y, side - 1, side - 1, "none"))
                continue
            place = shade_class(scale.share(value / factor))
            parts.append(element("rect", x=x, y=y, width=side - 1, height=side - 1, fill=SEQUENTIAL[place]))
            kind = "on-dark" if place < len(SEQUENTIAL) * 0.55 else "on-light"
            if side > 34:
                parts.append(label(x + side / 2, y + side / 2 + 4, format_number(value / factor, 3), kind, "middle"))
    return parts


def _matrix_trace(
    values: Mapping[tuple[str, str], float],
    nodes: Sequence[str],
    scale: Scale,
    factor: float,
    unit: str,
    column: int,
    name: str,
) -> Trace:
    axis = "" if column == 0 else str(column + 1)
    rows = [[values.get((client, server)) for server in nodes] for client in nodes]
    shown = [[None if v is None else short(v / factor) for v in row] for row in rows]
    depth = [[None if v is None else round(math.log10(v) if scale.logarithmic else v, 6) for v in row] for row in shown]
    ends = [round(math.log10(end) if scale.logarithmic else end, 6) for end in (scale.low, scale.high)]
    return {
        "type": "heatmap",
        "name": plain(name, 28),
        "meta": {"role": "heat"},
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "x": [plain(node) for node in nodes],
        "y": [plain(node) for node in nodes],
        "z": depth,
        "text": [["" if v is None else num(v) if v >= 100 else f"{v:.3g}" for v in row] for row in shown],
        "texttemplate": "%{text}",
        "hovertemplate": "%{y} → %{x}: %{text} " + unit + "<extra></extra>",
        "colorscale": plotly_scale(),
        "zmin": ends[0],
        "zmax": ends[1],
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }
