"""What is wrong or worth knowing: problems before a run, findings of the audit after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from pydantic import Field

from vtax.model.record import FORMAT, Labels, Record


class Severity(StrEnum):
    """How bad something is, declared from the worst to the mildest."""

    BLOCKER = "blocker"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return tuple(Severity).index(self)


class Problem(Record):
    """Something found before anything runs; a blocker means that it cannot run."""

    severity: Severity
    message: str
    remedy: str = ""

    @classmethod
    def blocker(cls, message: str, remedy: str) -> Problem:
        return cls(severity=Severity.BLOCKER, message=message, remedy=remedy)

    @classmethod
    def warning(cls, message: str, remedy: str) -> Problem:
        return cls(severity=Severity.WARNING, message=message, remedy=remedy)

    @classmethod
    def info(cls, message: str, remedy: str) -> Problem:
        return cls(severity=Severity.INFO, message=message, remedy=remedy)


class Finding(Record):
    """Something the audit says about a campaign, and what it touches: empty fields touch all.

    `against` is the other environment, where it is about a difference of two: it does not touch what a third one is
    compared with. `metrics` are names of metrics; `labels` maps a label to the values that are meant. `unknown` marks a
    condition that could not be checked.
    """

    id: str
    severity: Severity
    message: str  # what was seen
    remedy: str
    why: str = ""  # why it matters
    environment: str = ""
    against: str = ""
    benchmark: str = ""
    metrics: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    unknown: bool = False

    def touches(self, environments: Sequence[str], names: Sequence[str], metric: str, labels: Labels) -> bool:
        """Whether it is about a comparison of environments; `names` are what findings call its entry."""
        return (
            self.environment in ("", *environments)
            and (len(set(environments)) < 2 or self.against in ("", *environments))
            and self.benchmark in ("", *names)
            and (not self.metrics or metric in self.metrics)
            and all(labels.get(name) in values for name, values in self.labels.items())
        )


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The one order of findings, which does not depend on that of the input."""

    def key(item: Finding) -> tuple[int, str, str, str, str]:
        return item.severity.rank, item.id, item.environment, item.benchmark, item.message

    return tuple(sorted(findings, key=key))


class Outcome(StrEnum):
    """What a row of the audit came to."""

    FAIL = "fail"
    UNKNOWN = "unknown"
    PASS = "pass"
    NOT_APPLICABLE = "does not apply"


class AuditRow(Record):
    """One row of the catalogue, evaluated: what it found, or what it saw that was right."""

    id: str
    severity: Severity  # the worst that this row can say
    title: str
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    seen: tuple[str, ...] = ()


class AuditReport(Record):
    """Every row: failed ones first, then unknown ones, then those that passed or do not apply."""

    format: int = FORMAT
    rows: tuple[AuditRow, ...]
