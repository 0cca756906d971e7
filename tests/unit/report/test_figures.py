"""Figures by their data: the same numbers in the drawing, in the live figure and in the analysis."""

from __future__ import annotations

import math
import statistics
from xml.etree import ElementTree

import pytest

from builders.measurements import analysed, rounds
from builders.pages import ANSWERS, TCP, whole
from builders.recorded import load
from vtax.analysis.estimate.summary import Series
from vtax.model.metric import Kind
from vtax.model.trial import Status
from vtax.report.document.page import page_of
from vtax.report.document.page_cache import cached_below
from vtax.report.document.peaks import peak_flops, peaks
from vtax.report.document.tables import results_of
from vtax.report.figures import streams, trips
from vtax.report.figures.bars import bars
from vtax.report.figures.chart import Chart, choice, plain, short, switchable
from vtax.report.figures.drawn import charts
from vtax.report.figures.forest import forest
from vtax.report.figures.grid import grids
from vtax.report.figures.history import Lane, Spot, Strip, drift, lanes_of, strips_of
from vtax.report.figures.panels import panels_of
from vtax.report.figures.rug import rugs, ticks
from vtax.report.figures.streams import five_numbers
from vtax.report.figures.svg import Scale, cut, element, label, linear_ticks, log_ticks, num, tick_text
from vtax.report.figures.timeline import _numbered, _scale, timeline
from vtax.report.figures.trips import quantiles
from vtax.report.records import ReportInput
from vtax.tools.iperf3 import benchmark as iperf3
from vtax.tools.ping import benchmark as ping


@pytest.fixture(scope="module")
def report() -> ReportInput:
    return whole()


@pytest.fixture(scope="module")
def made(report: ReportInput) -> dict[str, Chart]:
    results = results_of(report)
    return {
        chart.anchor: chart
        for section in page_of(report).sections
        for anchor, entry in section.anchored()
        for chart in charts(report, results, entry, anchor)
    }


def chart_of(made: dict[str, Chart], title: str) -> Chart:
    return next(chart for chart in made.values() if chart.title.startswith(title))


def test_every_drawing_is_xml_and_every_choice_names_traces(made: dict[str, Chart]) -> None:
    for chart in made.values():
        ElementTree.fromstring(chart.svg)
        for chosen in chart.choices:
            places = [place for option in chosen["options"] for place in option["traces"]]
            assert set(places) <= set(range(len(chart.traces)))
            assert all(option["traces"] for option in chosen["options"])


def test_seconds_of_iperf3_are_drawn_as_they_were_reported(report: ReportInput, made: dict[str, Chart]) -> None:
    chart = chart_of(made, "Bitrate over time")
    seconds = iperf3.series(load(TCP))
    assert len(chart.traces) == 3 * 3 * 6  # pairs, environments, rounds
    assert chart.traces[0]["x"] == [round(end, 2) for _, end, _ in seconds]
    assert chart.traces[0]["y"] == [short(rate / 1e9) for _, _, rate in seconds]
    assert [option["name"] for option in chart.choices[0]["options"]] == [
        "master → worker1",
        "worker1 → worker2",
        "worker2 → master",
    ]


def test_a_line_of_few_points_has_markers_and_begins_at_zero(made: dict[str, Chart]) -> None:
    chart = chart_of(made, "Bitrate over time")
    assert chart.traces[0]["mode"] == "lines+markers"
    assert chart.layout["xaxis"]["range"][0] == 0
    assert "every 0.1 s" in chart.caption
    assert chart.svg.count('class="run s0"') == 3 * 6  # pairs, rounds


def test_two_seconds_of_iperf3_are_no_line_and_no_box(report: ReportInput) -> None:
    """The older recording has two intervals a run; a box of all rounds of a pair needs five."""
    record = load(TCP.parent / "3.18--trixie-tcp")
    runs = [record.model_copy(update={"round": number, "environment": "host"}) for number in (1, 2)]
    assert streams.charts(results_of(report), [Series("iperf3", "iperf3", "throughput", ())], runs, "fig") == ()
    assert "iperf3 reported 2 intervals of each run, and a line needs 5" in streams.left_out(runs, "iperf3")
    six = [*runs, runs[0].model_copy(update={"round": 3})]
    made = streams.charts(results_of(report), [Series("iperf3", "iperf3", "throughput", ())], six, "fig")
    assert [chart.title for chart in made] == ["Spread of the bitrate"]
    assert streams.left_out([], "iperf3") == ""


def test_many_seconds_become_the_median_of_the_rounds() -> None:
    runs = [streams.Run("host", "a → b", n, ((1.0, 10.0 * n), (2.0, 20.0 * n))) for n in (1, 2, 3)]
    assert streams._medians(runs)[0].rates == ((1.0, 20.0), (2.0, 40.0))


def test_boxes_are_quartiles() -> None:
    assert five_numbers([5, 1, 3, 2, 4]) == (1, 2.0, 3.0, 4.0, 5)
    assert five_numbers([7.0]) == (7.0,) * 5


def test_round_trips_are_those_that_ping_printed(made: dict[str, Chart]) -> None:
    answers = ping.round_trips(load(ANSWERS))
    assert len(answers) == 100
    assert answers[0] == (1, 0.000081)
    times = sorted(time_s for _, time_s in answers)
    chart = chart_of(made, "Distribution of round-trip times")
    assert chart.traces[0]["x"][0] == 61.0  # µs, the least
    assert chart.traces[0]["x"][-1] == 172.0
    assert chart.traces[0]["y"][-1] == 1.0
    assert f"{statistics.median_high(times) * 1e6:.3g}" in chart.alt


def test_times_of_a_caption_are_numbers_that_a_person_writes(report: ReportInput) -> None:
    """1,013 µs, not 1.01e+03; and the axis has no small 2 and 5 between powers."""
    times = {trips.ALL: {"host": [50e-6] * 9, "vm": [1.013e-3] * 5 + [6.354e-3]}}
    chart = trips._distribution(results_of(report), times, "fig", 1e-6, "µs")
    assert chart.caption.endswith("Median, µs: host 50.0; vm 1,013. 99th percentile: host 50.0; vm 6,354.")
    assert chart.layout["xaxis"]["ticktext"] == ["100", "300", "1,000", "3,000"]


def test_shares_are_drawn_in_percent_from_zero_and_counts_have_an_axis(report: ReportInput) -> None:
    """Shares 200 times apart would have had a logarithmic axis without a unit."""
    shares = rounds([0.001] * 3, [0.2] * 3, metric="lost_fraction", kind=Kind.PROPORTION, unit="1")
    counts = rounds([3.0] * 3, [5.0] * 3, metric="retransmits", kind=Kind.COUNT, unit="1")
    results = results_of(report.model_copy(update={"analysis": analysed([*shares, *counts])}))
    lost, again = (
        bars(results, panel, "fig")
        for name in ("lost_fraction", "retransmits")
        for panel in panels_of(results, results.levels, [name])
    )
    assert lost.layout["xaxis"] == {"title": {"text": "% (lower is better)"}, "rangemode": "tozero"}
    assert [trace["x"] for trace in lost.traces if trace["type"] == "bar"] == [[0.1], [20.0]]
    assert again.layout["xaxis"]["title"] == {"text": "count"}


def test_a_quiet_ping_has_no_distribution() -> None:
    quiet = load(ANSWERS.parent / "iputils-20240905--trixie")
    assert len(ping.round_trips(quiet)) == 0
    assert len(trips.times_of([quiet], "ping")) == 0


def test_a_distribution_keeps_both_ends() -> None:
    steps = quantiles([float(value) for value in range(1, 1001)], steps=10)
    assert [steps[0], steps[-1]] == [(1, 0.001), (1000, 1.0)]
    assert len(steps) == 11


def test_heat_maps_have_one_scale_and_mark_the_page_cache(report: ReportInput, made: dict[str, Chart]) -> None:
    results = results_of(report)
    local, shared = grids(report, [series for series in results.levels if series.label == "iozone"])
    assert local.files == ("1048576", "67108864", "8589934592")
    assert cached_below(report, "host") == 2 * 2 * 2**30  # twice the limit that its nodes read back
    maps = [chart for chart in made.values() if chart.anchor.endswith("-heat") and "8 GiB" in chart.traces[0]["y"]]
    assert [chart.title.split(" · ")[1] for chart in maps] == [local.place, shared.place]
    assert len({(trace["zmin"], trace["zmax"]) for chart in maps for trace in chart.traces}) == 1
    for chart in maps:  # the first two of three file sizes, in each environment
        assert [frame["y1"] for frame in chart.layout["shapes"]] == [1.5] * 3
        assert chart.svg.count('class="cache"') == 3 * 3
    mean = results.levels[local.operations["write"]["1048576", "4096"]]["host"].mean
    assert maps[0].traces[0]["meta"]["unit"] == "MB/s"
    assert maps[0].traces[0]["z"][0][0] == pytest.approx(math.log10(mean / 1e6), abs=1e-4)


def test_a_sweep_has_a_line_for_every_choice(made: dict[str, Chart]) -> None:
    chart = chart_of(made, "HPL over NB")
    assert [option["name"] for option in chart.choices[0]["options"]] == ["N 1,024", "N 2,048", "N 4,096"]
    assert chart.choices[0]["at"] == 2
    lines = [trace for trace in chart.traces if trace["mode"] == "lines+markers"]
    assert all(trace["x"] == [64.0, 128.0, 192.0] for trace in lines)
    assert chart.layout["shapes"] == []  # no clock is known, so no peak


def test_the_peak_is_cores_times_operations_times_clock(report: ReportInput) -> None:
    """Six CPUs of four cores: two threads of one core share its units."""
    facts = {
        "cpu_flags": ["avx2", "fma"],
        "clock_hz": 2.5e9,
        "cpus": [{"id": cpu, "core": cpu if cpu < 2 else cpu // 2 + 1} for cpu in range(6)],
    }
    assert peak_flops(report.model_copy(update={"host_facts": facts}), "hpcc") == 4 * 16 * 2.5e9
    named = {"cpu_flags": ["avx2", "fma"], "cpu_model": "A CPU @ 2.00GHz"}
    assert peak_flops(report.model_copy(update={"host_facts": named}), "hpcc") == 6 * 16 * 2.0e9
    assert peak_flops(report.model_copy(update={"host_facts": {}}), "hpcc") is None
    row = next(
        row for row in peaks(report.model_copy(update={"host_facts": facts})).rows if row.cells[0].text == "hpcc"
    )
    assert (row.cells[1].text, row.cells[1].note) == ("160.0 Gflop/s", "4 cores x 2.50 GHz x 16 flop per cycle")
    assert row.cells[2].text.startswith(
        "2.50 GHz: measured when the campaign began, all CPUs busy; 16 flop per cycle: AVX2"
    )
    unknown = peaks(report.model_copy(update={"host_facts": {}})).rows
    assert {row.cells[1].text for row in unknown} == {"unknown"}


def test_the_timeline_has_every_cell_and_what_was_counted(report: ReportInput) -> None:
    lanes = lanes_of(report)
    assert len(lanes) == 18
    assert lanes[0].start == 0.0
    assert lanes[0].ready == pytest.approx(4.2, abs=1e-6)
    strips, missing = strips_of(report, lanes)
    assert [strip.title for strip in strips] == ["drift", "load", "steal", "throttling"]
    assert missing == ("temperature",)
    steal = next(strip for strip in strips if strip.title == "steal")
    assert {round(spot.value, 6) for spot in steal.spots} == {0.0, 0.1, 0.2}  # 0, 1 and 2 of 1000 ticks
    chart = timeline(report)
    assert chart is not None
    assert "Not recorded: temperature" in chart.caption
    made = [trace for trace in chart.traces if trace["type"] == "bar"]
    assert sum(len(trace["x"]) for trace in made) == 2 * 18  # provisioning, and the rest of the cell
    assert [trace.get("opacity") for trace in made] == [0.45, None] * 3


def test_the_live_timeline_has_what_its_caption_says(report: ReportInput) -> None:
    lost = report.trials[0].model_copy(update={"status": Status.FAILED, "reason": "exit code 1"})
    chart = timeline(report.model_copy(update={"trials": (lost, *report.trials[1:])}))
    assert chart is not None
    lanes = lanes_of(report)
    pale, solid = chart.traces[0], chart.traces[1]
    own = [lane for lane in lanes if lane.environment == report.analysis.environments[0]]
    ends = [base + length for base, length in zip(pale["base"], pale["x"], strict=True)]
    assert ends == pytest.approx(solid["base"], rel=1e-3)
    assert ends == pytest.approx([lane.ready / 60 for lane in own], rel=1e-3)
    (failed,) = [trace for trace in chart.traces if trace["meta"].get("role") == "failed"]
    lane = next(lane for lane in lanes if lane.cell == lost.cell)
    assert failed["x"][0] == short((lane.start + lane.end) / 2 / 60)
    assert failed["text"][0] == f"{lane.environment}, round {lane.round}, 1 failed"
    assert len(failed["x"]) == sum(lane.failed for lane in lanes) + 1
    assert [note["text"] for note in chart.layout["annotations"]] == [str(number) for number in range(1, 7)]
    drifted = next(trace for trace in chart.traces if "error_y" in trace)
    spots = [s for s in drift(report.analysis, lanes) if s.environment == report.analysis.environments[0]]
    assert drifted["error_y"]["array"] == [short((spot.high or 0.0) - spot.value) for spot in spots]
    assert drifted["error_y"]["arrayminus"] == [short(spot.value - (spot.low or 0.0)) for spot in spots]


def test_a_strip_of_nothing_goes_from_zero_to_one() -> None:
    nothing = Strip("throttling", "% of periods", (Spot(1.0, 0.0, "host", "a"), Spot(2.0, 0.0, "host", "b")))
    scale = _scale(nothing, 0.0, 1.0)
    assert (scale.low, round(scale.high, 2)) == (0.0, 1.05)


def test_as_many_rounds_are_numbered_as_there_is_room_for() -> None:
    lanes = [Lane(f"c{n}-{e}", e, n, 1.0 * n, 1.0 * n, n + 0.5, 0) for n in range(1, 61) for e in ("host", "vm")]
    assert [lane.round for lane in _numbered(lanes)] == list(range(1, 61, 3))


def test_drift_is_zero_in_a_campaign_that_repeats_itself(report: ReportInput) -> None:
    level = next(level for level in report.analysis.levels if level.metric == "HPL" and level.label == "hpcc")
    cells = tuple(cell.model_copy(update={"value": 5e9}) for cell in level.cells)
    still = report.analysis.model_copy(update={"levels": (level.model_copy(update={"cells": cells}),)})
    assert {spot.value for spot in drift(still, lanes_of(report))} == {0.0}


def test_the_forest_has_a_strip_for_every_primary_comparison(report: ReportInput) -> None:
    found = forest(results_of(report), report.analysis.margin)
    assert found is not None
    primary = [item for item in report.analysis.comparisons if item.primary and item.ratio is not None]
    assert sum(len(row.whiskers) for row in found.lines) == len(primary)
    for row in found.lines:
        for whisker in row.whiskers:
            assert whisker.low is None or whisker.high is None or whisker.low <= whisker.at <= whisker.high
    assert found.margin[0] < found.one < found.margin[1]
    one = next(row for row in found.lines if row.metric == "PTRANS" and row.name == "vm")
    assert one.verdicts == ("slower",)
    assert one.whiskers[0].shape == "down"
    assert one.whiskers[0].at < found.one


def test_only_units_of_bytes_switch() -> None:
    assert switchable("x", "byte/s", 1e9, "GB/s") == {
        "axes": "x",
        "text": "GB/s",
        "binary": "GiB/s",
        "factor": 1e9 / 2**30,
    }
    assert switchable("x", "byte/s", 1e3, "kB/s") is not None
    assert switchable("x", "byte/s", 1e3, "kB/s")["binary"] == "KiB/s"  # type: ignore[index]
    assert switchable("x", "bit/s", 1e9, "Gbit/s") is None
    assert switchable("x", "s", 1e-3, "ms") is None


def test_ticks_are_round_numbers() -> None:
    assert linear_ticks(0, 10, 6) == [0, 2, 4, 6, 8, 10]
    assert linear_ticks(0, 0.9, 4) == pytest.approx([0, 0.5])
    assert log_ticks(1, 1000, 6) == [1, 10, 100, 1000]
    assert log_ticks(0.5, 2, 7) == pytest.approx([0.5, 1, 2])
    assert [tick_text(value) for value in (0, 1000, 2.5, 1e-6, 3e9)] == ["0", "1,000", "2.5", "1e-6", "3e9"]


def test_scales_put_ends_on_ends() -> None:
    linear, logarithmic = Scale(0, 10, 100, 200), Scale(1, 100, 0, 50, logarithmic=True)
    assert [linear(value) for value in (0, 5, 10)] == [100, 150, 200]
    assert [logarithmic(value) for value in (1, 10, 100)] == [0, 25, 50]


def test_svg_text_is_always_text() -> None:
    assert element("text", x=1.25, class_="<&>") == '<text x="1.2" class="&lt;&amp;&gt;"/>'
    assert label(1, 2, "<b>\x00") == '<text x="1" y="2">&lt;b&gt;\ufffd</text>'
    assert cut("a\x00b\nc", 4) == "a\ufffdb…"
    assert plain("<b>&") == "&lt;b&gt;&amp;"
    assert num(3.0) == "3"
    assert choice("N", [("a", range(2))])["options"] == [{"name": "a", "traces": [0, 1]}]


@pytest.mark.parametrize("margin", [0.02, 0.6, 0.95])
def test_the_overview_is_drawn_at_any_margin(report: ReportInput, margin: float) -> None:
    drawn = forest(results_of(report), margin)
    assert drawn is not None
    assert drawn.margin[0] < drawn.one < drawn.margin[1]


def test_ticks_beside_the_answer_stand_where_the_forest_plot_has_its_marks(report: ReportInput) -> None:
    plot = forest(results_of(report), report.analysis.margin)
    assert plot is not None
    found = rugs(plot)
    for group, place in {(line.group, line.environment) for line in plot.lines}:
        own = [
            item for line in plot.lines if (line.group, line.environment) == (group, place) for item in line.whiskers
        ]
        drawn = ElementTree.fromstring(found[group, place])
        marks = {
            part.attrib["class"]: {float(spot.split()[0]) for spot in part[0].attrib["d"].split("M")[1:]}
            for part in drawn.findall("g")
        }
        for verdict in {item.verdict for item in own}:
            places = {float(num(1000 * item.at)) for item in own if item.verdict == verdict}
            assert marks[f"v-{verdict.replace(' ', '-')}"] == places
    assert (plot.one, "1") in ticks(plot)
    assert rugs(None) == {}


def test_rounds_of_an_environment_share_a_legend_entry(made: dict[str, Chart]) -> None:
    chart = chart_of(made, "Bitrate over time")
    for option in chart.choices[0]["options"]:
        shown = [chart.traces[place]["name"] for place in option["traces"] if chart.traces[place]["showlegend"]]
        assert shown == ["host", "container", "vm"]
        assert [chart.traces[place]["text"] for place in option["traces"]][:2] == ["host, round 1", "host, round 2"]


def test_a_logarithmic_axis_names_whole_numbers(made: dict[str, Chart]) -> None:
    axis = chart_of(made, "hpcc · RandomlyOrderedRingLatency").layout["xaxis"]
    assert axis["type"] == "log"
    assert axis["ticktext"] == [tick_text(value) for value in axis["tickvals"]]
    assert 3 <= len(axis["tickvals"]) <= 6


def test_cells_and_what_was_counted_in_them_share_the_axis_of_time(report: ReportInput) -> None:
    chart = timeline(report)
    assert chart is not None
    _, end = chart.layout["xaxis"]["range"]
    assert all(0 <= x <= end for trace in chart.traces for x in trace["x"])


def test_names_of_clients_stand_beside_the_first_matrix_only(made: dict[str, Chart]) -> None:
    chart = chart_of(made, "Pairs of nodes")
    axes = [axis for name, axis in chart.layout.items() if name.startswith("yaxis")]
    assert [axis["showticklabels"] for axis in axes] == [True, False, False]
    assert chart.wide
