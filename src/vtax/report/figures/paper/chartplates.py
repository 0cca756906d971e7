"""Figures of the page as figures for a paper: lines, heat maps and waterfalls, drawn from the same numbers.

Bars are left out, as the figures of values have their numbers; so are surfaces and boxes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from vtax.report.figures.chart import Chart, Trace, slug
from vtax.report.figures.palette import SEQUENTIAL
from vtax.report.figures.paper.plate import (
    LINE_IN,
    SIZE_PT,
    Plate,
    apart,
    columns_of,
    key,
    look,
    make_log,
    name_of,
    put_ticks,
    set_ticks,
    sheet,
    title,
    wrapped,
)
from vtax.report.figures.svg import cut
from vtax.report.figures.trips import ALL

KINDS = ({"scatter"}, {"heatmap"}, {"waterfall"})
PANELS = 6  # of lines in one figure
ROWS = 7  # of heat maps
STEPS = 4  # waterfalls
BESIDE = 3  # heat maps
STEEP = 20.0  # values further apart than this get a logarithmic axis
RISE, FALL, WHOLE = "#009E73", "#D55E00", "#666666"  # the page's


@dataclass(frozen=True)
class Panel:
    """The traces of one choice, with its name."""

    name: str
    traces: tuple[Trace, ...]


def chart_plates(label: str, charts: Sequence[Chart], environments: Sequence[str]) -> Iterator[Plate]:
    """The figures for a paper of one entry of the study."""
    for chart in charts:
        kinds = {trace["type"] for trace in chart.traces}
        if kinds not in KINDS or (kinds == {"scatter"} and all(len(trace["x"]) < 2 for trace in chart.traces)):
            continue  # a line of one point shows nothing
        panels, caption = _panels(chart)
        name = slug(" ".join((label, re.sub(r"\(.*?\)", "", chart.title))))
        yield Plate(name, f"{label}: {caption}" if label else caption, _Sketch(chart, panels, tuple(environments)))


@dataclass(frozen=True)
class _Sketch:
    """What draws a chart's panels."""

    chart: Chart
    panels: tuple[Panel, ...]
    environments: tuple[str, ...]

    def __call__(self) -> Figure:
        (kind,) = {trace["type"] for trace in self.chart.traces}
        draw = {"scatter": _lines, "heatmap": _maps, "waterfall": _waterfalls}[kind]
        return draw(self)


def _panels(chart: Chart) -> tuple[tuple[Panel, ...], str]:
    """The first choice in a panel each, other choices as the page first shows them; and the caption."""
    first, *others = chart.choices or ({"label": "", "at": 0, "options": [_everything(chart)]},)
    told = [chart.title]
    kept = set(range(len(chart.traces)))
    for choice in others:
        shown = choice["options"][choice["at"]]
        kept &= set(shown["traces"])
        told.append(f"{choice['label']}: {shown['name']}")
    options = list(first["options"])
    most = _most(chart, options)
    if len(options) > most:
        order = [first["at"], *(place for place in range(len(options)) if place != first["at"])]
        options = [options[place] for place in sorted(order[:most])]
        told.append(
            f"{first['label']}: {options[0]['name']}"
            if most == 1
            else f"{most} of {len(first['options'])} choices of {first['label'].lower()}"
        )
    panels = [
        Panel(option["name"], tuple(chart.traces[i] for i in option["traces"] if i in kept)) for option in options
    ]
    found = tuple(panel for panel in panels if panel.traces)
    return found, ". ".join([*told, *_legend(chart, found)]) + "."


def _everything(chart: Chart) -> dict[str, Any]:
    return {"name": "", "traces": list(range(len(chart.traces)))}


def _most(chart: Chart, options: Sequence[Mapping[str, Any]]) -> int:
    kind = chart.traces[0]["type"]
    if kind == "heatmap":
        return max(1, ROWS // -(-len(options[0]["traces"]) // BESIDE))
    if kind == "waterfall":
        return STEPS
    return 1 if options[0]["name"] == ALL else PANELS


def _legend(chart: Chart, panels: Sequence[Panel]) -> Iterator[str]:
    """What lines, points, whiskers and colours are."""
    traces = [trace for panel in panels for trace in panel.traces]
    if traces and traces[0]["type"] == "heatmap":
        yield "One colour scale for all"
        if chart.layout.get("shapes"):
            yield "Inside the dashed frame the page cache can hold the file"
    elif traces and traces[0]["type"] == "waterfall":
        yield "Each bar is the step from the environment before it; brackets hold its interval"
    elif any(trace["mode"] == "lines+markers" for trace in traces):
        yield "Lines join means over rounds"
        if any("error_y" in trace for trace in traces):
            yield "Whiskers reach from the least to the largest round"
        if any(trace["mode"] == "markers" for trace in traces):
            yield "Small points are single rounds"
    elif any("line" in trace for trace in traces):
        yield "Every measured value of every round"
    else:
        yield "Each line is one round, or the median of the rounds where there are very many"


# --- lines ------------------------------------------------------------------------------------------------------------


def _lines(sketch: _Sketch) -> Figure:
    panels, layout = sketch.panels, sketch.chart.layout
    columns = 1 if len(panels) == 1 else 2
    rows = -(-len(panels) // columns)
    seen = sorted({trace["meta"]["env"] for panel in panels for trace in panel.traces})
    handles = [_handle(sketch, place) for place in seen]
    head = wrapped(sketch.chart.title)
    below = LINE_IN * (-(-len(handles) // columns_of(handles)) + head.count("\n") + 2)
    figure = sheet(rows * (1.9 if columns == 1 else 1.3) + below + 0.15)
    grid = figure.subplots(rows, columns, squeeze=False)
    spots = [axes for row in grid for axes in row]
    for axes in spots[len(panels) :]:
        axes.remove()
    for panel, axes in zip(panels, spots, strict=False):
        for trace in panel.traces:
            _line(axes, trace)
        _peak(axes, layout)
        axes.set_title(cut(panel.name, 30) if columns == 2 else wrapped(panel.name), loc="left", pad=2)
        _scales(axes, layout, panel)
    for axes in spots[max(0, len(panels) - columns) : len(panels)]:  # those with nothing below
        axes.set_xlabel(wrapped(unescape(layout["xaxis"]["title"]["text"]), 60 // columns))
    along = 24 if rows == 1 and columns > 1 else 40
    figure.supylabel(cut(unescape(layout["yaxis"]["title"]["text"]), along), fontsize=SIZE_PT)
    title(figure, head)
    key(figure, handles)
    figure.draw_without_rendering()
    for axes in spots[: len(panels)]:
        _marks(axes, layout)
    return figure


def _handle(sketch: _Sketch, place: int) -> Line2D:
    colour, mark, stroke = look(place)
    marked = any("markers" in trace["mode"] for trace in sketch.chart.traces)
    named = {"color": colour, "linestyle": stroke, "linewidth": 1, "label": name_of(sketch.environments[place])}
    return Line2D([], [], marker=mark if marked else "", markersize=3, **named)


def _line(axes: Axes, trace: Trace) -> None:
    colour, mark, stroke = look(trace["meta"]["env"])
    x, y = trace["x"], trace["y"]
    if trace["mode"] == "markers":
        axes.plot(x, y, mark, color=colour, markersize=1.8, alpha=0.45, markeredgewidth=0)
        return
    marks: dict[str, Any] = {"marker": mark, "markersize": 3} if "markers" in trace["mode"] else {}
    step: dict[str, Any] = {"drawstyle": "steps-post"} if trace.get("line", {}).get("shape") == "hv" else {}
    alone = bool(marks or step)  # else one of several lines of its environment
    width, pale = (1.0, 1.0) if alone else (0.6, 0.75)
    axes.plot(x, y, color=colour, linestyle=stroke if alone else "-", linewidth=width, alpha=pale, **marks, **step)
    if "error_y" in trace:
        reach = [trace["error_y"]["arrayminus"], trace["error_y"]["array"]]
        axes.errorbar(x, y, yerr=reach, fmt="none", color=colour, linewidth=0.6)


def _peak(axes: Axes, layout: Mapping[str, Any]) -> None:
    for shape, note in zip(layout.get("shapes", ()), layout.get("annotations", ()), strict=False):
        axes.axhline(shape["y0"], color="#000000", linewidth=0.6, linestyle=(0, (4, 3)))
        axes.annotate(
            cut(unescape(note["text"]), 40),
            (1, shape["y0"]),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
        )


def _scales(axes: Axes, layout: Mapping[str, Any], panel: Panel) -> None:
    values = [value for trace in panel.traces for value in trace["y"]]
    values += [shape["y0"] for shape in layout.get("shapes", ())]
    if layout["xaxis"].get("type") == "log":
        make_log(axes.xaxis)
    if "range" in layout["yaxis"]:
        axes.set_ylim(*layout["yaxis"]["range"])
    elif layout["yaxis"].get("rangemode") != "tozero" and min(values) > 0 and max(values) / min(values) > STEEP:
        make_log(axes.yaxis)
    else:
        axes.set_ylim(0, max(values) * 1.12 or 1.0)
    axes.grid(axis="y", color="#dddddd", linewidth=0.4)


def _marks(axes: Axes, layout: Mapping[str, Any]) -> None:
    places, texts = layout["xaxis"].get("tickvals"), layout["xaxis"].get("ticktext", ())
    if places:
        texts = [unescape(text) for text in texts]
        kept = apart(axes.xaxis, places, texts)
        put_ticks(axes.xaxis, [places[i] for i in kept], [texts[i] for i in kept])
    else:
        set_ticks(axes.xaxis)
    if layout["yaxis"].get("tickformat") == ".0%":
        set_ticks(axes.yaxis, text=lambda share: f"{share:.0%}")
    else:
        set_ticks(axes.yaxis)


# --- heat maps --------------------------------------------------------------------------------------------------------


def _maps(sketch: _Sketch) -> Figure:
    """A row for each choice, its environments beside each other."""
    beside = min(BESIDE, max(len(panel.traces) for panel in sketch.panels))
    rows = sum(-(-len(panel.traces) // beside) for panel in sketch.panels)
    head = wrapped(sketch.chart.title)
    figure = sheet(rows * (1.05 if beside > 1 else 1.5) + LINE_IN * (head.count("\n") + 1) + 0.45)
    grid = figure.subplots(rows, beside, squeeze=False)
    drawn = []
    row = 0
    for panel in sketch.panels:
        for i, trace in enumerate(panel.traces):
            axes = grid[row + i // beside][i % beside]
            drawn.append((axes, trace, _map(axes, trace, sketch.chart.layout)))
            axes.set_title(cut(unescape(trace["name"]), 48 // beside), loc="left", pad=2)
            if i % beside == 0:
                across = unescape(sketch.chart.layout["yaxis"]["title"]["text"])
                axes.set_ylabel("\n".join(filter(None, (cut(panel.name, 18), across))))
        row += -(-len(panel.traces) // beside)
    for axes in {axes for several in grid for axes in several} - {axes for axes, _, _ in drawn}:
        axes.remove()
    keyed = next((trace["colorbar"] for _, trace, _ in drawn if trace.get("colorbar")), None)
    if keyed:
        bar = figure.colorbar(
            drawn[0][2], ax=grid.ravel().tolist(), location="bottom", fraction=0.08, aspect=40, pad=0.02
        )
        bar.set_label(unescape(keyed["title"]["text"]))
        bar.outline.set_linewidth(0.5)
    for axes in grid[rows - 1]:
        axes.set_xlabel(unescape(sketch.chart.layout["xaxis"]["title"]["text"]))
    for axes in grid[:, 1:].ravel():
        axes.tick_params(labelleft=False)
    title(figure, head)
    figure.draw_without_rendering()
    if keyed:
        put_ticks(bar.ax.xaxis, keyed["tickvals"], keyed["ticktext"])
    for axes, trace, _ in drawn:
        _sizes(axes, trace)
    return figure


def _map(axes: Axes, trace: Trace, layout: Mapping[str, Any]) -> Any:
    grid = [[math.nan if value is None else value for value in row] for row in trace["z"]]
    columns, rows = len(trace["x"]), len(trace["y"])
    edges = [place - 0.5 for place in range(columns + 1)], [place - 0.5 for place in range(rows + 1)]
    colours = ListedColormap(list(SEQUENTIAL))
    drawn = axes.pcolormesh(*edges, grid, cmap=colours, vmin=trace["zmin"], vmax=trace["zmax"], linewidth=0)
    if layout.get(f"yaxis{trace['yaxis'][1:]}", {}).get("autorange") == "reversed":
        axes.invert_yaxis()
    for i, texts in enumerate(trace.get("text", ()) if rows * columns <= 16 else ()):
        for j, text in enumerate(texts):
            middle = (trace["zmin"] + trace["zmax"]) / 2
            shown = grid[i][j]
            if text:
                ink = "white" if shown < middle else "black"
                axes.text(j, i, text, ha="center", va="center", color=ink, fontsize=SIZE_PT - 1)
    for shape in layout.get("shapes", ()):
        if shape["xref"] == trace["xaxis"]:
            place, size = (shape["x0"], shape["y0"]), (shape["x1"] - shape["x0"], shape["y1"] - shape["y0"])
            axes.add_patch(Rectangle(place, *size, fill=False, linestyle=(0, (3, 2)), linewidth=0.8, clip_on=False))
    return drawn


def _sizes(axes: Axes, trace: Trace) -> None:
    """The ends of both axes, and as many between them as there is room for."""
    for axis, names in ((axes.xaxis, trace["x"]), (axes.yaxis, trace["y"])):
        texts = [cut(unescape(name), 10) for name in names]
        last = len(texts) - 1
        order = list(dict.fromkeys([0, last, *range(1, last)]))
        kept = [order[i] for i in apart(axis, order, [texts[i] for i in order])]
        put_ticks(axis, kept, [texts[i] for i in kept])


# --- waterfalls -------------------------------------------------------------------------------------------------------


def _waterfalls(sketch: _Sketch) -> Figure:
    head = wrapped(sketch.chart.title)
    figure = sheet(len(sketch.panels) * 1.7 + LINE_IN * (head.count("\n") + 1) + 0.2)
    several = figure.subplots(len(sketch.panels), 1, squeeze=False)[:, 0]
    for panel, axes in zip(sketch.panels, several, strict=True):
        (trace,) = panel.traces
        level = 0.0
        for place, (step, told) in enumerate(zip(trace["y"], trace["text"], strict=True)):
            colour = WHOLE if place == 0 else FALL if step < 0 else RISE
            axes.bar(place, step, bottom=level, color=colour, width=0.7)
            top = max(level, level + step)
            ratio, _, ends = unescape(told).partition(" [")
            axes.text(
                place, top, f"{ratio}\n[{ends}" if ends else ratio, ha="center", va="bottom", fontsize=SIZE_PT - 1
            )
            level += step
        wide = max(6, 56 // len(trace["x"]))
        axes.set_xticks(range(len(trace["x"])), [cut(unescape(name), wide) for name in trace["x"]])
        axes.set_ylim(0, axes.get_ylim()[1] * 1.25)
        axes.set_title(wrapped(panel.name or unescape(trace["name"])), loc="left", pad=2)
    figure.supylabel(cut(unescape(sketch.chart.layout["yaxis"]["title"]["text"]), 40), fontsize=SIZE_PT)
    title(figure, head)
    figure.draw_without_rendering()
    for axes in several:
        set_ticks(axes.yaxis)
    return figure
