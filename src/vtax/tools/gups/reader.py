"""GUPS: the lines that RandomAccess prints as a program of its own. hpcc prints the same ones; they are hpcc's there.

A run counts where each line is there once, updates and time give the rate, and no more than 1 % of the words are wrong.

Facts: `words` (of the table), `updates`.
"""

from __future__ import annotations

import re

from vtax.model.nodes import Scope
from vtax.tools.commands import command_facts
from vtax.tools.gups.metrics import CPU_TIME, ERRORS, REAL_TIME, UPDATES
from vtax.tools.reading import Reading, Section, Value, agree, near_miss

TABLE = re.compile(r"^Main table size   = 2\^(\d{1,2}) = (\d{1,15}) words$")
COUNT = re.compile(r"^Number of updates = (\d{1,18})$")
CPU = re.compile(r"^CPU time used  = (\d{1,9}\.\d{6}) seconds$")
REAL = re.compile(r"^Real time used = (\d{1,9}\.\d{6}) seconds$")
RATE = re.compile(r"^(\d{1,6}\.\d{9}) Billion\(10\^9\) Updates {4}per second \[GUP/s\]$")
FOUND = re.compile(r"^Found (\d{1,15}) errors in (\d{1,15}) locations \((passed|failed)\)\.$")
PATTERNS = {"table": TABLE, "updates": COUNT, "cpu": CPU, "real": REAL, "rate": RATE, "errors": FOUND}
OF_HPCC = re.compile(
    r"HPC Challenge|^(?:Begin|End) of |^Node(?:\(s\) with error| selected) |Updates/PE"
    r"|^(?:Minimum|Average|Maximum|Single) GUP/s "
)
EVERYTHING = "all values of this run"
ALLOWED = 0.01  # of the words may be wrong


def starts(line: str) -> bool:
    return line.startswith("Main table size   = ") and TABLE.match(line) is not None


def read(section: Section) -> Reading:
    """One run."""
    lines = section.lines
    reading = Reading("gups", facts=command_facts(lines), scope=Scope.NODE)
    if part := next((line for line in lines if OF_HPCC.search(line.text)), None):
        reading.refuse(part.number, EVERYTHING, "it is part of an output of hpcc whose beginning is missing", 0)
        return reading
    found = {}
    for name, pattern in PATTERNS.items():
        matches = [(line.number, match) for line in lines if (match := pattern.match(line.text))]
        if len(matches) != 1:
            why = f"{len(matches)} lines with its {name}, instead of one: aborted, or damaged"
            reading.refuse(near_miss(lines, pattern) or section.end, EVERYTHING, why, 0)
            return reading
        found[name] = matches[0]
    order = [number for number, _ in found.values()]
    words, updates = int(found["table"][1][2]), int(found["updates"][1][1])
    errors, checked = int(found["errors"][1][1]), int(found["errors"][1][2])
    real_s, rate = float(found["real"][1][1]), float(found["rate"][1][1]) * 1e9
    if order != sorted(order) or words != 2 ** int(found["table"][1][1]) or checked != words:
        reading.refuse(found["table"][0], EVERYTHING, "sizes of the table differ, or lines changed places", 0)
    elif found["errors"][1][3] != "passed" or errors > ALLOWED * words:
        reading.refuse(found["errors"][0], EVERYTHING, f"{errors} of {words} words are wrong", 0)
    elif real_s == 0 or not agree(rate, updates / real_s, 1e-6 + 1e-6 / real_s):
        reading.refuse(found["rate"][0], EVERYTHING, f"{updates} updates in {real_s} s are not {rate:.9g} a second", 0)
    else:
        reading.ended, reading.elapsed_s = True, real_s
        reading.params = {"words": words, "updates": updates}
        reading.facts |= {"words": words, "updates": updates}
        reading.values.append(Value(UPDATES, rate, found["rate"][0]))
        reading.values.append(Value(REAL_TIME, real_s, found["real"][0]))
        if (cpu_s := float(found["cpu"][1][1])) > 0:  # 0 is below what its clock measures
            reading.values.append(Value(CPU_TIME, cpu_s, found["cpu"][0]))
        reading.values.append(Value(ERRORS, float(errors), found["errors"][0]))
    return reading
