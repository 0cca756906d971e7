"""vtax import: other people's logs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vtax.analysis.claims import Compared
    from vtax.importing.report import FileReport, Report, Run

    Row = tuple[str, str, str, str, str, str]

REFUSALS_SHOWN = 5  # of one run, in the table for people
ROWS_SHOWN = 20  # refusals of one table whose columns were stated


Paths = Annotated[
    list[Path],
    typer.Argument(
        help="Files, folders and archives with raw output; - is standard input.", allow_dash=True, show_default=False
    ),
]
Environment = Annotated[str, typer.Option("--environment", "-e", help="The environment that all files are from.")]
LayoutOption = Annotated[
    str,
    typer.Option("--layout", help="Read environment and labels from paths: '{environment}/{node}_{condition}.txt'."),
]
Labels = Annotated[list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="State a label of all values.")]
Units = Annotated[
    list[str] | None,
    typer.Option("--unit", metavar="TOOL=UNIT", help="State a unit that logs lack: iozone=operations or =kB/s."),
]
Table = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="'KEY=TEXT ...'",
        help="Read CSV files with a header: what their columns are, once for each metric.",
    ),
]
Benchmark = Annotated[str, typer.Option("--benchmark", help="Take output of this benchmark, or of this tool, only.")]
Into = Annotated[
    Path | None,
    typer.Option("--output", "-o", "--into", help="The campaign to create or extend [campaigns/imported-TIME]."),
]
Baseline = Annotated[str, typer.Option(help="The environment that others are compared with [the first one].")]
ClaimsFile = Annotated[
    Path | None,
    typer.Option(
        "--claims", metavar="FILE", help="Compare published numbers (CSV or TOML: name, value, unit, n) with the logs."
    ),
]
RecipeFile = Annotated[
    Path | None,
    typer.Option("--recipe", metavar="FILE", help="Import the checkout of a published study as this recipe says."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the table of files, values and refusals as JSON.")]


def import_(
    paths: Paths,
    environment: Environment = "",
    layout: LayoutOption = "",
    label: Labels = None,
    unit: Units = None,
    table: Table = None,
    benchmark: Benchmark = "",
    into: Into = None,
    baseline: Baseline = "",
    claims: ClaimsFile = None,
    recipe: RecipeFile = None,
    json: Json = False,
) -> None:
    """Make a campaign from raw output of benchmarks that ran elsewhere. Runs nothing.

    All benchmarks of `vtax run` are recognised by their output. Values that cannot be proven right are refused, and the
    table says why. Tables of `vtax export` (csv, jsonl, parquet) are read back completely; they name their environments
    themselves.

    \b
    Example:  vtax import theirs.csv -o campaigns/theirs
    Example:  kubectl logs --prefix -l app=bench | vtax import - -e pods -o campaigns/theirs
    Example:  vtax import results --layout 'results/{environment}/**' -o campaigns/theirs
    Example:  vtax import results -e vm --claims table2.csv
    Example:  vtax import rps.csv --table 'benchmark=cache value=rps unit=1/s kind=rate-fixed-work environment=host'
    Example:  vtax import their-checkout --recipe examples/recipes/felter-2014.toml -o campaigns/felter
    Example:  vtax import logs --layout '{environment}/{node}_{condition}.txt' --unit iozone=operations
    """
    directory = into or Path("campaigns") / f"imported-{time.strftime('%Y%m%d-%H%M%S')}"
    stated = (environment, layout, benchmark, baseline, label, unit, table)
    if recipe is not None:
        refuse_with_recipe(paths, *stated)
        reports = _by_recipe(paths[0], directory, recipe, claims)
    else:
        reports = _logs(paths, directory, *stated, claims=claims)
    _show(reports, directory, claims=claims is not None, json=json)


def _logs(
    paths: list[Path],
    directory: Path,
    environment: str,
    layout: str,
    benchmark: str,
    baseline: str,
    label: list[str] | None,
    unit: list[str] | None,
    table: list[str] | None,
    *,
    claims: Path | None,
) -> list[Report]:
    import gc
    import sys

    from vtax.importing.campaign import import_logs
    from vtax.importing.claims import read_claims
    from vtax.importing.layout import labels_given, units_given
    from vtax.importing.request import Request

    request = Request(
        paths=tuple(paths),
        environment=environment,
        layout=layout,
        benchmark=benchmark,
        baseline=baseline,
        stdin=sys.stdin.buffer,
        labels=labels_given(label or ()),
        units=units_given(unit or ()),
        table=tuple(table or ()),
        claims=read_claims(claims) if claims else None,
        processes=len(os.sched_getaffinity(0)),
    )
    gc.disable()  # millions of small records and no cycles among them: collecting takes a fifth of the time
    return [import_logs(request, directory)]


def _by_recipe(folder: Path, directory: Path, recipe: Path, claims: Path | None) -> list[Report]:
    from vtax.importing.campaign import import_recipe
    from vtax.importing.claims import read_claims
    from vtax.importing.recipe import read_recipe

    given = read_claims(claims) if claims else None
    return import_recipe(read_recipe(recipe), folder, directory, given, len(os.sched_getaffinity(0)))


def refuse_with_recipe(paths: list[Path], *options: object) -> None:
    """Raise UsageError for what a recipe says itself."""
    from vtax.errors import UsageError

    if len(paths) != 1 or any(options):
        raise UsageError(
            "--recipe says what the files are", remedy="give one folder, --output and --claims, nothing else"
        )


def _show(reports: Sequence[Report], directory: Path, *, claims: bool, json: bool) -> None:
    """Print what imports into a campaign found, and what became of claims."""
    from vtax import pipeline
    from vtax.cli.console import print_json, say
    from vtax.importing.report import table_of

    compared = pipeline.claims(directory) if claims else ()
    if json:
        tables = [table_of(report) for report in reports]
        said = {"claims": [one.model_dump(mode="json") for one in compared]} if claims else {}
        print_json({**(tables[0] if len(tables) == 1 else {"format": 1, "imports": tables}), **said})
        return
    for report in reports:
        say(table(report), *([""] if len(reports) > 1 else []))
    if compared:
        say("", claims_table(compared), "")
    say(f"campaign: {directory.resolve()}", f"next: vtax report {directory}")


def table(report: Report) -> str:
    """The files, what was recognised, how many values were taken, and what was refused and why."""
    from vtax.cli.console import table as columns

    rows: list[Row] = []
    reasons: list[str] = []
    for file in report.files:
        rows += _rows(file)
        reasons += _reasons(file)
    header = ("File", "Environment", "Recognised as", "Lines", "Taken", "Refused")
    counts = f"{report.taken} values taken from {report.yielded} of {len(report.files)} files"
    accounts = [file.account for file in report.files]
    if every := sum(one.lines for one in accounts):
        share = sum(one.prose for one in accounts) / every
        counts += f"; {every} lines, {share:.1%} of them without a number that has a unit"
    return "\n".join([columns(rows, header), "", *reasons, *([""] if reasons else []), counts])


def _rows(file: FileReport) -> list[Row]:
    """The lines of the table for one file: one for each run, or one for all rows of a table."""
    if not file.runs:
        return [(file.file, file.environment or "-", "-", "-", "0", "0")]
    if file.runs[0].record is not None:  # a table of vtax
        counted = sum(run.count for run in file.runs if not run.left_out)
        return [(file.file, file.environment, f"vtax table, {len(file.runs)} trials", "all", str(counted), "0")]
    if file.runs[0].table:
        return [_stated_rows(file)]
    return [_row(file, run) for run in file.runs]


def _row(file: FileReport, run: Run) -> Row:
    from vtax.importing.report import labels_text

    refused = sum(max(1, refusal.values) for refusal in run.reading.refusals)
    stated = labels_text({**run.labels, **({"unit": run.unit} if run.unit else {})})
    label = f"{run.reading.label} (stated: {stated})" if stated else run.reading.label
    lines = f"{run.section[1]}-{run.section[2]}"
    return file.file, file.environment, label, lines, "0" if run.left_out else str(run.count), str(refused)


def _reasons(file: FileReport) -> Iterator[str]:
    """What was not taken of a file, and why."""
    if not file.runs:
        yield f"{file.file}: not read: {file.reason}"
    elif file.runs[0].record is not None:
        if left := [run for run in file.runs if run.left_out]:
            yield f"{file.file}: {len(left)} trials left out: {left[0].left_out}"
        return
    elif file.reason:
        yield f"{file.file}: {file.reason}"
    if file.runs and file.runs[0].table:
        yield from _refused_rows(file)
        return
    for run in file.runs:
        if run.left_out:
            yield f"{run.where}: left out: {run.left_out}"
        for refusal in run.reading.refusals[:REFUSALS_SHOWN]:
            yield f"{file.file} line {refusal.line}: refused: {refusal.what}: {refusal.reason}"
        if len(run.reading.refusals) > REFUSALS_SHOWN:
            yield f"{run.where}: {len(run.reading.refusals) - REFUSALS_SHOWN} more refusals (--json has all)"
    if file.damaged_lines:
        shown = ", ".join(map(str, file.damaged_lines[:5]))
        yield f"{file.file}: lines that are too long or contain NUL bytes, not used: {shown}"
    for what, rest in file.account.rest.items():
        yield f"{file.file} line {rest.first}: not taken: {what} ({rest.lines} lines)"


def _stated_rows(file: FileReport) -> Row:
    """The line of a table whose columns were stated."""
    first, refusals = file.runs[0], [one for run in file.runs for one in run.reading.refusals]
    between = next((run.reading.facts["delimiter"] for run in file.runs if "delimiter" in run.reading.facts), "")
    what = f"table, {len(file.runs)} rows, {between!r} between columns (stated: {'; '.join(first.table)})"
    lines = f"{first.section[1]}-{file.runs[-1].section[2]}"
    return (file.file, file.environment, what, lines, str(file.taken), str(sum(max(1, r.values) for r in refusals)))


def _refused_rows(file: FileReport) -> list[str]:
    refusals = [one for run in file.runs for one in run.reading.refusals]
    shown = [f"{file.file} line {one.line}: refused: {one.what}: {one.reason}" for one in refusals[:ROWS_SHOWN]]
    more = len(refusals) - ROWS_SHOWN
    return [*shown, *([f"{file.file}: {more} more refusals (--json has all)"] if more > 0 else [])]


def claims_table(compared: Sequence[Compared]) -> str:
    """Each published number, and what the logs say."""
    from vtax.cli.console import table as columns

    rows = [
        (
            " ".join(filter(None, (one.claim.name, one.claim.environment))),
            f"{one.claim.text} {one.claim.unit}",
            one.agreement,
            "; ".join(filter(None, (one.said, one.counting))),
        )
        for one in compared
    ]
    return columns(rows, ("Published", "Value", "Against the logs", "What they say"))
