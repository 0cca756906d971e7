"""What may have disturbed a trial: counters read before and after it, cheaply, on every node.

Throttling and hits of the memory limit are the node's own (its control group); steal and swapping are of the whole
kernel that the node runs under, since nothing counts them per container.
"""

from __future__ import annotations

from collections.abc import Mapping

from vtax.facts import cgroup
from vtax.facts.sections import END, PRELUDE, contents, decimal, fields, present, split, whole

SCRIPT = """\
section levels
cgroup_levels
section files
try grep -asE '^(cpu |pswpin|pswpout|[0-9.]+ [0-9.]+ [0-9.]+ )' /proc/stat /proc/vmstat /proc/loadavg
"""
STEAL = 7  # position in the `cpu` line of /proc/stat: user nice system idle iowait irq softirq steal
GAUGES = frozenset({"load1"})


def counters_script() -> str:
    """The script; its cost is that of a handful of short processes."""
    return PRELUDE + cgroup.SHELL + SCRIPT + END


def parse_counters(text: str) -> dict[str, float]:
    """Counters since the node began (`load1` is the present load). What is missing is absent."""
    parts = split(text)
    groups, files = cgroup.levels(parts.get("levels", "")), contents(parts.get("files", ""))
    ticks = [whole(word) for word in files.get("/proc/stat", "").removeprefix("cpu ").split()]
    swap = fields(files.get("/proc/vmstat", ""), " ")
    known = [tick for tick in ticks[: STEAL + 1] if tick is not None]
    values: dict[str, object] = {
        **cgroup.throttling(groups),
        **cgroup.memory_pressure(groups),
        "steal_ticks": ticks[STEAL] if len(known) == STEAL + 1 else None,
        "cpu_ticks": sum(known) if len(known) == STEAL + 1 else None,
        "swap_in_pages": whole(swap.get("pswpin")),
        "swap_out_pages": whole(swap.get("pswpout")),
        "load1": decimal(files.get("/proc/loadavg", "").partition(" ")[0]),
    }
    return {name: float(value) for name, value in present(values) if isinstance(value, (int, float))}


def delta(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What was counted between two readings; a gauge is taken from the end. Only what both readings have."""
    return {name: value if name in GAUGES else value - before[name] for name, value in after.items() if name in before}
