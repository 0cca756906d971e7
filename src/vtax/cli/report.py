"""vtax report: render a campaign again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vtax.publishing.formats import FIGURES, names


def report(
    directory: Annotated[Path, typer.Argument(help="A campaign's directory.", show_default=False)],
    name: Annotated[
        str | None,
        typer.Argument(help="With --with-reference: whose results, as in `vtax reference list`.", show_default="all"),
    ] = None,
    format: Annotated[str, typer.Option("--format", "-f", help=f"Any of {names()}.")] = "html,md",
    figures: Annotated[str, typer.Option(help=f"Figures for a paper: any of {','.join(FIGURES)}.")] = "",
    with_reference: Annotated[
        bool, typer.Option("--with-reference", help="Show published results from other machines next to yours.")
    ] = False,
) -> None:
    """Analyse a campaign again and write its report to `report/`. No benchmark is run.

    \b
    Example:  vtax report campaigns/quick-20260101-120000 --format html,pdf,latex --figures svg
    Example:  vtax report campaigns/redis --with-reference felter-2015
    """
    from vtax import pipeline
    from vtax.cli.console import paths, say
    from vtax.errors import UsageError
    from vtax.publishing.pdf import missing
    from vtax.reference import report as published
    from vtax.reference import reports

    formats, drawn = ([word.strip() for word in text.split(",") if word.strip()] for text in (format, figures))
    if not formats:
        raise UsageError("--format is empty", remedy=f"choose from {names()}")
    if name is not None and not with_reference:
        raise UsageError(
            f"{name} is one argument too many", remedy=f"to see published results: --with-reference {name}"
        )
    others = (published(name).key,) if name else tuple(known.key for known in reports() if with_reference)
    for path in pipeline.reports(directory, formats, drawn, published=others, cache=paths().cache):
        say(f"report: {path.resolve()}")
    if "pdf" in formats and (lack := missing()):
        say(f"note: {lack}")
