"""Figures by their data: the same numbers in every drawing, in the live figure and in the analysis."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from builders.measurements import analysed, rounds
from builders.pages import ANSWERS, TCP, swept, whole
from builders.recorded import load, series
from vtax.analysis.records import Analysis, Ladder, LadderStep
from vtax.figures import drawings, render, theme, vega
from vtax.figures.bars import bars
from vtax.figures.entry import EntryData
from vtax.figures.figure import Axis, Choice, Figure, Layer, Mark, Medium, NotDrawn, Panel, Row, rows, switchable
from vtax.figures.intervals import Ratio, intervals
from vtax.figures.terminal import strips
from vtax.model.metric import Kind
from vtax.model.trial import Status, TrialRecord
from vtax.report.document.compose import document_of
from vtax.report.document.model import Entry
from vtax.report.document.peaks import peak_flops, peaks
from vtax.report.document.results import results_of
from vtax.report.figures.forest import forest
from vtax.report.figures.ratios import ratio_figures
from vtax.report.figures.selection import entry_data, entry_figures, kinds, page_figures
from vtax.report.figures.strips import axis_of
from vtax.report.figures.sweeps import sweeps
from vtax.report.figures.timeline import numbered, strip_domain, timeline
from vtax.report.figures.timeline_data import Lane, Spot, Strip, drift, lanes_of, strips_of
from vtax.report.figures.topics import topics_of
from vtax.report.figures.waterfall import waterfall
from vtax.report.records import ReportInput
from vtax.tools.iozone.figures import cached_below, grids
from vtax.tools.iperf3 import figures as iperf3_figures
from vtax.tools.ping import figures as ping_figures
from vtax.tools.trials import read_trial


@pytest.fixture(scope="module")
def report() -> ReportInput:
    return whole()


@pytest.fixture(scope="module")
def made(report: ReportInput) -> tuple[Figure, ...]:
    return page_figures(document_of(report)).every


def figure_of(made: Sequence[Figure], title: str) -> Figure:
    return next(one for one in made if one.title.startswith(title))


def named(report: ReportInput, label: str) -> Entry:
    return next(one for section in document_of(report).sections for one in section.entries if one.label == label)


def entry_of(trials: Sequence[TrialRecord]) -> EntryData:
    readings = {trial.id: read_trial(trial) for trial in trials}
    return EntryData("fig", "entry", ("host", "container", "vm"), {}, tuple(trials), readings)


def column(several: Sequence[Row], field: str) -> list[object]:
    return [row[field] for row in several]


# --- every kind in every medium ------------------------------------------------------------------------------------


def test_every_kind_of_figure_is_drawn_in_every_medium_that_it_declares(
    report: ReportInput, made: tuple[Figure, ...]
) -> None:
    """A kind that a medium cannot show fails here, and does not disappear without a word."""
    above = waterfall(with_ladder(report, rung("host", "container", 0.9), rung("container", "vm", 1.2)))
    assert above is not None
    found = {one.kind: one for one in (*made, *ratio_figures(report.analysis), above, *sweeps(document_of(swept())))}
    assert set(found) == set(kinds())
    for kind, figure in found.items():
        assert {Medium.PAGE, Medium.PAPER} <= figure.media, kind
        layers = {layer.rows for panel in figure.panels for layer in panel.layers}
        assert {row["of"] for row in figure.data} <= layers, kind
        assert marks_in(render.still(figure)) >= min(12, len(vega.still_rows(figure)[0]) // 2), kind
        for part in render.paper(figure):
            for format in render.FORMATS:
                assert len(render.draw(part, format)) > 2000, kind
        if Medium.TERMINAL in figure.media:
            assert len(strips(figure, 40)) == len(figure.of("ratio"))


def marks_in(svg: str) -> int:
    """How much is drawn besides text and axes."""
    return sum(element.tag in {"path", "use"} for element in ElementTree.fromstring(svg).iter())


def rung(previous: str, environment: str, ratio: float) -> LadderStep:
    ends = {"low": 0.9 * ratio, "high": 1.1 * ratio}
    return LadderStep.model_validate(
        {"previous": previous, "environment": environment, "ratio": ratio, "effect": ratio - 1, **ends}
    )


def with_ladder(report: ReportInput, *rungs: LadderStep) -> Analysis:
    one = next(item for item in report.analysis.comparisons if item.metric == "HPL")
    about = {name: getattr(one, name) for name in ("benchmark", "label", "metric", "unit", "kind", "direction")}
    ladder = Ladder.model_validate({**about, "primary": True, "n": 6, "rungs": rungs, "total": rungs[-1]})
    return report.analysis.model_copy(update={"ladder": (ladder,)})


def test_a_medium_that_a_figure_does_not_declare_is_refused(made: tuple[Figure, ...]) -> None:
    only = replace(made[0], media=frozenset({Medium.PAPER}))
    with pytest.raises(ValueError, match="is not for page"):
        render.still(only)
    with pytest.raises(ValueError, match="is not for terminal"):
        strips(only, 40)
    with pytest.raises(ValueError, match="is not for paper"):
        render.paper(replace(made[0], media=frozenset({Medium.PAGE})))


def test_a_figure_says_something_to_those_who_cannot_see_it() -> None:
    with pytest.raises(ValueError, match="says nothing"):
        Figure("a", "bars", "title", "", (), (Panel((), Axis("y")),), Axis("x"))


def test_every_drawing_is_xml_with_ids_of_its_own_and_every_choice_has_rows(made: tuple[Figure, ...]) -> None:
    seen: set[str] = set()
    for name, svg in render.Stills(made).items():
        ids = [element.attrib["id"] for element in ElementTree.fromstring(svg).iter() if "id" in element.attrib]
        assert all(one.startswith(name) for one in ids)
        assert not seen & set(ids)
        seen |= set(ids)
    assert seen
    for figure in made:
        for choice in figure.choices:
            assert choice.first in choice.options
            for option in choice.options:
                assert any(row.get(choice.field) == option for row in figure.data)


def test_the_live_figure_has_the_rows_of_the_drawing(made: tuple[Figure, ...]) -> None:
    """Texts once each, numbers as they are, raw files once in the page."""
    found = render.live(made)
    figure = figure_of(made, "hpcc")
    for field, values in found["figures"][figure.name]["columns"].items():
        if field == "file":
            values = [None if place is None else found["files"][place] for place in values]
        elif isinstance(values, dict):
            values = [None if place is None else values["texts"][place] for place in values["places"]]
        assert values == [row.get(field) for row in figure.data]
    assert len(found["files"]) == len(set(found["files"])) > 0


def test_where_nothing_can_be_chosen_some_options_are_drawn_next_to_each_other() -> None:
    choice = Choice("n", "N", ("1", "2", "3", "4"), "4", still=3)
    assert choice.drawn() == ("1", "2", "4")
    assert choice.drawn(1) == ("4",)
    data = (*rows("a", [{"n": str(n), "x": 1.0, "y": 2.0} for n in range(1, 5)]), *rows("b", [{"y": 1.0}]))
    layers = (Layer(Mark.MEAN, "a"), Layer(Mark.LIMIT, "b", y="y"))
    figure = Figure("f", "k", "t", "alt", data, (Panel(layers, Axis("y")),), Axis("x"), choices=(choice,))
    drawn, titles = vega.still_rows(figure)
    assert titles == ("1", "2", "4")
    assert [(row["of"], row["panel"]) for row in drawn] == [
        *(("a", title) for title in titles),
        *(("b", title) for title in titles),
    ]


def test_the_page_draws_some_rows_and_paper_all_of_them_in_parts() -> None:
    several = [Ratio(f"metric {n}", "host", 1.0, 0.9, 1.1, "slower") for n in range(120)]
    figure = replace(intervals("r", several, ("host",), "base", 0.02), most_rows=16)
    assert len(render.first_rows(figure).of("ratio")) == 16
    assert render.first_rows(figure).caption.endswith("The first 16 of 120 rows.")
    parts = render.paper(figure)
    assert [part.name for part in parts] == [f"r-part{n}" for n in range(1, len(parts) + 1)]
    assert len(parts) > 1
    assert sum(len(part.figure.of("ratio")) for part in parts) == 120
    assert all(part.figure.of("band") for part in parts)


# --- figures of tools ----------------------------------------------------------------------------------------------


def test_seconds_of_iperf3_are_drawn_as_they_were_reported(made: tuple[Figure, ...]) -> None:
    figure = figure_of(made, "Throughput over time")
    seconds = series(load(TCP), "throughput")
    lines = [(row["pair"], row["environment"], row["round"]) for row in figure.of("line")]
    first = [row for row, line in zip(figure.of("line"), lines, strict=True) if line == ("master → worker1", "host", 1)]
    assert len(set(lines)) == 3 * 3 * 6  # pairs, environments, rounds
    assert column(first, "second") == [round(end, 2) for _, end, _ in seconds]
    assert column(first, "value") == [float(f"{rate / 1e9:.5g}") for _, _, rate in seconds]
    assert figure.choices[0].options == ("master → worker1", "worker1 → worker2", "worker2 → master")
    assert figure.panels[0].layers[0].group == "round"  # one colour, and one entry of the legend, for all rounds


def test_a_line_of_few_points_has_markers_and_begins_at_zero(made: tuple[Figure, ...]) -> None:
    figure = figure_of(made, "Throughput over time")
    assert [layer.mark for layer in figure.panels[0].layers] == [Mark.THIN_LINE, Mark.RUN]
    assert figure.x.domain is not None
    assert figure.x.domain[0] == 0
    assert "every 0.1 s" in figure.caption


def test_two_seconds_of_iperf3_are_neither_a_line_nor_a_box() -> None:
    """The older recording has two intervals a run; a box of all rounds of a pair needs five."""
    record = load(TCP.parent / "3.18--trixie-tcp")
    runs = [record.model_copy(update={"round": number, "environment": "host"}) for number in (1, 2)]
    (reason,) = iperf3_figures.figures(entry_of(runs))
    assert isinstance(reason, NotDrawn)
    assert "iperf3 reported 2 intervals of each run, and a line needs 5" in reason.reason
    six = [*runs, runs[0].model_copy(update={"round": 3})]
    made = [one.title for one in iperf3_figures.figures(entry_of(six)) if isinstance(one, Figure)]
    assert made == ["Spread of the throughput"]
    assert list(iperf3_figures.figures(entry_of([]))) == []


def test_many_seconds_become_the_median_of_the_rounds() -> None:
    runs = [iperf3_figures.Run("host", "a → b", n, ((1.0, 10.0 * n), (2.0, 20.0 * n))) for n in (1, 2, 3)]
    assert iperf3_figures.medians(runs)[0].rates == ((1.0, 20.0), (2.0, 40.0))


def test_boxes_are_quartiles() -> None:
    assert iperf3_figures.five_numbers([5, 1, 3, 2, 4]) == (1, 2.0, 3.0, 4.0, 5)
    assert iperf3_figures.five_numbers([7.0]) == (7.0,) * 5


def test_round_trips_are_those_that_ping_printed(made: tuple[Figure, ...]) -> None:
    answers = series(load(ANSWERS), "round_trips")
    assert len(answers) == 100
    assert answers[0] == pytest.approx((1, 0.000081))
    times = sorted(time_s for _, time_s in answers)
    figure = figure_of(made, "Distribution of round-trip times")
    own = [row for row in figure.of("step") if (row["pair"], row["environment"]) == (ping_figures.ALL, "host")]
    assert own[0]["time"] == 61.0  # µs, the least
    assert own[-1]["time"] == 172.0
    assert own[-1]["share"] == 1.0
    assert f"{statistics.median_high(times) * 1e6:.3g}" in figure.alt


def test_times_of_a_caption_are_numbers_that_a_person_writes() -> None:
    """1,013 µs, not 1.01e+03; and the axis has no small 2 and 5 between powers."""
    times = {ping_figures.ALL: {"host": [50e-6] * 9, "vm": [1.013e-3] * 5 + [6.354e-3]}}
    figure = ping_figures.distribution(entry_of([]), times, 1e-6, "µs")
    assert figure.caption.endswith("Median, µs: host 50.0; vm 1,013. 99th percentile: host 50.0; vm 6,354.")
    assert [theme.tick_text(float(tick)) for tick in figure.x.values] == ["100", "300", "1,000", "3,000"]


def test_shares_are_drawn_in_percent_from_zero_and_counts_have_an_axis(report: ReportInput) -> None:
    """Shares 200 times apart would have had a logarithmic axis without a unit."""
    shares = rounds([0.001] * 3, [0.2] * 3, metric="lost_fraction", kind=Kind.PROPORTION, unit="1")
    counts = rounds([3.0] * 3, [5.0] * 3, metric="retransmits", kind=Kind.COUNT, unit="1")
    results = results_of(report.model_copy(update={"analysis": analysed([*shares, *counts])}))
    lost, again = (
        bars(results.levels, results.environments, topic, "fig")
        for name in ("lost_fraction", "retransmits")
        for topic in topics_of(results, results.levels, [name])
    )
    assert (lost.x.title, str(lost.x.scale), lost.x.domain and lost.x.domain[0]) == ("%, lower is better", "linear", 0)
    assert column(lost.of("mean"), "value") == [0.1, 20.0]
    assert again.x.title == "count"


def test_bars_have_the_mean_every_run_and_the_deviation(report: ReportInput, made: tuple[Figure, ...]) -> None:
    figure = figure_of(made, "sysbench-cpu")
    levels = [level for level in report.analysis.levels if level.label == "sysbench-cpu" and level.primary]
    cells = [cell for level in levels for cell in level.cells]
    assert sorted(map(str, column(figure.of("run"), "value"))) == sorted(str(float(f"{c.value:.5g}")) for c in cells)
    assert column(figure.of("run"), "file") == [cell.sources[0] for cell in cells]
    assert column(figure.of("mean"), "value") == [float(f"{level.mean:.5g}") for level in levels]
    ends = [float(f"{level.mean + (level.sd or 0.0):.5g}") for level in levels]
    assert column(figure.of("spread"), "high") == ends


def test_a_quiet_ping_has_no_distribution() -> None:
    quiet = load(ANSWERS.parent / "iputils-20240905--trixie")
    assert len(series(quiet, "round_trips")) == 0
    assert list(ping_figures.figures(entry_of([quiet]))) == []


def test_a_distribution_keeps_both_ends() -> None:
    steps = ping_figures.quantiles([float(value) for value in range(1, 1001)], steps=10)
    assert [steps[0], steps[-1]] == [(1, 0.001), (1000, 1.0)]
    assert len(steps) == 11


def test_heat_maps_have_one_scale_and_mark_the_page_cache(report: ReportInput, made: tuple[Figure, ...]) -> None:
    results = results_of(report)
    data = entry_data(document_of(report), named(report, "iozone"), "fig")
    local, shared = grids(data)
    assert local.files == ("1048576", "67108864", "8589934592")
    assert cached_below(data, "host") == 2 * 2 * 2**30  # twice the limit that its nodes read back
    maps = [one for one in made if one.name.endswith("-heat") and "8 GiB" in one.y.values]
    assert [one.title.split(" · ")[1] for one in maps] == [local.place, shared.place]
    assert len({one.colours for one in maps}) == 1
    for one in maps:  # the first two of three file sizes, in each environment
        assert column(one.of("cache"), "size_text") == ["64 MiB"] * 3
        assert one.y.values == ("8 GiB", "64 MiB", "1 MiB")
    mean = results.levels[local.operations["write"]["1048576", "4096"]]["host"].mean
    assert maps[0].colours is not None
    assert maps[0].colours.title == "MB/s"
    cell = maps[0].of("cell")[0]
    assert (cell["operation"], cell["environment"], cell["size_text"]) == ("write", "host", "1 MiB")
    assert cell["value"] == pytest.approx(mean / 1e6, rel=1e-4)


def test_a_sweep_has_a_line_for_every_choice(made: tuple[Figure, ...]) -> None:
    figure = figure_of(made, "HPL over NB")
    assert figure.choices[0].options == ("N 1,024", "N 2,048", "N 4,096")
    assert figure.choices[0].first == "N 4,096"
    for option in figure.choices[0].options:
        own = [row for row in figure.of("mean") if (row["option"], row["environment"]) == (option, "vm")]
        assert column(own, "size") == [64.0, 128.0, 192.0]
    assert figure.of("limit") == ()  # no clock is known, so no peak


def test_the_peak_is_a_line_with_its_name(report: ReportInput) -> None:
    entry = replace(named(report, "hpl"), peak=9e12)
    found = [one for one in entry_figures(document_of(report), entry, "fig") if isinstance(one, Figure)]
    figure = figure_of(found, "HPL over NB")
    (limit,) = figure.of("limit")
    assert limit["limit_text"] == "theoretical peak 9.000 Tflop/s"
    assert figure.y.domain is not None
    assert figure.y.domain[1] > float(limit["value"] or 0.0)


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
    counted, missing = strips_of(report, lanes)
    assert [strip.title for strip in counted] == ["drift", "load", "steal", "throttling"]
    assert missing == ("temperature",)
    steal = next(strip for strip in counted if strip.title == "steal")
    assert {round(spot.value, 6) for spot in steal.spots} == {0.0, 0.1, 0.2}  # 0, 1 and 2 of 1000 ticks
    figure = timeline(report)
    assert figure is not None
    assert "Not recorded: temperature" in figure.caption
    assert [len(figure.of(name)) for name in ("provisioning", "cell")] == [18, 18]
    assert [layer.mark for layer in figure.panels[0].layers[:2]] == [Mark.PALE_BAR, Mark.BAR]
    assert len(figure.panels) == 1 + 4


def test_the_timeline_has_what_its_caption_says(report: ReportInput) -> None:
    lost = report.trials[0].model_copy(update={"status": Status.FAILED, "reason": "exit code 1"})
    figure = timeline(report.model_copy(update={"trials": (lost, *report.trials[1:])}))
    assert figure is not None
    lanes = lanes_of(report)
    assert column(figure.of("provisioning"), "end") == column(figure.of("cell"), "start")
    assert column(figure.of("cell"), "start") == pytest.approx([lane.ready / 60 for lane in lanes], rel=1e-3)
    lane = next(lane for lane in lanes if lane.cell == lost.cell)
    name = f"{lane.environment}, round {lane.round}, 1 failed"
    failed = next(row for row in figure.of("failed") if row["name"] == name)
    assert failed["at"] == pytest.approx((lane.start + lane.end) / 2 / 60, rel=1e-3)
    assert len(figure.of("failed")) == sum(lane.failed > 0 for lane in lanes) + 1
    assert column(figure.of("number"), "number") == [str(number) for number in range(1, 7)]
    spots = list(drift(report.analysis, lanes))
    assert column(figure.of("drift"), "low") == pytest.approx([spot.low for spot in spots], rel=1e-3)
    assert column(figure.of("drift"), "high") == pytest.approx([spot.high for spot in spots], rel=1e-3)


def test_a_strip_of_nothing_goes_from_zero_to_one() -> None:
    nothing = Strip("throttling", "% of periods", (Spot(1.0, 0.0, "host", "a"), Spot(2.0, 0.0, "host", "b")))
    low, high = strip_domain(nothing)
    assert (low, round(high, 2)) == (0.0, 1.05)


def test_as_many_rounds_are_numbered_as_there_is_room_for() -> None:
    lanes = [Lane(f"c{n}-{e}", e, n, 1.0 * n, 1.0 * n, n + 0.5, 0) for n in range(1, 61) for e in ("host", "vm")]
    assert [lane.round for lane in numbered(lanes)] == list(range(1, 61, 3))


def test_cells_and_what_was_counted_in_them_share_the_axis_of_time(report: ReportInput) -> None:
    figure = timeline(report)
    assert figure is not None
    assert figure.x.domain is not None
    moments = [row[field] for row in figure.data for field in ("start", "end", "at") if field in row]
    assert all(isinstance(x, float) and 0 <= x <= figure.x.domain[1] for x in moments)


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
    assert found.axis.margin[0] < found.axis.one < found.axis.margin[1]
    one = next(row for row in found.lines if row.metric == "PTRANS" and row.name == "vm")
    assert one.verdicts == ("slower",)
    assert one.whiskers[0].shape == "down"
    assert one.whiskers[0].at < found.axis.one


def test_only_units_of_bytes_switch() -> None:
    unit = switchable(["value"], "byte/s", 1e9, "GB/s")
    assert unit is not None
    assert (unit.fields, unit.text, unit.binary, unit.factor) == (("value",), "GB/s", "GiB/s", 1e9 / 2**30)
    small = switchable(["value"], "byte/s", 1e3, "kB/s")
    assert small is not None
    assert small.binary == "KiB/s"
    assert switchable(["value"], "bit/s", 1e9, "Gbit/s") is None
    assert switchable(["value"], "s", 1e-3, "ms") is None


def test_ticks_are_round_numbers() -> None:
    assert theme.linear_ticks(0, 10, 6) == [0, 2, 4, 6, 8, 10]
    assert theme.linear_ticks(0, 0.9, 4) == pytest.approx([0, 0.5])
    assert theme.log_ticks(1, 1000, 6) == [1, 10, 100, 1000]
    assert theme.log_ticks(0.5, 2, 7) == pytest.approx([0.5, 1, 2])
    texts = [theme.tick_text(value) for value in (0, 1000, 2.5, 150_000, 1e-6, 3e9)]
    assert texts == ["0", "1,000", "2.5", "150,000", "1e-6", "3e9"]


def test_values_further_apart_than_one_factor_get_a_logarithmic_axis_everywhere() -> None:
    assert theme.logarithmic([1.0, theme.DECADES * 1.01])
    assert not theme.logarithmic([1.0, theme.DECADES])
    assert not theme.logarithmic([0.0, 1000.0])
    near, far = theme.quantity("value", "s", [1.0, 2.0]), theme.quantity("value", "s", [1.0, 200.0])
    assert (str(near.scale), near.domain and near.domain[0]) == ("linear", 0.0)
    assert (str(far.scale), far.title, far.values) == ("log", "s (logarithmic)", (1, 3, 10, 30, 100, 300))


def test_shares_of_an_axis_put_ends_on_ends() -> None:
    assert [theme.share(value, (0, 10), log=False) for value in (0, 5, 10)] == [0, 0.5, 1]
    assert [theme.share(value, (1, 100), log=True) for value in (1, 10, 100)] == [0, 0.5, 1]


def test_text_of_a_figure_is_always_text() -> None:
    """Neither markup, nor a program in an expression, nor what XML cannot hold."""
    hostile = "</text><script>x</script>\x00\"'\\`${a}"
    figure = intervals("r", [Ratio(hostile, "host", 1.0, 0.9, 1.1, "slower")], ("host",), hostile, 0.02)
    svg = render.still(figure)
    assert "<script" not in svg
    assert "\x00" not in svg
    assert "</text><script>x</script>\ufffd\"'" in "".join(ElementTree.fromstring(svg).itertext())
    assert theme.cut("a\x00b\nc", 4) == "a\ufffdb…"


@pytest.mark.parametrize("margin", [0.02, 0.6, 0.95])
def test_the_overview_is_drawn_at_any_margin(report: ReportInput, margin: float) -> None:
    drawn = forest(results_of(report), margin)
    assert drawn is not None
    assert drawn.axis.margin[0] < drawn.axis.one < drawn.axis.margin[1]


def test_strips_next_to_the_answer_are_those_of_the_forest_plot(report: ReportInput) -> None:
    plot = forest(results_of(report), report.analysis.margin)
    several = [item for item in report.analysis.comparisons if item.primary]
    axis = axis_of(several, report.analysis.margin)
    assert plot is not None
    assert axis == plot.axis
    drawn = {whisker.title for line in plot.lines for whisker in line.whiskers}
    assert {whisker.title for whisker in axis.whiskers(several)} == drawn
    assert axis_of([], 0.02) is None


def test_a_logarithmic_axis_names_whole_numbers(made: tuple[Figure, ...]) -> None:
    figure = figure_of(made, "hpcc · RandomlyOrderedRingLatency")
    assert str(figure.x.scale) == "log"
    assert 3 <= len(figure.x.values) <= 6
    shown = vega.specification(figure, theme.PAGE)["layer"][0]["encoding"]["x"]["axis"]
    assert shown["values"] == list(figure.x.values)
    assert all(theme.tick_text(float(value)) in shown["labelExpr"] for value in figure.x.values)


def test_matrices_of_pairs_share_a_colour_scale_and_their_clients(made: tuple[Figure, ...]) -> None:
    figure = figure_of(made, "Pairs of nodes")
    assert figure.columns == "environment"
    assert figure.wide
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(render.still(figure)).iter("text")]
    assert [texts.count(word) for word in ("client", "Gbit/s", "host", "vm")] == [1, 1, 1, 1]


def test_the_colours_of_environments_follow_light_dark_and_paper() -> None:
    text = theme.style_sheet(["host", "container"])
    assert text.startswith(":root{--e0:#0072B2;--e1:#E69F00;}")
    assert "@media (prefers-color-scheme: dark){:root{--e0:#3d9ad6;}}" in text
    assert text.endswith("@media print{:root{--e0:#0072B2;}}")


def test_the_script_of_the_page_is_put_together_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = render.library(tmp_path / "cache")
    (kept,) = (tmp_path / "cache").iterdir()
    assert kept.read_text(encoding="utf-8") == text
    assert len(text.encode()) < 1e6
    assert "</script" not in text
    monkeypatch.setattr(render, "_bundle", lambda: pytest.fail("put together again"))
    assert render.library(tmp_path / "cache") == text


POINT = {"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x"}}}


def test_a_drawing_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = drawings.svg_of(POINT, tmp_path)
    assert drawn == drawings.svg_of(POINT)
    (kept,) = (tmp_path / "drawings").iterdir()
    monkeypatch.setattr(drawings, "_drawn", lambda specification: "<svg>anew</svg>")
    assert drawings.svg_of(POINT, tmp_path) == drawn
    assert drawings.svg_of({**POINT, "mark": "bar"}, tmp_path) == "<svg>anew</svg>"
    kept.write_text(drawn[:-10])  # the machine stopped
    assert drawings.svg_of(POINT, tmp_path) == "<svg>anew</svg>"


def test_drawings_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "drawings").write_text("no directory")
    monkeypatch.setattr(drawings, "_drawn", lambda specification: "<svg></svg>")
    assert drawings.svg_of(POINT, tmp_path) == "<svg></svg>"


def test_not_more_drawings_are_kept_than_are_useful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawings, "MOST", 4)
    monkeypatch.setattr(drawings, "_drawn", lambda specification: f"<svg>{specification['mark']}</svg>")
    for number in range(20):
        drawings.svg_of({"mark": f"{number}"}, tmp_path)
        assert len(list((tmp_path / "drawings").iterdir())) <= 4
    assert drawings.svg_of({"mark": "19"}, tmp_path) == "<svg>19</svg>"
