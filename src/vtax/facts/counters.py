"""What may have disturbed a trial: counters read before and after it, cheaply, on every node.

Throttling and hits of the memory limit are the node's own (its control group); steal and swapping are of the whole
kernel that the node runs under, since nothing counts them per container.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from vtax.facts import cgroup
from vtax.facts.sections import END, PRELUDE, contents, decimal, fields, present, split, whole

SCRIPT = """\
section levels
cgroup_levels
section files
try grep -asE '^(cpu |pswpin|pswpout|thp_fault_alloc|balloon_|some |[0-9.]+ [0-9.]+| *[a-z][^ :]*:)' \\
  /proc/stat /proc/vmstat /proc/loadavg /proc/uptime /proc/pressure/cpu /proc/pressure/memory /proc/pressure/io \\
  /proc/net/dev
section clock
date +%s.%N
section cost
times
"""
STEAL = 7  # position in the `cpu` line of /proc/stat: user nice system idle iowait irq softirq steal
IDLE = (3, 4)  # and there: idle and iowait
DOUBT = "clock_doubt_s"
GAUGES = frozenset({"load1", "clock_offset_s", DOUBT, "collector_cpu_s"})
DEVICE = re.compile(r"^ *([^ :]+): *([0-9]+) +(?:[0-9]+ +){7}([0-9]+)", re.MULTILINE)
STALL = re.compile(r"^some .* total=([0-9]{1,19})$", re.MULTILINE)
TIMES = re.compile(r"([0-9]{1,9})m([0-9]{1,2}(?:\.[0-9]{1,9})?)s")
CLOCK = re.compile(r"[0-9]{1,12}\.[0-9]{9}", re.ASCII)


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
        **cgroup.cpu_time(groups),
        "steal_ticks": ticks[STEAL] if len(known) == STEAL + 1 else None,
        "cpu_ticks": sum(known) if len(known) == STEAL + 1 else None,
        "swap_in_pages": whole(swap.get("pswpin")),
        "swap_out_pages": whole(swap.get("pswpout")),
        "busy_ticks": busy(known),
        "huge_page_faults": whole(swap.get("thp_fault_alloc")),
        "balloon_pages": ballooned(swap),
        **{f"psi_{name}_s": stalled(files.get(f"/proc/pressure/{name}", "")) for name in ("cpu", "memory", "io")},
        **network_bytes(files.get("/proc/net/dev", "")),
        "uptime_s": decimal(files.get("/proc/uptime", "").partition(" ")[0]),
        "clock_s": float(parts["clock"]) if CLOCK.fullmatch(parts.get("clock", "")) else None,
        "collector_cpu_s": cost(parts.get("cost", "")),
        "load1": decimal(files.get("/proc/loadavg", "").partition(" ")[0]),
    }
    return {name: float(value) for name, value in present(values) if isinstance(value, (int, float))}


def busy(ticks: list[int]) -> int | None:
    """Ticks in which a CPU worked or was stolen."""
    return sum(ticks) - sum(ticks[place] for place in IDLE) if len(ticks) == STEAL + 1 else None


def ballooned(vmstat: Mapping[str, str]) -> int | None:
    """Pages that a balloon took or gave back; None where the kernel has none."""
    counts = [whole(vmstat.get(f"balloon_{what}")) for what in ("inflate", "deflate")]
    return None if None in counts else sum(count for count in counts if count is not None)


def stalled(text: str) -> float | None:
    """Seconds in which some process waited, from the first line of a file of /proc/pressure."""
    found = STALL.search(text)
    return None if found is None else int(found[1]) / 1e6


def network_bytes(text: str) -> dict[str, float]:
    """Bytes received and sent over all interfaces but the loopback, and over that alone."""
    found = [(name, int(received), int(sent)) for name, received, sent in DEVICE.findall(text)]
    if not found:
        return {}
    return {
        "network_received_bytes": sum(received for name, received, _ in found if name != "lo"),
        "network_sent_bytes": sum(sent for name, _, sent in found if name != "lo"),
        "loopback_bytes": sum(sent for name, _, sent in found if name == "lo"),
    }


def cost(text: str) -> float | None:
    """CPU seconds of the shell and its children, from the four times that the builtin `times` prints."""
    found = TIMES.findall(text)
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in found) if len(found) == 4 else None


def with_host_clock(values: Mapping[str, float], started: float, elapsed_s: float) -> dict[str, float]:
    """A reading with the host's clock next to the node's; it was taken within `elapsed_s` after `started`."""
    if "clock_s" not in values:
        return dict(values)
    middle, doubt = started + elapsed_s / 2, elapsed_s / 2
    host = {"host_clock_s": middle, DOUBT: doubt, "clock_offset_s": values["clock_s"] - middle}
    return {**values, **host}


def delta(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What was counted between two readings; a gauge is taken from the end, and doubts of both add up. Only what both
    readings have."""
    found = {name: value if name in GAUGES else value - before[name] for name, value in after.items() if name in before}
    if DOUBT in found:
        found[DOUBT] += before[DOUBT]
    return found
