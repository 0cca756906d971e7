"""Forms of output that are recognised only to say what they are, and what to give instead."""

from __future__ import annotations

import re

from vtax.tools.reading import Reading, Section
from vtax.tools.tool import LogFormat


def unread(name: str, benchmark: str, first: str, pattern: str, reason: str) -> LogFormat:
    """The form of which a run begins with a line that `pattern` matches. It is no run, for this reason."""
    known = re.compile(pattern)

    def starts(line: str) -> bool:
        return known.match(line) is not None

    def read(section: Section) -> Reading:
        line = next((line.number for line in section.lines if starts(line.text)), section.first)
        reading = Reading(benchmark, no_test=reason)
        reading.refuse(line, "all values of this run", reason, 0)
        return reading

    return LogFormat(name, read, starts, first=first, outside=True, together=True)
