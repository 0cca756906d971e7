"""iozone: its table, the report for spreadsheets (`-R`), throughput mode (`-t`), plain or saved by a spreadsheet.

Only the header says the unit: kB are 1024 bytes; with `-O` the same table holds operations per second. A table
without its header has no unit and gets none. 0 means "not run". Columns of tests that were not asked for are blank, and
their widths differ between versions, so the command line that iozone echoes says which columns are there. Ranks of an
mpirun each have a header; a size then appears once for each of them, and whose row is whose is not known.

Facts: `unit` ("kBytes/sec", "operations per second" or "unknown") and `unit_problem`, `iozone_version`,
`invoked` (its options), `direct_io`, `fsync_timed` and `close_timed` (whether it bypassed the page cache, and
whether fsync and close are in the time of writes), `file_bytes` (of the largest file).
"""

from __future__ import annotations

import calendar
import re
from collections import defaultdict

from vtax.tools.commands import command_facts
from vtax.tools.iozone.lines import Split, split
from vtax.tools.iozone.metrics import ALL, HEADLINES, KIB, OPERATIONS, PRIMARY, THROUGHPUT
from vtax.tools.iozone.table import COMMAND, REPORT, Cells, report, table
from vtax.tools.iozone.throughput import throughput
from vtax.tools.reading import Reading, Section, Value

KBYTES, OPS, UNKNOWN = "kBytes/sec", "operations per second", "unknown"
UNITS = {"kB/s": KBYTES, "operations": OPS}  # as they may be stated
UNIT = re.compile(r"Output is in (.{1,60}?)\.?$")
VERSION = re.compile(r"^Version \$Revision: (\d{1,2}\.\d{1,4})")
BEGAN = re.compile(r"^Run began: \w{3} (\w{3}) (\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})$")
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"  # not of the locale


def read(section: Section) -> Reading:
    """One run of iozone, or of one on each rank."""
    lines = [split(line) for line in section.lines]
    reading = Reading("iozone", facts=command_facts(section.lines))
    banners = sum("Iozone: Performance Test of" in one.joined for one in lines)
    reading.ranks = max(1, banners)
    if reading.ranks > 1:
        reading.params["ranks"] = reading.ranks
    unit = _header(reading, lines, section.unit)
    if not unit:
        reading.refuse(0, "all values of this run", str(reading.facts["unit_problem"]), count_cells(lines))
        return reading
    ended = sum(one.joined.endswith("iozone test complete.") for one in lines)
    if ended < reading.ranks:
        reason = f"{reading.ranks} began, {ended} ended: what is missing is not known"
        reading.refuse(section.end, "later values of this run", reason, 0)
    reading.ended = ended == reading.ranks
    if reading.params["mode"] == "throughput":
        throughput(reading, lines)
        return reading
    _values(reading, unit, table(reading, lines, ended >= reading.ranks), report(reading, lines))
    return reading


def headerless(section: Section) -> Reading:
    """A table of iozone without anything above it. Its unit is not known, unless it was stated; a row with a value for
    every test that iozone has says with that which they are."""
    reading = Reading("iozone", facts={"unit": UNKNOWN})
    lines = [split(line) for line in section.lines]
    rows = [one for one in lines if len(one.words) == 2 + len(ALL) and one.whole]
    if section.unit:
        reading.params["mode"] = "sizes"
        unit = _unit(reading, {section.unit})
        _values(reading, unit, table(reading, lines, complete=False, head=False), report(reading, lines))
        return reading
    reason = "the table has no header: its unit (kB/s, or operations a second with -O) and its columns are unknown"
    reading.params["mode"] = "unknown"
    if any(REPORT.match(one.joined) for one in lines):
        reading.refuse(section.first, "a report for spreadsheets", reason, count_cells(lines))
    else:
        reading.refuse(section.first, f"{len(rows)} rows", reason, 13 * len(rows))
    return reading


def count_cells(lines: list[Split]) -> int:
    """About how many values a run has whose unit is not known."""
    return sum(len(one.words) - 2 for one in lines if len(one.words) >= 3 and one.whole)


def _header(reading: Reading, lines: list[Split], stated: str) -> str:
    """Options and version; returns the unit, the `stated` one where no line says it, "" when it is not known."""
    facts, params = reading.facts, reading.params
    units: set[str] = set()
    commands: list[str] = []
    for one in lines:
        text = one.joined
        if found := UNIT.search(text):
            units.add(found[1])
        elif found := COMMAND.match(text):
            commands.append(found[1])
        elif found := VERSION.match(text):
            facts["iozone_version"] = found[1]
        elif (found := BEGAN.match(text)) and found[1] in MONTHS:
            day, clock = (int(found[6]), MONTHS.find(found[1]) // 4 + 1, int(found[2])), map(int, found.group(3, 4, 5))
            reading.started = float(calendar.timegm((*day, *clock)))
    texts = {one.joined for one in lines}
    facts["direct_io"] = "O_DIRECT feature enabled" in texts
    facts["fsync_timed"] = "Include fsync in write timing" in texts
    facts["close_timed"] = "Include close in write timing" in texts
    if commands:
        facts["invoked"] = commands[0]
    throughput = any(text.startswith(("Throughput test with", "Children see throughput")) for text in texts)
    params["mode"] = "throughput" if throughput else "auto" if "Auto Mode" in texts else "sizes"
    if "Network distribution mode enabled." in texts:
        params["distributed"] = True
    for name, fact in (("direct", "direct_io"), ("fsync_timed", "fsync_timed"), ("close_timed", "close_timed")):
        if facts[fact]:
            params[name] = True
    return _unit(reading, units or ({stated} if stated else set()))


def _unit(reading: Reading, units: set[str]) -> str:
    known = {"kBytes/sec": KBYTES, "Kbytes/sec": KBYTES, "KBytes/sec": KBYTES, "operations per second": OPS}
    reading.facts["unit"] = UNKNOWN
    if len(units) != 1:
        why = "no line says in which unit the output is (kB/s, or operations a second with -O)"
        reading.facts["unit_problem"] = why if not units else f"several units: {', '.join(sorted(units))}"
        return ""
    (unit,) = units
    if unit not in known:
        reading.facts["unit_problem"] = f"values in {unit}, which is not a rate that vtax compares"
        return ""
    reading.facts["unit"] = known[unit]
    reading.params["unit"] = "operations" if known[unit] == OPS else "bytes"
    return known[unit]


def _values(reading: Reading, unit: str, cells: Cells, reported: Cells) -> None:
    """The cells that every rank has once, and that the two ways of printing them agree in."""
    source = cells or reported
    bad: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (file_kb, record_kb, name), found in source.items():
        if len(found) != reading.ranks:
            where = f"{name} {file_kb}/{record_kb} kB"
            bad[f"{len(found)} values for one size and operation, but {reading.ranks} ranks"].append(
                (found[0][0], where)
            )
            continue
        other = reported.get((file_kb, record_kb, name)) if cells else None
        if other and (other[0][1] != found[0][1] or len(found) > 1) and _numbers(other) != _numbers(found):
            where = f"{name} {file_kb}/{record_kb} kB"
            bad["the table and the report below it have different values"].append((found[0][0], where))
            continue
        if found[0][1] == 0 or (len(found) > 1 and not all(rate for _, rate, _ in found)):
            continue  # not run
        labels = {"file_bytes": str(file_kb * KIB), "record_bytes": str(record_kb * KIB), "operation": name}
        metric = PRIMARY if name in HEADLINES else THROUGHPUT
        for line, rate, rank in found:
            each = record_kb * KIB if unit == OPS else KIB
            reading.values.append(Value(metric, float(rate * each), line, labels, True, rank))
            if unit == OPS:
                reading.values.append(Value(OPERATIONS, float(rate), line, labels, True, rank))
    for reason, places in bad.items():
        reading.refuse(places[0][0], ", ".join(where for _, where in places[:3]), reason, len(places))
    if source:
        reading.facts["file_bytes"] = max(file for file, _, _ in source) * KIB
    elif not reading.refusals:
        reading.refuse(0, "all values of this run", "it has no table: aborted", 0)


def _numbers(found: list[tuple[int, int, str]]) -> list[int]:
    return sorted(rate for _, rate, _ in found)
