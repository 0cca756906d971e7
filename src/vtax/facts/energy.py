"""Energy that the processor packages and their memory took, counted by RAPL in files of `powercap`.

The files say microjoules and begin again at zero after `max_energy_range_uj`, on some machines after minutes. Only root
may read them. A zone "psys" (the whole board), and those inside a package but for its memory, would count twice.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from vtax.facts.sections import whole

POWERCAP = Path("/sys/class/powercap")
ZONE = re.compile(r"intel-rapl:[0-9]+(:[0-9]+)?")  # of Intel and AMD; those of intel-rapl-mmio are the same packages
COUNTED = re.compile(r"package-[0-9]+(-die-[0-9]+)?|dram")
OFTEN_S = 30.0  # the smallest ranges are 65 kJ: 2 kW would go round in that time


class Zone(NamedTuple):
    """What a zone counted, and where it begins again; microjoules."""

    energy_uj: int
    range_uj: int


def zones(powercap: Path) -> dict[str, Zone]:
    """The zones that together are all processors and their memory, by their directories; none where one of them cannot
    be read."""
    found = {}
    for place in sorted(powercap.glob("intel-rapl:*")):
        if not ZONE.fullmatch(place.name) or not COUNTED.fullmatch(_read(place / "name").strip()):
            continue
        energy, largest = whole(_read(place / "energy_uj")), whole(_read(place / "max_energy_range_uj"))
        if energy is None or largest is None:
            return {}
        found[place.name] = Zone(energy, largest)
    return found if any(":" not in name.partition(":")[2] for name in found) else {}


def added_j(before: Mapping[str, Zone], after: Mapping[str, Zone]) -> float | None:
    """What was counted between two readings less than one range apart; None where a zone came or went."""
    if not before or before.keys() != after.keys():
        return None
    steps = (after[name].energy_uj - zone.energy_uj for name, zone in before.items())
    ranges = (zone.range_uj for zone in before.values())
    return sum(step if step >= 0 else step + range_ for step, range_ in zip(steps, ranges, strict=True)) / 1e6


class EnergyMeter:
    """Adds up what the zones count, and reads them often enough to see them begin again."""

    def __init__(self, powercap: Path, often_s: float = OFTEN_S) -> None:
        self.powercap, self.often_s = powercap, often_s
        self.last = zones(powercap)
        self.total_j: float | None = 0.0 if self.last else None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True) if self.last else None
        if self.thread:
            self.thread.start()

    def stop(self) -> float | None:
        """The energy since the beginning, in J; None where nothing counts it."""
        self.over.set()
        if self.thread:
            self.thread.join()
        self._add()
        return self.total_j

    def _watch(self) -> None:
        while not self.over.wait(self.often_s):
            self._add()

    def _add(self) -> None:
        now = zones(self.powercap) if self.total_j is not None else {}
        step = added_j(self.last, now)
        self.total_j = None if step is None or self.total_j is None else self.total_j + step
        self.last = now


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
