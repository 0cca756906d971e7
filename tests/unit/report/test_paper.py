"""Figures for a paper: the same numbers as the analysis, and nothing else."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from functools import cache
from xml.etree import ElementTree

import pypdf
import pytest

import builders.pages as pages
from vtax.analysis.records import Analysis
from vtax.figures import render, theme
from vtax.report.document.compose import document_of
from vtax.report.document.naming import Names, names_of
from vtax.report.figures.selection import paper_figures
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


def paper(report: ReportInput) -> tuple[render.PaperFigure, ...]:
    return paper_figures(document_of(report))


def named(report: ReportInput, name: str) -> render.PaperFigure:
    return next(one for one in paper(report) if one.name == name)


def test_figures_are_named_after_what_they_show(report: ReportInput) -> None:
    names = [one.name for one in paper(report)]
    assert len(names) == len(set(names))
    assert {"ratios", "ratios-hpl", "ratios-iozone-part1", "sysbench-cpu-events-rate-worker1", "timeline"} <= set(names)
    assert any(name.startswith("iozone") and "read" in name for name in names)


def test_every_ratio_is_drawn_once(report: ReportInput) -> None:
    drawn = Counter[float]()
    for one in paper(report):
        if one.name.startswith("ratios"):
            drawn.update(float(row["ratio"] or 0.0) for row in one.figure.of("ratio"))
    wanted = [item.ratio for item in report.analysis.comparisons if item.primary and item.ratio is not None]
    assert drawn == Counter(float(f"{ratio:.5g}") for ratio in wanted)


def test_every_primary_value_of_every_round_is_drawn(report: ReportInput) -> None:
    drawn = Counter[float]()
    for one in paper(report):
        drawn.update(float(row["value"] or 0.0) for row in one.figure.of("run") if one.figure.kind == "bars")
    levels = [level for level in report.analysis.levels if level.primary]
    wanted = Counter(float(f"{cell.value:.5g}") for level in levels for cell in level.cells)
    for topic in (level.label for level in levels):
        assert any(theme.slug(topic) in one.name for one in paper(report))
    assert len(wanted) > 100
    shown = {f"{value:.3e}"[:4] for value in drawn}  # scaled to their unit
    assert {f"{value:.3e}"[:4] for value in wanted} <= shown


@pytest.mark.parametrize("make", [whole, lambda: pages.hostile(pages.HOSTILE.replace("\x00", ""))])
def test_every_figure_fits_a_column_and_a_page(make: Callable[[], ReportInput]) -> None:
    for one in paper(make()):
        root = ElementTree.fromstring(render.draw(one, "svg"))
        assert root.attrib["width"] == "3.4in", one.name
        assert float(root.attrib["height"].removesuffix("in")) <= 9.0, one.name


def test_rows_have_the_shortest_names_in_natural_order(report: ReportInput) -> None:
    labels = [str(value).replace("\u00a0", " ") for value in named(report, "ratios-hpl").figure.y.values]
    sizes = [(n, nb) for n in (1024, 2048, 4096) for nb in (64, 128, 192)]
    assert labels == [f"N {n}, NB {nb}" for n, nb in sizes]


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


def test_verdicts_look_different_and_not_comparable_is_a_cross() -> None:
    outlines = [theme.OUTLINES[mark.glyph] for mark in theme.VERDICTS.values()]
    assert len(set(outlines)) == len(theme.VERDICTS)
    assert theme.mark_of("not comparable").shape == "cross"


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


@pytest.mark.parametrize(("format", "begins"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_a_figure_is_the_same_file_every_time(report: ReportInput, format: str, begins: bytes) -> None:
    one = named(report, "stress-ng-bogo-ops-rate-worker1-stressor-cpu")
    first, again = render.draw(one, format), render.draw(one, format)
    assert first.startswith(begins)
    if format == "pdf":  # whose objects come in no certain order
        first, again = (pypdf.PdfReader(io.BytesIO(one)).pages[0].extract_text().encode() for one in (first, again))
        assert b"host" in first
    assert again == first


def test_a_figure_is_one_column_wide_in_every_format(report: ReportInput) -> None:
    one = named(report, "sysbench-cpu-events-rate-worker1")
    box = pypdf.PdfReader(io.BytesIO(render.draw(one, "pdf"))).pages[0].mediabox
    assert float(box.width) == pytest.approx(3.4 * 72, abs=0.1)
    width = int.from_bytes(render.draw(one, "png")[16:20])
    assert width == pytest.approx(3.4 * 600, abs=1)


# --- figures of the page -------------------------------------------------------------------------------------------


def test_lines_maps_and_distributions_of_the_page_are_figures_too(report: ReportInput) -> None:
    found = {one.name: one for one in paper(report)}
    assert {
        "hpl-hpl-over-nb",
        "hpl-hpl-over-n",
        "iozone-throughput-over-record-size-shared-worker1",
        "iozone-throughput-over-file-and-record-size-shared-worker1",
        "iperf3-seconds-throughput-over-time-client-server",
        "iperf3-seconds-spread-of-the-throughput",
        "iperf3-seconds-pairs-of-nodes-gbit-s",
        "ping-distribution-of-round-trip-times",
    } <= set(found)
    texts = set(ElementTree.fromstring(render.draw(found["hpl-hpl-over-nb"], "svg")).itertext())
    assert {"N 1,024", "N 2,048", "N 4,096"} <= texts
    caption = found["iozone-throughput-over-record-size-shared-worker1"].caption
    assert "File size: 8 GiB" in caption
    assert "points are single runs" in caption
    maps = set(ElementTree.fromstring(render.draw(found[MAPS], "svg")).itertext())
    environments = report.analysis.environments
    assert {"write", "read", *environments} <= maps


MAPS = "iozone-throughput-over-file-and-record-size-shared-worker1"
