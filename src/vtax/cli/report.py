"""vtax report: render a campaign again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(directory: Annotated[Path, typer.Argument(help="A campaign's directory.", show_default=False)]) -> None:
    """Analyse a campaign again and write its report (report/index.html, report/report.md). Runs nothing again.

    Example:  vtax report campaigns/quick-20260101-120000
    """
    from vtax import pipeline
    from vtax.cli.console import say

    say(f"report: {pipeline.report(directory).resolve()}")
