"""What commands of a trial leave on this machine: the files of their output, and the record of each."""

from __future__ import annotations

import shlex
import urllib.parse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from vtax.errors import CommandError
from vtax.model.plan import Step
from vtax.model.trial import CommandResult, StepRecord
from vtax.transport.base import Transport
from vtax.transport.visit import FETCH

CARRY_S = 60.0  # for moving a file to or from a node
TAIL_LINES = 12
TAIL_BYTES = 64 * 2**10
SUPERVISE = "vtax-supervise"  # begins own commands of a study; what follows "--" is the study's
ENDED = "vtax-supervise: ended what was still running: "  # begins the line that names it


def names_of(name: str, node: str) -> tuple[str, str]:
    """The files of standard output and standard error of a step on a node; `name` is its number."""
    return f"{name}.{node}.stdout", f"{name}.{node}.stderr"


def fetched(
    transport: Transport, number: int, node: str, names: Sequence[str], directory: str, place: Path
) -> dict[str, str]:
    """Fetch a step's output files; one that does not exist, or is no regular file, is not in the record."""
    outputs = {}
    for name in names:
        file = place_of(number, node, name, place)
        with suppress(CommandError):
            result = transport.run((*FETCH, name), timeout_s=CARRY_S, directory=directory, stdout=file)
            if result.exit_code == 0:
                outputs[name] = file.name
            else:
                file.unlink(missing_ok=True)
    return outputs


def place_of(number: int, node: str, name: str, place: Path) -> Path:
    """Where an output file of a step on a node is kept in the trial's directory."""
    return place / f"{number}.{node}.{_plain(name)}"


def _plain(name: str) -> str:
    """A path as one part of a file name, unique for every path; "stdout" and "stderr" are reserved for the step."""
    return f"%{name}" if name in ("stdout", "stderr") else urllib.parse.quote(name, safe="")


def record_of(
    name: str,
    number: int,
    node: str,
    step: Step,
    result: CommandResult,
    outputs: Mapping[str, str],
    place: Path,
) -> StepRecord:
    """The record of a step on one node, whose output is in `place`."""
    out, err = names_of(name, node)
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
        phase=step.phase,
        left=_left(place / err),
        stopped=result.stopped,
    )


def _left(stderr: Path) -> tuple[str, ...]:
    """The programs that a command left running, as the last line of its standard error names them."""
    lines = last_of(stderr).splitlines() if stderr.exists() else []
    said = lines[-1] if lines else ""
    return tuple(said.removeprefix(ENDED)[:400].split(", ")) if said.startswith(ENDED) else ()


def last_of(path: Path) -> str:
    """The end of a log, which may be of any length."""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return log.read(TAIL_BYTES).decode(errors="replace")


def tail(*paths: Path) -> str:
    """The last lines of the last log that has any, each on its own line."""
    for path in reversed(paths):
        lines = [line for line in last_of(path).splitlines() if line.strip()] if path.exists() else []
        if lines:
            return "\n" + "\n".join(line[:300] for line in lines[-TAIL_LINES:])
    return ""


def tail_of(record: StepRecord, place: Path) -> str:
    """The last lines that a step printed, those on standard error where there are any."""
    return tail(place / record.stdout, place / record.stderr)


def called(step: Step) -> str:
    """A step's command as an error names it: a program of a tool by its name, an own command whole and without what
    vtax puts before it."""
    if step.argv[0] != SUPERVISE:
        return step.argv[0]
    return shlex.join(step.argv[step.argv.index("--") + 1 :])[:300] or "the image's own command"
