"""What goes into a paper: LaTeX, figures, a workbook, typst; the same numbers as the analysis, and nothing else."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from xml.etree import ElementTree

import openpyxl
import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

import builders.pages as pages
from builders.synthetic import campaign
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis
from vtax.errors import EnvironmentMissing
from vtax.figures import render, theme
from vtax.publishing import pdf
from vtax.report.document.naming import Names, names_of
from vtax.report.document.page import page_of
from vtax.report.document.tables import results_of
from vtax.report.figures.ratios import ratio_figures
from vtax.report.figures.selection import paper_figures
from vtax.report.formats import latex, typst
from vtax.report.formats.spreadsheet import spreadsheet
from vtax.report.records import ReportInput
from vtax.units import scale_of


@cache
def whole() -> ReportInput:
    return pages.whole()


@pytest.fixture(scope="module")
def report() -> ReportInput:
    return whole()


@pytest.fixture(scope="module")
def analysis(report: ReportInput) -> Analysis:
    return report.analysis


# --- LaTeX ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (5.5184, 0.027, r"\num{5.518 +- 0.027}"),
        (123.4, 12.0, r"\num{123 +- 12}"),
        (2.0, None, r"\num{2}"),
        (0.123456, None, r"\num{0.1235}"),
        (0.0, None, r"\num{0}"),
        (99.6, 0.0, r"\num{99.60}"),
    ],
)
def test_a_number_keeps_the_digits_that_its_deviation_leaves(value: float, sd: float | None, text: str) -> None:
    assert latex.number(value, sd) == text


def test_what_is_not_finite_never_becomes_a_table() -> None:
    with pytest.raises(ValueError, match="nan"):
        latex.number(float("nan"))


@given(st.text(max_size=30))
def test_no_text_is_markup_in_latex(text: str) -> None:
    escaped = latex.escape(text)
    bare = re.sub(r"\\(?:[{}$&#%_]|[a-z]+(?:\{\}|$|\$)?)|\$\\[lg]eq\$", "", escaped)
    assert not re.search(r"[\\{}$&#%_~^<>|\"]", bare)
    assert all(" " <= character <= "\u017f" for character in escaped)


def rows_of(text: str, label: str) -> dict[str, str]:
    """The rows of the table with this label, by name."""
    table = text.split(rf"\label{{tab:{label}}}")[1].split(r"\end{")[0]
    body = table.rsplit(r"\midrule", 1)[1]
    return {line.split(" & ")[0]: line for line in body.splitlines() if " & " in line}


def test_the_tables_have_the_numbers_of_the_analysis(analysis: Analysis) -> None:
    text = latex.tables(analysis)
    hpl = {level.environment: level for level in analysis.levels if (level.label, level.metric) == ("hpcc", "HPL")}
    factor, unit = scale_of(max(level.mean for level in hpl.values()), "flop/s")
    found = re.findall(r"\\num\{([\d.]+) \+- ([\d.]+)\}", rows_of(text, "hpcc")["HPL"])
    assert unit == "Gflop/s"
    for (mean, sd), name in zip(found, ("host", "container", "vm"), strict=True):
        level = hpl[name]
        assert level.sd is not None
        assert float(mean) == pytest.approx(level.mean / factor, abs=0.6 * 10 ** -len(mean.partition(".")[2]))
        assert float(sd) == pytest.approx(level.sd / factor, rel=0.06)
    ratios = {i.environment: i for i in analysis.comparisons if (i.label, i.metric) == ("hpcc", "HPL")}
    bounds = re.findall(
        r"\\num\{([\d.]+)\} \[\\num\{([\d.]+)\}, \\num\{([\d.]+)\}\] (\$[^$]+\$)", rows_of(text, "hpcc-ratios")["HPL"]
    )
    for (ratio, low, high, mark), name in zip(bounds, ("container", "vm"), strict=True):
        item = ratios[name]
        assert (float(ratio), float(low), float(high)) == pytest.approx((item.ratio, item.low, item.high), rel=5e-3)
        assert mark == latex.MARKS[item.verdict]
        assert f"{mark} {item.verdict}" in text.split(r"\label{tab:hpcc-ratios}")[0].rsplit(r"\caption", 1)[1]


def test_two_environments_have_values_and_ratios_in_one_table() -> None:
    made = campaign(("host", "container"), rounds=6)
    text = latex.tables(analyse(made.measurements, plan=made.plan, findings=(), trials=made.trials))
    assert "tab:hpcc-ratios" not in text
    row = rows_of(text, "hpcc")["HPL"]
    assert row.count("+-") == 2
    assert row.count("[") == 1


def test_every_entry_has_its_tables_and_long_ones_break(analysis: Analysis) -> None:
    text = latex.tables(analysis)
    labels = re.findall(r"\\label\{tab:([^}]*)\}", text)
    assert len(labels) == len(set(labels))
    entries = {level.label for level in analysis.levels}
    assert set(labels) == entries | {f"{entry}-ratios" for entry in entries}
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") > 0
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") > 0


@pytest.mark.parametrize("make", [whole, pages.hostile, lambda: pages.hostile("W" * 300)])
def test_every_table_fits_a_page(make: Callable[[], ReportInput]) -> None:
    text = latex.tables(make().analysis)
    environments = re.findall(r"\\begin\{(?:tabular|longtable)\}\{([^\n]*)\}\n(.*?)\\end\{", text, re.DOTALL)
    assert len(environments) > 5
    for columns, body in environments:
        kinds = re.findall(r"l|p\{([\d.]+)em\}", columns.replace(r"\raggedright\arraybackslash", ""))
        rows = [line.removesuffix(r" \\").split(" & ") for line in body.splitlines() if " & " in line]
        widest = [max(map(latex.printed, cells)) for cells in zip(*rows, strict=True)]
        assert len(kinds) == len(widest)
        letters = [2 * float(fixed) if fixed else wide for fixed, wide in zip(kinds, widest, strict=True)]
        assert sum(letters) + latex.GAP * len(letters) <= latex.ACROSS


def test_a_table_of_many_environments_goes_on_in_another() -> None:
    names = ("host", *(f"environment-{number}" for number in range(9)))
    made = campaign(names, rounds=3, failing=False)
    text = latex.tables(analyse(made.measurements, plan=made.plan, findings=(), trials=made.trials))
    assert {"hpcc", "hpcc-2", "hpcc-ratios", "hpcc-ratios-2"} <= set(re.findall(r"\\label\{tab:([^}]*)\}", text))
    assert "(part 2 of 2)" in text
    for name in names:
        assert f"& {name}" in text


def test_tables_hold_results_and_name_what_is_none(analysis: Analysis) -> None:
    text = latex.tables(analysis)
    zero = [level for level in analysis.levels if level.metric == "lost_fraction"]
    assert zero
    assert not any(level.maximum for level in zero)
    assert "% ping, counts, checks and what is zero everywhere: lost\\_fraction\n" in text
    assert "% iperf3-tcp, counts, checks and what is zero everywhere: retransmits\n" in text
    rows = "".join(line for line in text.splitlines() if " & " in line)
    assert "lost" not in rows
    assert "retransmits" not in rows


def test_what_all_rows_share_stands_in_the_caption(analysis: Analysis) -> None:
    text = latex.tables(analysis)
    assert r"\caption{iozone: throughput, worker1. Mean" in text
    assert "read, shared, file 64 MiB, record 1 MiB" in rows_of(text, "iozone")
    assert r"master \textrightarrow{} worker1" in rows_of(text, "iperf3-seconds")


def test_figures_in_the_document_keep_the_width_of_a_column(report: ReportInput) -> None:
    several = paper(report)[:2]
    made = [(f"../figures/{one.name}.pdf", one.caption) for one in several]
    text = latex.document("a_study", made)
    assert r"\twocolumn" in text
    assert text.count(r"\includegraphics[width=\columnwidth]{../figures/ratios") == 2
    assert re.findall(r"\\label\{fig:([^}]*)\}", text) == [one.name for one in several]
    assert r"Whiskers are 95 \% t intervals over rounds" in text


def test_a_hostile_name_stays_text(analysis: Analysis) -> None:
    evil = r"\input{/etc/passwd} & $x$ %"
    levels = tuple(level.model_copy(update={"metric": evil}) for level in analysis.levels[:1])
    text = latex.tables(analysis.model_copy(update={"levels": levels, "comparisons": ()}))
    assert r"\input" not in text
    unbroken = text.replace(r"\allowbreak{}", "")
    assert r"\textbackslash{}input\{/etc/passwd\} \& \$x\$ \%" in unbroken


# --- figures -------------------------------------------------------------------------------------------------------


def paper(report: ReportInput) -> tuple[render.PaperFigure, ...]:
    return paper_figures(report, results_of(report), page_of(report))


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
    assert said in named(report.model_copy(update={"analysis": other}), "ratios").caption
    assert said.replace("%", r"\%") in latex.tables(other)


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
    assert {f"{operation} · {one}" for operation in ("write", "read") for one in environments} <= maps


MAPS = "iozone-throughput-over-file-and-record-size-shared-worker1"


# --- a workbook ----------------------------------------------------------------------------------------------------


def test_the_workbook_has_every_comparison_and_level(analysis: Analysis) -> None:
    book = openpyxl.load_workbook(io.BytesIO(spreadsheet(analysis)))
    assert book.sheetnames == ["comparisons", "levels", "findings", "failures"]
    header, *rows = book["comparisons"].iter_rows(values_only=True)
    assert len(rows) == len(analysis.comparisons)
    for row, item in zip(rows, analysis.comparisons, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert (cells["metric"], cells["environment"], cells["n"]) == (item.metric, item.environment, item.n)
        assert cells["verdict"] == str(item.verdict)
        for name in ("ratio", "low", "high", "p_value"):
            assert cells[name] == pytest.approx(getattr(item, name)) if getattr(item, name) else cells[name] is None
    header, *rows = book["levels"].iter_rows(values_only=True)
    for row, level in zip(rows, analysis.levels, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert cells["mean"] == pytest.approx(level.mean)


# --- PDF -----------------------------------------------------------------------------------------------------------


def test_typst_makes_a_pdf_with_the_answers(report: ReportInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    title = 'a #study of $x$ "y" \\ *b*'
    renamed = report.model_copy(update={"analysis": report.analysis.model_copy(update={"campaign": title})})
    page = page_of(renamed)
    (one, *_) = render.paper(ratio_figures(renamed.analysis)[0])
    drawn = [(render.draw(one, "svg"), one.caption)]
    made = pdf.from_text(typst.source(renamed, drawn, pdf.missing()))
    text = "".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(made)).pages)
    assert title in text
    words = re.sub(r"[\s-]+", "", text)
    said = [(answer.group, clause) for answer in page.answers for clause in answer.clauses]
    assert len(said) > 4
    for group, clause in said:
        assert re.sub(r"[\s-]+", "", f"{clause.name}{clause.text}.") in words
        assert str(group) in text
    for part in (page.question, page.subject, page.caution, page.resolution, pdf.missing(), drawn[0][1]):
        assert re.sub(r"[\s-]+", "", part) in words, part
    assert "StarSTREAM_Triad" in text


def test_without_a_browser_the_terminal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "no browser was found (looked for chromium" in pdf.missing()
    assert "apt install chromium" in pdf.missing()
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert pdf.missing() == ""


def test_paper_has_no_scripts_and_no_links_to_files() -> None:
    page = (
        '<a href="#answer">x</a> <a class="raw" href="../trials/t1/stdout">stdout</a>'
        '<script type="a">if (1 < 2) {}\n</script>'
        '<a href="https://x.example/">y</a>'
    )
    assert pdf.for_paper(page) == '<a href="#answer">x</a> <a class="raw">stdout</a><a>y</a>'


def test_without_a_browser_and_typst_the_reader_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(EnvironmentMissing, match="a PDF needs a browser or typst") as caught:
        pdf.from_text("x")
    assert "apt install chromium" in str(caught.value)


def test_environments_have_the_same_colours_in_the_page_and_on_paper(report: ReportInput) -> None:
    one = named(report, "sysbench-cpu-events-rate-worker1")
    on_paper, in_page = render.draw(one, "svg").decode(), render.still(one.figure)
    for place in range(len(report.analysis.environments)):
        assert theme.ENVIRONMENTS[place] in on_paper
        assert f"var(--e{place})" in in_page
