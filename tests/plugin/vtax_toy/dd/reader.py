"""The three lines that dd prints on standard error when it is done."""

from __future__ import annotations

import re

from vtax.model.metric import Kind, Metric
from vtax.model.nodes import Scope
from vtax.model.reading import TimeSeries
from vtax.tools.reading import Reading, Section, Value, near_miss

RATE = Metric(name="copy_rate", unit="byte/s", kind=Kind.RATE_FIXED_WORK, primary=True, meaning="bytes copied a second")
IN = re.compile(r"^\d{1,12}\+\d{1,12} records in$")
COPIED = re.compile(r"^(\d{1,18}) bytes \(.{1,60}\) copied, (\d{1,9}(?:\.\d{1,9})?) s, [\d.]{1,12} [kMGT]?B/s$")


def starts(line: str) -> bool:
    return IN.match(line) is not None


def copied(line: str) -> bool:
    return COPIED.match(line) is not None


def read(section: Section) -> Reading:
    """One run."""
    reading = Reading("dd", scope=Scope.NODE)
    found = [(line, match) for line in section.lines if (match := COPIED.match(line.text))]
    if len(found) != 1:
        reading.refuse(near_miss(section.lines, COPIED), RATE.name, "expected one line that says what was copied")
        return reading
    line, match = found[0]
    size, seconds = int(match[1]), float(match[2])
    if not (size > 0 and seconds > 0):
        reading.refuse(line.number, RATE.name, "nothing was copied, or in no time")
        return reading
    reading.ended, reading.elapsed_s = True, seconds
    reading.params["bytes"] = size
    reading.facts |= {"copied_bytes": size}
    reading.series["copy"] = TimeSeries(columns=("end_s", "byte/s"), rows=((seconds, size / seconds),))
    reading.values.append(Value(RATE, size / seconds, line.number))
    return reading
