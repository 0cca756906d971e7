"""What the whole machine spent while one step of a trial ran: raw counts, kept in the trial's record.

vtax's own share is counted next to them: this process, its SSH connections, and, where nodes are behind SSH, the
clients that it started meanwhile. Where a command of a node is a child of vtax (the host), its children are what is
measured, so that only this process counts.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from vtax.facts import energy
from vtax.facts.machine import cpu_counters
from vtax.transport.base import Transport
from vtax.transport.ssh import SshTransport

ROOT = Path("/")
_connections: dict[tuple[Path, str], Path] = {}  # control socket -> the process in /proc, to be looked for only once


@contextlib.contextmanager
def counting(transports: Sequence[Transport], root: Path = ROOT) -> Iterator[dict[str, float]]:
    """What the machine counts until the end, in a dictionary that is filled then. What nothing counts is absent.

    `transports` are those of the commands that run meanwhile.
    """
    counted: dict[str, float] = {}
    behind = [one for one in transports if isinstance(one, SshTransport)]
    clients = bool(transports) and len(behind) == len(transports)
    connections = [found for one in behind if (found := connection_of(one, root / "proc")) is not None]
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


def connection_of(transport: SshTransport, proc: Path) -> Path | None:
    """The process of this user that holds the shared connection to a node, in `proc`; None where none is seen."""
    title = f"ssh: {transport.config.parent}/c-{transport.host} [mux]".encode()  # as OpenSSH calls it

    def holds(place: Path) -> bool:
        try:
            return (place / "cmdline").read_bytes().startswith(title) and place.stat().st_uid == os.geteuid()
        except OSError:  # gone meanwhile
            return False

    key = (transport.config, transport.host)
    known = _connections.get(key)
    if known is None or known.parent != proc or not holds(known):
        _connections.pop(key, None)
        known = next((place for place in proc.glob("[0-9]*") if holds(place)), None)
    if known is not None:
        _connections[key] = known
    return known


def _own_s(connections: Sequence[Path], *, clients: bool) -> float:
    """CPU time of vtax's own processes so far."""
    several = [resource.getrusage(resource.RUSAGE_SELF)]
    several += [resource.getrusage(resource.RUSAGE_CHILDREN)] if clients else []
    return sum(one.ru_utime + one.ru_stime for one in several) + sum(
        _spent_s(place / "schedstat") for place in connections
    )


def _spent_s(schedstat: Path) -> float:
    """The first number is the time that a process ran, in ns."""
    try:
        return int(schedstat.read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
