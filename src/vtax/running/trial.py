"""One trial on a live cluster: its steps, its raw output on disk, its record. Nothing is parsed here."""

from __future__ import annotations

import re
import shlex
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vtax.errors import CommandError, EnvironmentMissing
from vtax.facts.counters import counters_script, delta, parse_counters, with_host_clock
from vtax.facts.machine import machine_counters, machine_delta
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Cell, Load, PlannedTrial, Step, Work
from vtax.model.trial import CommandResult, Pause, Status, StepRecord, TrialRecord
from vtax.providers.base import Cluster
from vtax.running.wall import Now
from vtax.transport.base import Background, Transport
from vtax.transport.parallel import each

ASK_S = 20.0
CARRY_S = 60.0  # for moving a file to or from a node
READY_S = 20.0
TAIL_LINES = 12
TAIL_BYTES = 64 * 2**10
RESULT_CHARS = 64 * 2**20  # of the output in which the proof of a result is looked for: as much as is read of it later
LOAD = "load"  # begins the names of the files of a load


def run_trial(
    cluster: Cluster,
    cell: Cell,
    trial: PlannedTrial,
    work: Work,
    place: Path,
    plan_sha256: str = "",
    pause: Pause | None = None,
    wall: Now = time.time,
) -> TrialRecord:
    """Run `work` once and write everything into the directory `place`, `record.json` last.

    `plan_sha256` is that of its plan, "" for a trial without one; `pause` is what ended just before; `wall` gives the
    time.

    A command that fails or takes too long is a recorded failure, not an exception.
    """
    before = _counters(cluster, work)
    cpus = sorted({cpu for node in work.target.nodes for cpu in node.cpu_ids})
    machine = machine_counters(cpus)
    started, clock = wall(), time.monotonic()
    records: list[StepRecord] = []
    status, failure = Status.OK, ""
    background: list[BackgroundStep] = []
    load: list[BackgroundStep] = []
    load_records: list[StepRecord] = []
    try:
        failure = _start_load(cluster, work.load, place, load) if work.load else ""
        status = Status.FAILED if failure else status
        for number, step in enumerate(() if failure else work.steps):
            _prepare(cluster, step, work.target)
            if step.background:
                failure = _start(cluster, f"{number}", step, work.target, place, background)
                status = Status.FAILED if failure else status
            else:
                ran = _run_step(cluster, number, step, work.target, place)
                records += ran
                status, failure = _judge(step, ran, place)
            if failure:
                break
        if not failure and (failure := _load_gone(load, place)):
            status = Status.FAILED
    except (CommandError, EnvironmentMissing) as error:
        status, failure = Status.FAILED, str(error)
    finally:
        records += [one.stopped() for one in background]
        load_records += [one.stopped() for one in reversed(load)]  # a client before its server
    elapsed_s = time.monotonic() - clock
    machine = machine_delta(machine, machine_counters(cpus))
    after = _counters(cluster, work)
    done = _blank(cell, trial, work, plan_sha256).model_copy(
        update={
            "status": status,
            "failure": failure,
            "started": started,
            "elapsed_s": elapsed_s,
            "counters": {node: delta(before[node], after[node]) for node in before if node in after},
            "host_counters": machine,
            "pause": pause,
            "steps": tuple(sorted(records, key=lambda record: (record.step, record.node))),
            "load": tuple(sorted(load_records, key=lambda record: (record.step, record.node))),
        }
    )
    return _written(done, place)


def not_run(
    cell: Cell,
    trial: PlannedTrial,
    work: Work,
    reason: str,
    place: Path,
    plan_sha256: str = "",
    wall: Now = time.time,
) -> TrialRecord:
    """The record of a trial that had no cluster."""
    blank = _blank(cell, trial, work, plan_sha256)
    return _written(blank.model_copy(update={"failure": reason, "started": wall()}), place)


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


def _counters(cluster: Cluster, work: Work) -> dict[str, dict[str, float]]:
    """The counters of the trial's nodes, read where its commands run; a node that does not answer has none.

    Nodes of one machine that are used as one have one set of counters, under the name of the first.
    """
    names = work.target.names
    parallel = work.target.scope in (Scope.WORKERS, Scope.CLUSTER)
    asked = names[:1] if parallel and frozenset(names) in cluster.shared_transports else names

    def ask(node: str) -> tuple[str, dict[str, float] | None]:
        transport = cluster.reach(node, names if parallel else (node,))
        try:
            result = transport.run(("sh", "-s"), timeout_s=ASK_S, stdin=counters_script())
        except (CommandError, EnvironmentMissing):
            return node, None
        if result.exit_code != 0:
            return node, None
        return node, with_host_clock(parse_counters(result.stdout), result.started, result.elapsed_s)

    return {node: values for node, values in each(ask, asked, abandon=True) if values is not None}


def _transport(cluster: Cluster, step: Step, node: str, target: Target) -> Transport:
    """A step on one node of a parallel target uses all of the target (on one machine: all of its CPUs)."""
    parallel = target.scope in (Scope.WORKERS, Scope.CLUSTER) and len(step.nodes) == 1
    return cluster.reach(node, target.names if parallel else (node,))


def _prepare(cluster: Cluster, step: Step, target: Target) -> None:
    """One command per node: write the step's files, and remove its outputs, because trials of one work share their
    directory: a program may append to a warm-up's file, and one that writes nothing would have an old file fetched."""
    if not step.inputs and not step.outputs:
        return
    removed = f"rm -f -- {shlex.join(step.outputs)}\n" if step.outputs else ""
    written = "".join(
        f"printf %s {shlex.quote(file.content)} >{shlex.quote(file.name)}\n" for file in step.inputs
    )  # not a here-document: it would add a line end, and end at a line of the content
    for node in step.nodes:
        transport = _transport(cluster, step, node, target)
        script = f"set -e\n{removed}{written}"
        result = transport.run(("sh", "-s"), timeout_s=CARRY_S, directory=target.directory, stdin=script)
        if result.exit_code != 0:
            raise CommandError(f"{node}: the files of the trial cannot be written", detail=result.stderr)


def _run_step(cluster: Cluster, number: int, step: Step, target: Target, place: Path) -> list[StepRecord]:
    def one(node: str) -> StepRecord:
        transport = _transport(cluster, step, node, target)
        out, err = _names(f"{number}", node)
        result = transport.run(
            step.argv,
            timeout_s=step.timeout_s,
            directory=target.directory,
            stdout=place / out,
            stderr=place / err,
        )
        outputs = _fetch(transport, number, node, step.outputs, target.directory, place)
        return _record(f"{number}", number, node, step, result, outputs)

    return each(one, step.nodes, abandon=True)


@dataclass(frozen=True)
class BackgroundStep:
    """A step that runs in the background on one node; `name` begins the names of its files."""

    name: str
    number: int
    step: Step
    node: str
    running: Background

    def stopped(self) -> StepRecord:
        """Stop it. Returns its record."""
        return _record(self.name, self.number, self.node, self.step, self.running.stop(), {})


def _start(
    cluster: Cluster, name: str, step: Step, target: Target, place: Path, background: list[BackgroundStep]
) -> str:
    """Start a step in the background, on its first node, and wait until it serves. Returns why it does not."""
    return _start_on(cluster, name, step, step.nodes[0], target, place, background)


def _start_on(
    cluster: Cluster, name: str, step: Step, node: str, target: Target, place: Path, background: list[BackgroundStep]
) -> str:
    out, err = _names(name, node)
    transport = _transport(cluster, step, node, target)
    running = transport.start(
        step.argv,
        timeout_s=step.timeout_s,
        directory=target.directory,
        stdout=place / out,
        stderr=place / err,
    )
    background.append(BackgroundStep(name, int(name.removeprefix(LOAD)), step, node, running))
    limit_s = READY_S * cluster.timeout_factor
    if step.ready and not running.wait_for(re.compile(step.ready), limit_s):
        return f"{shlex.join(step.argv)} on {node} was not ready within {limit_s:g} s{_tail(place / out, place / err)}"
    return ""


def _start_load(cluster: Cluster, load: Load, place: Path, started: list[BackgroundStep]) -> str:
    """Start what disturbs the benchmark, every step of it in the background. Returns why it does not run."""
    for number, step in enumerate(load.steps):
        _prepare(cluster, step, load.target)
        for node in step.nodes:
            if failure := _start_on(cluster, f"{LOAD}{number}", step, node, load.target, place, started):
                return f"the load {load.id}: {failure}"
    return ""


def _load_gone(load: Sequence[BackgroundStep], place: Path) -> str:
    """Why the benchmark was not under its load to the end; "" when it was."""
    for one in load:
        if one.running.ended() and not one.step.background:
            tail = _tail(*(place / name for name in _names(one.name, one.node)))
            return f"the load ended before the benchmark; make it longer (its time or its problem size){tail}"
    return ""


def _fetch(
    transport: Transport, number: int, node: str, names: Sequence[str], directory: str, place: Path
) -> dict[str, str]:
    """Fetch a step's output files; one that does not exist is not in the record."""
    outputs = {}
    for name in names:
        file = f"{number}.{node}.{_plain(name)}"
        with suppress(CommandError):
            result = transport.run(("cat", name), timeout_s=CARRY_S, directory=directory, stdout=place / file)
            if result.exit_code == 0:
                outputs[name] = file
            else:
                (place / file).unlink(missing_ok=True)
    return outputs


def _plain(name: str) -> str:
    """A path as one part of a file name, unique for every path; "stdout" and "stderr" are reserved for the step."""
    return f"%{name}" if name in ("stdout", "stderr") else urllib.parse.quote(name, safe="")


def _names(name: str, node: str) -> tuple[str, str]:
    return f"{name}.{node}.stdout", f"{name}.{node}.stderr"


def _record(
    name: str, number: int, node: str, step: Step, result: CommandResult, outputs: dict[str, str]
) -> StepRecord:
    out, err = _names(name, node)
    return StepRecord(
        step=number,
        node=node,
        argv=step.argv,
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        background=step.background,
        started=result.started,
        elapsed_s=result.elapsed_s,
        stdout=out,
        stderr=err,
        outputs=outputs,
    )


def _judge(step: Step, done: Sequence[StepRecord], place: Path) -> tuple[Status, str]:
    for record in done:
        tail = _tail(place / record.stdout, place / record.stderr)
        if record.timed_out:
            return (
                Status.TIMED_OUT,
                f"{record.argv[0]} on {record.node} was stopped after {record.elapsed_s:.0f} s{tail}",
            )
        if record.exit_code != 0 and not _is_result(step, record, place):
            return Status.FAILED, f"{record.argv[0]} on {record.node} ended with exit code {record.exit_code}{tail}"
    return Status.OK, ""


def _is_result(step: Step, record: StepRecord, place: Path) -> bool:
    """Whether an exit code other than 0 is the tool's way to report what is in its output."""
    proof = step.results.get(record.exit_code)
    if proof is None:
        return False
    with (place / record.stdout).open(errors="replace") as output:
        return re.search(proof, output.read(RESULT_CHARS)) is not None


def _last(path: Path) -> str:
    """The end of a log, which may be of any length."""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return log.read(TAIL_BYTES).decode(errors="replace")


def _tail(*paths: Path) -> str:
    """The last lines of the first log that has any, each on its own line."""
    for path in reversed(paths):
        lines = [line for line in _last(path).splitlines() if line.strip()] if path.exists() else []
        if lines:
            return "\n" + "\n".join(line[:300] for line in lines[-TAIL_LINES:])
    return ""
