"""Grouped bars: the mean of every environment, and every single run as a point on it."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.records import Level
from vtax.model.metric import Direction, Kind
from vtax.report.document.numbers import mean_sd
from vtax.report.document.results import Results
from vtax.report.figures.chart import Chart, Trace, log_marks, plain, scaled, short, switchable
from vtax.report.figures.panels import Panel
from vtax.report.figures.svg import Scale, around, cut, document, dots, label, line, log_ticks, rect, tick_text
from vtax.units import format_number

DECADES = 100.0  # a logarithmic axis beyond this spread
WIDTH, LEFT, RIGHT = 440.0, 96.0, 372.0
PERCENT = (0.01, "%")  # in which shares are drawn, from zero
BAR, GAP, HEAD = 17.0, 9.0, 17.0  # px: one bar with its room, between categories, the name of a category
NAME = 14  # letters of an environment beside its bar


def bars(results: Results, panel: Panel, anchor: str) -> Chart:
    """One panel of bars. Values span decades: a logarithmic axis, on which a bar begins a decade below the least."""
    levels = [results.levels[series] for _, series in panel.categories]
    values = [cell.value for found in levels for level in found.values() for cell in level.cells]
    kinds = {level.kind for found in levels for level in found.values()}
    share = kinds == {Kind.PROPORTION}
    factor, unit = PERCENT if share else scaled(max(map(abs, values)), panel.unit)
    spans_decades = not share and min(values) > 0 and max(values) / min(values) > DECADES
    values = [value / factor for value in values]
    scale = _log_scale(values) if spans_decades else around([0.0, *values], LEFT, RIGHT, zero=True)
    rows = _rows(results, panel)
    axis = _axis_title(panel, unit, spans_decades)
    return Chart(
        anchor=anchor,
        title=panel.title,
        alt=_words(panel, rows, factor, unit),
        svg=_svg(panel, rows, scale, factor, axis),
        traces=tuple(_traces(results, rows, factor, unit)),
        layout=_layout(panel, rows, axis, scale),
        unit=switchable("x", panel.unit, factor, unit),
        height=int(90 + 22 * len(rows) + 14 * len(panel.categories)),
    )


Row = tuple[int, int, str, Level, float]  # category, environment, its name, its level, place from the top


def _rows(results: Results, panel: Panel) -> list[Row]:
    rows: list[Row] = []
    y = 4.0
    for category, (_, series) in enumerate(panel.categories):
        y += HEAD if len(panel.categories) > 1 else 0.0
        for place, name in enumerate(results.environments):
            level = results.levels[series].get(name)
            if level is not None:
                rows.append((category, place, name, level, y))
                y += BAR
        y += GAP
    return rows


def _log_scale(values: Sequence[float]) -> Scale:
    """From the power of ten below the least, so that its bar has some length, to just above the largest."""
    powers = [tick for tick in log_ticks(min(values) / 20, max(values), 40) if _is_power(tick)]
    floor = max((tick for tick in powers if tick <= min(values) / 1.5), default=min(values) / 10)
    return Scale(floor, max(values) * (max(values) / floor) ** 0.04, LEFT, RIGHT, logarithmic=True)


def _is_power(tick: float) -> bool:
    return f"{tick:.0e}"[0] == "1"


def _axis_title(panel: Panel, unit: str, logarithmic: bool) -> str:
    """`Gbit/s (higher is better)`; a plain number is a count."""
    about = [str(panel.better)] if panel.better is not Direction.NONE else []
    about += ["logarithmic"] if logarithmic else []
    name = "count" if unit == "1" else unit
    return f"{name} ({', '.join(about)})" if about else name


def _svg(panel: Panel, rows: Sequence[Row], scale: Scale, factor: float, axis: str) -> str:
    bottom = rows[-1][4] + BAR + 3
    parts = []
    for tick in scale.ticks(5):
        parts += [line(scale(tick), 2, scale(tick), bottom, "grid")]
        parts += [label(scale(tick), bottom + 13, tick_text(tick), "tick", "middle")]
    seen: set[int] = set()
    for category, place, name, level, y in rows:
        if category not in seen and len(panel.categories) > 1:
            parts.append(label(0, y - 5, cut(panel.categories[category][0], 62), "head"))
        seen.add(category)
        middle = y + BAR / 2
        parts.append(label(LEFT - 7, middle + 3.5, cut(name, NAME), "side", "end"))
        base, end = scale(scale.low) if scale.logarithmic else scale(0.0), scale(level.mean / factor)
        parts.append(rect(min(base, end), y + 2, abs(end - base), BAR - 4, f"bar f{place}"))
        spots = list(_spots(level, scale, factor, y))
        parts += [dots(spots, "dot-line"), dots(spots, "dot")]
        parts.append(label(WIDTH, middle + 3.5, format_number(level.mean / factor), "value", "end"))
    parts.append(label((LEFT + RIGHT) / 2, bottom + 30, axis, "axis", "middle"))
    return document(WIDTH, bottom + 36, parts)


def _spots(level: Level, scale: Scale, factor: float, y: float) -> Sequence[tuple[float, float]]:
    """The runs of a level, the first on top."""
    return [(scale(cell.value / factor), y + 4 + (BAR - 8) * (i + 0.5) / level.n) for i, cell in enumerate(level.cells)]


def _traces(results: Results, rows: Sequence[Row], factor: float, unit: str) -> list[Trace]:
    """A trace of bars for each environment, and one of its runs; the lowest row is at 0, as plotly counts."""
    traces: list[Trace] = []
    top = rows[-1][4]
    for place, name in enumerate(results.environments):
        own = [(level, top - y) for _, where, _, level, y in rows if where == place]
        if not own:
            continue
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": plain(name, 28),
                "meta": {"env": place},
                "x": [short(level.mean / factor) for level, _ in own],
                "y": [y for _, y in own],
                "width": BAR - 4,
                "text": [plain(f"{cut(name, 24)}: {_said(level, factor)} {unit}, n {level.n}") for level, _ in own],
                "hovertemplate": "%{text}<extra></extra>",
                "textposition": "none",
            }
        )
        runs = [(level, y, i, cell) for level, y in own for i, cell in enumerate(level.cells)]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": plain(f"{name}, single runs"),
                "meta": {"env": place, "role": "run"},
                "showlegend": False,
                "x": [short(cell.value / factor) for _, _, _, cell in runs],
                "y": [round(y + 4.5 - 9 * (i + 0.5) / level.n, 1) for level, y, i, _ in runs],
                "text": [cell.round for _, _, _, cell in runs],
                "customdata": [cell.sources[0] if cell.sources else "" for _, _, _, cell in runs],
                "hovertemplate": "%{x:.5g}, round %{text}<extra></extra>",
            }
        )
    return traces


def _said(level: Level, factor: float) -> str:
    return mean_sd(level.mean / factor, None if level.sd is None else level.sd / factor)


def _layout(panel: Panel, rows: Sequence[Row], axis: str, scale: Scale) -> dict[str, object]:
    top = rows[-1][4]
    heads = {category: y for category, _, _, _, y in reversed(rows)}
    notes = [
        {"x": 0, "xref": "paper", "y": top - y + BAR - 1, "text": plain(cut(panel.categories[category][0], 70))}
        for category, y in heads.items()
        if len(panel.categories) > 1
    ]
    room = HEAD if notes else 4.0
    return {
        "xaxis": {
            "title": {"text": plain(axis)},
            **(log_marks(scale) if scale.logarithmic else {"rangemode": "tozero"}),
        },
        "yaxis": {
            "showticklabels": False,
            "ticks": "",
            "showgrid": False,
            "zeroline": False,
            "range": [-BAR, top + BAR + room],
        },
        "annotations": [{**note, "showarrow": False, "xanchor": "left"} for note in notes],
        "barmode": "overlay",
    }


def _words(panel: Panel, rows: Sequence[Row], factor: float, unit: str) -> str:
    """The figure in words: the means, as many as one listens to."""
    told = [
        f"{panel.categories[category][0]} {name} {format_number(level.mean / factor)}".strip()
        for category, _, name, level, _ in rows[:8]
    ]
    more = f" and {len(rows) - 8} more" if len(rows) > 8 else ""
    return f"Bars, {panel.title}, means in {unit}: {'; '.join(told)}{more}. The table holds all of them."
