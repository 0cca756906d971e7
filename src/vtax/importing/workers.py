"""Several logs at once: a process each, that is given one log after the other.

A process that dies takes nothing with it but the log that it was reading, which is then refused.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from vtax.errors import StoreError
from vtax.importing.logs import Job, read_log
from vtax.importing.report import FileReport
from vtax.transport.process import Popen, end, end_with, talk

MOST = 4  # processes, of about 100 MB each
COMMAND = (sys.executable, "-P", "-m", "vtax.importing.workers")  # and the number of the process that asks
CUT = (EOFError, pickle.UnpicklingError, OSError)  # what reading from a process that died raises
Finished = tuple[int, FileReport]


@dataclass
class Busy:
    """A process and the log that it reads, which has its place among the files of the import."""

    process: Popen
    place: int
    job: Job


@dataclass
class Workers:
    """Processes that read logs. Each is started when there is something for it; leaving the context ends them."""

    most: int
    idle: list[Popen] = field(default_factory=list)
    busy: list[Busy] = field(default_factory=list)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_error: object) -> None:
        for process in (*self.idle, *(one.process for one in self.busy)):
            _ended(process)

    def read(self, place: int, job: Job) -> list[Finished]:
        """Have a log read, when a process has time for it; the logs that were finished until then."""
        finished = self._wait() if len(self.busy) >= min(self.most, MOST) else []
        while True:
            process = self.idle.pop() if self.idle else _started()
            try:
                _send(process, job)
            except OSError:  # it died while it had nothing to do
                _ended(process)
                continue
            self.busy.append(Busy(process, place, job))
            return finished

    def rest(self) -> Iterator[Finished]:
        """All logs that are not finished yet."""
        while self.busy:
            yield from self._wait()

    def _wait(self) -> list[Finished]:
        """Wait until one log at least is finished. Raises StoreError where one could not be kept."""
        answers = {one.process.stdout: one for one in self.busy if one.process.stdout is not None}
        ready, _, _ = select.select(list(answers), (), ())
        done = [answers[answer] for answer in ready]
        self.busy = [one for one in self.busy if one not in done]
        return [(one.place, self._report(one)) for one in done]

    def _report(self, one: Busy) -> FileReport:
        assert one.process.stdout is not None
        try:
            said = pickle.load(one.process.stdout)
        except CUT:
            code = _ended(one.process)
            why = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            one.job.report.reason = f"the process that read it was {why}: read it alone, or split it"
            return one.job.report
        self.idle.append(one.process)
        if isinstance(said, FileReport):
            return said
        message, detail, remedy = said
        raise StoreError(message, detail=detail, remedy=remedy)


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


def _send(process: Popen, job: Job) -> None:
    assert process.stdin is not None
    pickle.dump(job, process.stdin, pickle.HIGHEST_PROTOCOL)
    process.stdin.flush()


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
            said = read_log(job)
        except StoreError as error:
            said = (error.message, error.detail, error.remedy)
        pickle.dump(said, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    main()
