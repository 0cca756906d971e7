"""When a running campaign was looked at, and what was decided."""

from __future__ import annotations

from enum import StrEnum

from vtax.model.record import FORMAT, Record


class Decision(StrEnum):
    """What followed from a look, or ended a campaign without one."""

    GO_ON = "go on"
    SETTLED = "no primary metric waits for its verdict"
    LAST = "the last planned round"
    BUDGET = "the time budget"  # no evidence: nothing was looked at


class Look(Record):
    """A moment at which a running campaign was looked at, or ended. `rounds` are those that were over."""

    rounds: int
    decision: Decision
    reason: str
    at: float  # Unix time
    plan_sha256: str


class LookLog(Record):
    """Every look of a campaign in the order of time: `looks.json`."""

    format: int = FORMAT
    looks: tuple[Look, ...] = ()

    @property
    def ended(self) -> Look | None:
        """The look that ended the campaign for good; None while it may go on, as it may after a budget ended."""
        final = (Decision.SETTLED, Decision.LAST)
        return next((look for look in self.looks if look.decision in final), None)
