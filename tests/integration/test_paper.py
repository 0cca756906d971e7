"""PDF by a real browser, and LaTeX by a real TeX where one is installed."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pypdf
import pytest

import builders.pages as pages
from vtax.figures.render import draw
from vtax.publishing import pdf
from vtax.report.document.compose import document_of
from vtax.report.figures.selection import paper_figures
from vtax.report.formats import latex
from vtax.report.records import ReportInput

pytestmark = pytest.mark.integration


def test_a_browser_prints_the_page(tmp_path: Path) -> None:
    program = pdf.browser()
    assert program, "a browser is needed: apt install chromium"
    made = pypdf.PdfReader(io.BytesIO(pdf.from_page(pages.html(pages.whole()), program)))
    text = [page.extract_text() for page in made.pages]
    assert "What does virtualization cost" in text[0]
    assert "Relative performance: above 1" in " ".join(text).replace("\n", " ")  # of a part that the page folds
    for number, words in enumerate(text, start=1):
        assert f"{number} / {len(text)}" in words  # printed on the page
    titles = [entry["/Title"] for entry in made.outline[1] if isinstance(entry, dict)]
    assert {"What limits this answer", "Overview of every metric", "Storage", "The plan"} <= set(titles)
    links = [note.get_object() for page in made.pages for note in page.get("/Annots", [])]
    assert not [link for link in links if "/URI" in link.get("/A", {})]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no TeX here; the tables are checked as text elsewhere")
@pytest.mark.parametrize("make", [pages.whole, pages.hostile])
def test_tables_and_figures_compile(make: Callable[[], ReportInput], tmp_path: Path) -> None:
    report = document_of(make())
    drawn = []
    for one in paper_figures(report):
        (tmp_path / f"{one.name}.pdf").write_bytes(draw(one, "pdf"))
        drawn.append((f"{one.name}.pdf", one.caption))
    (tmp_path / "tables.tex").write_text(latex.tables(report))
    (tmp_path / "report.tex").write_text(latex.whole("a_study & more", drawn))
    argv = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:].decode("latin-1")
    assert b"Overfull \\hbox" not in ran.stdout
    text = "".join(page.extract_text() for page in pypdf.PdfReader(tmp_path / "report.pdf").pages)
    assert "StarSTREAM_Triad" in text
