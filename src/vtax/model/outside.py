"""What this machine can count of a node from outside while a command runs there: events of the kernel and of
processors, and the peak of its memory."""

from __future__ import annotations

from vtax.model.metric import Kind, Metric

MEMORY_PEAK = "memory_peak"
HARDWARE, SOFTWARE = 0, 1
# The type and number of each event, as in linux/perf_event.h, and what it is.
EVENTS: dict[str, tuple[int, int, str]] = {
    "cycles": (HARDWARE, 0, "cycles of processors"),
    "instructions": (HARDWARE, 1, "instructions that processors executed"),
    "cache-references": (HARDWARE, 2, "accesses to the last cache"),
    "cache-misses": (HARDWARE, 3, "accesses that the last cache did not have"),
    "branches": (HARDWARE, 4, "branches that processors executed"),
    "branch-misses": (HARDWARE, 5, "branches that processors predicted wrongly"),
    "task-clock": (SOFTWARE, 1, "ns in which a process of the node ran"),
    "page-faults": (SOFTWARE, 2, "page faults"),
    "context-switches": (SOFTWARE, 3, "times that a process was taken off its CPU"),
    "cpu-migrations": (SOFTWARE, 4, "times that a process changed its CPU"),
    "minor-faults": (SOFTWARE, 5, "page faults without a read"),
    "major-faults": (SOFTWARE, 6, "page faults that read a disk"),
}
SEEN = "of the nodes, as this machine sees them from outside"


def metric_of(name: str) -> Metric:
    """The metric of an event, or of the memory's peak."""
    if name == MEMORY_PEAK:
        meaning = "most memory that control groups of the nodes had at once during the run, page cache included"
        return Metric(name=name, unit="byte", kind=Kind.COST, meaning=meaning)
    return Metric(name=name, unit="1", kind=Kind.COUNT, meaning=f"{EVENTS[name][2]}, {SEEN}")
