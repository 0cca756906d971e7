"""What short paths through the kernel cost on one CPU, and how late a process that sleeps wakes up."""

from __future__ import annotations

from vtax.model.metric import Kind, Metric

PATHS = {  # operation -> what one is
    "getpid": "the shortest system call",
    "read": "a read of one byte from /dev/zero",
    "mmap": "mapping and unmapping 64 KiB that are not touched",
    "page_fault": "the first touch of a page of anonymous memory",
    "pipe_switch": "a byte through a pipe to another process on the same CPU, which is a context switch",
    "futex_switch": "waking another process on the same CPU with a futex and waiting for it, which is a context switch",
    "fork_exec": "fork, exec of a small static program, and wait until it ended",
}
LATE = {
    "p50": ("wakeup_late_p50", "half of the sleeps of 1 ms ended at most so long after their time"),
    "p99": ("wakeup_late_p99", "99 % of the sleeps of 1 ms ended at most so long after their time"),
    "p99.9": ("wakeup_late_p99.9", "99.9 % of the sleeps of 1 ms ended at most so long after their time"),
    "most": ("wakeup_late_max", "the latest end of a sleep of 1 ms after its time"),
}
OPERATIONS = {
    name: Metric(name=name, unit="s", kind=Kind.COST, primary=name in ("getpid", "pipe_switch"), meaning=meaning)
    for name, meaning in PATHS.items()
}
WAKEUPS = {
    key: Metric(name=name, unit="s", kind=Kind.LATENCY_QUANTILE, meaning=meaning)
    for key, (name, meaning) in LATE.items()
}
METRICS = (*OPERATIONS.values(), *WAKEUPS.values())
