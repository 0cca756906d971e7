"""What goes into a paper: LaTeX, figures, a workbook, typst; the same numbers as the analysis, and nothing else."""

from __future__ import annotations

import io
import re

import openpyxl
import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from synthetic import campaign
from vtax import pdf
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis
from vtax.errors import EnvironmentMissing
from vtax.report import latex, plates, typst
from vtax.report.answers import answers, resolution
from vtax.report.palette import ENVIRONMENTS, SYMBOLS
from vtax.report.spreadsheet import spreadsheet
from vtax.units import scale_of


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    made = campaign(("host", "container", "vm"), rounds=6)
    return analyse(made.measurements, plan=made.plan, findings=made.findings, trials=made.trials)


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


def test_the_tables_have_the_numbers_of_the_analysis(analysis: Analysis) -> None:
    text = latex.tables(analysis)
    hpl = {level.environment: level for level in analysis.levels if level.metric == "HPL"}
    factor, unit = scale_of(max(level.mean for level in hpl.values()), "flop/s")
    (row,) = [line for line in text.splitlines() if line.startswith("HPL ")]
    found = re.findall(r"\\num\{([\d.]+) \+- ([\d.]+)\}", row)
    assert unit == "Gflop/s"
    for (mean, sd), name in zip(found, ("host", "container", "vm"), strict=True):
        level = hpl[name]
        assert level.sd is not None
        assert float(mean) == pytest.approx(level.mean / factor, abs=0.6 * 10 ** -len(mean.partition(".")[2]))
        assert float(sd) == pytest.approx(level.sd / factor, rel=0.06)
    ratios = {item.environment: item for item in analysis.comparisons if item.metric == "HPL"}
    bounds = re.findall(r"\\num\{([\d.]+)\} \[\\num\{([\d.]+)\}, \\num\{([\d.]+)\}\], ([a-z ]+)", row)
    for (ratio, low, high, verdict), name in zip(bounds, ("container", "vm"), strict=True):
        item = ratios[name]
        assert (float(ratio), float(low), float(high)) == pytest.approx((item.ratio, item.low, item.high), rel=1e-3)
        assert verdict.strip() == str(item.verdict)


def test_every_entry_has_one_table_and_long_ones_break(analysis: Analysis) -> None:
    text = latex.tables(analysis)
    labels = re.findall(r"\\label\{tab:([^}]*)\}", text)
    assert sorted(labels) == sorted({level.label for level in analysis.levels})
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") > 0


def test_a_hostile_name_stays_text(analysis: Analysis) -> None:
    evil = r"\input{/etc/passwd} & $x$ %"
    levels = tuple(level.model_copy(update={"metric": evil}) for level in analysis.levels[:1])
    text = latex.tables(analysis.model_copy(update={"levels": levels, "comparisons": ()}))
    assert r"\input" not in text
    assert r"\textbackslash{}input\{/etc/passwd\} \& \$x\$ \%" in text


# --- figures -------------------------------------------------------------------------------------------------------


def test_figures_are_for_primary_metrics_and_named_after_what_they_show(analysis: Analysis) -> None:
    names = [plate.name for plate in plates.plates(analysis)]
    assert len(names) == len(set(names))
    assert {"ratios", "sysbench-cpu", "ping"} <= set(names)
    assert any(name.startswith("iozone") and "read" in name for name in names)
    shown = [item for plate in plates.plates(analysis) if plate.name.startswith("ratios") for item in plate.content]
    assert len(shown) == len([item for item in analysis.comparisons if item.primary and item.ratio is not None])


@pytest.mark.parametrize(("format", "begins"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_a_figure_is_the_same_file_every_time(analysis: Analysis, format: str, begins: bytes) -> None:
    plate = next(plate for plate in plates.plates(analysis) if plate.name == "stress-ng")
    first = plates.draw(plate, analysis, format)
    assert first.startswith(begins)
    assert plates.draw(plate, analysis, format) == first


def test_a_figure_is_one_column_wide_and_shows_every_round(analysis: Analysis) -> None:
    plate = next(plate for plate in plates.plates(analysis) if plate.name == "sysbench-cpu")
    text = plates.draw(plate, analysis, "svg").decode()
    assert 'width="244.8pt"' in text  # 3.4 in
    levels = [level for level in analysis.levels if level.label == "sysbench-cpu"]
    points = sum(len(level.cells) for level in levels)
    assert len(re.findall(r"<use ", text)) >= points


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


def test_typst_makes_a_pdf_with_the_answers(analysis: Analysis) -> None:
    made = pdf.from_text(typst.source(analysis, 'a #study of $x$ "y" \\ *b*'))
    text = "".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(made)).pages)
    assert 'a #study of $x$ "y" \\ *b*' in text
    words = re.sub(r"[\s-]+", "", text)
    said = [(answer.group, clause) for answer in answers(analysis) for clause in answer.clauses]
    assert len(said) > 4
    for group, clause in said:
        assert re.sub(r"[\s-]+", "", f"{clause.name}{clause.text}.") in words
        assert str(group) in text
    assert re.sub(r"[\s-]+", "", resolution(analysis)) in words
    assert "StarSTREAM_Triad" in text


def test_without_a_browser_and_typst_the_reader_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(EnvironmentMissing, match="a PDF needs a browser or typst") as caught:
        pdf.from_text("x")
    assert "apt install chromium" in str(caught.value)


def test_an_environment_has_the_colour_and_shape_of_the_page(analysis: Analysis) -> None:
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
    for place, name in enumerate(analysis.environments):
        colour, mark = plates._look(analysis, name)
        assert (colour, words[mark]) == (ENVIRONMENTS[place], SYMBOLS[place])
    assert tuple(words.values()) == SYMBOLS


def test_nothing_is_cut_at_the_sides_of_a_figure(analysis: Analysis) -> None:
    picture = imread(io.BytesIO(plates.draw(plates.plates(analysis)[0], analysis, "png")))
    for edge in (picture[:, :2], picture[:, -2:]):
        assert edge[..., :3].min() == 1.0  # white
