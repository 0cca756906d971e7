"""A machine behind SSH: one connection that all commands share, made by the user's own OpenSSH and its configuration.

~/.ssh/config decides users, ports, jump hosts and keys. vtax gives no password, adds no host key, and asks nothing.
The connection ends with vtax, however that ends: its other side reads a pipe that closes then.
"""

from __future__ import annotations

import hashlib
import os
import re
import select
import shlex
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from vtax.errors import CommandError, EnvironmentMissing, StoreError
from vtax.model.study import MachineSpec
from vtax.model.trial import CommandResult
from vtax.transport import process

CONNECT_S = 20.0
TRANSFER_S = 3600.0
LONGEST_SOCKET = 90  # a Unix socket's path ends at 107 characters, and OpenSSH adds 17 of them
READY = b"vtax is connected\n"
OPTIONS = {
    "BatchMode": "yes",  # asks for no password or passphrase
    "StrictHostKeyChecking": "yes",  # neither accepts nor adds an unknown key
    "UpdateHostKeys": "no",
    "ConnectTimeout": f"{CONNECT_S:g}",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "RequestTTY": "no",
    "RemoteCommand": "none",
    "EscapeChar": "none",
    "LogLevel": "ERROR",
}
CHANGED = re.compile("REMOTE HOST IDENTIFICATION HAS CHANGED", re.I)
UNKNOWN = re.compile("host key verification failed|no .* host key is known", re.I)
REFUSED = re.compile("permission denied", re.I)
# What is there of a file, how much of its beginning is wanted again, and its name when all of it is there.
APPEND = 'umask 077; mkdir -p "$(dirname -- "$1")" && cat >>"$1.part"'
SIZE = 'if [ -f "$1" ]; then echo done; else stat -c %s -- "$1.part" 2>/dev/null || echo 0; fi'
FINISH = 'if [ "$(sha256sum <"$1.part")" = "$2  -" ]; then mv -- "$1.part" "$1"; else rm -f -- "$1.part"; exit 9; fi'


class Ssh:
    """One machine of a study. `sockets` is the directory of the shared connection's socket."""

    def __init__(self, name: str, spec: MachineSpec, sockets: Path) -> None:
        self.name, self.spec = name, spec
        self.socket = sockets / f"{name}-{os.getpid()}"
        if len(str(self.socket)) > LONGEST_SOCKET:  # of no use to anybody else, but readable by nobody else either
            raise StoreError(
                f"{sockets} is too deep for SSH's control sockets", remedy="set XDG_STATE_HOME to a shorter path"
            )
        self.master: process.Popen | None = None

    def __str__(self) -> str:
        return f"machine {self.name} ({self.spec.ssh})"

    def connect(self) -> None:
        """Log in. Raises EnvironmentMissing with what to do."""
        self.close()
        self.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_abandoned(self.socket.parent)
        own = {**OPTIONS, "ControlMaster": "yes", "ControlPath": str(self.socket), "ControlPersist": "no"}
        told = shlex.join(("printf", READY.decode().replace("\n", "\\n"))) + "; exec cat >/dev/null"
        with process.in_memory() as said:
            self.master = process.talk(("ssh", "-T", *_options(own), "--", self.spec.ssh, told), said)
            if not _reads(self.master.stdout, READY, CONNECT_S + 10):
                process.end(self.master)
                said.seek(0)
                self.close()
                raise self._refused(said.read().decode(errors="replace"))

    def _refused(self, said: str) -> EnvironmentMissing:
        """Why there is no connection, and what the user can do about it."""
        to, detail = self.spec.ssh, "\n".join(said.strip().splitlines()[-6:])
        if CHANGED.search(said):
            why = "has another host key than the one that is known"
            remedy = f"find out why; if the machine was set up anew, `ssh-keygen -R HOST`, then `ssh {to}` by hand"
        elif UNKNOWN.search(said):
            why = "has a host key that is not known, and vtax adds none"
            remedy = (
                f"run `ssh {to}` by hand and compare the key, or add what `ssh-keyscan HOST` prints, if it is right"
            )
        elif REFUSED.search(said):
            why = "refuses the login; vtax uses keys or an agent, never a password"
            remedy = f"`ssh-copy-id {to}`, or name the key in ~/.ssh/config; `ssh -o BatchMode=yes {to} true` must work"
        else:
            why = "cannot be reached"
            remedy = f"`ssh -o BatchMode=yes {to} true` must work; is the machine on, and its name right?"
        return EnvironmentMissing(f"{self} {why}", detail=detail, remedy=remedy)

    def command(self, argv: Sequence[str], *, terminal: bool = False) -> tuple[str, ...]:
        """The local command line that runs `argv` there over the connection, and fails where that is gone. With a
        `terminal`, the command ends with its connection."""
        own = {**OPTIONS, "ControlMaster": "no", "ControlPath": str(self.socket), "ProxyCommand": "false"}
        how = ("ssh", "-T") if not terminal else ("ssh", "-tt")
        own["RequestTTY"] = "force" if terminal else "no"
        return (*how, *_options(own), "--", self.spec.ssh, shlex.join(argv))

    @property
    def connected(self) -> bool:
        return self.master is not None and self.master.poll() is None

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
            sent = min(int(there), source.stat().st_size)
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

    @contextmanager
    def forward(self, port: int) -> Iterator[int]:
        """While this lasts, a loopback port of this machine leads to a loopback port of that one."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            here = int(free.getsockname()[1])
        way = f"127.0.0.1:{here}:127.0.0.1:{port}"
        base = ("ssh", "-o", f"ControlPath={self.socket}", "-O")
        process.run((*base, "forward", "-L", way, "--", self.spec.ssh), timeout_s=CONNECT_S, check=True)
        try:
            yield here
        finally:
            process.run((*base, "cancel", "-L", way, "--", self.spec.ssh), timeout_s=CONNECT_S)

    def close(self) -> None:
        """End the connection. May be called twice."""
        master, self.master = self.master, None
        if master is not None:
            for stream in (master.stdin, master.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            process.end(master)
        self.socket.unlink(missing_ok=True)


def _options(given: dict[str, str]) -> list[str]:
    return [word for name, value in given.items() for word in ("-o", f"{name}={value}")]


def _script(text: str, *arguments: str) -> tuple[str, ...]:
    return ("sh", "-c", text, "sh", *arguments)


def _reads(stream: IO[bytes] | None, wanted: bytes, within_s: float) -> bool:
    """Whether a stream begins with this in time; a login that prints something of its own before it is no obstacle."""
    assert stream is not None
    seen, deadline = b"", time.monotonic() + within_s
    waiting = select.poll()
    waiting.register(stream.fileno(), select.POLLIN)
    while not seen.endswith(wanted):
        if not waiting.poll(1000 * max(0.0, deadline - time.monotonic())):
            return False
        chunk = os.read(stream.fileno(), 1024)
        if not chunk:
            return False
        seen = (seen + chunk)[-4096:]
    return True


def _remove_abandoned(directory: Path) -> None:
    """Sockets of vtax processes that were killed."""
    for path in directory.iterdir():
        number = path.name.rpartition("-")[2].partition(".")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            path.unlink(missing_ok=True)
