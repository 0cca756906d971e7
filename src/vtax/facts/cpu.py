"""CPUs as /proc and /sys write them: lists such as `0-3,8`, and the blocks of /proc/cpuinfo."""

from __future__ import annotations

import re

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


def chosen(text: str) -> str:
    """The word in brackets of `always [madvise] never`; "" when none is."""
    match = re.search(r"\[([^\]\n]+)\]", text)
    return "" if match is None else match[1]


def agreed(values: list[str]) -> str:
    """What all CPUs say, or all the different things that they say."""
    return ", ".join(sorted(set(values)))
