"""What happened, on one axis of time: cells in their order, failures, drift, load, steal, throttling, temperature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vtax.figures import theme
from vtax.figures.figure import ENVIRONMENT, Axis, Figure, Layer, Mark, Panel, Row, Scale, rows
from vtax.report.figures.timeline_data import Lane, Strip, lanes_of, strips_of
from vtax.report.records import ReportInput

KIND = "timeline"
NUMBERS = 20  # of rounds below the cells, so that they do not touch
UNITS = ((3 * 86400.0, 86400.0, "d"), (2 * 3600.0, 3600.0, "h"), (180.0, 60.0, "min"), (0.0, 1.0, "s"))
CELLS, ROUND = "cells", "round"  # the rows above the strips


def timeline(report: ReportInput) -> Figure | None:
    """The figure; None when no cell was recorded."""
    lanes = lanes_of(report)
    if not lanes:
        return None
    strips, missing = strips_of(report, lanes)
    moments = [spot.at for strip in strips for spot in strip.spots]
    start, end = min([0.0, *moments]), max([lane.end for lane in lanes] + moments)
    factor, unit = next((f, u) for least, f, u in UNITS if end >= least)
    failed = sum(lane.failed for lane in lanes)
    not_recorded = f" Not recorded: {', '.join(missing)}." if missing else ""
    return Figure(
        name="timeline",
        kind=KIND,
        title="Rounds and cells in the order they ran",
        alt=f"Timeline of {len(lanes)} cells in {len({lane.round for lane in lanes})} rounds over "
        f"{end / factor:.3g} {unit}, {failed} failed trials. Below it on the same axis: "
        f"{', '.join(strip.title for strip in strips) or 'nothing else was recorded'}.",
        caption="Drift: median over the primary metrics of a cell, against the mean of its environment; whiskers are "
        "quartiles. The numbers below the cells are rounds; the pale part of a cell is provisioning; ✕ marks a cell "
        f"with failed trials.{not_recorded}",
        data=tuple(row for part in (_cells(lanes, factor), _spots(strips, factor)) for row in part),
        panels=(_cell_panel(), *map(_strip_panel, strips)),
        x=Axis("at", f"{unit} since the first cell began", domain=(start / factor, 1.01 * end / factor)),
        environments=report.analysis.environments,
        wide=True,
    )


def _cells(lanes: Sequence[Lane], factor: float) -> Iterator[Row]:
    for lane in lanes:
        failed = f", {lane.failed} failed" if lane.failed else ""
        cell = {"row": CELLS, "name": f"{lane.environment}, round {lane.round}{failed}"}
        cell |= {ENVIRONMENT: lane.environment}
        start, ready, end = lane.start / factor, lane.ready / factor, lane.end / factor
        yield from rows("provisioning", [{**cell, "start": start, "end": ready}])
        yield from rows("cell", [{**cell, "start": ready, "end": end}])
        if lane.failed:
            yield from rows("failed", [{**cell, "at": (start + end) / 2, "mark": "✕"}])
    for lane in numbered(lanes):
        number = {"row": ROUND, "at": lane.start / factor, "number": str(lane.round), ENVIRONMENT: lane.environment}
        yield from rows("number", [number])


def _spots(strips: Sequence[Strip], factor: float) -> Iterator[Row]:
    for strip in strips:
        for spot in strip.spots:
            place = {"at": spot.at / factor, "value": spot.value, ENVIRONMENT: spot.environment, "name": spot.name}
            yield from rows(strip.title, [{**place, "low": spot.low, "high": spot.high}])


def numbered(lanes: Sequence[Lane]) -> list[Lane]:
    """The first cell of every round whose number is written, evenly so many that they do not touch."""
    firsts = list({lane.round: lane for lane in reversed(lanes)}.values())[::-1]
    return firsts[:: -(-len(firsts) // NUMBERS)]


def _cell_panel() -> Panel:
    hover = (("name", "cell"),)
    return Panel(
        (
            Layer(Mark.PALE_BAR, "provisioning", x="start", x2="end", by=ENVIRONMENT, hover=hover),
            Layer(Mark.BAR, "cell", x="start", x2="end", by=ENVIRONMENT, hover=hover),
            Layer(Mark.FAILURE, "failed", text="mark", hover=hover),
            Layer(Mark.TEXT_RIGHT, "number", text="number"),
        ),
        Axis("row", scale=Scale.CATEGORY, values=(CELLS, ROUND)),
        height=1.3,
    )


def _strip_panel(strip: Strip) -> Panel:
    hover = (("name", "of"), ("value", strip.unit))
    layers = [Layer(Mark.MEAN, strip.title, by=ENVIRONMENT, hover=hover)]
    if any(spot.low is not None for spot in strip.spots):
        layers.insert(0, Layer(Mark.INTERVAL, strip.title, y="low", y2="high", by=ENVIRONMENT))
    return Panel(tuple(layers), Axis("value", f"{strip.title}, {strip.unit}", domain=strip_domain(strip)), height=0.38)


def strip_domain(strip: Strip) -> tuple[float, float]:
    """From zero where nothing is below it, and to one at least, so that no strip makes much of nothing."""
    ends = [value for spot in strip.spots for value in (spot.value, spot.low, spot.high) if value is not None]
    signed = min(ends) < 0
    return theme.linear_domain([*ends, 0.0] if signed else [*ends, 1.0], zero=not signed, room=1.05)
