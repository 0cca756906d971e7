"""A way to a machine, over which its commands run and files are copied, whatever makes it."""

from __future__ import annotations

import hashlib
import os
import re
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from vtax.errors import CommandError, EnvironmentMissing
from vtax.model.finding import Problem
from vtax.model.study import MachineSpec
from vtax.model.trial import CommandResult
from vtax.transport import process

TRANSFER_S = 3600.0
HEARD_BYTES = 2**16  # of what a machine says before it is known to be one that can be used
SENT = re.compile("[0-9]{1,18}")  # bytes; a machine may say anything else
# What is there of a file, how much of its beginning is wanted again, and its name when all of it is there.
APPEND = 'umask 077; mkdir -p "$(dirname -- "$1")" && cat >>"$1.part"'
SIZE = 'if [ -f "$1" ]; then echo done; else stat -c %s -- "$1.part" 2>/dev/null || echo 0; fi'
FINISH = 'if [ "$(sha256sum <"$1.part")" = "$2  -" ]; then mv -- "$1.part" "$1"; else rm -f -- "$1.part"; exit 9; fi'


class Connection(ABC):
    """The way to one machine of a study."""

    def __init__(self, name: str, spec: MachineSpec) -> None:
        self.name, self.spec = name, spec

    @abstractmethod
    def connect(self) -> None:
        """Raises EnvironmentMissing with what to do."""

    @abstractmethod
    def command(self, argv: Sequence[str], *, terminal: bool = False) -> tuple[str, ...]:
        """The local command line that runs `argv` there."""

    @property
    def lent(self) -> bool:
        """Whether another one may stand for it when a campaign goes on."""
        return False

    @property
    def terminals(self) -> bool:
        """Whether commands can have a terminal there, and end with it."""
        return True

    def unusable(self, detail: str) -> EnvironmentMissing:
        """The error when no command runs there, with what was said instead."""
        return EnvironmentMissing(f"{self}: no command runs there", detail=detail, remedy="is the machine still on?")

    @property
    @abstractmethod
    def connected(self) -> bool: ...

    @abstractmethod
    def close(self) -> None:
        """End the connection. May be called twice."""

    @property
    def directory(self) -> str:
        """Where vtax keeps its files there; "" is below the user's home directory."""
        return self.spec.directory

    @property
    def job(self) -> str:
        """The job that has the machine, "" where none has."""
        return ""

    @property
    def node(self) -> str:
        """What whoever gave the machine calls it."""
        return ""

    def ended(self) -> str:
        """Why the machine is no longer this user's, for good; "" while it may come back."""
        return ""

    def facts(self) -> Mapping[str, Any]:
        """What is known of the machine by whoever gave it to this user."""
        return {}

    def images(self) -> Sequence[str]:
        """What the machine's own engine has of root file systems of vtax, where nodes get them from that."""
        return ()

    def remove_images(self, names: Sequence[str]) -> None:
        """Remove them. Raises CommandError."""
        assert not names, f"{self} has no engine"

    def unmatched(self, environment: str, *, limits_memory: bool) -> Sequence[Problem]:  # noqa: ARG002
        """Why an environment would not have the limits of the plan there."""
        return ()

    def run(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes | Path = b"") -> CommandResult:
        """Run to the end or to the time limit. Raises EnvironmentMissing when the machine does not answer."""
        result = process.run(self.command(argv), timeout_s=timeout_s, stdin=stdin)
        if result.timed_out or (result.exit_code == 255 and not self.connected):
            raise EnvironmentMissing(
                f"the connection to {self} was lost", detail=result.stderr, remedy="is the machine still on?"
            )
        return result.model_copy(update={"argv": tuple(argv)})

    def must(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes | Path = b"") -> CommandResult:
        """The same; raises CommandError where the command fails."""
        result = self.run(argv, timeout_s=timeout_s, stdin=stdin)
        if result.exit_code != 0:
            raise process.failed(result)
        return result

    def put(self, source: Path, destination: str, notice: Callable[[int, int], None] | None = None) -> None:
        """Copy a file there. It gets its name when all of it is there and has the same hash; what an earlier copy left
        is not sent again. Raises CommandError, or EnvironmentMissing when the connection is lost."""
        with source.open("rb") as stream:
            wanted = hashlib.file_digest(stream, "sha256").hexdigest()
        for again in (True, False):
            there = self.must(_script(SIZE, destination), timeout_s=60).stdout.strip()
            if there == "done":
                return
            sent = min(int(there) if SENT.fullmatch(there) else 0, source.stat().st_size)
            if notice:
                notice(sent, source.stat().st_size)
            with source.open("rb") as stream:
                stream.seek(sent)
                self._append(stream, destination)
            done = self.run(_script(FINISH, destination, wanted), timeout_s=TRANSFER_S)
            if done.exit_code == 0:
                return
            if done.exit_code != 9 or not again:  # what an interrupted copy left was not the beginning of this file
                raise process.failed(done, f"is there space for {source.stat().st_size} bytes on {self}?")

    def _append(self, stream: IO[bytes], destination: str) -> None:
        with process.in_memory() as said:
            running = process.start_with(self.command(_script(APPEND, destination)), stream, said)
            try:
                if not process.wait(running, TRANSFER_S) or running.returncode != 0:
                    said.seek(0)
                    detail = said.read().decode(errors="replace")
                    raise CommandError(f"{destination} could not be copied to {self}", detail=detail)
            finally:
                process.end(running)

    def get(self, source: str, destination: Path) -> None:
        """Copy a file from there. Raises CommandError."""
        with destination.open("wb"):
            result = process.run(self.command(("cat", "--", source)), timeout_s=TRANSFER_S, stdout=destination)
        if result.exit_code != 0:
            destination.unlink()
            raise process.failed(result)


def _script(text: str, *arguments: str) -> tuple[str, ...]:
    return ("sh", "-c", text, "sh", *arguments)


def read_until(stream: IO[bytes] | None, last: bytes, within_s: float) -> tuple[bytes, bool]:
    """What a stream says up to the line `last`, and whether that came in time; what a login prints of its own before it
    is no obstacle."""
    assert stream is not None
    seen, deadline = b"", time.monotonic() + within_s
    waiting = select.poll()
    waiting.register(stream.fileno(), select.POLLIN)
    while not seen.endswith(last):
        if not waiting.poll(1000 * max(0.0, deadline - time.monotonic())):
            return seen, False
        chunk = os.read(stream.fileno(), 1024)
        if not chunk:
            return seen, False
        seen = (seen + chunk)[-HEARD_BYTES:]
    return seen, True
