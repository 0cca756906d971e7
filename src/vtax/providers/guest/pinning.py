"""Where the threads of a running machine may run: every virtual CPU on its own CPU, all others on the node's CPUs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from vtax.model.nodes import NodeShape

PROC = Path("/proc")


def pin(pid: int, threads: Sequence[int], cpus: Sequence[int], helpers: Sequence[int] = ()) -> tuple[int, ...]:
    """`threads` are those of the virtual CPUs, in order; `helpers` work for the process but are not its threads.
    Returns the CPU of each virtual CPU."""
    for task in (*tasks(pid), *helpers):
        with suppress(ProcessLookupError):  # workers of the emulator come and go, and inherit where their maker may run
            os.sched_setaffinity(task, cpus)
    places = tuple(cpus[index % len(cpus)] for index in range(len(threads)))
    for thread, cpu in zip(threads, places, strict=True):
        os.sched_setaffinity(thread, {cpu})
    return places


def tasks(pid: int) -> tuple[int, ...]:
    """All threads of a process."""
    return tuple(int(task.name) for task in (PROC / str(pid) / "task").iterdir())


def vhost_workers(pid: int) -> tuple[int, ...]:
    """The tasks that carry the network frames of a process in the kernel: tasks of the process, or before Linux 6.4
    kernel threads. Both are named after the thread that asked for them."""
    own = tasks(pid)
    names = {f"vhost-{task}" for task in own}
    places = [PROC / str(pid) / "task" / str(task) for task in own]
    places += PROC.glob("[0-9]*")
    return tuple(sorted({int(place.name) for place in places if _name(place) in names}))


def _name(place: Path) -> str:
    try:
        return (place / "comm").read_text().strip()
    except OSError:
        return ""  # gone meanwhile


def pinned_sentence(node: NodeShape, places: Sequence[int]) -> str:
    """The sentence for the cell's record."""
    virtual = ", ".join(f"{number} on CPU {cpu}" for number, cpu in enumerate(places))
    return f"{node.name}: virtual CPU {virtual}; emulator threads on CPU {','.join(map(str, node.cpu_ids))}"


def unpinned_sentence(node: NodeShape) -> str:
    """The sentence where nothing was pinned."""
    return f"{node.name}: its virtual CPUs and its emulator run where the host puts them"
