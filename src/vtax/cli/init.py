"""vtax init: a commented study to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    preset: Annotated[
        str,
        typer.Argument(
            help="quick or glance (minutes), standard (hours), strict (days), or ladder: what each step costs."
        ),
    ] = "quick",
    output: Annotated[str, typer.Option("--output", "-o", help='File to write; "-" prints it.')] = "",
    force: Annotated[bool, typer.Option(help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented study file.

    \b
    Example:  vtax init standard -o mine.toml
    """
    import difflib

    from vtax.cli.console import say
    from vtax.errors import UsageError
    from vtax.planning.presets import PRESETS
    from vtax.planning.presets import preset as text_of

    if preset not in PRESETS:
        close = "".join(f'did you mean "{one}"? ' for one in difflib.get_close_matches(preset, PRESETS, n=1))
        raise UsageError(f"there is no preset {preset!r}", remedy=f"{close}choose one of {', '.join(PRESETS)}")
    text = text_of(preset)
    if output == "-":
        print(text, end="")
        return
    path = Path(output or f"{preset}.toml")
    if path.exists() and not force:
        raise UsageError(f"{path} exists already", remedy="--output FILE for another name, --force to replace it")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy="choose another place") from error
    say(f"{path} is written; `vtax plan {path}` shows what it does, `vtax run {path}` does it")
