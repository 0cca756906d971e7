"""The lines of iperf3's text that have a rate: intervals and closing lines."""

from __future__ import annotations

import re
from typing import NamedTuple

from vtax.tools.iperf3.session import SHORTEST_S
from vtax.tools.reading import Line

RATE = (
    r"^\[ {0,3}(\d{1,6}|SUM)\] {1,4}(\d{1,9}\.\d\d)- {0,4}(\d{1,9}\.\d\d) {1,4}sec {1,4}"
    r"(\d{1,12}(?:\.\d{1,3})?) ([KMGT]?)Bytes {1,4}(\d{1,12}(?:\.\d{1,3})?) ([KMGT]?)(bits|Bytes)/sec(?= |$)"
)
END = re.compile(RATE + r" {0,40}(.{0,120}?) {0,40}(sender|receiver) *$")
INTERVAL = re.compile(RATE + r" {0,40}((?:[\d.]{1,12} ms.{1,40}|\d{1,9}(?: +[\d.]{1,9} [KMGT]?Bytes)?)?) *$")
UDP = re.compile(r"^(\d{1,9}\.\d{3}) ms {1,4}(-?\d{1,12})/(\d{1,12}) \([\d.e+-]{1,12}%\)$")
BINARY = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
DECIMAL = {"": 0, "K": 3, "M": 6, "G": 9, "T": 12}  # exponents, so that no digit is lost


class Total(NamedTuple):
    """A closing line: stream, seconds, bit/s as printed, what stands behind the rate, and whose it is."""

    line: int
    stream: str
    seconds: float
    rate: float
    extra: str
    side: str
    fits: bool
    moved: float  # bytes


def total_of(line: Line, found: re.Match[str]) -> Total:
    """A match of `END` or `INTERVAL`, in base units."""
    seconds = float(found[3]) - float(found[2])
    moved = float(found[4]) * BINARY[found[5]] * 8
    rate = float(f"{found[6]}e{DECIMAL[found[7]]}") if found[8] == "bits" else float(found[6]) * BINARY[found[7]] * 8
    slack = 0.5 * 10.0 ** -len(found[4].partition(".")[2]) / max(float(found[4]), 1e-9)
    slack += 0.5 * 10.0 ** -len(found[6].partition(".")[2]) / max(float(found[6]), 1e-9)
    expected = moved / seconds if seconds > 0 else 0.0
    fits = seconds >= SHORTEST_S and abs(expected - rate) <= (slack + 0.01 / max(seconds, 0.01) + 0.002) * max(
        expected, rate
    )
    return Total(line.number, found[1], seconds, rate, found[9], found[10] if found.re is END else "", fits, moved / 8)
