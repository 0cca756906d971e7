"""PDF of a report: from its page by Chromium, otherwise from its text by typst. Reports which of them is missing."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from vtax.errors import EnvironmentMissing
from vtax.report.document.model import Document
from vtax.report.figures.ratios import ratio_figures
from vtax.report.formats import Made, typst
from vtax.transport import process

SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
FILE_LINK = re.compile(r'(<a\b[^>]*?) href="(?!#)[^"]*"')
FOLDED = re.compile(r"<details(?= |>)")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PRINT_S = 120.0
NOBODY = 65534


def browser() -> str | None:
    """The program that prints pages here."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def missing() -> str:
    """What a PDF made here lacks and how to get it; "" where a browser prints it."""
    if browser():
        return ""
    return (
        f"no browser was found (looked for {', '.join(BROWSERS)}), so typst made the PDF: answers, figures of "
        "ratios and tables only; with one (apt install chromium) it is the whole page"
    )


def for_paper(page: str) -> str:
    """A page of the report with its parts open, without scripts and links to files, which lead nowhere from a PDF."""
    return FOLDED.sub("<details open", FILE_LINK.sub(r"\1", SCRIPT.sub("", page)))


def files(document: Document, made: Made) -> Mapping[str, bytes]:
    """`report.pdf`: the page as a browser prints it, where there is one; otherwise its text, set by typst."""
    if program := browser():
        return {"report.pdf": from_page(made.files["index.html"].decode(), program)}
    from vtax.figures.render import draw, paper

    several = (part for one in ratio_figures(document.source.analysis) for part in paper(one))
    drawn = [(draw(part, "svg"), part.caption) for part in several]
    return {"report.pdf": from_text(typst.source(document, drawn, missing()))}


def from_page(page: str, program: str) -> bytes:
    """The page as a browser prints it, nothing fetched. Raises EnvironmentMissing when the browser fails."""
    with tempfile.TemporaryDirectory(prefix="vtax-pdf-") as place:
        output, sheet = Path(place) / "report.pdf", Path(place) / "page.html"
        sheet.write_text(for_paper(page), encoding="utf-8")
        argv = (
            *_as_nobody(Path(place)),
            program,
            "--headless",
            *(("--no-sandbox",) if os.geteuid() == 0 else ()),  # it refuses to start for root, even behind setpriv
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-pdf-header-footer",
            "--generate-pdf-document-outline",
            f"--user-data-dir={place}/profile",
            f"--print-to-pdf={output}",
            sheet.as_uri(),
        )
        result = process.run(argv, timeout_s=PRINT_S)
        if result.exit_code != 0 or not output.exists():
            raise EnvironmentMissing(
                f"{program} did not print the page",
                detail="\n".join(result.stderr.splitlines()[-5:]),
                remedy="`vtax report --format md` needs no browser",
            )
        return output.read_bytes()


def _as_nobody(place: Path) -> tuple[str, ...]:
    """What an ordinary user puts before a browser: nothing, its sandbox protects. For root it has none, so root hands
    it the directory and runs it as nobody."""
    if os.geteuid() != 0:
        return ()
    for path in (place, *place.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", "--")


def from_text(source: str) -> bytes:
    """The PDF of typst text. Raises EnvironmentMissing where the library is not installed."""
    try:
        compiler = importlib.import_module("typst")
    except ImportError as error:
        raise EnvironmentMissing(
            "a PDF needs a browser or typst, and neither is here",
            detail=f"looked for {', '.join(BROWSERS)} and for the Python package typst",
            remedy="apt install chromium, or pip install 'vtax[pdf]'",
        ) from error
    made: bytes = compiler.compile(source.encode())
    return made
