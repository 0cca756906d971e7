"""The loop over cells and trials: a fresh cluster for every cell, a record for every trial, nothing left behind."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from vtax.errors import CommandError, EnvironmentMissing, ProvisionError, StoreError, TrialsFailed
from vtax.evaluation.interim import InterimAnalysis
from vtax.evaluation.readings import Readings
from vtax.events import (
    CampaignStarted,
    CellFinished,
    CellStarted,
    ClusterReady,
    Listener,
    TrialFinished,
    TrialStarted,
    ignore,
)
from vtax.facts.host import host_facts
from vtax.facts.machine import machine_counters, machine_delta
from vtax.model.cluster import CellRecord, Image
from vtax.model.nodes import Scope
from vtax.model.plan import Cell, Plan, PlannedTrial, Work
from vtax.model.trial import Status
from vtax.planning.plan import ORCHESTRATION_S
from vtax.providers import runners
from vtax.providers.base import Cluster, Provider, Site
from vtax.running import startup
from vtax.running.provision import KEYS, Ready, destroy, provision, remove_campaign
from vtax.running.stopping import Looks
from vtax.running.trial import not_run, run_trial
from vtax.store import Campaign, alive
from vtax.transport.parallel import each

ASK_S = 20.0
IDLE_S = 0.2  # minimum idle time of a new cluster, to measure what else the machine does
INSTANCES = 2  # clusters that one cell may use: the first, and one more when a node dies during a trial


class Clock:
    """How much is left: the plan's estimates, corrected by how true they have been so far in each environment. What
    passes by the clock is always true, so that one slow program does not make an hour of ten timed ones."""

    def __init__(self, plan: Plan, providers: Mapping[str, Provider], pending: Mapping[str, Sequence[PlannedTrial]]):
        seconds = {
            (work.environment, work.id): (work.clocked_s, work.estimate_s - work.clocked_s + ORCHESTRATION_S)
            for work in plan.work
        }
        self.left = {
            cell.id: [seconds[cell.environment, trial.work] for trial in pending[cell.id]] for cell in plan.cells
        }
        self.cost = {
            cell.id: providers[cell.environment].provision_estimate_s + plan.study.settle_s for cell in plan.cells
        }
        self.environment = {cell.id: cell.environment for cell in plan.cells}
        self.round = {cell.id: cell.round for cell in plan.cells}
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
        """What is left, or what is left up to and with a round."""
        total = 0.0
        for cell, seconds in self.left.items():
            if until is not None and self.round[cell] > until:
                continue
            name = self.environment[cell]
            truth = self.took[name] / self.said[name] if self.said.get(name, 0.0) > 5 else 1.0
            total += (self.cost[cell] if seconds else 0.0) + sum(clocked + busy * truth for clocked, busy in seconds)
        return total


def execute(
    campaign: Campaign,
    providers: Mapping[str, Provider],
    image: Image,
    runtime: Path,
    listener: Listener,
    interim: InterimAnalysis | None = None,
    budget_s: float | None = None,
) -> None:
    """Run every trial of the plan that has no record yet, until all is settled at a planned interim analysis, the
    budget does not hold another round, or the plan is done. `interim` also reports intervals when a round is over
    and nothing runs; without it nothing but the budget ends a campaign early.

    Raises TrialsFailed at the end when some failed.
    """
    plan = campaign.plan()
    label = str(campaign.about()["id"])
    pending = {cell.id: [trial for trial in cell.trials if not campaign.has(trial.id)] for cell in plan.cells}
    clock = Clock(plan, providers, pending)
    planned = sum(len(cell.trials) for cell in plan.cells)
    todo = sum(map(len, pending.values()))
    listener(
        CampaignStarted(
            directory=str(campaign.directory),
            rounds=plan.study.rounds,
            cells=sum(bool(trials) for trials in pending.values()),
            trials=todo,
            done_trials=planned - todo,
            estimate_s=clock.remaining_s(),
            looks=plan.study.looks,
        )
    )
    looks = Looks(campaign, plan, interim, clock.remaining_s, budget_s, listener)
    readings = interim.readings if interim is not None else Readings(campaign)
    with alive(runtime / label):
        try:
            for number, cells in groupby(plan.cells, key=lambda cell: cell.round):
                waiting = [cell for cell in cells if pending[cell.id]]
                if looks.ended_before(number, bool(waiting)):
                    break
                for cell in waiting:
                    site = Site(label, runtime / label / cell.environment, image, runtime / label / KEYS)
                    one = _CellRun(readings, plan, cell, providers[cell.environment], site, clock, listener)
                    one.run(pending[cell.id])
                if waiting and interim is not None and listener is not ignore:
                    interim.report(number)
                if looks.ended_after(number):
                    break
        finally:
            remove_campaign(runtime / label)
    _finish(campaign, readings)


def _finish(campaign: Campaign, readings: Readings) -> None:
    trials = [one.record for one in readings.all(campaign.trials(texts=False))]
    bad = [trial for trial in trials if trial.status is not Status.OK]
    if bad:
        raise TrialsFailed(
            f"{len(bad)} of {len(trials)} trials failed",
            detail="\n".join(f"{trial.id}: {trial.status}: {first_line(trial.failure)}" for trial in bad[:20]),
            remedy=f"their logs are under {campaign.directory / 'trials'}; the report counts them",
        )


def first_line(text: str) -> str:
    return text.partition("\n")[0]


class _CellRun:
    """One cell: provision, its trials in order, destroy; a second cluster when the first is lost on the way."""

    def __init__(
        self,
        readings: Readings,
        plan: Plan,
        cell: Cell,
        provider: Provider,
        site: Site,
        clock: Clock,
        listener: Listener,
    ) -> None:
        self.readings, self.campaign = readings, readings.campaign
        self.plan, self.cell, self.provider = plan, cell, provider
        self.site, self.clock, self.listener = site, clock, listener
        self.idle: dict[str, float] = {}
        self.noted: list[PlannedTrial] = []  # of work that runs nothing: written when the cluster is gone
        self.spec = next(spec for spec in plan.environments if spec.name == cell.environment)
        self.instance = 1 + sum(record.cell == cell.id for record in self.campaign.cells())
        self.last_instance = self.instance + INSTANCES - 1

    def run(self, pending: Sequence[PlannedTrial]) -> None:
        cell = self.cell
        self.listener(CellStarted(cell.id, cell.round, cell.environment, len(pending)))
        todo = [trial for trial in pending if not self._work(trial).provisioning]
        self.noted = [trial for trial in pending if self._work(trial).provisioning]
        failure = ""
        try:
            while (todo or self.noted) and self.instance <= self.last_instance:
                failure = self._with_cluster(todo)
                self.instance += 1
        except (ProvisionError, CommandError, EnvironmentMissing) as error:
            if isinstance(error, StoreError):
                raise
            failure = str(error)  # `provision` has retried transient errors
        todo += self.noted
        for trial in todo:
            self._skip(trial, failure)
        self.listener(CellFinished(cell.id, "failed" if todo else "ok", failure if todo else ""))

    def _with_cluster(self, todo: list[PlannedTrial]) -> str:
        """Run trials on a fresh cluster until all are done or it is lost; returns why it was lost."""
        started, before = time.time(), startup.counters(self.plan.shape)
        try:
            ready = self._provision()
        except (ProvisionError, CommandError, EnvironmentMissing) as error:
            self._save(started, None, str(error))
            raise
        failure = ""
        try:
            self.listener(ClusterReady(self.cell.id, len(ready.cluster.nodes), ready.elapsed_s))
            self.clock.ready(self.cell.id)
            self._save(started, ready, "")
            self._settle()
            self._save(started, ready, "")
            seen = startup.observe(ready.cluster, before) if self.noted else None
            failure = self._trials(ready.cluster, todo)
            if failure:
                self._save(started, ready, failure)
        finally:
            self._keep_logs(ready.cluster.logs)
            clock = time.monotonic()
            destroy(self.provider, self.site, ready.cluster)
            destroy_s = time.monotonic() - clock
        if seen is not None:
            self._note(seen, destroy_s)
        return failure

    def _note(self, seen: startup.Provisioned, destroy_s: float) -> None:
        """Record what the first cluster that came up took, now that it is gone."""
        for trial in self.noted:
            record = startup.write(self.campaign, self.plan, self.cell, trial, seen, destroy_s)
            self.readings.of(record)
            self._report(trial, record.status, record.failure, record.elapsed_s)
        self.noted = []

    def _settle(self) -> None:
        """Wait, and measure what the machine does meanwhile, while vtax runs nothing."""
        before, began = machine_counters(), time.monotonic()
        time.sleep(max(self.plan.study.settle_s, IDLE_S))
        self.idle = {**machine_delta(before, machine_counters()), "seconds": time.monotonic() - began}

    def _provision(self) -> Ready:
        scopes = {work.target.scope for work in self.plan.work if work.environment == self.cell.environment}
        return provision(
            self.provider,
            self.spec,
            self.plan.shape,
            self.plan.study.shared_path,
            self.site,
            [scope for scope in (Scope.WORKERS, Scope.CLUSTER) if scope in scopes],
            lambda attempt, consoles: self._keep_logs(consoles, f".failed-{attempt}"),
        )

    def _trials(self, cluster: Cluster, todo: list[PlannedTrial]) -> str:
        while todo:
            trial = todo[0]
            work = self._work(trial)
            self.listener(TrialStarted(trial.id, work.estimate_s))
            with self.campaign.new_trial(trial.id) as place:
                record = run_trial(cluster, self.cell, trial, work, place, self.plan.sha256)
            self.readings.of(record)  # now that the raw output is safe
            todo.pop(0)
            self._report(trial, record.status, record.failure, record.elapsed_s)
            if record.status is not Status.OK:
                lost = _silent_nodes(cluster)
                if lost:
                    return f"{', '.join(lost)} no longer answered after {trial.id}"
        return ""

    def _keep_logs(self, consoles: Mapping[str, Path], attempt: str = "") -> None:
        """Save what the nodes wrote to their consoles, before they are removed."""
        for node, path in consoles.items():
            if path.exists():
                name = f"cells/{self.cell.id}.{self.instance}{attempt}.{node}.console.log"
                self.campaign.save(name, path.read_bytes())

    def _skip(self, trial: PlannedTrial, reason: str) -> None:
        with self.campaign.new_trial(trial.id) as place:
            record = not_run(self.cell, trial, self._work(trial), f"no cluster: {reason}", place, self.plan.sha256)
        self._report(trial, record.status, record.failure, 0.0)

    def _report(self, trial: PlannedTrial, status: Status, failure: str, elapsed_s: float) -> None:
        self.clock.done(self.cell.id, elapsed_s, ran=status is not Status.NOT_RUN)
        look = next(look for look in self.plan.study.looks if look >= self.cell.round)
        left_s, look_s = self.clock.remaining_s(), self.clock.remaining_s(look)
        self.listener(TrialFinished(trial.id, status.value, failure, elapsed_s, left_s, look, look_s))

    def _work(self, trial: PlannedTrial) -> Work:
        return self.plan.work_of(self.cell.environment, trial.work)

    def _save(self, started: float, ready: Ready | None, failure: str) -> None:
        self.campaign.save_cell(
            CellRecord(
                cell=self.cell.id,
                environment=self.cell.environment,
                round=self.cell.round,
                instance=self.instance,
                status=Status.FAILED if failure else Status.OK,
                failure=failure,
                started=started,
                provision_s=ready.elapsed_s if ready else max(0.0, time.time() - started),
                commands=ready.cluster.commands if ready else (),
                facts=ready.facts if ready else (),
                host_facts=host_facts(runners=runners()),
                checks=ready.checks if ready else (),
                idle=self.idle,
            )
        )


def _silent_nodes(cluster: Cluster) -> list[str]:
    """Nodes that no longer answer."""

    def answers(name: str) -> bool:
        try:
            return cluster.node(name).transport.run(("true",), timeout_s=ASK_S).exit_code == 0
        except (CommandError, EnvironmentMissing):
            return False

    names = [node.name for node in cluster.nodes]
    return [name for name, alive in zip(names, each(answers, names), strict=True) if not alive]
