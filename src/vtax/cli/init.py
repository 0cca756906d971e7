"""vtax init: a commented study to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

USUAL = "quick"


def init(
    preset: Annotated[
        str,
        typer.Argument(
            help="quick or glance (minutes), standard (hours), strict (days); ladder: what each step costs; kernel, "
            "storage, interference, databases, web, hpc: one subject each [quick]."
        ),
    ] = "",
    workload: Annotated[
        str,
        typer.Option("--workload", help="A study of one of `vtax workloads` instead of a preset."),
    ] = "",
    output: Annotated[str, typer.Option("--output", "-o", help='File to write; "-" prints it.')] = "",
    force: Annotated[bool, typer.Option(help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented study file.

    \b
    Example:  vtax init standard -o mine.toml
    Example:  vtax init --workload fio-randread-4k
    """
    from vtax.cli.console import say
    from vtax.errors import UsageError

    text = _text(preset, workload)
    if output == "-":
        print(text, end="")
        return
    path = Path(output or f"{workload or preset or USUAL}.toml")
    if path.exists() and not force:
        raise UsageError(f"{path} exists already", remedy="--output FILE for another name, --force to replace it")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy="choose another place") from error
    say(f"{path} is written; `vtax plan {path}` shows what it does, `vtax run {path}` does it")


def _text(preset: str, workload: str) -> str:
    """The text of a preset, or of a study of a workload."""
    import difflib

    from vtax.errors import UsageError
    from vtax.planning.presets import PRESETS
    from vtax.planning.presets import preset as text_of
    from vtax.planning.workloads import study_of

    if workload:
        if preset:
            raise UsageError(f"both {preset} and --workload {workload}", remedy="give one of them")
        return study_of(workload)
    if (preset or USUAL) not in PRESETS:
        close = "".join(f'did you mean "{one}"? ' for one in difflib.get_close_matches(preset, PRESETS, n=1))
        raise UsageError(f"there is no preset {preset!r}", remedy=f"{close}choose one of {', '.join(PRESETS)}")
    return text_of(preset or USUAL)
