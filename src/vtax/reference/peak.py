"""The theoretical peak of a machine: floating-point operations and bytes of memory a second. Pure.

    flop/s = cores x clock x operations of one core in one cycle (double precision)
    byte/s = channels x transfers a second x bytes of one transfer

Every factor that was not read from the machine is listed as an assumption. Operations per cycle: Agner Fog, "The
microarchitecture of Intel, AMD and VIA CPUs"; WikiChip for the number of 512-bit units.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from vtax.errors import EnvironmentMissing
from vtax.facts.dmi import MemoryDevice
from vtax.model.record import Record
from vtax.units import format_number

NAMED_CLOCK = re.compile(r"@ *([0-9.]+) *GHz")
CHANNEL = re.compile(r"(?:channel|chan|ch) *[-_ ]?([a-z0-9])(?![a-z0-9])|dimm[-_ ]?([a-z])[0-9]", re.IGNORECASE)
SOCKET = re.compile(r"(?:node|cpu|proc|socket|^p) *[-_ ]?([0-9])", re.IGNORECASE)
APPLE = "0x61"


class Peak(Record):
    """What the hardware could do at most, and the assumptions behind that number."""

    unit: str
    value: float  # of everything named in the formula
    formula: str
    assumptions: tuple[str, ...]


class CpuPeak(Peak):
    cores: int
    clock_hz: float
    clock_source: str
    flop_per_cycle: int

    @property
    def per_core(self) -> float:
        """flop/s of one core."""
        return self.clock_hz * self.flop_per_cycle


def cpu_peak(
    facts: Mapping[str, Any],
    *,
    cores: int | None = None,
    clock: tuple[float, str] | None = None,
    flop_per_cycle: int | None = None,
) -> CpuPeak:
    """The peak of `cores` cores (all that the facts name). Raises EnvironmentMissing for an unknown factor.

    `clock` is (Hz, where it is from); without it, the base clock in the model's name, then the kernel's.
    """
    assumptions = []
    if cores is None:
        cores, said = core_count(facts)
        assumptions.append(said)
    hertz, source = clock or named_clock(facts)
    assumptions.append(f"{hertz / 1e9:.2f} GHz: {source}")
    if flop_per_cycle is None:
        flop_per_cycle, said = operations_per_cycle(facts)
        assumptions.append(f"{flop_per_cycle} flop per cycle: {said}")
    else:
        assumptions.append(f"{flop_per_cycle} flop per cycle: as given")
    return CpuPeak(
        unit="flop/s",
        value=cores * hertz * flop_per_cycle,
        formula=f"{cores} cores x {hertz / 1e9:.2f} GHz x {flop_per_cycle} flop per cycle",
        assumptions=tuple(assumptions),
        cores=cores,
        clock_hz=hertz,
        clock_source=source,
        flop_per_cycle=flop_per_cycle,
    )


def core_count(facts: Mapping[str, Any]) -> tuple[int, str]:
    """Cores among the CPUs that may be used: two hardware threads of one core share its floating-point units."""
    usable = set(facts.get("cpus_usable", ()))
    known = [cpu for cpu in facts.get("cpus", ()) if cpu["id"] in usable]
    if not usable:
        raise EnvironmentMissing("the number of CPUs is not known here", remedy="--cores N")
    if any("core" not in cpu for cpu in known) or len(known) < len(usable):
        return len(usable), f"{len(usable)} CPUs, each counted as a core: the machine does not report which share one"
    cores = len({(cpu.get("socket", 0), cpu["core"]) for cpu in known})
    virtual = "; a virtual machine may show threads as cores" if facts.get("is_virtual") else ""
    return cores, f"{cores} cores under {len(usable)} CPUs{virtual}"


def named_clock(facts: Mapping[str, Any]) -> tuple[float, str]:
    """The base clock in the model's name, else what the kernel says now."""
    if match := NAMED_CLOCK.search(str(facts.get("cpu_model", ""))):
        return float(match[1]) * 1e9, "base clock, from the name of the CPU; with turbo it runs faster"
    if mhz := facts.get("cpu_mhz"):
        virtual = ", in a virtual machine that of the time-stamp counter" if facts.get("is_virtual") else ""
        return float(mhz) * 1e6, f"reported by the kernel at that moment{virtual}"
    raise EnvironmentMissing("the clock of the CPU is not known here", remedy='--clock "2.6 GHz", or --measure')


def operations_per_cycle(facts: Mapping[str, Any]) -> tuple[int, str]:
    """Double-precision operations of one core in one cycle, by its instructions, and why."""
    flags, vendor = set(facts.get("cpu_flags", ())), str(facts.get("cpu_vendor", ""))
    family, model = facts.get("cpu_family"), str(facts.get("cpu_model", ""))
    if "avx512f" in flags and vendor == "AuthenticAMD":
        if family is not None and family < 26:
            return 16, "AVX-512 in two passes of 256 bits (Zen 4), two units that multiply and add"
        return 32, "AVX-512, two units of 512 bits that multiply and add (Zen 5; 16 in its mobile parts)"
    if "avx512f" in flags:
        if "Xeon" in model or not model:
            return 32, "AVX-512, two units of 512 bits that multiply and add (some Xeons have one: then 16)"
        return 16, "AVX-512, one unit of 512 bits that multiplies and adds, as in CPUs that are not for servers"
    if "fma" in flags and "avx2" in flags:
        return 16, "AVX2 and FMA, two units of 256 bits that multiply and add (8 in Zen 1)"
    if "avx" in flags:
        return 8, "AVX, one addition and one multiplication of 256 bits"
    if "sse2" in flags:
        return 4, "SSE2, one addition and one multiplication of 128 bits"
    if "asimd" in flags:
        if vendor == APPLE:
            return 16, "NEON, four units of 128 bits that multiply and add"
        return 8, "NEON, two units of 128 bits that multiply and add"
    raise EnvironmentMissing("this CPU's operations per cycle are not known", remedy="--flop-per-cycle N")


def memory_peak(devices: Sequence[MemoryDevice], *, rate: float | None = None, channels: int | None = None) -> Peak:
    """The bandwidth of all channels, from the modules or from `rate` (transfers a second) and `channels`.

    Raises EnvironmentMissing where neither is known.
    """
    assumptions = []
    if rate is None:
        if not devices:
            raise EnvironmentMissing(
                "the firmware's table of memory modules is missing or not readable",
                detail="in virtual machines it has no rates, and elsewhere only root may read it",
                remedy='run this as root, or give --memory-rate "3200 MT/s" --channels 2',
            )
        rate = min(device.rate for device in devices)
        assumptions.append(f"{rate / 1e6:g} MT/s: the configured rate of the slowest of {len(devices)} modules")
    else:
        assumptions.append(f"{rate / 1e6:g} MT/s: as given")
    width = max((device.width_bits for device in devices), default=64)
    if not devices:
        assumptions.append("64 bits a channel: as in every DDR2 to DDR4 module, and both halves of one of DDR5")
    if channels is None:
        channels, said = channel_count(devices)
        assumptions.append(said)
    else:
        assumptions.append(f"{channels} channels: as given")
    return Peak(
        unit="byte/s",
        value=channels * rate * width / 8,
        formula=f"{channels} channels x {format_number(rate / 1e6)} MT/s x {width // 8} B",
        assumptions=tuple(assumptions),
    )


def channel_count(devices: Sequence[MemoryDevice]) -> tuple[int, str]:
    """Channels that have a module, by the names of the slots; without such names, every module counts as one."""
    if not devices:
        raise EnvironmentMissing("the number of memory channels is not known", remedy="--channels N")
    named = set()
    for device in devices:
        text = f"{device.bank} {device.locator}"
        channel, socket = CHANNEL.search(text), SOCKET.search(text)
        if channel is None:
            return len(devices), f"{len(devices)} channels: one for every module, because the slots name none"
        named.add((socket[1] if socket else "", (channel[1] or channel[2]).upper()))
    return len(named), f"{len(named)} channels: those that the slots of the modules name"
