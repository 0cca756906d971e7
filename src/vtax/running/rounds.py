"""The rounds of a running campaign: trials in turns between all environments, or one cell after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from vtax.analysis.order import trials_in_order
from vtax.errors import CommandError, PauseError
from vtax.events import Notice
from vtax.model.plan import Cell, PlannedTrial
from vtax.running.cell import CellRun, Running

WHOLE_CELLS = "trials do not alternate between environments, which are measured one after the other from now on"
Pending = Mapping[str, Sequence[PlannedTrial]]  # trials without a record, by cell


class Rounds:
    """Runs one round after the other. Where a cluster cannot be paused, this round and all later ones run as whole
    cells, one after the other: nothing of them ever runs next to another environment."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.unpausable = ""  # why trials no longer alternate

    def run(self, cells: Sequence[Cell], pending: Pending) -> None:
        """Run what is pending of the cells of one round, which are given whole and in its order."""
        runs = {cell.id: CellRun(self.running, cell, pending[cell.id]) for cell in cells if pending[cell.id]}
        if self.running.plan.interleave == "trial" and not self.unpausable:
            self.unpausable = self._in_turns(cells, runs)
            if not self.unpausable:
                return
            self.running.listener(Notice(f"{WHOLE_CELLS}: {self.unpausable}"))
        for one in runs.values():
            one.not_interleaved = self.unpausable
            self._alone(one)

    def _alone(self, one: CellRun) -> None:
        """A whole cell, while no other cluster exists."""
        one.begin()
        try:
            if not one.pending:  # only what is noted of a cluster
                one.bring_up()
            for trial in one.pending:
                one.run(trial)
        finally:
            one.take_down()
        one.end()

    def _in_turns(self, cells: Sequence[Cell], runs: Mapping[str, CellRun]) -> str:
        """All clusters at once, all but one paused. Returns why one of them cannot be paused, before any trial; ""
        when the round is over."""
        with ExitStack() as stack:
            up: list[str] = []
            for one in runs.values():
                one.others = tuple(up)
                stack.callback(one.take_down)
                one.begin()
                one.bring_up()
                try:
                    one.pause()
                except (PauseError, CommandError) as error:
                    return f"the cluster of {one.cell.environment} cannot be paused: {error}"
                up.append(one.cell.environment)
            for one in runs.values():  # for a cluster that replaces a lost one
                one.others = tuple(name for name in up if name != one.cell.environment)
            for cell, trial in trials_in_order(cells):
                if cell.id in runs and trial in runs[cell.id].pending:
                    runs[cell.id].turn(trial)
        for one in runs.values():
            one.end()
        return ""
