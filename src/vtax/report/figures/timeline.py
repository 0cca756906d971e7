"""What happened, on one axis of time: cells in their order, failures, drift, load, steal, throttling, temperature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vtax.report.figures.chart import Chart, Trace, plain, short
from vtax.report.figures.history import Lane, Spot, Strip, lanes_of, strips_of
from vtax.report.figures.lines import legend, marker
from vtax.report.figures.svg import Scale, around, cut, document, label, line, rect, tick_text
from vtax.report.records import ReportInput

WIDTH, LEFT, RIGHT = 880.0, 96.0, 866.0
STRIP, GAP, LANES = 62.0, 24.0, 30.0
NUMBERS = 20  # of rounds below the cells, so that they do not touch
PALE = 0.45  # as in the style sheet
TIMES = ((3 * 86400.0, 86400.0, "d"), (2 * 3600.0, 3600.0, "h"), (180.0, 60.0, "min"), (0.0, 1.0, "s"))


def timeline(report: ReportInput, anchor: str = "timeline") -> Chart | None:
    """The figure; None when no cell was recorded."""
    lanes = lanes_of(report)
    if not lanes:
        return None
    strips, missing = strips_of(report, lanes)
    factor, unit = next((f, u) for least, f, u in TIMES if max(lane.end for lane in lanes) >= least)
    environments = report.analysis.environments
    failed = sum(lane.failed for lane in lanes)
    left_out = f" Not recorded: {', '.join(missing)}." if missing else ""
    return Chart(
        anchor=anchor,
        title="Rounds and cells in the order they ran",
        alt=f"Timeline of {len(lanes)} cells in {len({lane.round for lane in lanes})} rounds over "
        f"{max(lane.end for lane in lanes) / factor:.3g} {unit}, {failed} failed trials. Below it on the same axis: "
        f"{', '.join(strip.title for strip in strips) or 'nothing else was recorded'}.",
        svg=_svg(environments, lanes, strips, factor, unit),
        traces=tuple(_traces(environments, lanes, strips, factor)),
        layout=_layout(lanes, strips, factor, unit),
        caption=f"Drift: median over the primary metrics of a cell, against the mean of its environment; whiskers are "
        f"quartiles. The numbers below the cells are rounds; the pale part of a cell is provisioning; ✕ marks a cell "
        f"with failed trials.{left_out}",
        height=int(110 + 40 + 95 * len(strips)),
        wide=True,
    )


def _svg(environments: Sequence[str], lanes: Sequence[Lane], strips: Sequence[Strip], factor: float, unit: str) -> str:
    x = Scale(0.0, max(lane.end for lane in lanes) / factor, LEFT, RIGHT)
    bottom = 22 + LANES + 28 + len(strips) * (STRIP + GAP)
    parts = [
        *legend(environments, [name for name in environments if any(lane.environment == name for lane in lanes)], LEFT)
    ]
    for tick in x.ticks(9):
        parts += [
            line(x(tick), 22, x(tick), bottom, "grid"),
            label(x(tick), bottom + 14, tick_text(tick), "tick", "middle"),
        ]
    parts.append(label(RIGHT, bottom + 30, f"{unit} since the first cell began", "axis", "end"))
    parts += _cells(environments, lanes, x, factor)
    top = 22 + LANES + 28 + 12
    for strip in strips:
        parts += _strip(environments, strip, x, top, factor)
        top += STRIP + GAP
    return document(WIDTH, bottom + 36, parts, "wide")


def _cells(environments: Sequence[str], lanes: Sequence[Lane], x: Scale, factor: float) -> list[str]:
    parts = [label(LEFT - 8, 22 + LANES / 2 + 4, "cells", "side", "end")]
    for lane in lanes:
        place = _place(environments, lane.environment)
        start, ready, end = (x(moment / factor) for moment in (lane.start, lane.ready, lane.end))
        told = f"round {lane.round}, {lane.environment}" + (f", {lane.failed} failed" if lane.failed else "")
        parts.append(rect(start, 24, ready - start, LANES - 4, f"bar f{place} pale"))
        parts.append(rect(ready, 24, max(1.0, end - ready - 0.5), LANES - 4, f"bar f{place}", told))
        if lane.failed:
            parts.append(label((start + end) / 2, 24 + LANES / 2 + 2, "✕", "fail", "middle"))
    parts += [label(x(lane.start / factor) + 2, 22 + LANES + 12, f"{lane.round}", "tick") for lane in _numbered(lanes)]
    parts.append(label(LEFT - 8, 22 + LANES + 12, "round", "tick", "end"))
    return parts


def _numbered(lanes: Sequence[Lane]) -> list[Lane]:
    """The first cell of every round whose number is written, evenly so many that they do not touch."""
    firsts = list({lane.round: lane for lane in reversed(lanes)}.values())[::-1]
    return firsts[:: -(-len(firsts) // NUMBERS)]


def _strip(environments: Sequence[str], strip: Strip, x: Scale, top: float, factor: float) -> list[str]:
    y = _scale(strip, top + STRIP - 8, top)
    parts = [label(LEFT - 8, top - 6, strip.title, "side", "end")]
    for tick in y.ticks(3):
        parts += [
            line(LEFT, y(tick), RIGHT, y(tick), "grid"),
            label(LEFT - 8, y(tick) + 3.5, tick_text(tick), "tick", "end"),
        ]
    parts.append(label(LEFT + 2, top - 6, strip.unit, "tick"))
    few = len(strip.spots) <= 400
    for spot in strip.spots:
        place, at = _place(environments, spot.environment), x(spot.at / factor)
        if spot.low is not None and spot.high is not None:
            parts.append(line(at, y(spot.low), at, y(spot.high), f"thin s{place}"))
        parts.append(marker(at, y(spot.value), place) if few else rect(at - 1, y(spot.value) - 1, 2, 2, f"f{place}"))
    return parts


def _scale(strip: Strip, start: float, end: float) -> Scale:
    """From zero where nothing is below it, and to one at least, so that no strip makes much of nothing."""
    ends = [value for spot in strip.spots for value in (spot.value, spot.low, spot.high) if value is not None]
    signed = min(ends) < 0
    return around([*ends, 0.0] if signed else [*ends, 1.0], start, end, zero=not signed)


def _place(environments: Sequence[str], name: str) -> int:
    return environments.index(name) if name in environments else len(environments)


def _traces(
    environments: Sequence[str], lanes: Sequence[Lane], strips: Sequence[Strip], factor: float
) -> Iterator[Trace]:
    """Cells as bars from their start, provisioning pale, and a mark on those with failed trials; then the strips, each
    on a vertical axis of its own."""
    for place, name in enumerate(environments):
        own = [lane for lane in lanes if lane.environment == name]
        if own:
            pale = {"opacity": PALE, "showlegend": False}
            yield _bars(own, [(lane.start, lane.ready) for lane in own], name, place, factor) | pale
            yield _bars(own, [(lane.ready, lane.end) for lane in own], name, place, factor)
    lost = [lane for lane in lanes if lane.failed]
    if lost:
        yield {
            "type": "scatter",
            "mode": "markers",
            "name": "cell with failed trials",
            "meta": {"role": "failed"},
            "x": [short((lane.start + lane.end) / 2 / factor) for lane in lost],
            "y": [0] * len(lost),
            "text": [plain(_told(lane)) for lane in lost],
            "hovertemplate": "%{text}<extra></extra>",
        }
    for number, strip in enumerate(strips, 2):
        for place, name in enumerate(environments):
            spots = [spot for spot in strip.spots if spot.environment == name]
            if spots:
                yield _spots(strip, spots, name, place, factor) | {"yaxis": f"y{number}"}


def _bars(lanes: Sequence[Lane], parts: Sequence[tuple[float, float]], name: str, place: int, factor: float) -> Trace:
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain(name, 28),
        "meta": {"env": place},
        "base": [short(start / factor) for start, _ in parts],
        "x": [short((end - start) / factor) for start, end in parts],
        "y": [0] * len(parts),
        "text": [plain(_told(lane)) for lane in lanes],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }


def _spots(strip: Strip, spots: Sequence[Spot], name: str, place: int, factor: float) -> Trace:
    trace: Trace = {
        "type": "scatter",
        "mode": "markers",
        "name": plain(name, 28),
        "showlegend": False,
        "meta": {"env": place},
        "x": [short(spot.at / factor) for spot in spots],
        "y": [short(spot.value) for spot in spots],
        "text": [plain(cut(spot.name, 80)) for spot in spots],
        "hovertemplate": "%{y:.4g} " + strip.unit + "<br>%{text}<extra></extra>",
        "cliponaxis": False,  # a mark at zero is whole
    }
    if any(spot.low is not None for spot in spots):
        trace["error_y"] = {
            "symmetric": False,
            "array": [short((spot.value if spot.high is None else spot.high) - spot.value) for spot in spots],
            "arrayminus": [short(spot.value - (spot.value if spot.low is None else spot.low)) for spot in spots],
            "thickness": 1,
            "width": 0,
        }
    return trace


def _told(lane: Lane) -> str:
    failed = f", {lane.failed} failed" if lane.failed else ""
    return f"{lane.environment}, round {lane.round}{failed}"


def _layout(lanes: Sequence[Lane], strips: Sequence[Strip], factor: float, unit: str) -> dict[str, object]:
    """The strips below each other with one axis of time."""
    end = max(lane.end for lane in lanes) / factor
    count = len(strips)
    share = 1 / (count + 0.5)
    found: dict[str, object] = {
        "xaxis": {
            "title": {"text": f"{unit} since the first cell began"},
            "range": [0, short(end * 1.01)],
            "anchor": f"y{count + 1}" if count else "y",
        },
        "yaxis": {
            "domain": [round(1 - share * 0.4, 3), 1],
            "showticklabels": False,
            "showgrid": False,
            "zeroline": False,
            "ticks": "",
            "title": {"text": "cells"},
            "range": [-0.9, 0.45],  # room for the rounds below the bars
        },
        "barmode": "overlay",
        "annotations": [
            {"x": short(lane.start / factor), "y": -0.4, "text": f"{lane.round}", "xanchor": "left", "yanchor": "top"}
            | {"showarrow": False, "xshift": -2}
            for lane in _numbered(lanes)
        ],
    }
    for i, strip in enumerate(strips):
        top = 1 - share * 0.5 - i * share
        scale = _scale(strip, 0.0, 1.0)
        found[f"yaxis{i + 2}"] = {
            "range": [short(scale.low), short(scale.high)],
            "domain": [round(max(0.0, top - share * 0.82), 3), round(top, 3)],
            "title": {"text": f"{strip.title}<br>{strip.unit}"},
            "nticks": 4,
        }
    return found
