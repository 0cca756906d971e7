"""Whether a campaign's numbers may be believed: one catalogue of rows, for own runs and for imported logs.

A row is declared where its subject is: here, by the module of its topic, or in the folder of the one tool that it is
about. `docs/audit.md` is written from the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from vtax.evidence.campaign import Counters, Evidence
from vtax.evidence.row import Row, rows_of
from vtax.model.finding import AuditReport, AuditRow, Finding, Outcome, Severity, worst_first
from vtax.tools import tools

__all__ = ["CATALOGUE", "Counters", "Evidence", "Row", "audit", "findings_of", "short_of"]

TOPICS = tuple(import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
CATALOGUE: tuple[Row, ...] = tuple(
    sorted((*rows_of(*TOPICS), *(row for tool in tools() for row in tool.audit())), key=lambda row: row.id)
)
SHORT = {row.id: row.short for row in CATALOGUE}
OUTCOMES = tuple(Outcome)  # declared in the order in which they are shown


def audit(evidence: Evidence) -> AuditReport:
    """Every row of the catalogue: failed ones first, the worst of them before others."""

    def key(row: AuditRow) -> tuple[int, int, str]:
        worst = min((found.severity.rank for found in row.findings), default=len(Severity))
        return OUTCOMES.index(row.outcome), worst, row.id

    return AuditReport(rows=tuple(sorted((row.look(evidence) for row in CATALOGUE), key=key)))


def findings_of(rows: Iterable[AuditRow]) -> tuple[Finding, ...]:
    """Everything that rows found, the worst first. What is not known counts where it would have blocked."""
    every = [found for row in rows for found in row.findings]
    return worst_first(found for found in every if not found.unknown or found.severity is not Severity.INFO)


def short_of(id: str) -> str:
    """What a row is about, in a few words; "" for an id that no row has."""
    return SHORT.get(id, "")
