"""What the machine itself counted during a trial: read by vtax, outside of every environment, in a few milliseconds.

Disks and network interfaces are those with a device behind them, so that nothing counts twice (partitions, bridges).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vtax.facts.counters import IDLE, STEAL, stalled
from vtax.facts.sections import decimal, fields, present, whole

SECTOR_BYTES = 512  # of /proc/diskstats, whatever the disk's own are
CPUS = "sys/devices/system/cpu"


def machine_counters(cpus: Sequence[int] = (), root: Path = Path("/")) -> dict[str, float]:
    """Counters since the boot; `cpu_mhz` is the present mean clock of `cpus`, and the ticks that begin with `trial_`
    are of these CPUs alone. What is missing is absent."""
    stat = read(root / "proc/stat")
    known = ticks(stat, "cpu")
    mine = [ticks(stat, f"cpu{cpu}") for cpu in cpus]
    counted = bool(mine) and all(mine)
    swap = fields(read(root / "proc/vmstat"), " ")
    values: dict[str, object] = {
        "cpu_ticks": sum(known) if known else None,
        "busy_ticks": sum(known) - sum(known[place] for place in IDLE) if known else None,
        "steal_ticks": known[STEAL] if known else None,
        "trial_cpu_ticks": sum(map(sum, mine)) if counted else None,
        "trial_steal_ticks": sum(one[STEAL] for one in mine) if counted else None,
        "swap_in_pages": whole(swap.get("pswpin")),
        "swap_out_pages": whole(swap.get("pswpout")),
        **{f"psi_{name}_s": stalled(read(root / f"proc/pressure/{name}")) for name in ("cpu", "memory", "io")},
        **disk_bytes(root),
        **interface_bytes(root),
        **clock(root, cpus),
    }
    return {name: float(value) for name, value in present(values) if isinstance(value, (int, float))}


def cpu_counters(root: Path = Path("/")) -> dict[str, float]:
    """The ticks of all CPUs since the boot: all, those in which they worked (or were stolen), and the stolen ones; none
    where the kernel does not say."""
    known = ticks(read(root / "proc/stat"), "cpu")
    if not known:
        return {}
    idle = sum(known[place] for place in IDLE)
    return {"cpu_ticks": sum(known), "busy_ticks": sum(known) - idle, "steal_ticks": known[STEAL]}


def read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def ticks(stat: str, name: str) -> list[int]:
    """The ticks of a line of /proc/stat up to the stolen ones; none where the line is not there, or too short."""
    line = next((line for line in stat.splitlines() if line.startswith(f"{name} ")), "")
    counts = [whole(word) for word in line.split()[1 : STEAL + 2]]
    known = [count for count in counts if count is not None]
    return known if len(known) == STEAL + 1 else []


def disk_bytes(root: Path) -> dict[str, float]:
    """Bytes read from and written to all disks."""
    rows = [line.split() for line in read(root / "proc/diskstats").splitlines()]
    disks = [row for row in rows if len(row) > 9 and (root / "sys/block" / row[2] / "device").exists()]
    if not disks:
        return {}
    return {
        "disk_read_bytes": SECTOR_BYTES * sum(int(row[5]) for row in disks),
        "disk_written_bytes": SECTOR_BYTES * sum(int(row[9]) for row in disks),
    }


def interface_bytes(root: Path) -> dict[str, float]:
    """Bytes over all physical network interfaces."""
    places = [place.parent / "statistics" for place in (root / "sys/class/net").glob("*/device")]
    counts = [(whole(read(place / "rx_bytes")), whole(read(place / "tx_bytes"))) for place in places]
    known = [(received, sent) for received, sent in counts if received is not None and sent is not None]
    if not known:
        return {}
    return {"nic_received_bytes": sum(pair[0] for pair in known), "nic_sent_bytes": sum(pair[1] for pair in known)}


def clock(root: Path, cpus: Sequence[int]) -> dict[str, float]:
    """The present clock, and how often CPUs throttled themselves."""
    speeds = [decimal(read(root / CPUS / f"cpu{cpu}/cpufreq/scaling_cur_freq")) for cpu in cpus]
    hot = [whole(read(root / CPUS / f"cpu{cpu}/thermal_throttle/core_throttle_count")) for cpu in cpus]
    khz, events = [speed for speed in speeds if speed], [count for count in hot if count is not None]
    values: dict[str, float] = {}
    if khz:
        values["cpu_mhz"] = sum(khz) / len(khz) / 1000
    if events:
        values["throttle_events"] = sum(events)
    return values


GAUGES = frozenset({"cpu_mhz"})


def machine_delta(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """What was counted between two readings; the clock is that at the end."""
    return {name: value if name in GAUGES else value - before[name] for name, value in after.items() if name in before}
