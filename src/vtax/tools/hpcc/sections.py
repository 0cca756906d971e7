"""What the tests of hpcc print in their own sections, above the summary: it confirms the summary, or contradicts it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vtax.tools.hpcc.metrics import Figure
from vtax.tools.hpcc.systems import System
from vtax.tools.reading import Line

SECTION = re.compile(r"^(Begin|End) of (\w{1,40}) section\.$")
LAXER = 2.0  # the summary has the mean time of the passes, a row that of one
NUM = r"(\d{1,20}(?:\.\d{1,20})?(?:e[+-]\d\d)?)"
TRIPLE = rf" {{1,10}}{NUM} / {{1,10}}{NUM} / {{1,10}}{NUM} "
MESSAGE = {
    "PingPongLatency": (re.compile(rf"^Latency +min / avg / max:{TRIPLE}msecs$"), 1e3),
    "PingPongBandwidth": (re.compile(rf"^Bandwidth +min / avg / max:{TRIPLE}MByte/s$"), 1e-3),
}
RING = re.compile(rf"^On (naturally|randomly) +ordered ring: latency= +{NUM} msec, bandwidth= +{NUM} MB/s$")
TRANSPOSED = re.compile(r"^WALL +((?:\d{1,9} +){6})(\d{1,9}\.\d\d) (?:PASSED|FAILED) +(\d{1,9}\.\d{3}) +\S{1,12}$")


class Said(NamedTuple):
    """A number as the section of its test printed it, half of its last digit, and its line."""

    value: float
    half: float
    line: int


def said(line: int, text: str, scale: float = 1.0) -> Said:
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2]) - (int(exponent) if exponent else 0)
    return Said(float(text) * scale, 0.5001 * 10.0**-digits * scale, line)


def sections_of(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines of every test's section, by its name."""
    found: dict[str, list[Line]] = {}
    name = ""
    for line in lines:
        if mark := SECTION.match(line.text):
            name = mark[2] if mark[1] == "Begin" else ""
            found.setdefault(mark[2], [])
        elif name:
            found[name].append(line)
    return found


def counterpart(figure: Figure, body: Mapping[str, list[Line]], solved: list[System]) -> Said | None:
    """What the section of a test printed for the same figure; None when it cannot be found there."""
    key = figure.key
    if key.startswith("HPL_"):
        good = [one for one in solved if not one.problem]
        if not good:
            return None
        best = max(good, key=lambda one: one.flop_rate)
        if key == "HPL_time":
            return Said(best.time_s, 0.01 + 6e-4 * best.time_s, best.line)
        return Said(best.flop_rate / 1e12, 6e-4 * best.flop_rate / 1e12, best.line)
    name = re.sub(r"_(?:Gflops|GUPs|GBs|GBytes|usec|Copy|Scale|Add|Triad)$", "", key)
    if key.startswith("PTRANS_"):
        return _transposed(key, body.get("PTRANS", []))
    if "PingPong" in key or "Ring" in key:
        return _message(key, body.get("LatencyBandwidth", []))
    kernel = key.rpartition("_")[2] if "STREAM" in key else ""
    return _alone(key, kernel, body.get(name, []))


def _transposed(key: str, lines: list[Line]) -> Said | None:
    """Of each configuration of PTRANS the slowest pass counts, and of several configurations the fastest."""
    passes: dict[tuple[str, ...], list[tuple[Said, Said]]] = {}
    for line in lines:
        if match := TRANSPOSED.match(line.text):
            both = (said(line.number, match[3]), said(line.number, match[2]))
            passes.setdefault(tuple(match[1].split()), []).append(both)
    slowest = [min(several) for several in passes.values()]
    if not slowest:
        return None
    rate, time_s = max(slowest)
    return rate if key == "PTRANS_GBs" else time_s._replace(half=LAXER * max(time_s.half, time_s.value))


def completed(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The sections that have both their first and their last line, once each."""
    marks = [found.group(1, 2) for line in lines if (found := SECTION.match(line.text))]
    whole = {name for _, name in marks if marks.count(("Begin", name)) == 1 and marks.count(("End", name)) == 1}
    return {name: text for name, text in sections_of(lines).items() if name in whole}


def _alone(key: str, kernel: str, lines: list[Line]) -> Said | None:
    """The figure of one test in its own section."""
    of = {"Gflops": "Gflop/s", "GUPs": "GUP/s"}.get(key.rpartition("_")[2], f"{kernel} GB/s")
    if key.startswith("Star"):
        patterns = [rf"^Average {re.escape(of)} {NUM}$"]
    elif key.startswith("Single"):
        patterns = [rf"^Single (?:DGEMM |FFT |STREAM )?{re.escape(of)} {NUM}$"]
    else:
        patterns = [rf"^{NUM} Billion\(10\^9\) Updates    per second \[GUP/s\]$", rf"^Gflop/s: +{NUM}$"]
    found = [
        (line, match) for line in lines for pattern in patterns if (match := re.match(pattern, line.text)) is not None
    ]
    return said(found[0][0].number, found[0][1][1]) if len(found) == 1 else None


def _message(key: str, lines: list[Line]) -> Said | None:
    """Latency and bandwidth from "Detailed benchmark results"."""
    starts = [place for place, line in enumerate(lines) if line.text.startswith("Detailed benchmark results")]
    if len(starts) != 1:
        return None
    detail = lines[starts[0] : starts[0] + 8]
    if "Ring" in key:
        kind = "naturally" if key.startswith("Naturally") else "randomly"
        found = [(line, match) for line in detail if (match := RING.match(line.text)) and match[1] == kind]
        if len(found) != 1:
            return None
        place, scale = (2, 1e3) if "Latency" in key else (3, 1e-3)
        return said(found[0][0].number, found[0][1][place], scale)
    pattern, scale = next(known for name, known in MESSAGE.items() if name in key)
    triples = [(line, match) for line in detail if (match := pattern.match(line.text))]
    place = {"Min": 1, "Avg": 2, "Max": 3}[key[:3]]
    return said(triples[0][0].number, triples[0][1][place], scale) if len(triples) == 1 else None
