"""What hackbench prints: the time in which all senders passed all their messages.

Facts: `mode` (process or threaded), `groups`, `messages` (of each sender), `message_bytes`; `time_rounding` (half a
millisecond as a share of the time); `policy`, where chrt printed it before hackbench took the place of its process.
"""

from __future__ import annotations

import re

from vtax.model.metric import Kind, Metric
from vtax.tools.reading import Reading, Section, Value, near_miss

BANNER = re.compile(
    r"^Running in (process|thread\w{0,2}) mode with (\d{1,6}) groups using (\d{1,6}) file descriptors each"
)
WORK = re.compile(r"^Each sender will pass (\d{1,12}) messages of (\d{1,9}) bytes$")
TIME = re.compile(r"^Time: (\d{1,9}\.\d{3})$")
POLICY = re.compile(r"^pid \d{1,10}'s current scheduling policy: (SCHED_[A-Z]{1,20})\b")
ROUNDED_S = 0.0005
TOTAL = Metric(
    name="time",
    unit="s",
    kind=Kind.COST,
    primary=True,
    meaning="time in which all messages went from senders to receivers",
)
METRICS = (TOTAL,)


def starts(line: str) -> bool:
    return BANNER.match(line) is not None


def read(section: Section) -> Reading:
    """One run."""
    reading = Reading("hackbench")
    times = []
    banners = 0
    for line in section.lines:
        if found := POLICY.match(line.text):
            reading.facts["policy"] = found[1]
        elif found := BANNER.match(line.text):
            banners += 1
            reading.params |= {"mode": found[1], "groups": int(found[2]), "descriptors": int(found[3])}
        elif found := WORK.match(line.text):
            reading.params |= {"messages": int(found[1]), "message_bytes": int(found[2])}
        elif found := TIME.match(line.text):
            times.append(Value(TOTAL, float(found[1]), line.number))
    reading.facts |= reading.params
    reading.ended = len(times) == 1 and banners == 1 and "messages" in reading.params
    if reading.ended:
        reading.values = times
        reading.facts |= {"time_rounding": ROUNDED_S / max(times[0].value, ROUNDED_S), "rounded": [TOTAL.name]}
    else:
        why = "more than one run in one output" if banners > 1 else "lines are missing"
        reading.refuse(near_miss(section.lines, TIME, WORK), "all values", why, len(times))
    return reading
