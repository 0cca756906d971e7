"""One trial on a live cluster: its phases, its raw output on disk, its record. Nothing is parsed here."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from vtax.errors import CommandError, EnvironmentMissing
from vtax.facts.counters import counters_script, delta, parse_counters, with_host_clock
from vtax.facts.machine import machine_counters, machine_delta
from vtax.model.nodes import Phase
from vtax.model.plan import Cell, PlannedTrial, Step, Work
from vtax.model.trial import Pause, Status, StepRecord, TrialRecord
from vtax.providers.base import Cluster
from vtax.running import steps
from vtax.running.machine_use import counting
from vtax.running.outside import Seen, seen
from vtax.running.services import Services
from vtax.running.visits import Visits, counted_nodes, measured_step
from vtax.running.wall import Now
from vtax.transport.parallel import each

ASK_S = 20.0
PLACE_S = 300.0  # for moving a file of a study to a node
# What failed halfway goes out of the way, whoever it belongs to; it is removed as far as its owner is root.
DISCARD = """
cd / || exit 1
number=1
while [ -e "$1.failed$number" ]; do number=$((number + 1)); done
mv -- "$1" "$1.failed$number" && mkdir -p -- "$1" || exit 1
rm -rf -- "$1.failed$number" 2>/dev/null
exit 0
"""


def run_trial(
    cluster: Cluster,
    cell: Cell,
    trial: PlannedTrial,
    work: Work,
    place: Path,
    plan_sha256: str = "",
    pause: Pause | None = None,
    done: set[str] | None = None,
    kept: steps.Kept = steps.nothing_kept,
    wall: Now = time.time,
) -> TrialRecord:
    """Run `work` once and write everything into the directory `place`, `record.json` last.

    `plan_sha256` is that of its plan, "" for a trial without one; `pause` is what ended just before. `done` names the
    works whose setup this cluster has; this one is added when its own succeeds. `kept` gives files of the study, `wall`
    the time.

    A command that fails or takes too long is a recorded failure, not an exception.
    """
    return _Trial(cluster, work, place, kept, wall).run(
        _blank(cell, trial, work, plan_sha256).model_copy(update={"pause": pause}), set() if done is None else done
    )


class _Trial:
    """One trial while it runs: its steps by their numbers, what they left so far, and the first failure."""

    def __init__(self, cluster: Cluster, work: Work, place: Path, kept: steps.Kept, wall: Now) -> None:
        self.cluster, self.work, self.target, self.place, self.kept = cluster, work, work.target, place, kept
        self.wall = wall
        self.planned = tuple(enumerate(work.steps))
        self.services = Services(cluster, work.target, place)
        self.records: list[StepRecord] = []
        self.load: list[StepRecord] = []
        self.used: dict[int, dict[str, float]] = {}
        self.seen = Seen()
        self.status, self.failure = Status.OK, ""
        self.load_gone = ""  # why the benchmark was not under its load to the end

    def run(self, blank: TrialRecord, done: set[str]) -> TrialRecord:
        measured: dict[str, object] = {"started": self.wall()}
        try:
            self._set_up(done)
            self._serve()
            self._all(Phase.PREPARE)
            measured = measured if self.failure else self._measured()
        finally:
            self._stop_services()
            self._clean_up()
        found = {
            **measured,
            "status": self.status,
            "failure": self.failure,
            "steps": tuple(sorted(self.records, key=lambda record: (record.step, record.node))),
            "load": tuple(sorted(self.load, key=lambda record: (record.step, record.node))),
        }
        return _written(blank.model_copy(update=found), self.place)

    def _fail(self, failure: str, status: Status = Status.FAILED) -> None:
        """Note why the trial failed; of several reasons the first one decides."""
        if failure and not self.failure:
            self.status, self.failure = status, failure

    def _of(self, phase: Phase, *, services: bool = False) -> list[tuple[int, Step]]:
        return [(n, one) for n, one in self.planned if one.phase is phase and (one.service is not None) == services]

    def _set_up(self, done: set[str]) -> None:
        """What a work needs once on a cluster. After a failure nothing is left of it: the next trial tries again."""
        if not self._of(Phase.SETUP) or self.work.id in done:
            return
        self._all(Phase.SETUP)
        if not self.failure:
            done.add(self.work.id)
            return
        for node in self.target.names:
            with suppress(CommandError, EnvironmentMissing):
                transport = self.cluster.reach(node, (node,))
                transport.run(("sh", "-s", self.target.directory), timeout_s=PLACE_S, stdin=DISCARD)

    def _serve(self) -> None:
        for number, step in self._of(Phase.RUN, services=True):
            if self.failure or step.service is None:
                return
            transport = steps.transport_of(self.cluster, step, step.nodes[0], self.target)
            with self._recorded():
                self._fail(self.services.start(number, step, step.service, transport))

    def _all(self, phase: Phase) -> None:
        """All steps of a phase, until one of them fails."""
        for number, step in self._of(phase):
            if self.failure:
                return
            with self._recorded():
                self._step(number, step)

    def _step(self, number: int, step: Step) -> None:
        steps.prepare(self.cluster, step, self.target, self.kept)
        transports = [steps.transport_of(self.cluster, step, node, self.target) for node in step.nodes]
        with counting(transports) as spent:
            ran = steps.run(self.cluster, number, step, self.target, self.place, self.services.gone)
        if step.phase is Phase.RUN:
            self.used[number] = spent
        self._finished(step, ran)

    def _finished(self, step: Step, ran: list[StepRecord]) -> None:
        self.records += ran
        status, failure = steps.judge(step, ran, self.place)
        self._fail(f"{step.phase}: {failure}" if failure and step.phase is not Phase.RUN else failure, status)

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """A node that cannot be reached, or a program that is missing, is a failure of the trial."""
        try:
            yield
        except (CommandError, EnvironmentMissing) as error:
            self._fail(str(error))

    def _measured(self) -> dict[str, object]:
        """Run what is measured, with what the nodes and the machine count meanwhile."""
        alone = measured_step(self.work)
        visits = None if alone is None else Visits(self.cluster, *alone, self.target, self.place)
        try:
            with self._recorded():
                self._enter(visits)
            known = visits.counted if visits else set()
            before = {**_counters(self.cluster, self.work, known), **(visits.before if visits else {})}
            found = self._counted(visits)
            if visits:
                ran = visits.leave()
                self._finished(visits.step, ran)
                self._ask_guests(visits.step, ran)
            self._fail(self.load_gone)
            after = visits.after if visits else {}
            after = {**_counters(self.cluster, self.work, after), **after}
        finally:
            if visits:
                visits.end()
        return {
            **found,
            "counters": {node: delta(before[node], after[node]) for node in before if node in after},
            "outside": self.seen.counted,
            "not_outside": self.seen.missing,
        }

    def _ask_guests(self, step: Step, ran: list[StepRecord]) -> None:
        """What this machine cannot count of nodes with a kernel of their own."""
        if self.cluster.capabilities.own_kernel and ran:
            report = ran[0].outputs.get(step.usage)
            self.seen.of_guest(None if report is None else self.place / report, len(steps.used_by(step, self.target)))

    def _enter(self, visits: Visits | None) -> None:
        if visits and visits.step.inputs:
            steps.prepare(self.cluster, visits.step, self.target, self.kept)
        if visits:
            visits.begin()

    def _counted(self, visits: Visits | None) -> dict[str, object]:
        """Run it, between two readings of the machine's counters."""
        cpus = sorted({cpu for node in self.target.nodes for cpu in node.cpu_ids})
        elsewhere = self.cluster.link is not None  # then this machine's counters say nothing of the nodes
        machine = {} if elsewhere else machine_counters(cpus)
        started, clock = self.wall(), time.monotonic()
        background: list[steps.BackgroundStep] = []
        load: list[steps.BackgroundStep] = []
        try:
            with self._recorded():
                self._run_all(background, load, visits)
        finally:
            self.records += [one.stopped(self.place) for one in background]
            self.load += [one.stopped(self.place) for one in reversed(load)]  # a client before its server
        return {
            "started": started,
            "elapsed_s": time.monotonic() - clock,
            "host_counters": machine_delta(machine, machine_counters(cpus)),
            "step_counters": self.used,
        }

    def _run_all(
        self, background: list[steps.BackgroundStep], load: list[steps.BackgroundStep], visits: Visits | None
    ) -> None:
        if self.work.load and not self.failure:
            self._fail(steps.start_load(self.cluster, self.work.load, self.place, load))
        for number, step in self._of(Phase.RUN):
            if self.failure:
                return
            if step.background:
                steps.prepare(self.cluster, step, self.target, self.kept)
                self._fail(steps.start(self.cluster, f"{number}", step, self.target, self.place, background))
            elif visits:
                nodes = steps.used_by(step, self.target)
                with (
                    seen(self.cluster, nodes, step.outside) as self.seen,
                    counting(list(visits.transports.values())) as self.used[number],
                ):
                    visits.run(self.services.gone)
            else:
                self._step(number, step)
        if not self.failure:
            self.load_gone = steps.load_gone(load, self.place)

    def _stop_services(self) -> None:
        """Stop them. When one of them failed, that comes first: it is why others did."""
        records, failure = self.services.stop()
        self.records += records
        if failure:
            said = f"{failure}\n{self.failure}" if self.failure else failure
            self.status, self.failure = Status.FAILED if self.status is Status.OK else self.status, said

    def _clean_up(self) -> None:
        """All of it, whatever failed before."""
        for number, step in self._of(Phase.CLEANUP):
            with self._recorded():
                self._step(number, step)


def not_run(
    cell: Cell,
    trial: PlannedTrial,
    work: Work,
    reason: str,
    place: Path,
    plan_sha256: str = "",
    wall: Now = time.time,
    status: Status = Status.NOT_RUN,
) -> TrialRecord:
    """The record of a trial that had no cluster, or of which nothing is left."""
    blank = _blank(cell, trial, work, plan_sha256)
    return _written(blank.model_copy(update={"failure": reason, "started": wall(), "status": status}), place)


def failed(record: TrialRecord, why: str, place: Path) -> TrialRecord:
    """The record of a trial that something outside of it spoilt, whatever its commands came to."""
    said = f"{why}\n{record.failure}" if record.failure else why
    return _written(record.model_copy(update={"status": Status.FAILED, "failure": said}), place)


def without_command(
    cell: Cell,
    trial: PlannedTrial,
    work: Work,
    output: str,
    place: Path,
    plan_sha256: str,
    started: float,
    counted: Mapping[str, float],
) -> TrialRecord:
    """The record of a trial that ran nothing; `output` is the file in `place` with what was noted, and `counted` what
    the machine counted meanwhile."""
    (place / "stderr").touch()
    noted = StepRecord(
        step=0,
        node=work.target.names[0],
        argv=(),
        exit_code=0,
        timed_out=False,
        background=False,
        started=started,
        elapsed_s=0.0,
        stdout=output,
        stderr="stderr",
    )
    found = {"status": Status.OK, "started": started, "host_counters": counted, "steps": (noted,)}
    return _written(_blank(cell, trial, work, plan_sha256).model_copy(update=found), place)


def _written(record: TrialRecord, place: Path) -> TrialRecord:
    (place / "record.json").write_text(record.model_dump_json(indent=1) + "\n")
    return record


def _blank(cell: Cell, trial: PlannedTrial, work: Work, plan_sha256: str) -> TrialRecord:
    return TrialRecord(
        id=trial.id,
        environment=cell.environment,
        round=cell.round,
        machine=cell.machine_of(work.target.names),
        cell=cell.id,
        work=work.id,
        benchmark=work.benchmark,
        label=work.label,
        scope=work.target.scope,
        nodes=work.target.names,
        iteration=trial.iteration,
        warmup=trial.warmup,
        params=work.params,
        status=Status.NOT_RUN,
        started=0.0,
        elapsed_s=0.0,
        steps=(),
        plan_sha256=plan_sha256,
    )


def _counters(cluster: Cluster, work: Work, known: Container[str]) -> dict[str, dict[str, float]]:
    """The counters of the trial's nodes but those that are `known`; a node that does not answer has none."""
    transports = {node: one for node, one in counted_nodes(cluster, work.target).items() if node not in known}

    def ask(node: str) -> tuple[str, dict[str, float] | None]:
        try:
            result = transports[node].run(("sh", "-s"), timeout_s=ASK_S, stdin=counters_script())
        except (CommandError, EnvironmentMissing):
            return node, None
        if result.exit_code != 0:
            return node, None
        return node, with_host_clock(parse_counters(result.stdout), result.started, result.elapsed_s)

    return {node: values for node, values in each(ask, transports, abandon=True) if values is not None}
