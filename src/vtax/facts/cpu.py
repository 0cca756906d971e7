"""CPUs as /proc and /sys write them: lists such as `0-3,8`, and the blocks of /proc/cpuinfo."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vtax.facts.sections import decimal, fields, whole

SPAN = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", re.ASCII)


def cpu_list(text: str) -> tuple[int, ...]:
    """The CPUs of `0-1,4`, in order; empty for anything that is not such a list."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        match = SPAN.fullmatch(part.strip())
        if match is None:
            return ()
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > 1_000_000:
            return ()
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def model_values(text: str) -> dict[str, object]:
    """Model, vendor, flags, microcode and present clock of the first CPU in /proc/cpuinfo (x86 and Arm names)."""
    block = fields(text.split("\n\n")[0])
    return {
        "cpu_model": block.get("model name"),
        "cpu_vendor": block.get("vendor_id") or block.get("CPU implementer"),
        "cpu_family": whole(block.get("cpu family", "")),
        "cpu_flags": sorted((block.get("flags") or block.get("Features") or "").split()),
        "cpu_mhz": decimal(block.get("cpu MHz")),
        "microcode": block.get("microcode"),
    }


TOPOLOGY_FILES = tuple(
    f"/sys/devices/system/cpu/cpu[0-9]*/{name}"
    for name in (
        *("topology/core_id", "topology/physical_package_id"),
        *("cache/index3/size", "cache/index3/shared_cpu_list"),
    )
)
PLACE = re.compile(r"/sys/devices/system/cpu/cpu([0-9]{1,6})/(?:topology|cache)/(.+)")
CACHE = re.compile(r"([0-9]{1,9})([KM]?)", re.ASCII)
CACHE_UNIT = {"": 1, "K": 2**10, "M": 2**20}


def topology_values(files: Mapping[str, str], allowed: tuple[int, ...]) -> dict[str, object]:
    """Cores that the allowed CPUs belong to, and the bytes of all last caches that they share; from files in /sys."""
    about = _by_cpu(files)
    own = [about.get(cpu, {}) for cpu in allowed]
    cores = {(found.get("physical_package_id", ""), found["core_id"]) for found in own if "core_id" in found}
    behind = [size for cpus, size in last_caches(files).items() if set(cpus) & set(allowed)]
    return {"cores": len(cores) or None, "last_cache_bytes": sum(behind) or None}


def last_caches(files: Mapping[str, str]) -> dict[tuple[int, ...], int]:
    """The CPUs that share a last cache -> its bytes; from files in /sys."""
    caches = {}
    for cpu, found in _by_cpu(files).items():
        if size := CACHE.fullmatch(found.get("index3/size", "")):
            shared = cpu_list(found.get("index3/shared_cpu_list", "")) or (cpu,)
            caches[shared] = int(size[1]) * CACHE_UNIT[size[2]]
    return caches


def _by_cpu(files: Mapping[str, str]) -> dict[int, dict[str, str]]:
    """CPU -> name of a file about it -> its content."""
    about: dict[int, dict[str, str]] = {}
    for path, text in files.items():
        if match := PLACE.fullmatch(path):
            about.setdefault(int(match[1]), {})[match[2]] = text.strip()
    return about


def turbo(no_turbo: str, boost: str) -> str:
    """ "on" or "off", as intel_pstate or acpi-cpufreq reports; "" where neither does."""
    if no_turbo in ("0", "1"):
        return "off" if no_turbo == "1" else "on"
    return {"1": "on", "0": "off"}.get(boost, "")


def chosen(text: str) -> str:
    """The word in brackets of `always [madvise] never`; "" when none is."""
    match = re.search(r"\[([^\[\]\n]{1,200})\]", text)
    return "" if match is None else match[1]


def agreed(values: list[str]) -> str:
    """The value of all CPUs, or all different values."""
    return ", ".join(sorted(set(values)))
