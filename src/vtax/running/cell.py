"""One cell of a running campaign: its clusters, its trials, and the records of both."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vtax.errors import AllocationEnded, CommandError, EnvironmentMissing, PauseError, ProvisionError, StoreError
from vtax.events import CellFinished, CellStarted, ClusterReady, Listener, Notice, TrialFinished, TrialStarted
from vtax.facts.host import host_facts
from vtax.facts.machine import machine_counters, machine_delta
from vtax.model.cluster import CellRecord
from vtax.model.nodes import Scope
from vtax.model.plan import Cell, Plan, PlannedTrial, Work
from vtax.model.trial import Pause, Status
from vtax.planning.placement import shape_in
from vtax.providers import runners
from vtax.providers.base import Cluster, Provider, Site
from vtax.running import startup
from vtax.running.pausing import Pauses
from vtax.running.provision import Ready, destroy, provision
from vtax.running.trial import failed, not_run, run_trial
from vtax.running.wall import Now
from vtax.running.writing import Readings, Remaining
from vtax.transport.parallel import each

ASK_S = 20.0
IDLE_S = 0.2  # minimum idle time of a new cluster, to measure what else the machine does
INSTANCES = 2  # clusters that one cell may use: the first, and one more when a node dies during a trial
FAILURES = (ProvisionError, CommandError, EnvironmentMissing)  # of one cluster, not of the campaign


@dataclass(frozen=True)
class Running:
    """What all cells of a running campaign share; providers and sites by environment."""

    plan: Plan
    readings: Readings
    providers: Mapping[str, Provider]
    sites: Mapping[str, Site]
    clock: Remaining
    listener: Listener
    wall: Now
    slowly_paused: set[str] = field(default_factory=set)  # environments of which that was said


class CellRun:
    """One cell: a fresh cluster when its first trial comes, a second one when that is lost, and then no more."""

    def __init__(self, running: Running, cell: Cell, pending: Sequence[PlannedTrial]) -> None:
        self.running, self.cell = running, cell
        self.plan, self.listener, self.campaign = running.plan, running.listener, running.readings.campaign
        self.provider, self.site = running.providers[cell.environment], running.sites[cell.environment]
        self.elsewhere = bool(cell.placement) or self.provider.capabilities.away  # nothing here counts its nodes
        self.pending = tuple(trial for trial in pending if not self._work(trial).provisioning)
        self.noted = tuple(trial for trial in pending if self._work(trial).provisioning)  # when a cluster is gone
        self.instance = 1 + self.campaign.instances(cell.id)
        self.last_instance = self.instance + INSTANCES - 1
        self.ready: Ready | None = None  # None while there is no cluster
        self.pauses: Pauses | None = None
        self.seen: startup.Provisioned | None = None  # of the cluster, where that is to be noted
        self.record: CellRecord | None = None
        self.set_up: set[str] = set()  # the works whose setup the cluster has
        self.failure = ""  # why there will be no cluster any more
        self.skipped = 0  # trials
        self.others: tuple[str, ...] = ()  # environments whose clusters exist too, paused
        self.not_interleaved = ""  # why none do, although the plan alternates trials

    def begin(self) -> None:
        self.listener(CellStarted(self.cell.id, self.cell.round, self.cell.environment, len(self.pending + self.noted)))

    def end(self) -> None:
        for trial in self.noted:  # no cluster came up
            self._skip(trial)
        status, failure = ("failed", self.failure) if self.skipped else ("ok", "")
        self.listener(CellFinished(self.cell.id, status, failure))

    def bring_up(self) -> None:
        """Create, verify and settle a cluster. A failure is recorded, and then this cell has none any more; raises
        StoreError, and AllocationEnded where no other cell could have a cluster either."""
        began, before, counted = self.running.wall(), time.monotonic(), self._counters()
        try:
            self.ready = self._provision()
        except AllocationEnded:
            raise
        except FAILURES as error:
            self._save(self._new_record(began, time.monotonic() - before, None, str(error)))
            if isinstance(error, StoreError):
                raise
            self.failure = str(error)  # `provision` has retried transient errors
            return
        self.pauses = Pauses(self.ready.cluster)
        self.set_up = set()
        self.listener(ClusterReady(self.cell.id, len(self.ready.cluster.nodes), self.ready.elapsed_s))
        self.running.clock.ready(self.cell.id)
        record = self._new_record(began, self.ready.elapsed_s, self.ready, "")
        self._save(record)
        self._save(record.model_copy(update={"idle": self._settle()}))
        self.seen = startup.observe(self.ready.cluster, counted, self.running.wall) if self.noted else None

    def run(self, trial: PlannedTrial) -> None:
        """Run a trial, on a new cluster where there is none, and record it; not run where there can be none."""
        found = self._resumed()
        if found is None:
            self._skip(trial)
            return
        cluster, pause = found
        work = self._work(trial)
        self.listener(TrialStarted(trial.id, work.estimate_s))
        clock = time.monotonic()
        with self.campaign.new_trial(trial.id) as place:
            record = run_trial(
                cluster,
                self.cell,
                trial,
                work,
                place,
                self.plan.sha256,
                pause,
                self.set_up,
                self.campaign.kept,
                self.running.wall,
            )
            ask = self.cell.placement or record.status is not Status.OK
            if gone := self.provider.lost() if ask else "":  # a part of the cluster goes with it
                record = failed(record, f"{gone}, during this trial", place)
        whole_s = time.monotonic() - clock  # with its preparation, which the estimate has too
        record = self.running.readings.counted(record)  # now that the raw output is safe
        self._report(trial, record.status, record.failure, record.elapsed_s, whole_s)
        if gone:
            self._lose(gone)
        elif record.status is not Status.OK and (lost := _silent_nodes(cluster)):
            self._lose(f"{', '.join(lost)} no longer answered after {trial.id}")

    def turn(self, trial: PlannedTrial) -> None:
        """Run a trial, then pause the cluster until its next turn. One that cannot be paused is lost: it would run
        next to the others."""
        self.run(trial)
        try:
            self.pause()
        except (PauseError, CommandError) as error:
            self._lose(f"its nodes could not be paused after {trial.id}: {error}")

    def pause(self) -> None:
        """Pause the cluster, if there is one. Raises PauseError or CommandError."""
        if self.pauses is None or self.record is None:
            return
        self.pauses.pause()
        how, environment = self.pauses.how, self.cell.environment
        if how == self.record.pausing:
            return
        checks = (*self.record.checks, f"paused between its trials by {how}")
        self._save(self.record.model_copy(update={"pausing": how, "checks": checks}))
        if self.pauses.fallback and environment not in self.running.slowly_paused:
            self.running.slowly_paused.add(environment)
            self.listener(Notice(f"the clusters of {environment} are paused by {how}, which takes longer than usual"))

    def take_down(self) -> None:
        """Destroy the cluster, if there is one. What cannot be removed is reported, and found by `vtax clean`."""
        if self.ready is None:
            return
        cluster, self.ready, self.pauses = self.ready.cluster, None, None
        seen, self.seen = self.seen, None
        try:
            self._keep_logs(cluster.logs)
        finally:
            clock = time.monotonic()
            try:
                destroy(self.provider, self.site, cluster)
            except FAILURES as error:
                if isinstance(error, StoreError):
                    raise
                self.failure = self.failure or str(error)  # another cluster could meet what is left of this one
                self.listener(Notice(f"the cluster of {self.cell.id} could not be removed: {error}"))
            else:
                self._note(seen, time.monotonic() - clock)

    def _note(self, seen: startup.Provisioned | None, destroy_s: float) -> None:
        """Record what the first cluster that came up took, now that it is gone."""
        if seen is None:
            return
        for trial in self.noted:
            record = startup.write(self.campaign, self.plan, self.cell, trial, seen, destroy_s)
            record = self.running.readings.counted(record)
            self._report(trial, record.status, record.failure, record.elapsed_s)
        self.noted = ()

    def _resumed(self) -> tuple[Cluster, Pause | None] | None:
        """A cluster that runs, with the pause that has just ended; None when this cell will have none."""
        while not self.failure:
            if self.ready is None or self.pauses is None:
                self.bring_up()
                continue
            try:
                return self.ready.cluster, self.pauses.resume()
            except (PauseError, CommandError) as error:
                self._lose(f"its nodes did not resume: {error}")
        return None

    def _lose(self, why: str) -> None:
        """Record that the cluster is lost, and destroy it. The next trial gets another, if this was not the last."""
        if self.record is not None:
            self._save(self.record.model_copy(update={"status": Status.FAILED, "failure": why}))
        self.take_down()
        self.instance += 1
        if self.instance > self.last_instance:
            self.failure = why

    def _counters(self) -> dict[str, float]:
        """What this machine has counted so far; nothing where the nodes are on others."""
        return {} if self.elsewhere else startup.counters(self.plan.shape)

    def _settle(self) -> Mapping[str, float]:
        """Wait, and measure what the machine does meanwhile, while vtax runs nothing."""
        counted = self.provider.machine_ticks if self.elsewhere else machine_counters
        before, began = counted(), time.monotonic()
        time.sleep(max(self.plan.study.settle_s, IDLE_S))
        seconds = time.monotonic() - began
        return {**machine_delta(dict(before), dict(counted())), "seconds": seconds}

    def _provision(self) -> Ready:
        scopes = {work.target.scope for work in self.plan.work if work.environment == self.cell.environment}
        return provision(
            self.provider,
            next(spec for spec in self.plan.environments if spec.name == self.cell.environment),
            shape_in(self.plan, self.cell) if self.cell.placement else self.plan.shape,
            self.plan.study.shared_path,
            self.site,
            [scope for scope in (Scope.WORKERS, Scope.CLUSTER) if scope in scopes],
            lambda attempt, consoles: self._keep_logs(consoles, f".failed-{attempt}"),
            self.plan.study.seed,
        )

    def _keep_logs(self, consoles: Mapping[str, Path], attempt: str = "") -> None:
        """Save what the nodes wrote to their consoles, before they are removed."""
        for node, path in consoles.items():
            if path.exists():
                name = f"cells/{self.cell.id}.{self.instance}{attempt}.{node}.console.log"
                self.campaign.save(name, path.read_bytes())

    def _skip(self, trial: PlannedTrial) -> None:
        reason = f"no cluster: {self.failure}"
        with self.campaign.new_trial(trial.id) as place:
            record = not_run(self.cell, trial, self._work(trial), reason, place, self.plan.sha256, self.running.wall)
        self.skipped += 1
        self._report(trial, record.status, record.failure, 0.0)

    def _report(
        self, trial: PlannedTrial, status: Status, failure: str, elapsed_s: float, whole_s: float = 0.0
    ) -> None:
        clock = self.running.clock
        clock.done(self.cell.id, max(elapsed_s, whole_s), ran=status is not Status.NOT_RUN)
        look = next(look for look in self.plan.study.looks if look >= self.cell.round)
        left_s, look_s = clock.remaining_s(), clock.remaining_s(look)
        self.listener(TrialFinished(trial.id, status.value, failure, elapsed_s, left_s, look, look_s))

    def _work(self, trial: PlannedTrial) -> Work:
        return self.plan.work_of(self.cell.environment, trial.work)

    def _new_record(self, started: float, took_s: float, ready: Ready | None, failure: str) -> CellRecord:
        return CellRecord(
            cell=self.cell.id,
            environment=self.cell.environment,
            round=self.cell.round,
            instance=self.instance,
            status=Status.FAILED if failure else Status.OK,
            failure=failure,
            started=started,
            provision_s=took_s,
            commands=ready.cluster.commands if ready else (),
            facts=ready.facts if ready else (),
            host_facts={} if self.elsewhere else host_facts(runners=runners()),
            machine_facts=self.provider.machine_facts() if self.elsewhere and ready else {},
            checks=ready.checks if ready else (),
            paused=self.others,
            not_interleaved=self.not_interleaved,
        )

    def _save(self, record: CellRecord) -> None:
        self.record = record
        self.campaign.save_cell(record)


def _silent_nodes(cluster: Cluster) -> list[str]:
    """Nodes that no longer answer."""

    def answers(name: str) -> bool:
        try:
            return cluster.node(name).transport.run(("true",), timeout_s=ASK_S).exit_code == 0
        except (CommandError, EnvironmentMissing):
            return False

    names = [node.name for node in cluster.nodes]
    return [name for name, alive in zip(names, each(answers, names), strict=True) if not alive]
