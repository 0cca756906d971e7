"""A machine behind SSH: one connection that all commands share, made by the user's own OpenSSH and its configuration.

~/.ssh/config decides users, ports, jump hosts and keys. vtax gives no password, adds no host key, and asks nothing.
The connection ends with vtax, however that ends: its other side reads a pipe that closes then. Where that is not heard
there, because the network was gone meanwhile, it ends when it next says that it is there, and nobody takes that.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from vtax.errors import EnvironmentMissing, StoreError
from vtax.machines.connection import Connection, read_until
from vtax.model.study import MachineSpec
from vtax.transport import process

CONNECT_S = 20.0
LONGEST_SOCKET = 90  # a Unix socket's path ends at 107 characters, and OpenSSH adds 17 of them
READY = b"vtax is connected\n"
ALIVE_S = 20
# Runs there while the connection lasts: it ends with its input, or when nobody takes what it says from time to time.
HOLD = (
    f"printf '{READY.decode().strip()}\\n'; command -v timeout >/dev/null || exec cat >/dev/null; "
    f"until timeout {ALIVE_S} cat >/dev/null; do printf . || exit; done"
)
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


class Ssh(Connection):
    """One machine of a study. `sockets` is the directory of the shared connection's socket."""

    def __init__(self, name: str, spec: MachineSpec, sockets: Path) -> None:
        super().__init__(name, spec)
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
        told = "exec " + shlex.join(("sh", "-c", HOLD))
        with process.in_memory() as said:
            self.master = process.talk(("ssh", "-T", *_options(own), "--", self.spec.ssh, told), said)
            if not read_until(self.master.stdout, READY, CONNECT_S + 10)[1]:
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


def _remove_abandoned(directory: Path) -> None:
    """Sockets of vtax processes that were killed."""
    for path in directory.iterdir():
        number = path.name.rpartition("-")[2].partition(".")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            path.unlink(missing_ok=True)
