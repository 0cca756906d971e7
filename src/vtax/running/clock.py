"""How much time is left of a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vtax.model.plan import Plan, PlannedTrial
from vtax.planning.plan import overhead_s
from vtax.providers.base import Provider


class Clock:
    """How much is left: the plan's estimates, corrected by how true they have been so far in each environment. What
    passes by the clock is always true, so that one slow program does not make an hour of ten timed ones."""

    def __init__(self, plan: Plan, providers: Mapping[str, Provider], pending: Mapping[str, Sequence[PlannedTrial]]):
        own_s = {spec.name: overhead_s(spec, providers[spec.name], plan.interleave) for spec in plan.environments}
        works = {(work.environment, work.id): work for work in plan.work}
        self.left: dict[str, list[tuple[float, float]]] = {}
        for cell in plan.cells:
            seen: set[str] = set()
            self.left[cell.id] = []
            for trial in pending[cell.id]:
                work = works[cell.environment, trial.work]
                busy_s = work.estimate_s - work.clocked_s + own_s[cell.environment]
                setup_s = 0.0 if trial.work in seen else work.setup_s  # once on each cluster, before its first trial
                self.left[cell.id].append((work.clocked_s, busy_s + setup_s))
                seen.add(trial.work)
        self.cost = {
            cell.id: providers[cell.environment].provision_estimate_s + plan.study.settle_s for cell in plan.cells
        }
        self.environment = {cell.id: cell.environment for cell in plan.cells}
        self.round = {cell.id: cell.round for cell in plan.cells}
        self.machine = {cell.id: cell.machine for cell in plan.cells}
        self.said: dict[str, float] = {}
        self.took: dict[str, float] = {}

    def done(self, cell: str, elapsed_s: float, *, ran: bool = True) -> None:
        """One trial of the cell is over; one that did not run teaches nothing about the estimates."""
        name, (clocked_s, said_s) = self.environment[cell], self.left[cell].pop(0)
        if ran:
            self.said[name] = self.said.get(name, 0.0) + said_s
            self.took[name] = self.took.get(name, 0.0) + max(0.0, elapsed_s - clocked_s)

    def ready(self, cell: str) -> None:
        """The cell's cluster is up."""
        self.cost[cell] = 0.0

    def remaining_s(self, until: int | None = None) -> float:
        """What is left, or what is left up to and with a round, of the machine with most of it."""
        total = dict.fromkeys(self.machine.values(), 0.0)
        for cell, seconds in self.left.items():
            if until is not None and self.round[cell] > until:
                continue
            name = self.environment[cell]
            truth = self.took[name] / self.said[name] if self.said.get(name, 0.0) > 5 else 1.0
            left_s = sum(clocked + busy * truth for clocked, busy in seconds)
            total[self.machine[cell]] += (self.cost[cell] if seconds else 0.0) + left_s
        return max(total.values(), default=0.0)
