"""Sizes, durations and rates: read from a study, printed for a person. Stored values are always in base units."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

BINARY = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SIZE = re.compile(r"^\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*+([A-Za-z]*+)\s*$")
LARGEST_BYTES = 2**62  # control groups write "no limit" beyond it
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
SHORT = {"byte/s": "B/s", "byte": "B", "1": ""}
PREFIXED = frozenset({"flop/s", "byte/s", "byte", "bit/s", "update/s", "op/s", "J", "W", "Hz"})  # take a k, M, G or T


def _scales() -> dict[str, tuple[str, Fraction]]:
    """A unit as a person writes it -> the base unit that stored values have, and how many of it one is."""
    sizes = {"byte": 1} | {unit: size for unit, size in (BINARY | DECIMAL).items() if unit}
    known = {unit: ("byte", Fraction(size)) for unit, size in sizes.items()}
    known |= {f"{unit}/s": ("byte/s", Fraction(size)) for unit, size in sizes.items()}
    times = {"s": 1, "ms": 10**3, "us": 10**6, "µs": 10**6, "μs": 10**6, "ns": 10**9}
    known |= {unit: ("s", Fraction(1, parts)) for unit, parts in times.items()}
    known |= {"min": ("s", Fraction(60)), "h": ("s", Fraction(3600))}
    for base in ("bit/s", "flop/s", "update/s", "op/s", "J", "W", "Hz"):
        for prefix, factor in (("", 1), ("k", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12)):
            known[prefix + base] = (base, Fraction(factor))
    known |= {f"{prefix}{base}": (base, part) for base in "JW" for prefix, part in SMALL_PARTS.items()}
    return known | {"1/s": ("1/s", Fraction(1)), "1": ("1", Fraction(1)), "%": ("1", Fraction(1, 100))}


SMALL_PARTS = {"m": Fraction(1, 10**3), "u": Fraction(1, 10**6), "µ": Fraction(1, 10**6)}
SCALES = _scales()
AMBIGUOUS = {  # what some write for a thousand and others for 1024, or for bits and for bytes
    **dict.fromkeys(("K", "KB"), "kB (1000 bytes) or KiB (1024 bytes)"),
    **dict.fromkeys(("K/s", "KB/s", "KBps", "kBps"), "kB/s (1000 bytes) or KiB/s (1024 bytes)"),
    **dict.fromkeys(("MBps", "Mb/s", "Mbps"), "MB/s (bytes) or Mbit/s (bits)"),
    **dict.fromkeys(("GBps", "Gb/s", "Gbps"), "GB/s (bytes) or Gbit/s (bits)"),
    **dict.fromkeys(("m", "M", "G"), "a whole unit, such as min, MB or GB"),
}


def base_unit(unit: str) -> tuple[str, Fraction]:
    """The base unit that values in `unit` are stored in, and the factor. A unit that is not known is its own.

    Raises ValueError for a unit that has two meanings.
    """
    if unit in AMBIGUOUS:
        raise ValueError(f'"{unit}" has more than one meaning; write {AMBIGUOUS[unit]}')
    return SCALES.get(unit, (unit, Fraction(1)))


def in_base_units(value: float, factor: Fraction) -> float:
    """A value in base units, rounded once: 3 µs are 3e-06 s, not 3.0000000000000005e-06."""
    return float(Fraction(value) * factor)


SPENT = ("s", "J")  # units of what is spent, on an operation or so: s/byte
MANY = ("byte", "bit", "flop", "update")  # of these, what 10⁹ cost is shown


def parse_bytes(text: str | int) -> int:
    """Bytes from `"512 MiB"`, `"2 GB"` or a plain number. Raises ValueError with the allowed units."""
    if isinstance(text, int):
        if not 0 < text < LARGEST_BYTES:
            raise ValueError("a size is larger than zero" if text <= 0 else "no machine has that many bytes")
        return text
    units = BINARY | DECIMAL
    match = SIZE.match(text)
    if match is None or match[2] not in units:
        raise ValueError(f'"{text}" is not a size; write a number and one of {", ".join(u for u in units if u)}')
    size = Fraction(match[1]) * units[match[2]]  # exact: 1.005 kB are 1005 bytes
    if size < 1 or size.denominator != 1 or size >= LARGEST_BYTES:
        raise ValueError(f'"{text}" is not a whole number of bytes above zero, or more than any machine has')
    return int(size)


def parse_seconds(text: str | float) -> float:
    """Seconds from `"90 s"`, `"10 min"`, `"2 h"` or a plain number. Raises ValueError with the allowed units."""
    if isinstance(text, (int, float)):
        return float(text)
    match = SIZE.match(text)
    if match is None or match[2] not in SECONDS:
        raise ValueError(f'"{text}" is not a duration; write a number and one of {", ".join(u for u in SECONDS if u)}')
    return float(match[1]) * SECONDS[match[2]]


def format_bytes(size: int) -> str:
    """A memory or disk size, in the largest binary unit that keeps it exact to two decimals: `1.5 GiB`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= BINARY[unit]:
            return f"{size / BINARY[unit]:.2f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{size} B"


def format_seconds(seconds: float) -> str:
    """A duration for a progress line: `41 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def scale_of(magnitude: float, unit: str) -> tuple[float, str]:
    """The factor and the scaled unit in which `magnitude` reads well: (1e9, "Gflop/s").

    Rates and sizes take decimal prefixes, durations go down to ns; fractions, plain counts and the units of a user's
    own metrics ("tokens/s") stay as they are.
    """
    size = abs(magnitude)
    short = SHORT.get(unit, unit)
    if unit == "1" or size == 0 or not math.isfinite(size):
        return 1.0, short
    what, _, of = unit.partition("/")
    if what in SPENT and of in MANY:
        return 1e-9, f"{what}/G{SHORT.get(of, of)}"
    if what in SPENT and (of or what == "s" or size < 1):
        factor, prefix = next(((f, p) for f, p in SMALL if size >= f), SMALL[-1])
    elif unit not in PREFIXED:
        return 1.0, short
    else:
        factor, prefix = next(((f, p) for f, p in PREFIXES if size >= f), PREFIXES[-1])
    return factor, prefix + short


def format_number(value: float, digits: int = 4) -> str:
    """`value` to `digits` significant figures, without an exponent where none is usual."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits - 1}e}"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # of the rounded value: 9.9996 becomes 10.00
    return f"{value:,.{max(0, digits - 1 - exponent)}f}"


def format_quantity(value: float, unit: str, digits: int = 4) -> str:
    """A value with its scaled unit: `61.21 Gflop/s`, `10.87 µs`, `0.02`."""
    factor, scaled = scale_of(value, unit)
    return f"{format_number(value / factor, digits)} {scaled}".rstrip()


def signed_quantity(value: float, unit: str) -> str:
    """A difference with its scaled unit: `+1.2 ms`, `-0.02`."""
    factor, scaled = scale_of(abs(value), unit)
    return f"{value / factor:+.3g} {scaled}".rstrip()


def format_looks(looks: Sequence[int]) -> str:
    """The rounds after which a campaign is analysed: `6, 10, 16 rounds`, `every round from 6 to 60`."""
    if len(looks) > 2 and list(looks) == list(range(looks[0], looks[-1] + 1)):
        return f"every round from {looks[0]} to {looks[-1]}"
    return f"{', '.join(map(str, looks))} rounds"
