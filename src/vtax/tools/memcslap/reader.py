"""memcslap of libmemcached-awesome 1.1: gets or sets of a memcached server, by threads with a connection each.

It prints times with three decimals, so runs shorter than a second have few digits. Facts: `client_threads`,
`operations`, `time_rounding` (of the time, relative) and `rounded` (what is worked out from it).
"""

from __future__ import annotations

import re

from vtax.tools.commands import command_facts
from vtax.tools.memcslap.metrics import LOAD_RATE, OPERATIONS_RATE
from vtax.tools.reading import Reading, Section, Value

GENERATED = re.compile(r"^Time to generate {1,20}(\d{1,12}) test keys: {1,40}(\d{1,9}\.\d{3}) seconds\.$")
LOADED = re.compile(r"^Time to set {1,20}(\d{1,12}) keys: {1,40}(\d{1,9}\.\d{3}) seconds\.$")
STARTED = re.compile(r"^Time to start {1,20}\d{1,6} threads: {1,40}\d{1,9}\.\d{3} seconds\.$")
DONE = re.compile(
    r"^Time to (get|set|mget) {1,20}(\d{1,12}) keys by {1,8}(\d{1,6}) threads: {1,40}(\d{1,9}\.\d{3}) seconds\.$"
)
TOTAL = re.compile(r"^Time total: {1,60}(\d{1,9}\.\d{3}) seconds\.$")
STEP_S = 0.001  # of the times that it prints
FAILED = re.compile(r"^(?:Fatal error|Error|memslap: |.{0,80}FAILURE)")


def starts(line: str) -> bool:
    return line.startswith("Time to generate ") and GENERATED.match(line) is not None


def _known(text: str, patterns: tuple[re.Pattern[str], ...]) -> bool:
    return any(pattern.match(text) for pattern in patterns)


def read(section: Section) -> Reading:
    """One run: all of it, or nothing."""
    lines = section.lines
    reading = Reading("memcslap", facts=command_facts(lines))
    if failed := next((line for line in lines if FAILED.match(line.text)), None):
        reading.refuse(failed.number, failed.text, "an operation failed", 0)
        return reading
    every = (GENERATED, LOADED, STARTED, DONE, TOTAL)
    if damaged := next((ln for ln in lines if ln.text.startswith("Time ") and not _known(ln.text, every)), None):
        reading.refuse(damaged.number, damaged.text, "not what memcslap prints there", 0)
        return reading
    found = {
        name: [(line, match) for line in lines if (match := pattern.match(line.text))]
        for name, pattern in (("keys", GENERATED), ("load", LOADED), ("result", DONE), ("total time", TOTAL))
    }
    if wrong := next((name for name, several in found.items() if len(several) != 1 and name != "load"), ""):
        reading.refuse(0, "all values of this run", f"{len(found[wrong])} lines with its {wrong}, and not one", 0)
        return reading
    line, match = found["result"][0]
    test, keys, threads, took_s = match[1], int(match[2]), int(match[3]), float(match[4])
    asked = int(found["keys"][0][1][1]) * threads
    if keys != asked or took_s == 0 or took_s > float(found["total time"][0][1][1]):
        reading.refuse(line.number, line.text, f"it was to {test} {asked} keys, in less than the total time", 0)
        return reading
    labels = {"test": test}
    reading.params |= {"test": test, "threads": threads, "keys": keys}
    reading.facts |= {
        "client_threads": threads,
        "operations": keys,
        "failed_operations": 0,
        "time_rounding": STEP_S / 2 / took_s,
    }
    reading.facts["rounded"] = [OPERATIONS_RATE.name]
    reading.values.append(Value(OPERATIONS_RATE, keys / took_s, line.number, labels))
    if found["load"] and float(found["load"][0][1][2]) > 0:
        line, match = found["load"][0]
        reading.values.append(Value(LOAD_RATE, int(match[1]) / float(match[2]), line.number, labels))
    reading.ended = not reading.refusals
    return reading
