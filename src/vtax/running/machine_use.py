"""What the whole machine spent while one step of a trial ran: raw counts, kept in the trial's record.

vtax's own share is counted next to them: this process, its SSH connections, and, where nodes are behind SSH, the
clients that it started meanwhile. Where a command of a node is a child of vtax (the host), its children are what is
measured, so that only this process counts.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from vtax.facts import energy
from vtax.facts.machine import cpu_counters
from vtax.transport.base import Transport
from vtax.transport.ssh import SshTransport

ROOT = Path("/")
CONNECTION = re.compile(rb"ssh: \S{1,200}/c-\S{1,200} \[mux\]")  # the title that OpenSSH gives a shared connection


@contextlib.contextmanager
def counting(transports: Sequence[Transport], root: Path = ROOT) -> Iterator[dict[str, float]]:
    """What the machine counts until the end, in a dictionary that is filled then. What nothing counts is absent.

    `transports` are those of the commands that run meanwhile.
    """
    counted: dict[str, float] = {}
    clients = bool(transports) and all(isinstance(one, SshTransport) for one in transports)
    connections = connections_of(root / "proc")
    meter = energy.EnergyMeter(root / energy.POWERCAP.relative_to("/"))
    began, own_s, before = time.monotonic(), _own_s(connections, clients=clients), cpu_counters(root)
    try:
        yield counted
    finally:
        after, now_s, ended = cpu_counters(root), _own_s(connections, clients=clients), time.monotonic()
        counted |= {name: value - before[name] for name, value in after.items() if name in before}
        counted |= {"seconds": ended - began, "vtax_cpu_s": max(0.0, now_s - own_s)}
        used_j = meter.stop()
        counted |= {} if used_j is None else {"energy_j": used_j}


def connections_of(proc: Path) -> tuple[Path, ...]:
    """Where the kernel tells what the processes of this user's shared SSH connections have used."""
    found = []
    for place in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone meanwhile
            if CONNECTION.match((place / "cmdline").read_bytes()) and place.stat().st_uid == os.geteuid():
                found.append(place / "schedstat")
    return tuple(found)


def _own_s(connections: Sequence[Path], *, clients: bool) -> float:
    """CPU time of vtax's own processes so far."""
    several = [resource.getrusage(resource.RUSAGE_SELF)]
    several += [resource.getrusage(resource.RUSAGE_CHILDREN)] if clients else []
    return sum(one.ru_utime + one.ru_stime for one in several) + sum(map(_spent_s, connections))


def _spent_s(schedstat: Path) -> float:
    """The first number is the time that a process ran, in ns."""
    try:
        return int(schedstat.read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
