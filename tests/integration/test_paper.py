"""PDF by a real browser, and LaTeX by a real TeX where one is installed."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pypdf
import pytest

from synthetic import campaign
from vtax import pdf
from vtax.analysis.analyse import analyse
from vtax.report import latex, plates

pytestmark = pytest.mark.integration


def test_a_browser_prints_the_page(tmp_path: Path) -> None:
    program = pdf.browser()
    assert program, "a browser is needed: apt install chromium"
    page = tmp_path / "index.html"
    page.write_text("<!doctype html><title>t</title><h1>What does it cost?</h1><p>HPL 5.518")
    text = pypdf.PdfReader(io.BytesIO(pdf.from_page(page, program))).pages[0].extract_text()
    assert "What does it cost?" in text
    assert "5.518" in text


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no TeX here; the tables are checked as text elsewhere")
def test_the_tables_compile(tmp_path: Path) -> None:
    made = campaign(("host", "container", "vm"), rounds=6)
    analysis = analyse(made.measurements, plan=made.plan, findings=made.findings, trials=made.trials)
    plate = plates.plates(analysis)[0]
    (tmp_path / "ratios.pdf").write_bytes(plates.draw(plate, analysis, "pdf"))
    (tmp_path / "tables.tex").write_text(latex.tables(analysis))
    (tmp_path / "report.tex").write_text(latex.document("a_study & more", ["ratios.pdf"]))
    argv = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:].decode("latin-1")
    text = "".join(page.extract_text() for page in pypdf.PdfReader(tmp_path / "report.pdf").pages)
    assert "StarSTREAM_Triad" in text
