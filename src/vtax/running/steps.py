"""Steps of a trial: one command on its nodes at the same time, in the foreground or in the background, and its end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vtax.errors import CommandError
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Load, Step
from vtax.model.trial import Status, StepRecord
from vtax.providers.base import SCRATCH, Cluster
from vtax.running.outputs import CARRY_S, called, fetched, names_of, record_of, tail, tail_of
from vtax.transport.base import Background, Transport
from vtax.transport.parallel import each
from vtax.transport.process import Watch
from vtax.transport.visit import nothing

READY_S = 20.0
PLACE_S = 300.0  # for moving a file of a study to a node
RESULT_CHARS = 64 * 2**20  # of the output in which the proof of a result is looked for: as much as is read of it later
ENTERED = "vtax-run: "  # begins what it says itself, when it cannot start a command
LOAD = "load"  # begins the names of the files of a load

Kept = Callable[[str], bytes]  # the content of a file of the study, by its sha256


def nothing_kept(sha256: str) -> bytes:
    """For trials that need no file of the study."""
    raise CommandError(f"no file with the sha256 {sha256} is kept")


def transport_of(cluster: Cluster, step: Step, node: str, target: Target) -> Transport:
    return cluster.reach(node, used_by(step, target) if len(step.nodes) == 1 else (node,))


def used_by(step: Step, target: Target) -> tuple[str, ...]:
    """A step on one node of a parallel target uses all of the target (on one machine: all of its CPUs)."""
    parallel = target.scope in (Scope.WORKERS, Scope.CLUSTER) and len(step.nodes) == 1
    return target.names if parallel else step.nodes


def prepare(cluster: Cluster, step: Step, target: Target, kept: Kept) -> None:
    """One command per node: write the step's files, and remove its outputs, because trials of one work share their
    directory: a program may append to a warm-up's file, and one that writes nothing would have an old file fetched."""
    made = files_of(step)
    if not step.inputs and not made:
        return
    removed = f"rm -f -- {shlex.join(made)}\n" if made else ""
    written = "".join(
        f"printf %s {shlex.quote(file.content)} >{shlex.quote(file.name)}\n" for file in step.inputs if not file.sha256
    )  # not a here-document: it would add a line end, and end at a line of the content
    contents = {file.name: kept(file.sha256) for file in step.inputs if file.sha256}
    for node in placed_on(step, target):
        transport = transport_of(cluster, step, node, target)
        script = f"set -e\n{removed}{written}"
        result = transport.run(("sh", "-s"), timeout_s=CARRY_S, directory=target.directory, stdin=script)
        if result.exit_code != 0:
            raise CommandError(f"{node}: the files of the trial cannot be written", detail=result.stderr)
        for name, content in contents.items():
            _carry(transport, target.directory, node, name, content)


def placed_on(step: Step, target: Target) -> tuple[str, ...]:
    """The nodes that need the files of a step: a parallel program without a directory that all its nodes see finds them
    on each, in a directory of the same name."""
    apart = target.directory.startswith(f"{SCRATCH}/")
    return tuple(dict.fromkeys((*step.nodes, *used_by(step, target)))) if apart else step.nodes


def files_of(step: Step) -> tuple[str, ...]:
    """The files that a step leaves for its record."""
    return (*step.outputs, step.usage) if step.usage else step.outputs


def _carry(transport: Transport, directory: str, node: str, name: str, content: bytes) -> None:
    """Write a file of the study into a directory of a node."""
    write = ("sh", "-c", 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1"', "sh", f"./{name}")
    result = transport.run(write, timeout_s=PLACE_S, directory=directory, stdin=content)
    if result.exit_code != 0:
        raise CommandError(f"{node}: the file {name} cannot be written", detail=result.stderr)


def run(
    cluster: Cluster, number: int, step: Step, target: Target, place: Path, watch: Watch = nothing
) -> list[StepRecord]:
    """Run a step on its nodes, until all have ended, or `watch` has a reason to end them."""

    def one(node: str) -> StepRecord:
        transport = transport_of(cluster, step, node, target)
        out, err = names_of(f"{number}", node)
        result = transport.run(
            step.argv,
            timeout_s=step.timeout_s,
            directory=target.directory,
            stdout=place / out,
            stderr=place / err,
            watch=watch,
        )
        outputs = fetched(transport, number, node, files_of(step), target.directory, place)
        return record_of(f"{number}", number, node, step, result, outputs, place)

    return each(one, step.nodes, abandon=True)


@dataclass(frozen=True)
class BackgroundStep:
    """A step that runs in the background on one node; `name` begins the names of its files."""

    name: str
    number: int
    step: Step
    node: str
    running: Background

    def stopped(self, place: Path) -> StepRecord:
        """Stop it. Returns its record."""
        return record_of(self.name, self.number, self.node, self.step, self.running.stop(), {}, place)


def start(
    cluster: Cluster, name: str, step: Step, target: Target, place: Path, background: list[BackgroundStep]
) -> str:
    """Start a step in the background, on its first node, and wait until it serves. Returns why it does not."""
    return _start_on(cluster, name, step, step.nodes[0], target, place, background)


def _start_on(
    cluster: Cluster, name: str, step: Step, node: str, target: Target, place: Path, background: list[BackgroundStep]
) -> str:
    out, err = names_of(name, node)
    transport = transport_of(cluster, step, node, target)
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
        return f"{shlex.join(step.argv)} on {node} was not ready within {limit_s:g} s{tail(place / out, place / err)}"
    return ""


def start_load(cluster: Cluster, load: Load, place: Path, started: list[BackgroundStep]) -> str:
    """Start what disturbs the benchmark, every step of it in the background. Returns why it does not run."""
    for number, step in enumerate(load.steps):
        prepare(cluster, step, load.target, nothing_kept)
        for node in step.nodes:
            if failure := _start_on(cluster, f"{LOAD}{number}", step, node, load.target, place, started):
                return f"the load {load.id}: {failure}"
    return ""


def load_gone(load: Sequence[BackgroundStep], place: Path) -> str:
    """Why the benchmark was not under its load to the end; "" when it was."""
    for one in load:
        if one.running.ended() and not one.step.background:
            said = tail(*(place / name for name in names_of(one.name, one.node)))
            return f"the load ended before the benchmark; make it longer (its time or its problem size){said}"
    return ""


def judge(step: Step, done: Sequence[StepRecord], place: Path) -> tuple[Status, str]:
    """How a step ended, and why that is a failure; "" when it is none."""
    for record in done:
        what = f"{called(step)} on {record.node}"
        if record.timed_out:
            stopped = f"{what} was stopped after {record.elapsed_s:.0f} s{tail_of(record, place)}"
            return Status.TIMED_OUT, stopped
        if record.stopped:
            return Status.FAILED, f"{what} was ended: {record.stopped}{tail_of(record, place)}"
        if record.exit_code not in step.success and not _is_result(step, record, place):
            said = tail_of(record, place)
            return Status.FAILED, f"{what} ended with exit code {record.exit_code}{_own_words(said)}{said}"
    return Status.OK, ""


def _own_words(said: str) -> str:
    """What vtax-run said last: why the command did not start. Progress and summaries show the first line alone."""
    last = said.rpartition("\n")[2]
    return f" ({last.removeprefix(ENTERED)[:200]})" if last.startswith(ENTERED) else ""


def _is_result(step: Step, record: StepRecord, place: Path) -> bool:
    """Whether an exit code other than 0 is the tool's way to report what is in its output."""
    proof = step.results.get(record.exit_code)
    if proof is None:
        return False
    with (place / record.stdout).open(errors="replace") as output:
        return re.search(proof, output.read(RESULT_CHARS)) is not None
