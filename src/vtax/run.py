"""One trial on a live cluster: its steps, its raw output on disk, its record. Nothing is parsed here."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from vtax.errors import CommandError, EnvironmentMissing
from vtax.facts.counters import counters_script, delta, parse_counters, read_beside
from vtax.facts.machine import machine_counters, machine_delta
from vtax.model import (
    Cell,
    CommandResult,
    PlannedTrial,
    Scope,
    Status,
    Step,
    StepRecord,
    TrialRecord,
    Work,
)
from vtax.parallel import each
from vtax.providers.base import Cluster
from vtax.transport.base import Background, Transport

ASK_S = 20.0
CARRY_S = 60.0  # for moving a file to or from a node
READY_S = 20.0
TAIL_LINES = 12
SAFE = re.compile(r"[^A-Za-z0-9._-]")


def run_trial(cluster: Cluster, cell: Cell, trial: PlannedTrial, work: Work, place: Path) -> TrialRecord:
    """Run `work` once and write everything into the directory `place`, `record.json` last.

    A command that fails or takes too long is a recorded failure, not an exception.
    """
    before = _counters(cluster, work)
    cpus = sorted({cpu for node in work.target.nodes for cpu in node.cpu_ids})
    machine = machine_counters(cpus)
    started, clock = time.time(), time.monotonic()
    records: list[StepRecord] = []
    status, failure = Status.OK, ""
    background: list[tuple[int, Step, Background]] = []
    try:
        for number, step in enumerate(work.steps):
            _prepare(cluster, step, work)
            if step.background:
                failure = _start(cluster, number, step, work, place, background)
                status = Status.FAILED if failure else status
            else:
                ran = _run_step(cluster, number, step, work, place)
                records += ran
                status, failure = _judge(ran, place)
            if failure:
                break
    except (CommandError, EnvironmentMissing) as error:
        status, failure = Status.FAILED, str(error)
    finally:
        for number, step, running in background:
            records.append(_stopped(number, step, running))
    elapsed_s = time.monotonic() - clock
    machine = machine_delta(machine, machine_counters(cpus))
    after = _counters(cluster, work)
    done = _blank(cell, trial, work).model_copy(
        update={
            "status": status,
            "failure": failure,
            "started": started,
            "elapsed_s": elapsed_s,
            "counters": {node: delta(before[node], after[node]) for node in before if node in after},
            "host_counters": machine,
            "steps": tuple(sorted(records, key=lambda record: (record.step, record.node))),
        }
    )
    return _written(done, place)


def not_run(cell: Cell, trial: PlannedTrial, work: Work, reason: str, place: Path) -> TrialRecord:
    """The record of a trial whose cluster was not there."""
    blank = _blank(cell, trial, work)
    return _written(blank.model_copy(update={"failure": reason, "started": time.time()}), place)


def _written(record: TrialRecord, place: Path) -> TrialRecord:
    (place / "record.json").write_text(record.model_dump_json(indent=1) + "\n")
    return record


def _blank(cell: Cell, trial: PlannedTrial, work: Work) -> TrialRecord:
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
    )


def _counters(cluster: Cluster, work: Work) -> dict[str, dict[str, float]]:
    """The counters of the trial's nodes, read where its commands run; a node that does not answer has none.

    Nodes of one machine that are used as one have one set of counters, under the name of the first.
    """
    names = work.target.names
    parallel = work.target.scope in (Scope.WORKERS, Scope.CLUSTER)
    asked = names[:1] if parallel and frozenset(names) in cluster.together else names

    def ask(node: str) -> tuple[str, dict[str, float] | None]:
        transport = cluster.reach(node, names if parallel else (node,))
        try:
            result = transport.run(("sh", "-s"), timeout_s=ASK_S, stdin=counters_script())
        except (CommandError, EnvironmentMissing):
            return node, None
        if result.exit_code != 0:
            return node, None
        return node, read_beside(parse_counters(result.stdout), result.started, result.elapsed_s)

    return {node: values for node, values in each(ask, asked, abandon=True) if values is not None}


def _transport(cluster: Cluster, step: Step, node: str, work: Work) -> Transport:
    """A step on one node of a parallel target uses all of the target (on one machine: all of its CPUs)."""
    parallel = work.target.scope in (Scope.WORKERS, Scope.CLUSTER) and len(step.nodes) == 1
    return cluster.reach(node, work.target.names if parallel else (node,))


def _prepare(cluster: Cluster, step: Step, work: Work) -> None:
    """One command a node: the step's files are there, and none of its outputs, for trials of one work share their
    directory: hpcc appends to what a warm-up left, and a program that writes nothing would have an old file fetched."""
    if not step.inputs and not step.outputs:
        return
    removed = f"rm -f -- {shlex.join(step.outputs)}\n" if step.outputs else ""
    written = "".join(
        f"printf %s {shlex.quote(file.content)} >{shlex.quote(file.name)}\n" for file in step.inputs
    )  # not a here-document: it would add a line end, and end at a line of the content
    for node in step.nodes:
        transport = _transport(cluster, step, node, work)
        script = f"set -e\n{removed}{written}"
        result = transport.run(("sh", "-s"), timeout_s=CARRY_S, directory=work.target.directory, stdin=script)
        if result.exit_code != 0:
            raise CommandError(f"{node}: the trial's files cannot be written", detail=result.stderr)


def _run_step(cluster: Cluster, number: int, step: Step, work: Work, place: Path) -> list[StepRecord]:
    def one(node: str) -> StepRecord:
        transport = _transport(cluster, step, node, work)
        out, err = _names(number, node)
        result = transport.run(
            step.argv,
            timeout_s=step.timeout_s,
            directory=work.target.directory,
            stdout=place / out,
            stderr=place / err,
        )
        outputs = _fetch(transport, number, node, step.outputs, work.target.directory, place)
        return _record(number, node, step, result, outputs)

    return each(one, step.nodes, abandon=True)


def _start(
    cluster: Cluster, number: int, step: Step, work: Work, place: Path, background: list[tuple[int, Step, Background]]
) -> str:
    """Start a background step and wait until it serves. Returns why it does not."""
    node = step.nodes[0]
    out, err = _names(number, node)
    transport = _transport(cluster, step, node, work)
    running = transport.start(
        step.argv,
        timeout_s=step.timeout_s,
        directory=work.target.directory,
        stdout=place / out,
        stderr=place / err,
    )
    background.append((number, step, running))
    limit_s = READY_S * cluster.patience
    if step.ready and not running.wait_for(re.compile(step.ready), limit_s):
        return f"{shlex.join(step.argv)} on {node} was not ready within {limit_s:g} s{_tail(place / out, place / err)}"
    return ""


def _stopped(number: int, step: Step, running: Background) -> StepRecord:
    return _record(number, step.nodes[0], step, running.stop(), {})


def _fetch(
    transport: Transport, number: int, node: str, names: Sequence[str], directory: str, place: Path
) -> dict[str, str]:
    """Bring a step's output files home; one that is not there is simply not in the record."""
    outputs = {}
    for name in names:
        file = f"{number}.{node}.{SAFE.sub('_', name)}"
        with suppress(CommandError):
            result = transport.run(("cat", name), timeout_s=CARRY_S, directory=directory, stdout=place / file)
            if result.exit_code == 0:
                outputs[name] = file
            else:
                (place / file).unlink(missing_ok=True)
    return outputs


def _names(number: int, node: str) -> tuple[str, str]:
    return f"{number}.{node}.stdout", f"{number}.{node}.stderr"


def _record(number: int, node: str, step: Step, result: CommandResult, outputs: dict[str, str]) -> StepRecord:
    out, err = _names(number, node)
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


def _judge(done: Sequence[StepRecord], place: Path) -> tuple[Status, str]:
    for record in done:
        tail = _tail(place / record.stdout, place / record.stderr)
        if record.timed_out:
            return Status.TIMED_OUT, f"{record.argv[0]} on {record.node} was ended after {record.elapsed_s:.0f} s{tail}"
        if record.exit_code != 0:
            return Status.FAILED, f"{record.argv[0]} on {record.node} ended with exit code {record.exit_code}{tail}"
    return Status.OK, ""


def _tail(*paths: Path) -> str:
    """The last lines of the first log that has any, on lines of their own."""
    for path in reversed(paths):
        lines = (
            [line for line in path.read_text(errors="replace").splitlines() if line.strip()] if path.exists() else []
        )
        if lines:
            return "\n" + "\n".join(line[:300] for line in lines[-TAIL_LINES:])
    return ""
