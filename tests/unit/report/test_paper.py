"""Figures for a paper: the same numbers as the analysis, and nothing else."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

import builders.pages as pages
from vtax.analysis.records import Analysis, Verdict
from vtax.report.document.compose import document_of
from vtax.report.document.naming import Names, names_of
from vtax.report.figures.chart import Chart
from vtax.report.figures.palette import ENVIRONMENTS, SYMBOLS
from vtax.report.figures.paper import plates
from vtax.report.figures.paper.chartplates import chart_plates
from vtax.report.figures.paper.plate import STYLE, look
from vtax.report.figures.paper.rowplates import VERDICTS
from vtax.report.formats import latex
from vtax.report.records import ReportInput


@cache
def whole() -> ReportInput:
    return pages.whole()


@pytest.fixture(scope="module")
def report() -> ReportInput:
    return whole()


@pytest.fixture(scope="module")
def analysis(report: ReportInput) -> Analysis:
    return report.analysis


# --- figures -------------------------------------------------------------------------------------------------------


def named(report: ReportInput, name: str) -> plates.Plate:
    return next(plate for plate in plates.plates(document_of(report)) if plate.name == name)


def sketched(plate: plates.Plate) -> Figure:
    with rc_context(STYLE):
        figure = plate.sketch()
        figure.draw_without_rendering()
    return figure


def boxes(texts: Iterable[Text]) -> list[Bbox]:
    return [text.get_window_extent() for text in texts if text.get_visible() and text.get_text().strip()]


def touching(several: Sequence[Bbox]) -> int:
    """How many pairs of boxes overlap by more than half a point."""
    return sum(
        min(a.x1, b.x1) - max(a.x0, b.x0) > 0.7 and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.7
        for i, a in enumerate(several)
        for b in several[i + 1 :]
    )


def test_figures_are_for_primary_metrics_and_named_after_what_they_show(report: ReportInput) -> None:
    names = [plate.name for plate in plates.plates(document_of(report))]
    assert len(names) == len(set(names))
    assert {"ratios", "ratios-hpl", "ratios-iozone-part1", "sysbench-cpu", "ping"} <= set(names)
    assert any(name.startswith("iozone") and "read" in name for name in names)


def test_every_ratio_is_drawn_once(report: ReportInput) -> None:
    drawn = Counter[float]()
    for plate in plates.plates(document_of(report)):
        if plate.name.startswith("ratios"):
            marks = [line for line in sketched(plate).axes[0].lines if line.get_marker() not in ("None", "<", ">")]
            drawn.update(float(np.asarray(line.get_xdata())[0]) for line in marks)
    wanted = [item.ratio for item in report.analysis.comparisons if item.primary and item.ratio is not None]
    assert drawn == Counter(wanted)


@pytest.mark.parametrize("make", [whole, lambda: pages.hostile(pages.HOSTILE.replace("\x00", ""))])
def test_nothing_overlaps_and_every_figure_fits_a_column_and_a_page(make: Callable[[], ReportInput]) -> None:
    for plate in plates.plates(document_of(make())):
        figure = sketched(plate)
        width, height = figure.get_size_inches()
        assert width == pytest.approx(3.4)
        assert height <= 9.0
        for axes in figure.axes:
            assert touching(boxes(axes.get_xticklabels())) == 0, plate.name
            assert touching(boxes([*axes.get_yticklabels(), *axes.texts])) == 0, plate.name
        for box in boxes(text for axes in figure.axes for text in (*axes.get_yticklabels(), *axes.get_xticklabels())):
            assert box.x0 >= -1
            assert box.x1 <= figure.bbox.x1 + 1


def test_rows_have_the_shortest_names_in_natural_order(report: ReportInput) -> None:
    labels = [text.get_text() for text in sketched(named(report, "ratios-hpl")).axes[0].get_yticklabels()]
    sizes = [(n, nb) for n in (1024, 2048, 4096) for nb in (64, 128, 192)]
    assert labels == [f"N\u00a0{n}, NB\u00a0{nb}" for n, nb in sizes]
    plate = named(report, "iozone-read-shared")
    labels = [text.get_text().replace("\u00a0", " ") for text in sketched(plate).axes[0].get_yticklabels()]
    assert labels[:3] == ["file 1 MiB, record 4 KiB", "file 1 MiB, record 64 KiB", "file 1 MiB, record 1 MiB"]
    assert "(read, shared, worker1)" in plate.caption
    assert "standard deviation" in plate.caption


@pytest.mark.parametrize(
    ("rows", "shared", "own"),
    [
        (
            [
                {"target": "worker1.shared", "filesystem": "shared", "node": "worker1"},
                {"target": "worker1", "filesystem": "local", "node": "worker1"},
            ],
            ("m", "worker1"),
            ("shared", "local"),
        ),
        ([{"target": "workers"}, {"target": "cluster"}], ("m",), ("workers", "cluster")),
        ([{"client": "a", "server": "b", "target": "a-b"}], ("a → b",), ("m",)),
        ([{"nb": "64", "n": "8"}, {"nb": "128", "n": "8"}], ("m", "N\u00a08"), ("NB\u00a064", "NB\u00a0128")),
    ],
)
def test_names_drop_what_says_nothing(
    analysis: Analysis, rows: list[dict[str, str]], shared: tuple[str, ...], own: tuple[str, ...]
) -> None:
    items = [analysis.levels[0].model_copy(update={"metric": "m", "labels": labels}) for labels in rows]
    assert names_of(items) == Names(shared, own)


def test_verdicts_look_different_and_not_comparable_is_a_cross(analysis: Analysis) -> None:
    looks = [VERDICTS[verdict] for verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE, Verdict.UNADJUSTED)]
    assert len({*VERDICTS.values()}) == len(VERDICTS)
    assert looks[1][0] == "x"


@pytest.mark.parametrize(
    ("source", "looks", "level", "said"),
    [
        ("", (6,), None, "95 % t intervals over rounds"),
        ("simulated", (6, 10), 0.02, "98 % t intervals over rounds, which miss in 5 %"),
        ("anytime-valid", (6, 7), 0.01, "anytime-valid 95 % intervals"),
    ],
)
def test_a_caption_says_what_its_whiskers_are(
    report: ReportInput, source: str, looks: tuple[int, ...], level: float | None, said: str
) -> None:
    other = report.analysis.model_copy(update={"a_look_source": source, "looks": looks, "a_look": level})
    changed = report.model_copy(update={"analysis": other})
    assert said in named(changed, "ratios").caption
    assert said.replace("%", r"\%") in latex.tables(document_of(changed))


@pytest.mark.parametrize(("format", "begins"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_a_figure_is_the_same_file_every_time(report: ReportInput, format: str, begins: bytes) -> None:
    plate = named(report, "stress-ng")
    first = plates.draw(plate, format)
    assert first.startswith(begins)
    assert plates.draw(plate, format) == first


def test_a_figure_is_one_column_wide_and_shows_every_round(report: ReportInput) -> None:
    text = plates.draw(named(report, "sysbench-cpu"), "svg").decode()
    assert 'width="244.8pt"' in text  # 3.4 in
    levels = [level for level in report.analysis.levels if level.label == "sysbench-cpu"]
    points = sum(len(level.cells) for level in levels)
    assert len(re.findall(r"<use ", text)) >= points


# --- figures of the page -------------------------------------------------------------------------------------------


def curve(place: int, xs: Sequence[float], ys: Sequence[float]) -> dict[str, object]:
    return {"type": "scatter", "mode": "lines+markers", "name": "e", "meta": {"env": place}, "x": xs, "y": ys}


def chart_of(*traces: dict[str, object], **layout: object) -> Chart:
    axes = {"xaxis": {"title": {"text": "x"}}, "yaxis": {"title": {"text": "Gflop/s"}}}
    return Chart(anchor="a", title="T", alt="", svg="", traces=traces, layout=axes | layout)


def test_lines_maps_and_distributions_of_the_page_are_figures_too(report: ReportInput) -> None:
    found = {plate.name: plate for plate in plates.plates(document_of(report))}
    assert {
        "hpl-hpl-over-nb",
        "hpl-hpl-over-n",
        "iozone-throughput-over-record-size-shared-worker1",
        "iozone-throughput-over-file-and-record-size-shared-worker1",
        "iperf3-seconds-bitrate-over-time-client-server",
        "ping-distribution-of-round-trip-times",
    } <= set(found)
    figure = sketched(found["hpl-hpl-over-nb"])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["N 1,024", "N 2,048", "N 4,096"]
    means = [
        level.mean / 1e9
        for level in report.analysis.levels
        if level.label == "hpl" and level.environment == "vm" and level.labels["n"] == "1024"
    ]
    drawn = [np.asarray(line.get_ydata()) for line in figure.axes[0].lines if line.get_linestyle() != "None"]
    assert any(sorted(ys) == pytest.approx(sorted(means), rel=1e-4) for ys in map(list, drawn))
    caption = found["iozone-throughput-over-record-size-shared-worker1"].caption
    assert "File size: 8 GiB" in caption
    assert "points are single rounds" in caption
    maps = sketched(found["iozone-throughput-over-file-and-record-size-shared-worker1"])
    assert len(maps.axes) == 3 * 3 + 1  # operations by environments, and the key of the colours


def test_the_peak_is_a_line_with_its_name() -> None:
    shapes = {
        "shapes": [{"type": "line", "y0": 9.0, "y1": 9.0}],
        "annotations": [{"text": "theoretical peak 9", "y": 9.0}],
    }
    (plate,) = chart_plates("hpl", [chart_of(curve(0, [64, 128], [1.0, 2.0]), **shapes)], ("host",))
    (axes,) = sketched(plate).axes
    assert [list(np.asarray(line.get_ydata())) for line in axes.lines] == [[1.0, 2.0], [9.0, 9.0]]
    assert [text.get_text() for text in axes.texts] == ["theoretical peak 9"]
    assert axes.get_ylim()[1] > 9.0


def test_long_sizes_on_a_short_logarithmic_axis_leave_room_for_the_lines() -> None:
    line = curve(0, [65536, 1048576], [0.0045, 2.0])
    marks = {"tickvals": [65536, 1048576], "ticktext": ["64 KiB", "1 MiB"]}
    shape = {"xaxis": {"title": {"text": "record size"}, "type": "log", **marks}}
    options = [{"name": str(number), "traces": [number]} for number in range(6)]
    chart = replace(chart_of(*[line] * 6, **shape), choices=({"label": "Operation", "at": 0, "options": options},))
    (plate,) = chart_plates("iozone", [chart], ("host",))
    figure = sketched(plate)  # a warning about the layout is an error
    assert len(figure.axes) == 6
    for axes in figure.axes:
        assert [text.get_text() for text in axes.get_xticklabels()] == ["64 KiB", "1 MiB"]
        assert axes.get_position().width > 0.3


def test_a_line_of_one_point_is_no_figure() -> None:
    assert not list(chart_plates("iperf3", [chart_of(curve(0, [1.0], [2.0]))], ("host",)))


def test_a_ladder_is_a_waterfall() -> None:
    trace: dict[str, object] = {
        "type": "waterfall",
        "name": "hpl HPL",
        "x": ["host", "box", "vm"],
        "y": [100, -50.0, -10.0],
        "text": ["100 %", "× 0.500 [0.400, 0.600]", "× 0.800"],
    }
    (plate,) = chart_plates("", [chart_of(trace)], ("host", "box", "vm"))
    (axes,) = sketched(plate).axes
    assert isinstance(axes, Axes)
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [(bar.get_y(), bar.get_height()) for bar in bars] == [(0, 100), (100, -50), (50, -10)]
    assert [text.get_text() for text in axes.texts] == ["100 %", "× 0.500\n[0.400, 0.600]", "× 0.800"]


def test_an_environment_has_the_colour_and_shape_of_the_page() -> None:
    words = {
        "o": "circle",
        "s": "square",
        "D": "diamond",
        "^": "triangle-up",
        "P": "cross",
        "X": "x",
        "*": "star",
        "h": "hexagon",
    }
    for place in range(8):
        colour, mark, _ = look(place)
        assert (colour, words[mark]) == (ENVIRONMENTS[place], SYMBOLS[place])
    assert tuple(words.values()) == SYMBOLS


def test_nothing_is_cut_at_the_sides_of_a_figure(report: ReportInput) -> None:
    picture = imread(io.BytesIO(plates.draw(plates.plates(document_of(report))[0], "png")))
    for edge in (picture[:, :2], picture[:, -2:]):
        assert edge[..., :3].min() == 1.0  # white
