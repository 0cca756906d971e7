"""vtax selftest: does the instrument itself hold what it promises?"""

from __future__ import annotations

import typer

from vtax.cli.inject import inject

app = typer.Typer(help="Test the instrument itself.", no_args_is_help=True, rich_markup_mode=None)
app.command("inject")(inject)
