"""Where the threads of a running machine may run: every virtual CPU on a CPU of its own, all others on the node's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from vtax.model.nodes import NodeShape


def pin(pid: int, threads: Sequence[int], cpus: Sequence[int]) -> tuple[int, ...]:
    """`threads` are those of the virtual CPUs, in order. Returns where each of them is."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # workers of the emulator come and go, and inherit where their maker may run
            os.sched_setaffinity(int(task.name), cpus)
    places = tuple(cpus[index % len(cpus)] for index in range(len(threads)))
    for thread, cpu in zip(threads, places, strict=True):
        os.sched_setaffinity(thread, {cpu})
    return places


def told(node: NodeShape, places: Sequence[int]) -> str:
    """The sentence for the cell's record."""
    virtual = ", ".join(f"{number} on CPU {cpu}" for number, cpu in enumerate(places))
    return f"{node.name}: virtual CPU {virtual}; emulator threads on CPU {','.join(map(str, node.cpu_ids))}"


def free(node: NodeShape) -> str:
    """The sentence where nothing was pinned."""
    return f"{node.name}: its virtual CPUs and its emulator run where the host puts them"
