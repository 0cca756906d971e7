"""Figures of rows for a paper: ratios with their intervals, and values with their deviation.

A series is a row; its environments stand below each other in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from vtax.analysis.records import Analysis, Comparison, Level, Verdict
from vtax.model.metric import Direction
from vtax.report.document.naming import Named, in_order, interval, names_of
from vtax.report.figures.paper.plate import (
    HIGHEST_IN,
    LINE_IN,
    SIZE_PT,
    Plate,
    columns_of,
    key,
    look,
    make_log,
    name_of,
    set_ticks,
    sheet,
    title,
    wrapped,
)
from vtax.report.figures.svg import cut
from vtax.units import scale_of

LANE_IN = 0.075  # of one environment in a row
ROOM_IN = 0.05  # between rows
LEAST_IN = 0.4  # of the axes
LETTERS = 33  # in a line beside the axes, so that half of the column is left for them
DECADES = 30.0  # a logarithmic axis beyond this spread
REACH = 3.0  # intervals that go further than this factor beyond every ratio are cut
GREY = "#444444"
HOLLOW, FILLED = "none", "full"
VERDICTS: dict[Verdict, tuple[str, str]] = {  # mark, and whether it is filled
    Verdict.FASTER: ("^", FILLED),
    Verdict.SLOWER: ("v", FILLED),
    Verdict.EQUIVALENT: ("s", FILLED),
    Verdict.TRIVIAL: ("D", FILLED),
    Verdict.UNADJUSTED: ("D", HOLLOW),
    Verdict.INCONCLUSIVE: ("o", HOLLOW),
    Verdict.NOT_COMPARABLE: ("x", FILLED),
}
NO_VERDICT = (".", FILLED)


@dataclass(frozen=True)
class Row:
    """A series in some environments, or without any a heading. `under` is the heading that it belongs to; a row that is
    `alone` has none, and looks like one.
    """

    text: str
    items: tuple[Named, ...] = ()
    under: str = ""
    alone: bool = False

    @property
    def height_in(self) -> float:
        lines = LINE_IN * (self.text.count("\n") + 1)
        return max(lines, LANE_IN * len(self.items)) + ROOM_IN


# --- ratios -----------------------------------------------------------------------------------------------------------


def ratio_plates(name: str, items: Sequence[Comparison], analysis: Analysis) -> Iterator[Plate]:
    """The ratios of all series, an entry of the study after another, in figures that fit a page."""
    entries: dict[str, list[Comparison]] = {}
    for item in items:
        entries.setdefault(item.label, []).append(item)
    rows: list[Row] = []
    shared = {}
    for entry, several in entries.items():
        head, own, told = _rows_of(several)
        if told:
            shared[entry] = told
        if len(own) == 1:
            rows.append(Row(wrapped(head, LETTERS), own[0].items, alone=True))
        else:
            head = f"{head}: {told}" if told and len(entries) == 1 else head
            rows += [Row(wrapped(head)), *(Row(row.text, row.items, wrapped(head)) for row in own)]
    said = "; ".join(f"{entry}: {text}" for entry, text in shared.items())
    rounds = _rounds([item.n for item in items])
    caption = (
        f"Ratios to {analysis.baseline}: relative performance over {rounds}, above 1 is better. "
        f"Whiskers are {interval(analysis)}; shaded: the margin of equivalence, {100 * analysis.margin:g} %. "
        f"{said}{'.' if said else ''}"
    )
    environments = [one for one in analysis.environments if any(item.environment == one for item in items)]
    handles = [*_lanes(analysis, environments), *_verdicts(items)]
    overhead = 0.55 + LINE_IN * (-(-len(handles) // columns_of(handles)) + 1)

    def sketch(part: Sequence[Row]) -> Figure:
        figure = sheet(overhead + _height(part))
        axes, lanes = _frame(figure, part, analysis)
        _ratios(axes, lanes, analysis)
        axes.set_xlabel(wrapped(f"ratio to {analysis.baseline}, above 1 is better", 40))
        key(figure, handles, "environments from top to bottom in a row; verdicts")
        figure.draw_without_rendering()
        set_ticks(axes.xaxis, always=(1.0,))
        return figure

    yield from _in_parts(name, caption, rows, overhead, sketch)


Lane = tuple[float, Any]  # height, item


def _ratios(axes: Axes, lanes: Sequence[Lane], analysis: Analysis) -> None:
    margin = analysis.margin
    axes.axvspan(1 / (1 + margin), 1 + margin, color="#000000", alpha=0.1, linewidth=0)
    axes.axvline(1.0, color="#000000", linewidth=0.5)
    make_log(axes.xaxis)
    low, high = _ends([item for _, item in lanes], margin)
    for y, item in lanes:
        colour, _, _ = look(analysis.environments.index(item.environment))
        mark, filled = VERDICTS.get(item.verdict, NO_VERDICT)
        if item.low is not None and item.high is not None:
            axes.plot([max(low, item.low), min(high, item.high)], [y, y], color=colour, linewidth=0.9)
            for end, beyond, arrow in ((low, item.low < low, "<"), (high, item.high > high, ">")):
                if beyond:
                    axes.plot(end, y, arrow, color=colour, markersize=2.5, markeredgewidth=0, clip_on=False)
        axes.plot(item.ratio, y, mark, color=colour, zorder=3, **_mark(filled))
    axes.set_xlim(low, high)


def _mark(filled: str) -> dict[str, Any]:
    return {"markersize": 3.4, "markeredgewidth": 0.8} | ({"markerfacecolor": "white"} if filled == HOLLOW else {})


def _ends(items: Sequence[Comparison], margin: float) -> tuple[float, float]:
    """Where the axis begins and ends: around all ratios, and around intervals as far as `REACH`."""
    ratios = [item.ratio for item in items if item.ratio is not None]
    least, most = min(ratios) / REACH, max(ratios) * REACH
    lows = [max(least, item.low) for item in items if item.low is not None]
    highs = [min(most, item.high) for item in items if item.high is not None]
    low, high = min(*ratios, *lows, 1 / (1 + 2 * margin)), max(*ratios, *highs, 1 + 2 * margin)
    room = (high / low) ** 0.04
    return low / room, high * room


def _verdicts(items: Sequence[Comparison]) -> list[Line2D]:
    """The key of the verdicts that appear."""
    found = dict.fromkeys(item.verdict for item in items)
    return [
        Line2D([], [], marker=mark, color=GREY, linestyle="none", label=str(verdict), **_mark(filled))
        for verdict in Verdict
        if verdict in found
        for mark, filled in (VERDICTS.get(verdict, NO_VERDICT),)
    ]


def _lanes(analysis: Analysis, environments: Sequence[str]) -> list[Line2D]:
    """The key of the environments, a line of each colour."""
    return [
        Line2D([], [], color=look(analysis.environments.index(name))[0], linewidth=1.4, label=name_of(name))
        for name in environments
    ]


# --- values -----------------------------------------------------------------------------------------------------------


def value_plates(name: str, items: Sequence[Level], analysis: Analysis) -> Iterator[Plate]:
    """The values of every series of one unit, in figures that fit a page."""
    head, rows, told = _rows_of(items)
    if len(rows) == 1:
        rows = [Row(" ", rows[0].items)]
    environments = [one for one in analysis.environments if any(item.environment == one for item in items)]
    factor, unit = scale_of(max(abs(item.mean) for item in items), items[0].unit)
    better = "" if items[0].direction is Direction.NONE else str(items[0].direction)
    caption = (
        f"{', '.join(filter(None, [f'{head} ({told})' if told else head, better]))}. Marks are means over "
        f"{_rounds([item.n for item in items])}, bars one sample standard deviation to each side, points single rounds."
    )
    handles = [
        Line2D([], [], color=colour, marker=mark, linestyle="none", markersize=3.2, label=name_of(one))
        for one in environments
        for colour, mark, _ in (look(analysis.environments.index(one)),)
    ]
    top = wrapped(f"{head}: {told}" if told else head)
    overhead = 0.55 + LINE_IN * (-(-len(handles) // columns_of(handles)) + top.count("\n") + 1)

    def sketch(part: Sequence[Row]) -> Figure:
        figure = sheet(overhead + _height(part))
        axes, lanes = _frame(figure, part, analysis)
        _values(axes, lanes, analysis, factor)
        axes.set_xlabel(", ".join(filter(None, [cut(unit, 24), better])))
        title(figure, top)
        key(figure, handles)
        figure.draw_without_rendering()
        set_ticks(axes.xaxis)
        return figure

    yield from _in_parts(name, caption, rows, overhead, sketch)


def _values(axes: Axes, lanes: Sequence[Lane], analysis: Analysis, factor: float) -> None:
    """Mean and deviation, and each round as a point."""
    values = []
    for y, level in lanes:
        colour, mark, _ = look(analysis.environments.index(level.environment))
        points = [cell.value / factor for cell in level.cells]
        values += points
        axes.plot(points, [y] * len(points), mark, color=colour, markersize=1.8, alpha=0.45, markeredgewidth=0)
        spread = (level.sd or 0.0) / factor
        axes.errorbar(level.mean / factor, y, xerr=spread, fmt=mark, color=colour, markersize=3.2, linewidth=0.8)
    if min(values) > 0 and max(values) / min(values) > DECADES:
        make_log(axes.xaxis)
        room = (max(values) / min(values)) ** 0.05
        axes.set_xlim(min(values) / room, max(values) * room)
    else:
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))


# --- rows -------------------------------------------------------------------------------------------------------------


def _rows_of(items: Sequence[Named]) -> tuple[str, list[Row], str]:
    """The entry (and its only metric); a row for each series, named as short as it can be; and what all share."""
    series: dict[tuple[str, tuple[tuple[str, str], ...]], list[Named]] = {}
    for item in in_order(items):
        series.setdefault((item.metric, tuple(sorted(item.labels.items()))), []).append(item)
    names = names_of([several[0] for several in series.values()])
    rows = [Row(wrapped(text, LETTERS), tuple(own)) for text, own in zip(names.own, series.values(), strict=True)]
    metrics = {item.metric for item in items}
    head = dict.fromkeys([items[0].label, *(metrics if len(metrics) == 1 else ())])
    return " ".join(head), rows, ", ".join(word for word in names.shared if word not in metrics)


def _rounds(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low} round{'s' * (low != 1)}" if low == high else f"{low} to {high} rounds"


def _height(rows: Sequence[Row]) -> float:
    return max(LEAST_IN, sum(row.height_in for row in rows))


def _in_parts(
    name: str, caption: str, rows: Sequence[Row], overhead: float, sketch: Callable[[Sequence[Row]], Figure]
) -> Iterator[Plate]:
    """As few figures as hold all rows, none higher than a page; a heading stands again where its rows go on."""
    parts: list[list[Row]] = [[]]
    for i, row in enumerate(rows):
        after = rows[i + 1].height_in if not row.items else 0.0  # a heading never ends a figure
        if parts[-1] and overhead + _height([*parts[-1], row]) + after > HIGHEST_IN:
            parts.append([Row(row.under)] if row.under else [])
        parts[-1].append(row)
    for number, part in enumerate(parts, start=1):
        several = len(parts) > 1
        told = f"{caption} Part {number} of {len(parts)}." if several else caption
        yield Plate(f"{name}-part{number}" if several else name, told.replace("  ", " ").strip(), _bound(sketch, part))


def _bound(sketch: Callable[[Sequence[Row]], Figure], part: Sequence[Row]) -> Callable[[], Figure]:
    return lambda: sketch(part)


def _frame(figure: Figure, rows: Sequence[Row], analysis: Analysis) -> tuple[Axes, list[Lane]]:
    """Axes with the names of the rows, and where in inches from the top each environment of each row stands."""
    axes = figure.add_subplot()
    lanes: list[Lane] = []
    named: list[tuple[float, Row]] = []
    top = 0.0
    for row in rows:
        middle = top + row.height_in / 2
        for i, item in enumerate(sorted(row.items, key=lambda item: analysis.environments.index(item.environment))):
            lanes.append((middle + (i - (len(row.items) - 1) / 2) * LANE_IN, item))
        if row.items:
            named.append((middle, row))
        else:
            across = blended_transform_factory(figure.transFigure, axes.transData)
            axes.axhspan(top, top + row.height_in, color="white", linewidth=0, zorder=2.5)
            head = axes.text(0.01, middle, row.text, transform=across, va="center", fontweight="bold", fontsize=SIZE_PT)
            head.set_in_layout(False)
        top += row.height_in
    axes.set_yticks([place for place, _ in named], [row.text for _, row in named])
    for text, (_, row) in zip(axes.get_yticklabels(), named, strict=True):
        text.set_fontweight("bold" if row.alone else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(top, 0.0)
    return axes, lanes
