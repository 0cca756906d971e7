"""ping of iputils, busybox, macOS and BSD: single answers, and the two closing lines, which are authoritative.

In other languages iputils translates the words around its numbers, not their order: the closing lines are then known by
their numbers, of which the loss has to fit the packets. Windows' ping is recognised to be refused.

Facts: `client_address` (where it is printed), `server_address`, `packets_sent`, `packets_received`. Series:
`round_trips` (the sequence number and the time of every answer).
"""

from __future__ import annotations

import re

from vtax.model.nodes import Scope
from vtax.model.reading import TimeSeries
from vtax.tools.commands import command_facts
from vtax.tools.ping.metrics import LOST, RTT_AVG, RTT_MAX, RTT_MDEV, RTT_MIN
from vtax.tools.reading import Line, Reading, Section, Value, near_miss

START = re.compile(r"^PING (\S{1,200}?):? \(?([0-9a-fA-F.:]{2,60})\)?.{0,60}?(\d{1,6})(?:\(\d{1,6}\))? (?:data )?bytes")
IPV6 = re.compile(  # of iputils: a blank before the bracket is newer
    r"^PING ([^\s()]{1,200}) ?\((?:[^\s()]{1,200} \()?([0-9a-fA-F.:]{2,60}(?:%[\w.-]{1,40})?)\)\)?"
    r"(?: from .{1,80}?:)? (\d{1,6}) data bytes$"
)
PING6 = re.compile(  # of BSD and macOS: bytes of data, source, destination
    r"^PING6\(\d{1,6}=\d{1,3}\+\d{1,3}\+(\d{1,6}) bytes\) ([0-9a-fA-F.:]{2,60})(?:%[\w.-]{1,40})?"
    r" --> (([0-9a-fA-F.:]{2,60})(?:%[\w.-]{1,40})?)$"
)
LOCAL = re.compile(r"^PING (\S{1,200}) ?\(([0-9a-fA-F.:]{2,60})\) .{0,60}?(\d{1,6})\(\d{1,6}\)\D")  # in any language
WINDOWS = re.compile(r"^[^\d\[]{4,60}(?:\S{1,200} )?\[?[\da-fA-F.:]{3,45}\]? \D{2,20} \d{1,5} \D{4,30}:$")
SOURCE = re.compile(r"^PING .{1,260} from ([0-9a-fA-F.:]{2,60})[ :]")
ANSWER = re.compile(r"^\d{1,6} bytes from .{1,300}icmp_seq=(\d{1,9}) .{0,60}time=(\d{1,9}(?:\.\d{1,6})?) ms")
COUNTS = re.compile(
    r"^(\d{1,12}) packets transmitted, (\d{1,12}) (?:packets )?received,"
    r"(?: \+?(\d{1,12}) (?:errors|duplicates|corrupted),){0,3}"
    r" {1,3}(\d{1,3}(?:\.\d{1,10})?)% packet loss(?:, time \d{1,12}ms|, \d{1,9} packets out of wait time)?$"
)
TIMES = re.compile(
    r"^(?:rtt|round-trip) min/avg/max(/mdev|/stddev|/std-dev)? = "
    r"(\d{1,9}\.\d{3})/(\d{1,9}\.\d{3})/(\d{1,9}\.\d{3})(?:/(\d{1,9}\.\d{3}|nan))? ms(?:, (?:pipe|ipg).{0,60})?$"
)
COUNTS_LOCAL = re.compile(  # English words are no translation: such a line is damaged
    r"^(?!.{0,60}(?:transmitted|received))"
    r"\D{0,40}(\d{1,12})[^\d%+]{2,60}(\d{1,12})[^\d%+]{2,60}?()(\d{1,3}(?:\.\d{1,10})?) ?%"
    r"[^\d%]{1,60}(?:\d{1,12} ?ms)?$"
)
TIMES_LOCAL = re.compile(
    r"^[^\d=]{0,40}min/avg/max(/mdev) = (\d{1,9}\.\d{3})/(\d{1,9}\.\d{3})/(\d{1,9}\.\d{3})/(\d{1,9}\.\d{3}) ms"
    r"(?:, .{0,60})?$"
)
STATISTICS = re.compile(r"^--- (\S{1,200}) ping6? statistics ---$")
FOREIGN = re.compile(r"^--- \S{1,200} (?!ping6? statistics ---$).{2,40} ---$")
SUMMARY = (RTT_MIN, RTT_AVG, RTT_MAX, RTT_MDEV)


def starts(line: str) -> bool:
    return line.startswith("PING") and any(known.match(line) for known in (START, IPV6, PING6, LOCAL))


def starts_windows(line: str) -> bool:
    """The first line of Windows' ping, in the languages that write the number of bytes behind the address."""
    return line.endswith(":") and "ping" in line.lower() and WINDOWS.match(line) is not None


def read_windows(section: Section) -> Reading:
    """A session of Windows' ping, which prints whole milliseconds: nothing is taken."""
    reading = Reading("ping", scope=Scope.PAIRS, nodes=("unknown", "unknown"))
    line = next((line.number for line in section.lines if starts_windows(line.text)), 0)
    reading.no_test = "this is ping of Windows, whose times are whole milliseconds: vtax does not read it"
    reading.refuse(line, "all values of this run", reading.no_test, 0)
    return reading


def read(section: Section) -> Reading:
    """One session."""
    lines = section.lines
    reading = Reading("ping", facts=command_facts(lines), scope=Scope.PAIRS)
    host = _peers(reading, lines)
    answers = [match for line in lines if (match := ANSWER.match(line.text))]
    if answers:
        rows = tuple((float(found[1]), float(found[2]) / 1000) for found in answers)
        reading.series["round_trips"] = TimeSeries(columns=("sequence", "rtt_s"), rows=rows)
    foreign = _foreign(lines)
    ends = [line for line in lines if (FOREIGN if foreign else STATISTICS).match(line.text)]
    counts = [(line, match) for line in lines if (match := (COUNTS_LOCAL if foreign else COUNTS).match(line.text))]
    times = [(line, match) for line in lines if (match := (TIMES_LOCAL if foreign else TIMES).match(line.text))]
    if foreign and (len(counts) != 1 or len(times) > 1):
        why = "its words are not English, and its closing lines are not recognised: run ping with LC_ALL=C"
        reading.refuse(foreign, "all values of this run", why, 0)
        return reading
    if len(ends) != 1 or len(counts) != 1 or len(times) > 1:
        why = "its closing lines appear twice" if counts else "it has no closing line: interrupted"
        reading.refuse(near_miss(lines, COUNTS, TIMES), "all values of this run", why, 0)
        return reading
    line, found = counts[0]
    sent, received, percent = int(found[1]), int(found[2]), float(found[4])
    if sent == 0 or received > sent or abs(percent - 100 * (1 - received / sent)) > 1.0:
        reading.refuse(line.number, line.text, f"{received} answers to {sent} packets are not {percent:g} % loss", 5)
        return reading
    reading.facts |= {"packets_sent": sent, "packets_received": received}
    labels = {"client": reading.nodes[0], "server": host}
    reading.values.append(Value(LOST, 1 - received / sent, line.number, labels))
    if received == 0:
        reading.ended = True
    elif not times:
        why = (
            "the closing line with the times is missing" if not foreign else "no closing line has times in a known form"
        )
        reading.refuse(near_miss(lines, TIMES), "round-trip times", why, 4)
    else:
        _round_trips(reading, *times[0], received, labels)
    return reading


def _foreign(lines: tuple[Line, ...]) -> int:
    """The line that shows that it is in another language; 0 where it is in English."""
    begin = next((line for line in lines if LOCAL.match(line.text)), None)
    if begin is None or any(COUNTS.match(line.text) for line in lines):
        return 0
    title = next((line.number for line in lines if FOREIGN.match(line.text)), 0)
    return title or (0 if START.match(begin.text) or IPV6.match(begin.text) else begin.number)


def _peers(reading: Reading, lines: tuple[Line, ...]) -> str:
    """Addresses and names of both ends; the server's name."""
    starts = [
        match.group(1, 2, 3)
        for line in lines
        if (match := IPV6.match(line.text) or START.match(line.text) or LOCAL.match(line.text))
    ]
    bsd = [match for line in lines if (match := PING6.match(line.text))]
    starts = starts or [match.group(3, 4, 1) for match in bsd]
    host = starts[0][0] if starts else "unknown"
    if starts:
        reading.params["bytes"] = int(starts[0][2])
        reading.facts["server_address"] = starts[0][1]
    sources = [match[1] for line in lines if (match := SOURCE.match(line.text))] or [match[2] for match in bsd]
    if sources:
        reading.facts["client_address"] = sources[0]
    client = sources[0] if sources else str(reading.facts.get("prompt_host", "unknown"))
    reading.nodes, reading.direction = (client, host), f"{client}>{host}"
    return host


def _round_trips(reading: Reading, line: Line, found: re.Match[str], received: int, labels: dict[str, str]) -> None:
    low, mean, high = (float(found[place]) for place in (2, 3, 4))
    if not low <= mean <= high:
        reading.refuse(line.number, line.text, "the mean is not between the fastest and the slowest", 4)
        return
    if found[5] == "nan" and received > 1:  # of one packet, some versions print no deviation
        reading.refuse(line.number, line.text, f"{received} round trips have a deviation", 4)
        return
    reading.ended = True
    for metric, text in zip(SUMMARY, found.group(2, 3, 4, 5), strict=True):
        if text and text != "nan" and float(text) > 0:  # 0.000 is a time below what ping prints: absent
            reading.values.append(Value(metric, float(text) / 1000, line.number, labels))
