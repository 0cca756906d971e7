"""wrk 4: requests to a web server for a time, by threads with connections of their own.

Facts: `connections`, `client_threads`, `operations` (without failed ones), `failed_operations`. A run in which no
request was answered has no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

from vtax.tools.commands import command_facts
from vtax.tools.reading import Line, Reading, Section, Value
from vtax.tools.wrk.metrics import FAILED, LATENCY_AVG, LATENCY_MAX, QUANTILES, REQUESTS_RATE, TRANSFER_RATE
from vtax.units import in_base_units

N = r"(\d{1,12}\.\d{2})"
TIME = rf"{N}(us|ms|s|m|h)"
LINES = {
    "start": re.compile(r"^Running (\d{1,9})([smh]) test @ (\S{1,2000})$"),
    "load": re.compile(r"^ {2}(\d{1,6}) threads and (\d{1,9}) connections$"),
    "latency": re.compile(rf"^ {{4}}Latency {{1,10}}{TIME} {{1,10}}{TIME} {{1,10}}{TIME} {{1,10}}\d{{1,3}}\.\d{{2}}%$"),
    "total": re.compile(rf"^ {{2}}(\d{{1,15}}) requests in {TIME}, \d{{1,12}}\.\d{{2}}[KMGTP]?B read$"),
    "rate": re.compile(rf"^Requests/sec: {{1,20}}{N}$"),
    "transfer": re.compile(rf"^Transfer/sec: {{1,20}}{N}([KMGTP]?)B$"),
    "status": re.compile(r"^ {2}Non-2xx or 3xx responses: (\d{1,15})$"),
    "sockets": re.compile(
        r"^ {2}Socket errors: connect (\d{1,15}), read (\d{1,15}), write (\d{1,15}), timeout (\d{1,15})$"
    ),
}
HEADS = ("Running ", "    Latency ", "Requests/sec:", "Transfer/sec:", "  Non-2xx", "  Socket errors:")
QUANTILE = re.compile(rf"^ {{4,5}}(\d{{1,3}})% {{1,10}}{TIME}$")
QUANTILES_BEGIN = "  Latency Distribution"
SECONDS = {
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
SIZES = {prefix: Fraction(1024**power) for power, prefix in enumerate(("", "K", "M", "G", "T", "P"))}
NEEDED = ("start", "load", "latency", "total", "rate", "transfer")
ROUNDING = 0.006  # of a time with two decimals
Found = Mapping[str, tuple[Line, re.Match[str]]]


def starts(line: str) -> bool:
    return line.startswith("Running ") and LINES["start"].match(line) is not None


def read(section: Section) -> Reading:
    """One run."""
    lines = section.lines
    reading = Reading("wrk", facts=command_facts(lines))
    hits = {name: [(ln, m) for ln in lines if (m := known.match(ln.text))] for name, known in LINES.items()}
    known_lines = {line.number for several in hits.values() for line, _ in several}
    if damaged := next((ln for ln in lines if ln.text.startswith(HEADS) and ln.number not in known_lines), None):
        reading.refuse(damaged.number, damaged.text, "not what wrk prints there", 0)
        return reading
    if wrong := [name for name, several in hits.items() if len(several) != 1 and (name in NEEDED or several)]:
        reading.refuse(0, "all values of this run", f"{len(hits[wrong[0]])} lines with its {wrong[0]}, and not one", 0)
        return reading
    found = {name: several[0] for name, several in hits.items() if several}
    requests, took_s, rate = int(found["total"][1][1]), _seconds(found["total"][1], 2), float(found["rate"][1][1])
    step = ROUNDING * float(SECONDS[found["total"][1][3]])
    if requests == 0 or rate == 0 or abs(requests / rate - took_s) > step:
        why = f"{requests} requests in {took_s:g} s are not {rate} a second"
        reading.refuse(found["rate"][0].number, "all values of this run", why, 0)
        return reading
    _settings(reading, found)
    reading.values += [*_rates(found), *_failed(reading, found, requests)]
    reading.ended = _quantiles(reading, lines)
    return reading


def _seconds(match: re.Match[str], group: int) -> float:
    """A time from the group with its number and the next one with its unit."""
    return in_base_units(float(match[group]), SECONDS[match[group + 1]])


def _settings(reading: Reading, found: Found) -> None:
    _, start = found["start"]
    _, load = found["load"]
    reading.params |= {"threads": int(load[1]), "connections": int(load[2]), "url": start[3]}
    reading.params["duration_s"] = int(start[1]) * int(SECONDS[start[2]])
    reading.facts |= {"client_threads": int(load[1]), "connections": int(load[2])}


def _rates(found: Found) -> Iterator[Value]:
    line, match = found["rate"]
    yield Value(REQUESTS_RATE, float(match[1]), line.number)
    line, match = found["transfer"]
    yield Value(TRANSFER_RATE, in_base_units(float(match[1]), SIZES[match[2]]), line.number)
    line, match = found["latency"]
    for metric, group in ((LATENCY_AVG, 1), (LATENCY_MAX, 5)):
        if float(match[group]) > 0:  # 0.00us is below what wrk prints: absent
            yield Value(metric, _seconds(match, group), line.number)


def _failed(reading: Reading, found: Found, requests: int) -> Iterator[Value]:
    """Lines about errors are only there when there were some. An answer with an error status is an answer, too."""
    status = int(found["status"][1][1]) if "status" in found else 0
    sockets = sum(map(int, found["sockets"][1].groups())) if "sockets" in found else 0
    reading.facts |= {"operations": requests - status, "failed_operations": status + sockets}
    places = [found[name][0].number for name in ("status", "sockets") if name in found]
    total = requests + sockets
    yield Value(FAILED, (status + sockets) / total, places[0] if len(places) == 1 else 0)


def _quantiles(reading: Reading, lines: tuple[Line, ...]) -> bool:
    """With --latency: four of them. Whether the run may count as complete."""
    if not any(line.text == QUANTILES_BEGIN for line in lines):
        return True
    several = [(line, match) for line in lines if (match := QUANTILE.match(line.text))]
    times = [_seconds(match, 2) for _, match in several]
    if [match[1] for _, match in several] != [*QUANTILES] or sorted(times) != times:
        reading.refuse(0, "quantiles of the latency", "they are not all there, once and in order", len(QUANTILES))
        return False
    reading.values += [
        Value(QUANTILES[match[1]], time_s, line.number)
        for (line, match), time_s in zip(several, times, strict=True)
        if time_s > 0
    ]
    return True
