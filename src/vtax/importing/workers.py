"""Several logs at once: a process each, that is given one log after the other.

A process that dies takes nothing with it but the log that it was reading, which is then refused. Each has the next log
already while it reads one, so that it never waits for the process that gives them out.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vtax.errors import StoreError
from vtax.importing import source
from vtax.importing.logs import Job, read_log
from vtax.importing.report import FileReport
from vtax.transport.process import Popen, end, end_with, talk

MOST = 4  # processes, of about 100 MB each
AHEAD = 2  # logs that a process has at most
AHEAD_BYTES = 16 * 2**10  # of a job that is given to a process which is reading: it fits into the pipe
COMMAND = (sys.executable, "-P", "-m", "vtax.importing.workers")  # and the number of the process that asks
CUT = (EOFError, pickle.UnpicklingError, OSError)  # what reading from a process that died raises
SIZE = 8  # bytes before an answer, that say how long it is
CHANGED = "it changed while it was read: import it again"
Finished = tuple[int, FileReport]


@dataclass
class Worker:
    """A process, and the logs that it has: the first one it reads. Each has its place among the files of the import."""

    process: Popen
    jobs: deque[tuple[int, Job]] = field(default_factory=deque)


@dataclass
class Workers:
    """Processes that read logs. Each is started when there is something for it; leaving the context ends them."""

    most: int
    every: list[Worker] = field(default_factory=list)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_error: object) -> None:
        for one in self.every:
            _ended(one.process)

    def read(self, place: int, job: Job) -> list[Finished]:
        """Have a log read, when a process has time for it; the logs that were finished until then."""
        data, finished = _packed(job), []
        while True:
            one = self._free(len(data))
            if one is None:
                finished += self._wait()
                continue
            try:
                _send(one.process, data)
            except OSError:  # it died
                if not one.jobs:  # while it had nothing to do
                    self._end(one)
                    continue
            one.jobs.append((place, job))
            return finished

    def rest(self) -> Iterator[Finished]:
        """All logs that are not finished yet."""
        while any(one.jobs for one in self.every):
            yield from self._wait()

    def _free(self, size: int) -> Worker | None:
        """A process that can be given a log of `size` bytes now; None when all have enough to do."""
        idle = next((one for one in self.every if not one.jobs), None)
        if idle is None and len(self.every) < min(self.most, MOST):
            idle = Worker(_started())
            self.every.append(idle)
        if idle is None and size <= AHEAD_BYTES:
            idle = next((one for one in self.every if len(one.jobs) < AHEAD), None)
        return idle

    def _wait(self) -> list[Finished]:
        """Wait until one log at least is finished. Raises StoreError where one could not be kept."""
        answers = {one.process.stdout: one for one in self.every if one.jobs and one.process.stdout is not None}
        ready, _, _ = select.select(list(answers), (), ())
        finished: list[Finished] = []
        again: list[tuple[int, Job]] = []
        for answer in ready:
            one, place, report = self._answered(answers[answer])
            finished.append((place, report))
            if one is not None:
                again += one.jobs
        for other in again:  # only now, because that waits for others too
            finished += self.read(*other)
        return finished

    def _answered(self, one: Worker) -> tuple[Worker | None, int, FileReport]:
        """What a process says of its first log; and the process, where it died and left logs that it had not begun."""
        place, job = one.jobs.popleft()
        try:
            said = _answer(one.process)
        except CUT:
            code = self._end(one)
            why = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            hint = ", as it is where memory runs out" if code == -signal.SIGKILL else ""
            job.report.reason = f"the process that read it was {why}{hint}: read it alone, or split it"
            return one, place, job.report
        if isinstance(said, FileReport):
            return None, place, said
        message, detail, remedy = said
        raise StoreError(message, detail=detail, remedy=remedy)

    def _end(self, one: Worker) -> int:
        """End a process that died, or is to; its exit code."""
        self.every.remove(one)
        return _ended(one.process)


def _started() -> Popen:
    with Path("/dev/null").open("wb") as nowhere:
        return talk((*COMMAND, str(os.getpid())), nowhere)


def _ended(process: Popen) -> int:
    """The exit code of a process, which is ended if it has not."""
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    if process.poll() is None:
        process.kill()
    end(process)
    if process.stdout is not None:
        process.stdout.close()
    return process.returncode


def _packed(job: Job) -> bytes:
    """A log, as it is given to another process, which opens the file itself. An archive's member is sent with its text,
    because the next member takes its place."""
    if job.text.found.stored is None:
        job = replace(job, text=replace(job.text, content=None))
    return pickle.dumps(job, pickle.HIGHEST_PROTOCOL)


def _send(process: Popen, data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def _answer(process: Popen) -> Any:
    """What a process says: nothing of what follows is read, because `select` would not see it then."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    return pickle.loads(_exactly(descriptor, int.from_bytes(_exactly(descriptor, SIZE), "little")))


def _exactly(descriptor: int, size: int) -> bytes:
    """So many bytes. Raises EOFError where they end before."""
    found = bytearray()
    while len(found) < size:
        if not (more := os.read(descriptor, min(size - len(found), 2**20))):
            raise EOFError
        found += more
    return bytes(found)


def _read(job: Job) -> FileReport:
    """Read a log, which must have the checksum that was recorded."""
    if job.text.content is None:
        text = source.opened(job.text.found)
        try:
            if isinstance(text, str) or text.sha256() != job.report.sha256:
                job.report.reason = text if isinstance(text, str) else CHANGED
                return job.report
        except OSError as error:
            job.report.reason = f"it cannot be read: {error.strerror or error}"
            return job.report
        job = replace(job, text=text)
    return read_log(job)


def main() -> None:
    """Read logs, one after the other, until no more come."""
    end_with(int(sys.argv[1]))
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever a reader prints is no answer
    gc.disable()  # as in the process that started this one
    while True:
        try:
            job: Job = pickle.load(given)
        except EOFError:
            return
        said: FileReport | tuple[str, str, str]
        try:
            said = _read(job)
        except StoreError as error:
            said = (error.message, error.detail, error.remedy)
        data = pickle.dumps(said, pickle.HIGHEST_PROTOCOL)
        answers.write(len(data).to_bytes(SIZE, "little"))
        answers.write(data)
        answers.flush()


if __name__ == "__main__":
    main()
