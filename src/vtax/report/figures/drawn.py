"""Which figures a section of the page has: bars of what matters, and the figures that belong to one tool."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.estimate.summary import Series
from vtax.report.document.model import Entry
from vtax.report.document.results import Results
from vtax.report.figures import filelines, heatmaps, streams, surfaces, trips
from vtax.report.figures.bars import bars
from vtax.report.figures.chart import Chart, slug
from vtax.report.figures.grid import grids, look_of
from vtax.report.figures.panels import panels, panels_of
from vtax.report.figures.sweep import sweeps
from vtax.report.records import ReportInput

LOSSES = {"iperf3": ("retransmits", "lost_fraction", "jitter"), "ping": ("lost_fraction",)}
SIZED = frozenset({"hpl", "iozone"})  # their sizes make figures of their own, where there are several


def charts(report: ReportInput, results: Results, entry: Entry, anchor: str) -> tuple[Chart, ...]:
    """All figures of one entry of the study, with ids that begin with `anchor`."""
    own = [*_special(report, results, entry, anchor)]
    if not (entry.benchmark in SIZED and own):
        own = [*_bars(results, entry, anchor), *own]
    lost = panels_of(results, _above_zero(results, entry), LOSSES.get(entry.benchmark, ()))
    return (*own, *(bars(results, panel, f"{anchor}-lost{i}") for i, panel in enumerate(lost, 1)))


def left_out(report: ReportInput, entry: Entry, made: Sequence[Chart]) -> str:
    """Why a figure that one may look for is not among those made of an entry; "" where none is missing."""
    if entry.benchmark != "iperf3" or any(chart.anchor.endswith(streams.OVER_TIME) for chart in made):
        return ""
    return streams.left_out(report.trials, entry.label)


def _bars(results: Results, entry: Entry, anchor: str) -> list[Chart]:
    return [bars(results, panel, f"{anchor}-bars{i}") for i, panel in enumerate(panels(results, entry.series), 1)]


def _special(report: ReportInput, results: Results, entry: Entry, anchor: str) -> Sequence[Chart]:
    if entry.benchmark == "iozone":
        return _iozone(report, results, entry, anchor)
    if entry.benchmark == "iperf3":
        return streams.charts(results, entry.series, report.trials, anchor)
    if entry.benchmark == "ping":
        return trips.charts(results, entry.series, report.trials, anchor)
    if entry.benchmark == "hpl":
        return sweeps(results, entry.series, entry.peak, anchor)
    return ()


def _iozone(report: ReportInput, results: Results, entry: Entry, anchor: str) -> list[Chart]:
    """Lines, heat maps and surfaces of every grid. Colours mean the same in all of an entry's figures."""
    found = grids(report, entry.series)
    look = look_of(results, found)
    made: list[Chart] = []
    for grid in found if look is not None else ():
        assert look is not None
        name = f"{anchor}-{slug(grid.place)}"
        made.append(filelines.chart(report, results, grid, look, name))
        if len(grid.files) > 1 and len(grid.records) > 1:
            made.append(heatmaps.chart(report, results, grid, look, f"{name}-heat"))
            made.append(surfaces.chart(results, grid, look, f"{name}-surface"))
    return made


def _above_zero(results: Results, entry: Entry) -> list[Series]:
    """The series of which some run is not zero: bars of nothing say no more than the table."""
    return [series for series in entry.series if any(level.maximum > 0 for level in results.levels[series].values())]
