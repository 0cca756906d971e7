"""What a campaign is doing, from its directory alone: from another terminal, on another machine, or afterwards."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from vtax.analysis.estimate.intervals import InterimInterval, interim_intervals
from vtax.analysis.order import planned_order
from vtax.errors import VtaxError
from vtax.evaluation.evaluate import evaluate
from vtax.evaluation.readings import Readings
from vtax.model.plan import Plan
from vtax.model.record import Record
from vtax.model.trial import Status, TrialRecord
from vtax.planning.plan import ORCHESTRATION_S, SWITCH_S
from vtax.store import Campaign


class Snapshot(Record):
    """A campaign at one moment. Times in s; `remaining_s` is absent before anything has finished."""

    directory: str
    running: bool
    rounds: int
    rounds_done: int
    cell: str  # where the next trial is; "" when all are done
    trial: str
    trials: int
    trials_done: int
    failed: tuple[str, ...]
    elapsed_s: float
    remaining_s: float | None
    baseline: str
    intervals: tuple[InterimInterval, ...]
    note: str = ""  # why there are no intervals


class Watcher:
    """Reads a campaign repeatedly; what has not changed is not analysed again."""

    def __init__(self, directory: Path) -> None:
        self.campaign = Campaign.open(directory)
        self.readings = Readings(self.campaign, keep=False)
        self.plan = self.campaign.plan()
        self.seen = -1
        self.intervals: tuple[InterimInterval, ...] = ()
        self.note = ""

    def snapshot(self, now: float | None = None) -> Snapshot:
        """The state on disk. Raises DamagedError when the campaign is damaged."""
        trials = self.campaign.trials(texts=False)
        done = {trial.id: trial for trial in trials}
        cells = {trial.id: cell for cell in self.plan.cells for trial in cell.trials}
        planned = [(cells[trial.id], trial.id) for trial in planned_order(self.plan, self._in_turns)]
        pending = [(cell, name) for cell, name in planned if name not in done]
        open_rounds = {cell.round for cell, _ in pending}
        complete = [number for number in range(1, self.plan.study.rounds + 1) if number not in open_rounds]
        if len(complete) != self.seen:
            self.seen = len(complete)
            self._analyse()
        running = self.campaign.running()
        started = min((trial.started for trial in trials), default=None)
        ended = max((trial.started + trial.elapsed_s for trial in trials), default=None)
        until = (time.time() if now is None else now) if running else ended
        return Snapshot(
            directory=str(self.campaign.directory),
            running=running,
            rounds=self.plan.study.rounds,
            rounds_done=len(complete),
            cell=pending[0][0].id if pending else "",
            trial=pending[0][1].rpartition("/")[2] if pending else "",
            trials=len(planned),
            trials_done=len(planned) - len(pending),
            failed=tuple(one.id for one in map(self.readings.counted, trials) if one.status is not Status.OK),
            elapsed_s=max(0.0, until - started) if started is not None and until is not None else 0.0,
            remaining_s=remaining_s(self.plan, done) if pending else 0.0,
            baseline=self.plan.study.baseline,
            intervals=self.intervals,
            note=self.note,
        )

    def _in_turns(self, _round: int) -> bool:
        return self.plan.interleave == "trial"

    def _analyse(self) -> None:
        try:
            analysis = evaluate(self.campaign, readings=self.readings).analysis
        except VtaxError as error:  # a campaign in the middle may lack what an analysis needs
            self.intervals, self.note = (), str(error).splitlines()[0]
            return
        self.note = ""
        self.intervals = interim_intervals(analysis)


def remaining_s(plan: Plan, done: Mapping[str, TrialRecord]) -> float | None:
    """The planned time of what is left, at the pace of what is done; None before the first trial of a cell."""
    estimate = {(work.environment, work.id): work.estimate_s + ORCHESTRATION_S for work in plan.work}
    planned: dict[str, float] = {}
    took: dict[str, list[float]] = {}
    left: dict[str, float] = {}
    for cell in plan.cells:
        mine = [done[trial.id] for trial in cell.trials if trial.id in done]
        for trial in cell.trials:
            seconds = estimate[cell.environment, trial.work]
            part = planned if trial.id in done else left
            part[cell.environment] = part.get(cell.environment, 0.0) + seconds
        if mine and plan.interleave == "trial":  # between them are trials of other cells
            spent_s = sum(one.elapsed_s + ORCHESTRATION_S + SWITCH_S for one in mine)
            took.setdefault(cell.environment, []).append(spent_s)
        elif mine:
            began, ended = min(one.started for one in mine), max(one.started + one.elapsed_s for one in mine)
            took.setdefault(cell.environment, []).append(ended - began)
    if not took:
        return None
    typical = sum(map(sum, took.values())) / max(1e-9, sum(planned.values()))
    paces = {name: sum(took[name]) / planned[name] for name in took if planned.get(name)}
    return sum(seconds * paces.get(name, typical) for name, seconds in left.items())
