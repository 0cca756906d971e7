"""ping of iputils, busybox, macOS and BSD: the two closing lines, which are authoritative."""

from __future__ import annotations

import re

from vtax.model.nodes import Scope
from vtax.tools.commands import command_facts
from vtax.tools.ping.benchmark import LOST, RTT_AVG, RTT_MAX, RTT_MDEV, RTT_MIN
from vtax.tools.reading import Reading, Section, Value

START = re.compile(r"^PING (\S{1,200}?):? \(?([0-9a-fA-F.:]{2,60})\)?.{0,60}?(\d{1,6})(?:\(\d{1,6}\))? (?:data )?bytes")
SOURCE = re.compile(r"^PING .{1,260} from ([0-9a-fA-F.:]{2,60})[ :]")
COUNTS = re.compile(
    r"^(\d{1,12}) packets transmitted, (\d{1,12}) (?:packets )?received,(?: \+(\d{1,12}) (?:errors|duplicates),)?"
    r" {1,3}(\d{1,3}(?:\.\d{1,10})?)% packet loss(?:, time \d{1,12}ms)?$"
)
TIMES = re.compile(
    r"^(?:rtt|round-trip) min/avg/max(/mdev|/stddev|/std-dev)? = "
    r"(\d{1,9}\.\d{3})/(\d{1,9}\.\d{3})/(\d{1,9}\.\d{3})(?:/(\d{1,9}\.\d{3}|nan))? ms(?:, (?:pipe|ipg).{0,60})?$"
)
STATISTICS = re.compile(r"^--- (\S{1,200}) ping statistics ---$")
METRICS = (RTT_MIN, RTT_AVG, RTT_MAX, RTT_MDEV)


def read(section: Section) -> Reading:
    """One session."""
    lines = section.lines
    reading = Reading("ping", facts=command_facts(lines), scope=Scope.PAIRS)
    starts = [(line, match) for line in lines if (match := START.match(line.text))]
    host, address = (starts[0][1][1], starts[0][1][2]) if starts else ("unknown", "")
    if starts:
        reading.params["bytes"] = int(starts[0][1][3])
        reading.facts["server_address"] = address
    sources = [match[1] for line in lines if (match := SOURCE.match(line.text))]
    if sources:
        reading.facts["client_address"] = sources[0]
    client = sources[0] if sources else str(reading.facts.get("prompt_host", "unknown"))
    reading.nodes = (client, host)
    reading.direction = f"{client}>{host}"
    ends = [line for line in lines if STATISTICS.match(line.text)]
    counts = [(line, match) for line in lines if (match := COUNTS.match(line.text))]
    times = [(line, match) for line in lines if (match := TIMES.match(line.text))]
    if len(ends) != 1 or len(counts) != 1 or len(times) > 1:
        why = "it has no closing line: interrupted" if not counts else "its closing lines stand there twice"
        reading.refuse(section.last, "all values of this run", why, 0)
        return reading
    line, found = counts[0]
    sent, received, percent = int(found[1]), int(found[2]), float(found[4])
    if sent == 0 or received > sent or abs(percent - 100 * (1 - received / sent)) > 1.0:
        reading.refuse(line.number, line.text, f"{received} answers to {sent} packets are not {percent:g} % loss", 5)
        return reading
    labels = {"client": client, "server": host}
    reading.facts["packets_sent"] = sent
    reading.values.append(Value(LOST, 1 - received / sent, line.number, labels))
    if received == 0:
        return reading
    if not times:
        reading.refuse(line.number, "round-trip times", "the closing line with the times is missing", 4)
        return reading
    line, found = times[0]
    low, mean, high = (float(found[place]) for place in (2, 3, 4))
    if not low <= mean <= high:
        reading.refuse(line.number, line.text, "the mean is not between the fastest and the slowest", 4)
        return reading
    for metric, text in zip(METRICS, found.group(2, 3, 4, 5), strict=True):
        if text and text != "nan" and float(text) > 0:
            reading.values.append(Value(metric, float(text) / 1000, line.number, labels))
    return reading
