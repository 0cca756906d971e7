"""What a report says of a campaign made from logs: runs and files, where others have rounds and clusters. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vtax.model.plan import Origin
from vtax.report.document.answer.wording import shown
from vtax.report.document.model import Cell, Column, Row, Table, pairs_table
from vtax.report.document.numbers import listed, plural
from vtax.report.records import ReportInput

REASONS = 3  # of one run, in the table of files
TABLE = "vtax table"


def is_imported(report: ReportInput) -> bool:
    return report.plan.origin is Origin.IMPORTED


def subject(report: ReportInput) -> str:
    """What was imported, in one sentence."""
    analysis = report.analysis
    others = [name for name in analysis.environments if name != analysis.baseline]
    benchmarks, runs = len(report.plan.study.benchmarks), len(report.trials)
    against = f" against {analysis.baseline}" if others else ""
    first, *more = others or [analysis.baseline]
    compared = f"{listed([shown(first), *more])}{against}"
    return (
        f"{compared}: {runs} {plural(runs, 'run')} of {benchmarks} benchmark {plural(benchmarks, 'entry', 'entries')}, "
        "imported from files. vtax did not run them."
    )


def reading(report: ReportInput) -> str:
    base = report.analysis.baseline
    return (
        f"Relative performance: above 1 is better than {base}, below 1 is worse, for rates and for times alike "
        "(0.5 is half the rate, or twice the time). It is the ratio of typical runs, and n is the number of runs. "
        "Ranks, nodes and seconds are never counted as runs. Not comparable: a blocker of the audit rules it out."
    )


def plan(report: ReportInput) -> Table:
    """What takes the place of a plan."""
    analysis, study = report.analysis, report.plan.study
    done = analysis.trials_recorded - len(analysis.failures)
    pairs = [
        ("origin", "imported from files, without a plan"),
        ("runs", f"{analysis.trials_recorded} recorded, {done} with a result"),
        ("most runs of the same work", str(study.rounds)),
        ("baseline", analysis.baseline),
        ("list of runs, sha256", report.plan.sha256),
    ]
    return pairs_table("The runs", pairs, ("Item", "Value"))


def of_runs(table: Table) -> Table:
    """A table whose note speaks of rounds, for runs."""
    return replace(table, note=table.note.replace("rounds", "runs"))


def files(report: ReportInput) -> Table:
    """Every file that was looked at: what it was recognised as, what was taken, what was not and why."""
    rows = [row for table in report.imports for file in table.get("files", ()) for row in _rows(file)]
    columns = ("File", "Environment", "Recognised as", "Values taken", "Refused", "Why")
    return Table("The files", tuple(Column(name) for name in columns), tuple(rows))


def claims(report: ReportInput) -> Table:
    """Each published number, and what the logs say."""
    columns = ("Published", "Value", "n", "Against the logs", "What they say")
    rows = tuple(
        Row(
            (
                Cell(" ".join(filter(None, (one.claim.name, one.claim.environment)))),
                Cell(f"{one.claim.text} {one.claim.unit}".rstrip()),
                Cell(str(one.claim.n or "–")),
                Cell(one.agreement),
                Cell("; ".join(filter(None, (one.said, one.counting)))),
            )
        )
        for one in report.claims
    )
    return Table("Published numbers against these logs", tuple(Column(name) for name in columns), rows)


def _rows(file: Mapping[str, Any]) -> list[Row]:
    name, environment, runs = file["file"], file["environment"] or "–", file["runs"]
    if not runs:
        return [_row(name, environment, "–", 0, 0, file["not_read"])]
    if runs[0].get("reader") == TABLE:
        count = sum(run["values_taken"] for run in runs)
        return [_row(name, environment, f"{TABLE}, {len(runs)} {plural(len(runs), 'run')}", count, 0, "")]
    if "table" in runs[0].get("stated", {}):
        return [_stated_rows(file)]
    found = []
    for run in runs:
        said = [f"line {item['line']}: {item['what']}: {item['reason']}" for item in run["refused"]]
        more = [f"and {len(said) - REASONS} more"] if len(said) > REASONS else []
        why = "; ".join([*([run["left_out"]] if run["left_out"] else []), *said[:REASONS], *more])
        refused = sum(max(1, item["values"]) for item in run["refused"])
        where = f"{name}, lines {run['lines'][0]} to {run['lines'][1]}" if len(runs) > 1 else name
        stated = " ".join(f"{key}={value}" for key, value in run.get("stated", {}).items())
        label = f"{run['label']} (stated: {stated})" if stated else run["label"]
        found.append(_row(where, environment, label, run["values_taken"], refused, why))
    return found


def _stated_rows(file: Mapping[str, Any]) -> Row:
    """A table whose columns were stated, in one row."""
    runs = file["runs"]
    said = [f"line {item['line']}: {item['what']}: {item['reason']}" for run in runs for item in run["refused"]]
    refused = sum(max(1, item["values"]) for run in runs for item in run["refused"])
    more = [f"and {len(said) - REASONS} more"] if len(said) > REASONS else []
    label = f"table, {len(runs)} {plural(len(runs), 'row')} (stated: {runs[0]['stated']['table']})"
    taken = sum(run["values_taken"] for run in runs)
    why = "; ".join(filter(None, (file["not_read"], *said[:REASONS], *more)))
    return _row(file["file"], file["environment"], label, taken, refused, why)


def _row(file: str, environment: str, label: str, taken: int, refused: int, why: str) -> Row:
    return Row((Cell(file), Cell(environment), Cell(label), Cell(str(taken)), Cell(str(refused)), Cell(why)))
