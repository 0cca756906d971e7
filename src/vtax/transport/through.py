"""A node on another machine: its commands begin there, behind one connection to that machine.

Time limits are kept on the node, as for every node behind SSH. What runs in the background has a terminal, so that it
ends when the connection does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from vtax.model.record import Record
from vtax.transport import process
from vtax.transport.entrance import SUPERVISE, Entrance
from vtax.transport.local import ENVIRONMENT, LocalTransport
from vtax.transport.ssh import SshTransport


class Way(Protocol):
    """What makes of a machine's command the one that runs it there; with a terminal if wanted."""

    def __call__(self, argv: Sequence[str], *, terminal: bool = False) -> tuple[str, ...]: ...


class Reached(Record):
    """How a machine reaches one of its nodes: by entering it, or by SSH with a configuration of that machine."""

    entrance: Entrance | None = None
    config: str = ""
    host: str = ""
    timeout_factor: float = 1


def reached(transport: object) -> Reached:
    """The same for a transport of this machine. Raises TypeError for any that cannot be used from another one."""
    if isinstance(transport, LocalTransport) and isinstance(transport.wrap, Entrance):
        return Reached(entrance=transport.wrap)
    if isinstance(transport, SshTransport):
        return Reached(config=str(transport.config), host=transport.host, timeout_factor=transport.timeout_factor)
    raise TypeError(f"{type(transport).__name__} works on its own machine only")


@dataclass(frozen=True)
class ThroughTransport(SshTransport):
    """`config` is a file of the other machine; with an `entrance` there is no SSH from there to the node."""

    way: Way = lambda argv, *, terminal=False: tuple(argv)  # noqa: ARG005
    entrance: Entrance | None = None

    @classmethod
    def of(cls, way: Way, how: Reached, *, terminals: bool = True) -> ThroughTransport:
        return cls(Path(how.config), how.host, how.timeout_factor, terminals, way, how.entrance)

    def _in(self, directory: str, argv: Sequence[str]) -> tuple[str, ...]:
        return self.way(self._there(directory, argv))

    def _there(self, directory: str, argv: Sequence[str]) -> tuple[str, ...]:
        """The machine's own command line for a command in a node."""
        if self.entrance is None:
            return super()._in(directory, argv)
        settings = (f"{name}={value}" for name, value in ENVIRONMENT.items())
        return ("env", "-i", *settings, *self.entrance(directory, argv))

    def start(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        directory: str = "/",
        stdout: Path,
        stderr: Path,
        control: bool = False,
    ) -> process.Running:
        if not control and not self.terminals:
            argv, control = (*SUPERVISE, *argv), True
        there = list(self._there(directory, (*self._limit(timeout_s), *argv)))
        if self.entrance is None and not control:
            there.insert(1, "-tt")
        command = self.way(there, terminal=not control)
        return process.start(command, stdout=stdout, stderr=stderr, control=control, limited=True)

    def shell(self, argv: Sequence[str], *, terminal: bool) -> tuple[str, ...]:
        inner = ("/bin/bash", "-l") if not argv else tuple(argv)
        there = self._there("/", inner) if self.entrance else super().shell(argv, terminal=terminal)
        return self.way(there, terminal=terminal)

    def open(self) -> None:
        """Nothing is kept open but the connection to the machine."""

    def close(self) -> None:
        if self.entrance is None:
            words = ("ssh", "-F", str(self.config), "-O", "exit", self.host)
            process.run(self.way(words), timeout_s=5 * self.timeout_factor)
