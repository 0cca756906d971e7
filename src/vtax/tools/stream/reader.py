"""STREAM: the table of its four loops, as stream.c (5.9, 5.10), stream_mpi.c and HPC Challenge's variant print it.

Variants without a line that names the version begin with the size of a word; the date of such a run, `Generated on`, is
in UTC.

Facts: `stream_code` (which of these, with its version), `elements` and `array_bytes` (of each array, of all ranks
together), `passes`, `threads` (where it was built with OpenMP), `validated`.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence

from vtax.model.nodes import Scope
from vtax.tools.commands import command_facts
from vtax.tools.reading import Line, Reading, Section, Value, near_miss
from vtax.tools.stream.metrics import LOOPS, RATES, TIMES

ORIGINAL = re.compile(r"^STREAM version \$Revision: (\d{1,3}\.\d{1,3}) \$$")
VARIANT = re.compile(r"^STREAM of HPC Challenge (\d[\w.]{0,20}): based on a variant of the STREAM benchmark code$")
GENERATED = re.compile(r"^Generated on (\d{4})-(\d\d)-(\d\d):(\d\d):(\d\d):(\d\d) GMT$")
WORD = re.compile(r"^This system uses (\d{1,2}) bytes per (?:array element|DOUBLE PRECISION word)\.$")
SIZE = re.compile(
    r"^(?:Total Aggregate )?Array size = (\d{1,15})(?: \(elements\))?(?:, Offset = \d{1,12}(?: \(elements\))?)?$"
)
PASSES = re.compile(r"^Each (?:kernel will be executed|test is run) (\d{1,9}) times[.,]")
THREADS = re.compile(r"^Number of Threads requested = (\d{1,6})$")
SETTINGS = {"elements": SIZE, "passes": PASSES, "threads": THREADS}  # what a run was asked for, by fact
RANKS = re.compile(r"^Data is distributed across (\d{1,7}) MPI ranks$")
TABLE = re.compile(r"^Function {4,6}(?:Best )?Rate \(?([MG])B/s\)? {2,3}Avg time {5}Min time {5}Max time$")
SCALE = {"M": 1e6, "G": 1e9}
ROW = re.compile(r"^(Copy|Scale|Add|Triad): +(\d{1,12}\.\d{1,4})" + r" +(\d{1,7}\.\d{4,6})" * 3 + "$")
VALID = re.compile(r"^Solution Validates: avg error less than \d\.\d{6}e-\d\d on all three arrays$")
VALID_OLD = "Solution Validates"  # all that versions before 5.10 print
WRONG = re.compile(r"^Failed Validation on array|^ *For array [abc]\[\], \d{1,15} errors were found")
UNNAMED = "a version that it does not name"
OF_HPCC = re.compile(r"^(?:Begin|End) of \w{1,40} section\.$|^Node\(s\) with error ")
ROUNDING = 0.51  # of the last digit


def starts(line: str) -> bool:
    return line.startswith(("STREAM version $Revision:", "STREAM of HPC Challenge "))


def starts_untitled(line: str) -> bool:
    """The first line of a version that does not name itself; in all others it is below their title."""
    return line.startswith("This system uses ") and WORD.match(line) is not None


def ends(line: str) -> bool:
    return line.startswith(("Solution Validates", "Failed Validation"))


def titles(line: str) -> bool:
    """What is above the next run."""
    return not line.strip() or line.startswith(("---", "Generated on "))


def read(section: Section) -> Reading:
    """One run. Without a check of the arrays, or with a failed one, nothing of it is taken."""
    lines = section.lines
    reading = Reading("stream", facts=command_facts(lines), scope=Scope.NODE)
    code = [match for line in lines if (match := ORIGINAL.match(line.text) or VARIANT.match(line.text))]
    if len(code) > 1:
        why = f"{len(code)} runs begin in it, instead of one"
        reading.refuse(section.first, "all values of this run", why, 0)
        return reading
    reading.facts["stream_code"] = UNNAMED
    if code:
        reading.facts["stream_code"] = code[0][1] if code[0].re is ORIGINAL else f"HPC Challenge {code[0][1]}"
    if part := next((line for line in lines if OF_HPCC.match(line.text)), None):
        reading.refuse(
            part.number, "all values of this run", "it is part of an output of hpcc without its beginning", 0
        )
        return reading
    times = [calendar.timegm(tuple(map(int, match.groups()))) for match in _matches(lines, GENERATED)]
    reading.started = float(times[-1]) if times else None
    word, size = _number(reading, lines, WORD, "bytes per element"), _number(reading, lines, SIZE, "elements")
    passes = _number(reading, lines, PASSES, "passes")
    if not (word and size and passes):
        return reading
    reading.params["n"] = size
    reading.facts |= {"elements": size, "array_bytes": size * word, "passes": passes}
    for pattern, name in ((THREADS, "threads"), (RANKS, "ranks")):
        if found := {int(match[1]) for match in _matches(lines, pattern)}:
            reading.params[name] = reading.facts[name] = max(found)
    reading.ranks = max(1, int(str(reading.facts.get("ranks", 1))))
    _table(reading, section, size * word)
    _validation(reading, section)
    return reading


def _number(reading: Reading, lines: Sequence[Line], pattern: re.Pattern[str], what: str) -> int:
    """The number on the only line that matches; refuses the run and returns 0 where there is no such number."""
    found = {int(match[1]) for match in _matches(lines, pattern)}
    if len(found) == 1 and (value := found.pop()) > 0:
        return value
    reading.refuse(near_miss(lines, pattern), "all values of this run", f"no line gives the number of {what}", 0)
    return 0


def _matches(lines: Sequence[Line], pattern: re.Pattern[str]) -> list[re.Match[str]]:
    return [match for line in lines if (match := pattern.match(line.text))]


def _table(reading: Reading, section: Section, array_bytes: int) -> None:
    """The four rows. Refuses the table unless each loop has one, in a unit that is known."""
    units = _matches(section.lines, TABLE)
    rows = [(line, match) for line in section.lines if (match := ROW.match(line.text))]
    if len(units) != 1 or [match[1] for _, match in rows] != list(LOOPS):
        wrong = near_miss(section.lines, TABLE, ROW) or section.end
        reading.refuse(wrong, "all values of this run", "it has no table with one row for each of the four loops", 0)
        return
    for line, match in rows:
        _row(reading, line, match, SCALE[units[0][1]], array_bytes)


def _row(reading: Reading, line: Line, match: re.Match[str], scale: float, array_bytes: int) -> None:
    loop, rate = match[1], float(match[2]) * scale
    mean_s, least_s, most_s = (float(match[place]) for place in (3, 4, 5))
    if not least_s <= mean_s <= most_s:
        reading.refuse(line.number, line.text, "the mean time is not between the shortest and the longest", 2)
        return
    if rate == 0:
        reading.refuse(line.number, line.text, "a rate is above zero", 2)
        return
    moved = LOOPS[loop][1] * array_bytes
    time_slack = ROUNDING * 10.0 ** -len(match[4].partition(".")[2])
    rate_slack = ROUNDING * 10.0 ** -len(match[2].partition(".")[2]) * scale
    low, high = (rate - rate_slack) * (least_s - time_slack), (rate + rate_slack) * (least_s + time_slack)
    if not low <= moved <= high:
        reading.refuse(line.number, line.text, f"this rate and this time do not move {moved} bytes", 2)
        return
    reading.values.append(Value(RATES[loop], rate, line.number))
    if mean_s > 0:  # 0.0000 is a time below what it prints: absent
        reading.values.append(Value(TIMES[loop], mean_s, line.number))


def _validation(reading: Reading, section: Section) -> None:
    """Whether the arrays held the right numbers at the end, which is the last that STREAM prints."""
    lines = section.lines
    wrong = [line for line in lines if WRONG.match(line.text)]
    old = re.fullmatch(r"5\.\d", str(reading.facts["stream_code"])) is not None
    old = old or reading.facts["stream_code"] == UNNAMED
    right = [line for line in lines if VALID.match(line.text) or (old and line.text == VALID_OLD)]
    reading.facts["validated"] = len(right) == 1 and not wrong
    if wrong:
        reading.drop("the arrays held wrong numbers at the end", wrong[0].number)
    elif len(right) != 1:
        reading.drop("no line says that the solution validates", near_miss(lines, VALID) or section.end)
    else:
        reading.ended = True
