"""PDF of a report: from its page by Chromium, else from its text by typst. Says which of them is missing."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from pathlib import Path

from vtax.errors import EnvironmentMissing
from vtax.transport import process

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PRINT_S = 120.0


def browser() -> str | None:
    """The program that prints pages here."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def from_page(page: Path, program: str) -> bytes:
    """The page as a browser prints it, nothing fetched. Raises EnvironmentMissing when the browser fails."""
    with tempfile.TemporaryDirectory(prefix="vtax-pdf-") as place:
        output = Path(place) / "report.pdf"
        argv = (
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-pdf-header-footer",
            f"--user-data-dir={place}/profile",
            f"--print-to-pdf={output}",
            page.resolve().as_uri(),
        )
        result = process.run(argv, timeout_s=PRINT_S)
        if result.exit_code != 0 or not output.exists():
            raise EnvironmentMissing(
                f"{program} did not print the page",
                detail="\n".join(result.stderr.splitlines()[-5:]),
                remedy="`vtax report --format md` needs no browser",
            )
        return output.read_bytes()


def from_text(source: str) -> bytes:
    """The PDF of typst text. Raises EnvironmentMissing where the library is not installed."""
    try:
        typst = importlib.import_module("typst")
    except ImportError as error:
        raise EnvironmentMissing(
            "a PDF needs a browser or typst, and neither is here",
            detail=f"looked for {', '.join(BROWSERS)} and for the Python package typst",
            remedy="apt install chromium, or pip install 'vtax[pdf]'",
        ) from error
    made: bytes = typst.compile(source.encode())
    return made
