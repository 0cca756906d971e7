"""vtax report: render a campaign again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    directory: Annotated[Path, typer.Argument(help="A campaign's directory.", show_default=False)],
    format: Annotated[str, typer.Option("--format", "-f", help="Some of html,md,pdf,latex,xlsx.")] = "html,md",
    figures: Annotated[str, typer.Option(help="Figures for a paper: some of svg,pdf,png.")] = "",
    with_reference: Annotated[
        bool, typer.Option("--with-reference", help="Show published results from other machines next to yours.")
    ] = False,
) -> None:
    """Analyse a campaign again and write its report below `report/`. Runs nothing again.

    \b
    Example:  vtax report campaigns/quick-20260101-120000 --format html,pdf,latex --figures svg
    """
    from vtax import pipeline
    from vtax.cli.console import paths, say
    from vtax.errors import UsageError
    from vtax.publishing.files import REPORTS
    from vtax.publishing.pdf import missing

    formats, drawn = ([word.strip() for word in text.split(",") if word.strip()] for text in (format, figures))
    if not formats:
        raise UsageError("--format is empty", remedy=f"choose from {','.join(REPORTS)}")
    for path in pipeline.reports(directory, formats, drawn, with_reference=with_reference, cache=paths().cache):
        say(f"report: {path.resolve()}")
    if "pdf" in formats and (lack := missing()):
        say(f"note: {lack}")
