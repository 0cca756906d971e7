"""LaTeX, the workbook and typst: the same numbers as the page, and nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache

import openpyxl
import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

import builders.pages as pages
from builders.pages import latex_tables, report_input
from builders.synthetic import campaign
from vtax.analysis.records import Analysis
from vtax.errors import EnvironmentMissing, UsageError
from vtax.figures import render
from vtax.figures.theme import mark_of
from vtax.publishing import formats, pdf
from vtax.report.document.compose import document_of
from vtax.report.document.model import Cell, Column, Document, Number, Ratio, Row, Table
from vtax.report.document.numbers import mean_sd
from vtax.report.figures.ratios import ratio_figures
from vtax.report.figures.selection import paper_figures
from vtax.report.formats import Made, html, latex, markdown, typst
from vtax.report.formats.xlsx import workbook
from vtax.report.records import ReportInput
from vtax.units import scale_of


@cache
def whole() -> ReportInput:
    return pages.whole()


@pytest.fixture(scope="module")
def report() -> ReportInput:
    return whole()


@pytest.fixture(scope="module")
def document(report: ReportInput) -> Document:
    return document_of(report)


@pytest.fixture(scope="module")
def analysis(report: ReportInput) -> Analysis:
    return report.analysis


# --- LaTeX ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5.518 ± 0.027", r"\num{5.518 +- 0.027}"),
        ("1,234 ± 120", r"\num{1234 +- 120}"),
        ("2", r"\num{2}"),
        ("1.234e+12 ± 1.0e+10", r"\num{1.234e+12 +- 1.0e+10}"),
    ],
)
def test_a_number_keeps_the_digits_of_the_page(text: str, number: str) -> None:
    assert latex.number(text) == number


def test_what_is_not_finite_never_becomes_a_table() -> None:
    with pytest.raises(ValueError, match="nan is not a number"):
        latex.number(mean_sd(float("nan"), None))


@given(st.text(max_size=30))
def test_no_text_is_markup_in_latex(text: str) -> None:
    escaped = latex.escape(text)
    bare = re.sub(r"\\(?:[{}$&#%_]|[a-z]+(?:\{\}|$|\$)?)", "", re.sub(r"\$\\[a-z]+\$", "", escaped))
    assert not re.search(r"[\\{}$&#%_~^<>|\"]", bare)
    assert all(" " <= character <= "\u017f" for character in escaped)


def rows_of(text: str, label: str) -> dict[str, str]:
    """The rows of the table with this label, by name."""
    table = text.split(rf"\label{{tab:{label}}}")[1].split(r"\end{")[0]
    body = table.rsplit(r"\midrule", 1)[1]
    return {line.split(" & ")[0]: line for line in body.splitlines() if " & " in line}


def test_the_tables_have_the_numbers_of_the_analysis(document: Document, analysis: Analysis) -> None:
    text = latex.tables(document)
    hpl = {level.environment: level for level in analysis.levels if (level.label, level.metric) == ("hpcc", "HPL")}
    ratios = {item.environment: item for item in analysis.comparisons if (item.label, item.metric) == ("hpcc", "HPL")}
    factor, unit = scale_of(max(level.mean for level in hpl.values()), "flop/s")
    rows = [rows_of(text, label)[f"HPL ({unit})"] for label in ("hpcc", "hpcc-part2")]
    found = [pair for row in rows for pair in re.findall(r"\\num\{([\d.]+) \+- ([\d.]+)\}", row)]
    for (mean, sd), name in zip(found, ("host", "container", "vm"), strict=True):
        level = hpl[name]
        assert level.sd is not None
        assert float(mean) == pytest.approx(level.mean / factor, abs=0.6 * 10 ** -len(mean.partition(".")[2]))
        assert float(sd) == pytest.approx(level.sd / factor, rel=0.06)
    pattern = r"\\num\{([\d.]+)\} \[\\num\{([\d.]+)\}, \\num\{([\d.]+)\}\] (\$[^$]+\$)"
    bounds = [found for row in rows for found in re.findall(pattern, row)]
    for (ratio, low, high, mark), name in zip(bounds, ("container", "vm"), strict=True):
        item = ratios[name]
        assert (float(ratio), float(low), float(high)) == pytest.approx((item.ratio, item.low, item.high), rel=5e-3)
        assert mark == latex.escape(mark_of(item.verdict).glyph)
        assert f"{mark} {item.verdict}" in text.split(r"\label{tab:hpcc}")[0].rsplit(r"\caption", 1)[1]


def test_two_environments_have_values_and_ratios_in_one_table() -> None:
    text = latex_tables(report_input(campaign(("host", "container"), rounds=6)))
    assert "tab:hpcc-part2" not in text
    row = next(row for name, row in rows_of(text, "hpcc").items() if name.startswith("HPL ("))
    assert row.count("+-") == 2
    assert row.count("[") == 1


def test_every_entry_has_its_tables_and_long_ones_break(document: Document, analysis: Analysis) -> None:
    text = latex.tables(document)
    labels = re.findall(r"\\label\{tab:([^}]*)\}", text)
    assert len(labels) == len(set(labels))
    assert {level.label for level in analysis.levels} <= set(labels)
    rows = tuple(Row((Cell(f"row {number}"), Cell("1"))) for number in range(latex.LONG + 1))
    (long,) = latex.fitting(Table("long", (Column("Name"), Column("Value")), rows), "Long", "long")
    assert long.count(r"\begin{longtable}") == long.count(r"\end{longtable}") == 1
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") > 0


@pytest.mark.parametrize("make", [whole, pages.hostile, lambda: pages.hostile("W" * 300)])
def test_every_table_fits_a_page(make: Callable[[], ReportInput]) -> None:
    text = latex_tables(make())
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
    text = latex_tables(report_input(made))
    assert {"hpcc", "hpcc-part2", "hpcc-part3"} <= set(re.findall(r"\\label\{tab:([^}]*)\}", text))
    assert "(part 2 of " in text
    for name in names:
        assert f"& {name}" in text


def test_tables_hold_results_and_name_what_is_none(document: Document, analysis: Analysis) -> None:
    text = latex.tables(document)
    zero = [level for level in analysis.levels if level.metric == "lost_fraction"]
    assert zero
    assert not any(level.maximum for level in zero)
    assert "% ping, counts, checks and what is zero everywhere: lost\\_fraction" in text
    assert "% iperf3-tcp, counts, checks and what is zero everywhere: retransmits" in text
    rows = "".join(line for line in text.splitlines() if " & " in line)
    assert "lost" not in rows
    assert "retransmits" not in rows


def test_what_all_rows_share_is_in_the_caption_and_a_matrix_has_its_ratios(document: Document) -> None:
    text = latex.tables(document)
    assert r"\caption{hpcc. All rows: workers. Mean \textpm{} standard deviation over 6 rounds; relative" in text
    table = text.split(r"\label{tab:iozone}")[1].split(r"\end{")[0]
    assert table.count(r"\textbf{") > 1
    lines = [line for line in table.splitlines() if " & " in line]
    place = next(number for number, line in enumerate(lines) if line.startswith("container"))
    assert "+-" in lines[place]
    assert lines[place + 1].startswith(" & ")
    assert r"[\num{" in lines[place + 1]
    assert r"master \textrightarrow{} worker1" in "".join(rows_of(text, "iperf3-seconds"))


def test_figures_in_the_document_keep_the_width_of_a_column(document: Document) -> None:
    made = [(f"../figures/{plate.name}.pdf", plate.caption) for plate in paper_figures(document)[:2]]
    text = latex.whole("a_study", made)
    assert r"\twocolumn" in text
    assert text.count(r"\includegraphics[width=\columnwidth]{../figures/ratios") == 2
    assert re.findall(r"\\label\{fig:([^}]*)\}", text) == [plate.name for plate in paper_figures(document)[:2]]
    assert r"Whiskers are 95 \% t intervals over rounds" in text


def test_a_hostile_name_stays_text(report: ReportInput, analysis: Analysis) -> None:
    evil = r"\input{/etc/passwd} & $x$ %"
    levels = tuple(level.model_copy(update={"metric": evil}) for level in analysis.levels[:1])
    hostile = analysis.model_copy(update={"levels": levels, "comparisons": ()})
    text = latex_tables(report.model_copy(update={"analysis": hostile}))
    assert r"\input" not in text
    unbroken = text.replace(r"\allowbreak{}", "")
    assert r"\textbackslash{}input\{/etc/passwd\} \& \$x\$ \%" in unbroken


# --- a workbook ----------------------------------------------------------------------------------------------------


def test_the_workbook_has_every_comparison_and_level(document: Document, analysis: Analysis) -> None:
    book = openpyxl.load_workbook(io.BytesIO(workbook(document)))
    tables = ["answer", "overview", *(str(section.group) for section in document.sections)]
    assert book.sheetnames == [*tables, "comparisons", "levels", "findings", "failures"]
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


def test_the_workbook_has_the_tables_of_the_page_with_numbers_as_numbers(document: Document) -> None:
    book = openpyxl.load_workbook(io.BytesIO(workbook(document)))
    rows = list(book["overview"].iter_rows(values_only=True))
    assert rows[0][0] == document.overview.title
    head = ("Metric", "note", "host", "sd", "note", "container", "sd", "note", "container / host", "low", "high")
    assert rows[2][: len(head)] == head
    row = next(row for row in document.overview.rows if not row.heading)
    cells = next(cells for cells in rows if cells[0] == row.cells[0].text)
    mean, ratio = row.cells[1].value, row.cells[3].value
    assert isinstance(mean, Number)
    assert isinstance(ratio, Ratio)
    assert cells[2:4] == pytest.approx((mean.value, mean.sd))
    assert cells[8:11] == pytest.approx((ratio.value, ratio.low, ratio.high))


# --- PDF -----------------------------------------------------------------------------------------------------------


def test_typst_makes_a_pdf_with_the_answers(report: ReportInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    title = 'a #study of $x$ "y" \\ *b*'
    renamed = report.model_copy(update={"analysis": report.analysis.model_copy(update={"campaign": title})})
    page = document_of(renamed)
    drawn = [(render.draw(one, "svg"), one.caption) for one in render.paper(ratio_figures(renamed.analysis)[0])[:1]]
    made = pdf.from_text(typst.source(page, drawn, pdf.missing()))
    text = "".join(sheet.extract_text() for sheet in pypdf.PdfReader(io.BytesIO(made)).pages)
    assert title in text
    words = re.sub(r"[\s-]+", "", text)
    answer = page.answer
    assert len(answer.lines) >= 4
    said = [part for line in answer.lines for part in (line.resource, line.word)]
    said += [answer.headline, answer.question, answer.subject, *(limit.text for limit in answer.limits)]
    for part in (*said, pdf.missing(), drawn[0][1]):
        assert re.sub(r"[\s-]+", "", part) in words, part
    assert "StarSTREAM_Triad" in text


def test_without_a_browser_the_terminal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "no browser was found (looked for chromium" in pdf.missing()
    assert "apt install chromium" in pdf.missing()
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert pdf.missing() == ""


def test_paper_is_open_and_has_no_scripts_and_no_links_to_files() -> None:
    page = (
        '<details class="part"><details>'
        '<a href="#answer">x</a> <a class="raw" href="../trials/t1/stdout">stdout</a>'
        '<script type="a">if (1 < 2) {}\n</script>'
        '<a href="https://x.example/">y</a>'
    )
    assert (
        pdf.for_paper(page)
        == '<details open class="part"><details open><a href="#answer">x</a> <a class="raw">stdout</a><a>y</a>'
    )


def test_without_a_browser_and_typst_the_reader_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(EnvironmentMissing, match="a PDF needs a browser or typst") as caught:
        pdf.from_text("x")
    assert "apt install chromium" in str(caught.value)


# --- the registry --------------------------------------------------------------------------------------------------


def test_a_format_is_a_module_and_a_line(document: Document) -> None:
    assert formats.names() == ",".join(one.name for one in formats.FORMATS)
    for one in formats.FORMATS:
        if one.name != "pdf":
            made = one.files(document, Made())
            assert made
            assert all(made.values())


def test_what_a_format_needs_is_made_before_it() -> None:
    assert [one.name for one in formats.chosen(("latex", "pdf"))] == ["html", "pdf", "latex"]
    with pytest.raises(UsageError, match="unknown format 'docx'"):
        formats.check(("html", "docx"), ())
    with pytest.raises(UsageError, match="unknown figure format 'gif'"):
        formats.check(("html",), ("gif",))


def test_numbers_and_verdicts_are_the_same_in_every_format(document: Document) -> None:
    row = next(row for row in document.overview.rows if not row.heading)
    texts = [html.render(document), markdown.render(document).replace("\\", ""), typst.source(document)]
    for cell in row.cells[1:]:
        for text in texts:
            plain = text.replace("\u00a0", " ")
            assert cell.text in plain
            assert not cell.verdict or cell.verdict in plain


def test_commands_in_notes_are_code_in_markdown() -> None:
    note = "`vtax reference show REPORT` shows what it_printed"
    table = Table("Published", (Column("n"),), (Row((Cell("1"),)),), note)
    shown = "\n".join(markdown._table(table, titled=False))
    assert shown.startswith("`vtax reference show REPORT` shows what it\\_printed")
    assert markdown.with_code("`a` of `b|`") == markdown.escape("`a` of `b|`"), "names of others may have backticks"
