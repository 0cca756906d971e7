"""The interim analyses of a running campaign: when they were made, and what was decided."""

from __future__ import annotations

from enum import StrEnum

from vtax.model.record import FORMAT, Record


class Decision(StrEnum):
    """What followed from an interim analysis, or ended a campaign without one."""

    GO_ON = "go on"
    SETTLED = "no primary metric waits for its verdict"
    LAST = "the last planned round"
    BUDGET = "the time budget"  # no evidence: no results were seen


class Look(Record):
    """An interim analysis of a running campaign, or its end. `rounds` counts those that were over."""

    rounds: int
    decision: Decision
    reason: str
    at: float  # Unix time
    plan_sha256: str


class LookLog(Record):
    """Every interim analysis of a campaign in the order of time: `looks.json`."""

    format: int = FORMAT
    looks: tuple[Look, ...] = ()

    @property
    def ended(self) -> Look | None:
        """What ended the campaign for good; None while it may go on, as it may after its budget was spent."""
        final = (Decision.SETTLED, Decision.LAST)
        return next((look for look in self.looks if look.decision in final), None)
