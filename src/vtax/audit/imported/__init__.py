"""What logs say against the numbers in them: rows of the catalogue (METHOD section 3) on imported campaigns.

An imported campaign has no probed nodes, no counters and no clock of ours, so rows that need them are unknown. Others
read what the logs themselves say, gathered as facts of each run when it was imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vtax.audit.imported.rows import TITLES, LogRow, of
from vtax.evidence.campaign import Evidence
from vtax.evidence.row import Row
from vtax.model.finding import AuditReport, AuditRow, Finding, Outcome, Severity, worst_first

FROM_TEXT = frozenset(  # rows of the catalogue that read raw output, or values, and so hold for logs too
    "N01 N03 N04 N06 N07 N08 M03 M04 H01 H04 H05 H06 H07 O01 D01 D02 D03 S03 U03 R07".split()  # noqa: SIM905
)
OWN_ONLY = frozenset({"R08", "R09"})  # about what vtax does when it runs a campaign: nothing of that happened
UNSEEN = "logs do not tell: only a campaign that vtax runs itself records what this needs"
OUTCOMES = tuple(Outcome)


def audit(evidence: Evidence, catalogue: Sequence[Row]) -> AuditReport:
    """Every row of the catalogue, as far as logs can tell: failed ones first, the worst of them before others."""

    def key(row: AuditRow) -> tuple[int, int, str]:
        worst = min((found.severity.rank for found in row.findings), default=len(Severity))
        return OUTCOMES.index(row.outcome), worst, row.id

    return AuditReport(rows=tuple(sorted((_look(row, evidence) for row in catalogue), key=key)))


def told(row: Row) -> str:
    """What a row reads in imported logs, in words; "" when no log can answer it."""
    needs = dict.fromkeys(one.needs for one in of(row.id))
    return "; ".join(needs) or ("raw output and values" if row.id in FROM_TEXT else "")


def _look(row: Row, evidence: Evidence) -> AuditRow:
    """What one row came to, from its checks of logs and, where that reads output, from its own."""
    mine = [one for one in of(row.id) if one.applies(evidence)]
    general = row.look(evidence) if row.id in FROM_TEXT else None
    findings = _findings(row, mine, general, evidence)
    if findings:
        return _made(row, Outcome.FAIL, findings, ())
    passed = [f"nothing of the kind in the logs: {one.needs}" for one in mine if one.sees(evidence)]
    if general is not None and general.outcome is Outcome.PASS:
        passed += general.seen
    if passed:
        return _made(row, Outcome.PASS, (), tuple(dict.fromkeys(passed)))
    if row.id in OWN_ONLY:
        return _made(row, Outcome.NOT_APPLICABLE, (), ("these runs were imported, vtax did not make them",))
    if of(row.id) and not mine:
        names = ", ".join(dict.fromkeys(name for one in of(row.id) for name in one.benchmarks))
        return _made(row, Outcome.NOT_APPLICABLE, (), (f"no {names} in this campaign",))
    if reason := row.beside_the_point(evidence):
        return _made(row, Outcome.NOT_APPLICABLE, (), (reason,))
    if mine:
        both = " of two environments" if all(one.compares for one in mine) else ""
        needs = "; ".join(dict.fromkeys(one.needs for one in mine))
        return _made(row, Outcome.UNKNOWN, (), (f"the logs{both} do not tell: {needs}",))
    if general is not None and general.outcome is Outcome.NOT_APPLICABLE:
        return _made(row, Outcome.NOT_APPLICABLE, (), general.seen)
    return _made(row, Outcome.UNKNOWN, (), (UNSEEN,))


def _findings(row: Row, mine: Iterable[LogRow], general: AuditRow | None, evidence: Evidence) -> tuple[Finding, ...]:
    """What the checks of logs found, and what the row itself found about something else. Each once, the worst first."""
    own = [found.model_copy(update={"why": found.why or row.why}) for one in mine for found in one.check(evidence)]
    kept = [
        one
        for one in (general.findings if general is not None else ())
        if not _unseen(one)
        and not any(ours.environment == one.environment and _covers(ours.benchmark, one.benchmark) for ours in own)
    ]
    every: list[Finding] = []
    for found in (*own, *kept):
        if found not in every:
            every.append(found)
    return worst_first(every)


def _covers(one: str, other: str) -> bool:
    """Whether a finding about `one` (everything, a tool, or an entry) speaks of `other` too."""
    return one in ("", other) or other.startswith(f"{one} ")


def findings_of(report: AuditReport) -> tuple[Finding, ...]:
    """Everything that the rows found, the worst first."""
    return worst_first(found for row in report.rows for found in row.findings)


def _unseen(finding: Finding) -> bool:
    """Whether a row could not see what it looks for, which is so for most rows of any log."""
    return finding.unknown or "cannot be checked" in finding.message


def _made(row: Row, outcome: Outcome, findings: tuple[Finding, ...], seen: tuple[str, ...]) -> AuditRow:
    return AuditRow(
        id=row.id,
        severity=row.severity,
        title=TITLES.get(row.id, row.title),
        outcome=outcome,
        findings=findings,
        seen=seen,
    )
