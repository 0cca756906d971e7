"""vtax measure: one command in several environments, without a study file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vtax.errors import TrialsFailed
    from vtax.planning.short_study import Request


Command = Annotated[
    list[str] | None, typer.Argument(help="The command and its arguments, after --.", show_default=False)
]
Environments = Annotated[
    str | None, typer.Option("--in", help="Environments, the baseline first [those of the quick study that work here].")
]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="A number that it prints: NAME=REGEX UNIT [higher|lower].")
]
Files = Annotated[
    list[str] | None, typer.Option("--file", help="A file below this directory that it finds in its own.")
]
Packages = Annotated[list[str] | None, typer.Option("--package", help="A Debian package that it needs.")]
OwnImage = Annotated[
    str | None, typer.Option("--image", help="Run it in an image: docker-archive:FILE, oci:DIR, docker://NAME.")
]
Timed = Annotated[float | None, typer.Option("--seconds", min=0.001, help="It runs for a fixed time, this long.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Exactly this many rounds [6 to 24, until decided].")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The campaign's directory [campaigns/measure-TIME].")
]
Export = Annotated[
    Path | None, typer.Option("--export", help="Write all values: .json, .csv, .jsonl, .parquet or .xlsx.")
]


def measure(
    command: Command = None,
    environments: Environments = None,
    metric: Metrics = None,
    file: Files = None,
    package: Packages = None,
    image: OwnImage = None,
    seconds: Timed = None,
    rounds: Rounds = None,
    output: Output = None,
    export: Export = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Measure what a command of yours costs in every environment: wall time, CPU time and memory, or what it prints.

    Fresh clusters in every round, the same bytes everywhere; runs alternate between the environments until all primary
    metrics have a verdict. Braces in the command mean nothing. The campaign has the study as a file, to go on from.

    \b
    Example:  vtax measure -- sysbench cpu --time=0 --events=2000 run
    Example:  vtax measure --file work.py --package python3 -- python3 work.py
    Example:  vtax measure --in host,container --metric 'rate=([0-9.]+) events/s 1/s' -- sysbench cpu run
    """
    from vtax.cli.console import warn
    from vtax.cli.measured import refuse_unknown_format
    from vtax.planning.short_study import Request

    refuse_unknown_format(export)
    wanted = tuple(name.strip() for name in (environments or "").split(",") if name.strip())
    _refuse_nothing(command, image, environments, wanted)
    request = Request(
        command=tuple(command or ()),
        environments=wanted or _usual(),
        metrics=tuple(metric or ()),
        files=tuple(file or ()),
        packages=tuple(package or ()),
        image=image or "",
        seconds=seconds,
        rounds=rounds,
    )
    directory = output or Path("campaigns") / f"measure-{time.strftime('%Y%m%d-%H%M%S')}"
    failed = _run(request, directory, available=not wanted)
    _show(directory, export, json=json)
    if failed:
        warn(f"warning: {failed}")
        raise typer.Exit(failed.exit_code)


def _usual() -> tuple[str, ...]:
    """The environments of the quick study, without those that would be emulated here."""
    from vtax.cli.console import paths, warn
    from vtax.planning.selections import emulates
    from vtax.planning.short_study import Request, quick_environments, study_text
    from vtax.planning.study import parse
    from vtax.providers import provider, resolved

    names = tuple(quick_environments())
    study = parse(study_text(Request(("true",), names)), "vtax measure")
    runtime = paths().runtime
    slow = [one.name for one in study.environments if emulates(one, provider(resolved(one.provider, runtime), runtime))]
    for name in slow:
        warn(f"note: {name} would be emulated in software here and is left out; --in {','.join(names)} runs it once")
    return tuple(name for name in names if name not in slow)


def _refuse_nothing(
    command: list[str] | None, image: str | None, environments: str | None, wanted: tuple[str, ...]
) -> None:
    """An option without a value, such as a variable of a shell that is not set, is not one that was left out."""
    from vtax.errors import UsageError

    if image == "":
        raise UsageError("--image is empty", remedy="name an image, or leave --image out")
    if environments is not None and not wanted:
        raise UsageError("--in names no environment", remedy="name some, for example host,container, or leave --in out")
    if not command and not image:
        raise UsageError("there is no command", remedy="give it after --, for example `vtax measure -- sleep 0.1`")


def _run(request: Request, directory: Path, *, available: bool) -> TrialsFailed | None:
    from vtax import pipeline
    from vtax.cli.console import paths
    from vtax.cli.run import watched
    from vtax.planning.short_study import study_text
    from vtax.planning.study import of_text

    text = study_text(request)
    study = of_text(text, "vtax measure", Path())  # files and image are looked for from this directory
    return watched(
        directory, lambda listener: pipeline.start(text.encode(), study, directory, paths(), listener, available)
    )


def _show(directory: Path, export: Path | None, *, json: bool) -> None:
    """Make the report, and print and write what was found."""
    from vtax import pipeline
    from vtax.cli.console import paths, print_json, say
    from vtax.cli.measured import content_of, lines_of, write

    index = pipeline.report(directory, paths().cache)
    analysis = pipeline.analysed(directory)
    if export is not None:
        write(export, directory, analysis)
    if json:
        print_json(content_of(analysis))
    else:
        say("", *lines_of(analysis), "", f"report: {index.resolve()}", f"study: {directory / 'study.toml'}")
