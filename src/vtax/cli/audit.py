"""vtax audit: every row of the catalogue, checked."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vtax.model.finding import AuditReport, AuditRow


class FailOn(StrEnum):
    """The severities that may end the command with exit code 5."""

    BLOCKER = "blocker"
    WARNING = "warning"


def audit(
    directory: Annotated[Path, typer.Argument(help="A campaign's directory.", show_default=False)],
    everything: Annotated[
        bool, typer.Option("--all", help="Also show what passed or does not apply, and why.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print all rows as JSON.")] = False,
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="Exit with 5 when there is a finding of this severity or worse.")
    ] = None,
) -> None:
    """Check everything that could make a campaign's numbers wrong, and write audit.json. Runs nothing again.

    What failed comes first, then what is unknown. Findings are not errors: without `--fail-on` the exit code is 0.

    \b
    Example:  vtax audit campaigns/quick-20260101-120000 --fail-on blocker
    """
    from vtax import pipeline
    from vtax.cli.console import paths, print_json, say

    report = pipeline.audit(directory, paths().cache)
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        say(*lines_of(report, everything))
    if fail_on is not None:
        refuse(report, fail_on)


def lines_of(report: AuditReport, everything: bool) -> list[str]:
    """The rows as text: a line of counts, then a block each."""
    from vtax.model.finding import Outcome

    counts = {outcome: sum(row.outcome is outcome for row in report.rows) for outcome in Outcome}
    lines = [", ".join(f"{count} {word_of(outcome.value)}" for outcome, count in counts.items()) + " rows"]
    alike: dict[str, list[str]] = {}
    for row in report.rows:
        if row.outcome is Outcome.UNKNOWN and not row.findings and not everything:
            alike.setdefault("; ".join(row.seen), []).append(row.id)
        elif everything or row.outcome in (Outcome.FAIL, Outcome.UNKNOWN):
            lines += ["", *lines_of_row(row)]
    for sentence, names in alike.items():
        lines += ["", f"{', '.join(names)}  unknown: {sentence or 'nothing was recorded'}"]
    if not everything:
        lines += ["", "`--all` also shows what passed, and docs/audit.md every row with its reason"]
    return lines


def word_of(outcome: str) -> str:
    return {"fail": "failed", "pass": "passed", "does not apply": "inapplicable"}.get(outcome, outcome)


def lines_of_row(row: AuditRow) -> list[str]:
    """One row: its title, then what was seen, why it matters and what to do."""
    lines = [f"{row.id}  {word_of(row.outcome.value)}: {row.title}"]
    for found in row.findings:
        where = " ".join((found.severity.value, *filter(None, (",".join(found.metrics),))))
        lines.append(f"  {where}: {found.message}")
    if row.findings:
        remedies = dict.fromkeys(found.remedy for found in row.findings)
        lines += [f"    why:  {row.findings[0].why}", *(f"    next: {remedy}" for remedy in remedies if remedy)]
    else:
        lines += [f"  {sentence}" for sentence in row.seen]
    return lines


def refuse(report: AuditReport, fail_on: FailOn) -> None:
    """Raise GateFailed when a finding is as severe as `fail_on`, or more so."""
    from vtax.errors import GateFailed
    from vtax.model.finding import Severity

    gates = {FailOn.BLOCKER: (Severity.BLOCKER,), FailOn.WARNING: (Severity.BLOCKER, Severity.WARNING)}[fail_on]
    bad = [found for row in report.rows for found in row.findings if found.severity in gates]
    if bad:
        raise GateFailed(
            f"the audit has {len(bad)} findings of severity {fail_on.value} or worse",
            detail="\n".join(f"{found.id}: {found.message}" for found in bad[:20]),
            remedy="each row above says what to do",
        )
