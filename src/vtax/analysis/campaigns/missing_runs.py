"""Runs of a stored campaign that gave no number, from its analysis and its plan: for the comparison with another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from vtax.analysis.campaigns.setup_differences import Recorded
from vtax.analysis.estimate.failures import SPEEDS, Place, endings_text
from vtax.analysis.estimate.summary import place_of_level
from vtax.analysis.records import Level
from vtax.model.trial import Status


@dataclass(frozen=True)
class MissingRuns:
    """The measured runs of a campaign that gave no number: how they ended, and the rounds of those that hit their time
    limit."""

    endings: Mapping[Place, Counter[Status]]
    late: Mapping[Place, set[int]]

    @classmethod
    def of(cls, side: Recorded) -> MissingRuns:
        works = {(work.environment, work.id): (work.label, work.target.label) for work in side.plan.work}
        planned = {trial.id: trial.work for cell in side.plan.cells for trial in cell.trials}
        endings: dict[Place, Counter[Status]] = defaultdict(Counter)
        late: dict[Place, set[int]] = defaultdict(set)
        for failure in side.analysis.failures:
            work = works.get((failure.environment, planned.get(failure.trial, "")))
            if work is not None and not failure.warmup:
                endings[failure.environment, *work][failure.status] += 1
                if failure.status is Status.TIMED_OUT:
                    late[failure.environment, *work].add(failure.round)
        return cls(endings, late)

    def cells(self, level: Level, own: Level | None) -> int:
        """How many cells of a series hit their time limit and have no number; `own` is what has one."""
        if level.kind not in SPEEDS:
            return 0
        known = {cell.round for cell in own.cells} if own is not None else set()
        return len(self.late.get(place_of_level(level), set()) - known)

    def endings_text(self, level: Level) -> str:
        """` (8 timed out, 2 failed)`; "" when no run is known to have ended without a result."""
        return endings_text(self.endings.get(place_of_level(level), {}))
