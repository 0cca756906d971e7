"""vtax measure: one command in several environments, without a study file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vtax.analysis.records import Analysis, Level
    from vtax.errors import TrialsFailed
    from vtax.model.study import Study

FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet", ".xlsx": "xlsx", ".json": "json"}
SHOWN = ("wall", "user", "system", "max_rss")  # of what is always measured


def measure(
    command: Annotated[
        list[str] | None, typer.Argument(help="The command and its arguments, after --.", show_default=False)
    ] = None,
    environments: Annotated[
        str, typer.Option("--in", help="Environments, the baseline first [those of the quick study that work here].")
    ] = "",
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="A number that it prints: NAME=REGEX UNIT [higher|lower].")
    ] = None,
    file: Annotated[
        list[str] | None, typer.Option("--file", help="A file below this directory that it finds in its own.")
    ] = None,
    package: Annotated[list[str] | None, typer.Option("--package", help="A Debian package that it needs.")] = None,
    image: Annotated[
        str, typer.Option("--image", help="Run it in an image: docker-archive:FILE, oci:DIR, docker://NAME.")
    ] = "",
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.001, help="It runs for a fixed time, this long.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Exactly this many rounds [6 to 24, until decided].")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The campaign's directory [campaigns/measure-TIME].")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write all values: .json, .csv, .jsonl, .parquet or .xlsx.")
    ] = None,
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
    from vtax import pipeline
    from vtax.cli.console import paths, print_json, say, warn
    from vtax.planning.short_study import Request, study_text

    _check_export(export)
    wanted = tuple(name.strip() for name in environments.split(",") if name.strip())
    request = Request(
        command=tuple(command or ()),
        environments=wanted or _usual(),
        metrics=tuple(metric or ()),
        files=tuple(file or ()),
        packages=tuple(package or ()),
        image=image,
        seconds=seconds,
        rounds=rounds,
    )
    _check_command(request.command, image)
    text = study_text(request)
    directory = output or Path("campaigns") / f"measure-{time.strftime('%Y%m%d-%H%M%S')}"
    failed = _run(text, directory, available=not wanted)
    index = pipeline.report(directory, paths().cache)
    analysis = pipeline.analysed(directory)
    if export is not None:
        _export(export, directory, analysis)
    if json:
        print_json(content_of(analysis))
    else:
        say("", *lines_of(analysis), "", f"report: {index.resolve()}", f"study: {directory / 'study.toml'}")
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


def _check_command(command: tuple[str, ...], image: str) -> None:
    from vtax.errors import UsageError

    if not command and not image:
        raise UsageError("there is no command", remedy="give it after --, for example `vtax measure -- sleep 0.1`")


def _check_export(export: Path | None) -> None:
    """Before anything takes minutes."""
    from vtax.errors import UsageError

    if export is not None and export.suffix not in FORMATS:
        raise UsageError(f"--export {export}: the ending says no format", remedy=f"end it with {', '.join(FORMATS)}")
    if export is not None and not export.absolute().parent.is_dir():
        raise UsageError(f"--export {export}: there is no directory {export.absolute().parent}", remedy="make it first")


def _run(text: str, directory: Path, *, available: bool) -> TrialsFailed | None:
    from vtax import pipeline
    from vtax.cli.console import paths, warn
    from vtax.cli.progress import progress
    from vtax.errors import TrialsFailed

    study = _loaded(text)
    with progress() as listener:
        try:
            pipeline.start(text.encode(), study, directory, paths(), listener, available)
        except TrialsFailed as error:
            return error
        except KeyboardInterrupt:
            if (directory / "plan.json").exists():
                warn(f"continue with: vtax run --resume {directory}")
            raise
    return None


def _loaded(text: str) -> Study:
    """The study, whose files and image are looked for from this directory."""
    from vtax.planning.study import of_text

    return of_text(text, "vtax measure", Path())


def lines_of(analysis: Analysis) -> Iterator[str]:
    """A table of means, and a sentence for every comparison."""
    from vtax.cli.console import table
    from vtax.units import format_quantity

    by_metric = _by_metric(analysis)
    header = ["", *analysis.environments]
    rows = []
    for name, levels in by_metric.items():
        cells = []
        for environment in analysis.environments:
            level = levels.get(environment)
            spread = "" if level is None or level.sd is None else f" ± {format_quantity(level.sd, level.unit)}"
            cells.append("no value" if level is None else f"{format_quantity(level.mean, level.unit)}{spread}")
        rows.append([name, *cells])
    yield table(rows, header)
    for one in analysis.comparisons:
        if one.primary:
            yield ""
            yield f"{one.metric} of {one.environment} against {one.baseline}: {one.sentence}"
            if one.remark:
                yield one.remark
    yield f"{analysis.ended}" if analysis.ended else ""


def _by_metric(analysis: Analysis) -> Mapping[str, Mapping[str, Level]]:
    """The levels of what decides, and of what is always measured, by metric and environment."""
    shown = [level for level in analysis.levels if level.primary]
    shown += [level for name in SHOWN for level in analysis.levels if level.metric == name and not level.primary]
    found: dict[str, dict[str, Level]] = {}
    for level in shown:
        found.setdefault(level.metric, {})[level.environment] = level
    return found


def content_of(analysis: Analysis) -> dict[str, Any]:
    """The result as JSON: every value of every metric by environment, and the comparisons."""
    return {
        "baseline": analysis.baseline,
        "environments": list(analysis.environments),
        "metrics": [
            {
                "metric": level.metric,
                "environment": level.environment,
                "unit": level.unit,
                "primary": level.primary,
                "n": level.n,
                "mean": level.mean,
                "sd": level.sd,
                "median": level.median,
                "minimum": level.minimum,
                "maximum": level.maximum,
                "rounds": {str(cell.round): cell.value for cell in level.cells},
            }
            for level in analysis.levels
        ],
        "comparisons": [
            {
                "metric": one.metric,
                "environment": one.environment,
                "baseline": one.baseline,
                "verdict": one.verdict.value,
                "ratio": one.ratio,
                "low": one.low,
                "high": one.high,
                "sentence": one.sentence,
            }
            for one in analysis.comparisons
            if one.primary
        ],
    }


def _export(export: Path, directory: Path, analysis: Analysis) -> None:
    import json

    from vtax import pipeline
    from vtax.errors import StoreError
    from vtax.export.tables import export as render

    kind = FORMATS[export.suffix]
    if kind == "json":
        content = (json.dumps(content_of(analysis), indent=2, ensure_ascii=False) + "\n").encode()
    else:
        content = render(pipeline.measurements(directory)[0], kind)
    try:
        export.write_bytes(content)
    except OSError as error:
        raise StoreError(f"{export} cannot be written: {error.strerror}", remedy="choose another place") from error
