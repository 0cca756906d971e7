"""vtax run: a whole campaign, from the study to the report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer


def run(
    study: Annotated[Path | None, typer.Argument(help="The study file.", show_default=False)] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The campaign's directory [campaigns/NAME-TIME].")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Run this many rounds instead of the study's.")] = None,
    available: Annotated[
        bool, typer.Option("--available", help="Leave out environments that do not work here, and say so.")
    ] = False,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with an interrupted campaign, from the first trial that is missing.")
    ] = None,
) -> None:
    """Run a study: every environment once in every round, each time on a fresh cluster; then write the report.

    Ctrl-C cleans up and keeps what is done (exit code 130). Exit code 4 when trials failed: they are in the report.

    Example:  vtax run quick.toml
    """
    from vtax import pipeline
    from vtax.cli.console import paths, say, warn
    from vtax.cli.progress import progress
    from vtax.errors import TrialsFailed, UsageError
    from vtax.study import load

    if (study is None) == (resume is None):
        raise UsageError("give a study, or --resume DIR, and not both", remedy="`vtax run quick.toml`")
    failed: TrialsFailed | None = None
    directory = resume or output or Path("campaigns")
    with progress() as listener:
        try:
            if study is None:
                pipeline.resume(directory, paths(), listener)
            else:
                loaded = load(study)
                changed = {} if rounds is None else {"rounds": rounds}
                directory = output or directory / f"{loaded.name}-{time.strftime('%Y%m%d-%H%M%S')}"
                loaded = loaded.model_copy(update=changed)
                pipeline.start(study.read_bytes(), loaded, directory, paths(), listener, available)
        except TrialsFailed as error:
            failed = error
        except KeyboardInterrupt:
            if (directory / "plan.json").exists():
                warn(f"go on with: vtax run --resume {directory}")
            raise
    index = pipeline.report(directory)
    if failed:
        warn(f"warning: {failed}")
    say(f"report: {index.resolve()}")
    if failed:
        raise typer.Exit(failed.exit_code)
