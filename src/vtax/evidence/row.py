"""What a row of the catalogue is: one small function over evidence, and everything that is said about it.

The function yields findings, and sentences about what it saw that was right. A row whose function yields a finding has
failed; one that only yields unknown findings could not be seen; one that yields nothing had nothing to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vtax.evidence.campaign import Evidence
from vtax.model.finding import AuditRow, Finding, Outcome, Severity

Check = Callable[[Evidence], Iterable[Finding | str]]


def always(_evidence: Evidence) -> str:
    return ""


@dataclass(frozen=True)
class Row:
    """One row. `severity` is the worst that it says; `source` is where its evidence comes from, and who has it."""

    id: str
    severity: Severity
    title: str  # the condition that fails
    why: str
    remedy: str
    source: str
    check: Check
    benchmarks: tuple[str, ...] = ()  # it applies only to campaigns that run one of them
    applies: Callable[[Evidence], str] = always  # "" or why it does not

    def __call__(self, evidence: Evidence) -> tuple[Finding, ...]:
        """The findings alone."""
        return self.look(evidence).findings

    def look(self, evidence: Evidence) -> AuditRow:
        """What the row came to."""
        if reason := self.beside_the_point(evidence):
            return self._row(Outcome.NOT_APPLICABLE, (), (reason,))
        said = list(self.check(evidence))
        findings = tuple(self._filled(one) for one in said if isinstance(one, Finding))
        seen = tuple(dict.fromkeys(one for one in said if isinstance(one, str)))
        if any(not one.unknown for one in findings):
            outcome = Outcome.FAIL
        elif findings or not evidence.trials:
            outcome = Outcome.UNKNOWN
        else:
            outcome = Outcome.PASS if seen else Outcome.NOT_APPLICABLE
        return self._row(outcome, findings, seen)

    def beside_the_point(self, evidence: Evidence) -> str:
        """Why the row does not apply to a campaign; "" when it does."""
        if self.benchmarks and not evidence.labels_of(*self.benchmarks):
            return f"no {' or '.join(self.benchmarks)} in this campaign"
        return self.applies(evidence)

    def _filled(self, found: Finding) -> Finding:
        """What every finding of a row has in common. What could not be seen is a warning where it would block."""
        if found.id != self.id:
            raise ValueError(f"row {self.id} made a finding of {found.id}")
        severity = found.severity
        if found.unknown:
            severity = Severity.WARNING if self.severity is Severity.BLOCKER else Severity.INFO
        return found.model_copy(
            update={"why": found.why or self.why, "remedy": found.remedy or self.remedy, "severity": severity}
        )

    def _row(self, outcome: Outcome, findings: tuple[Finding, ...], seen: tuple[str, ...]) -> AuditRow:
        return AuditRow(
            id=self.id, severity=self.severity, title=self.title, outcome=outcome, findings=findings, seen=seen
        )


def row(
    name: str,
    severity: Severity,
    title: str,
    *,
    why: str,
    remedy: str,
    source: str,
    benchmarks: tuple[str, ...] = (),
    applies: Callable[[Evidence], str] = always,
) -> Callable[[Check], Row]:
    """Makes a row of a function."""

    def made(check: Check) -> Row:
        return Row(name, severity, title, why, remedy, source, check, benchmarks, applies)

    return made
