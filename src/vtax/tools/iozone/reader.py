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
from collections import Counter, defaultdict
from typing import NamedTuple

from vtax.tools.commands import command_facts
from vtax.tools.iozone.metrics import ALL, HEADLINES, KIB, OPERATIONS, PRIMARY, TESTS, THROUGHPUT
from vtax.tools.reading import Line, Reading, Section, Value, agree

WORDS = re.compile(r"[^\s,;\"]+")
LONGEST_NUMBER = 18  # digits
KBYTES, OPS = "kBytes/sec", "operations per second"
UNIT = re.compile(r"Output is in (.{1,60}?)\.?$")
COMMAND = re.compile(r"^Command line used: (.{1,2000})$")
SELECTED = re.compile(r"(?<=\s)-i\s*(\S+)")
VERSION = re.compile(r"^Version \$Revision: (\d{1,2}\.\d{1,4})")
BEGAN = re.compile(r"^Run began: \w{3} (\w{3}) (\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})$")
HEAD = (
    "reclen write rewrite read reread read write read rewrite read fwrite frewrite fread freread".split()  # noqa: SIM905
)
WHOLE = re.compile(r"^\d{1,12}$", re.ASCII)
REPORT = re.compile(r"^([a-z-]{3,10}(?: [a-z]{4,8})?) report$", re.IGNORECASE)
REPORTS = {
    "writer": "write",
    "re-writer": "rewrite",
    "reader": "read",
    "re-reader": "reread",
    "random read": "random_read",
    "random write": "random_write",
    "backward read": "backward_read",
    "record rewrite": "record_rewrite",
    "stride read": "stride_read",
    "fwrite": "fwrite",
    "re-fwrite": "frewrite",
    "fread": "fread",
    "re-fread": "freread",
}
CHILDREN = re.compile(r"^Children see throughput for (\d{1,6}) ([a-z -]{3,30}?) = (\d{1,15}\.\d\d) (kB|KB|ops)/sec$")
PER_PROCESS = re.compile(r"^Avg throughput per process = (\d{1,15}\.\d\d) (kB|KB|ops)/sec$")
EACH = re.compile(r"^Each process writes a (\d{1,12}) [kK]Byte file in (\d{1,9}) [kK]Byte records$")
TOGETHER = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "reverse readers": "backward_read",
    "stride readers": "stride_read",
    "random readers": "random_read",
    "mixed workload": "random_mix",
    "random writers": "random_write",
    "pwrite writers": "pwrite",
    "pread readers": "pread",
    "fwriters": "fwrite",
    "freaders": "fread",
}
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"  # not of the locale
Cells = dict[tuple[int, int, str], list[tuple[int, int, str]]]  # (file kB, record kB, operation) -> (line, value, rank)


class Split(NamedTuple):
    """A line as words and as text with single blanks; `whole` is true when all words are whole numbers."""

    line: Line
    words: list[str]
    joined: str
    whole: bool


def split(line: Line) -> Split:
    text = line.text
    for mark in ('"', ",", ";"):  # of a spreadsheet
        if mark in text:
            text = text.replace(mark, " ")
    words = text.split()
    whole = text.isascii() and "".join(words).isdecimal() and max(map(len, words)) <= LONGEST_NUMBER
    return Split(line, words, " ".join(words), whole)


def read(section: Section) -> Reading:
    """One run of iozone, or of one on each rank."""
    lines = [split(line) for line in section.lines]
    reading = Reading("iozone", facts=command_facts(section.lines))
    banners = sum("Iozone: Performance Test of" in one.joined for one in lines)
    reading.ranks = max(1, banners)
    if reading.ranks > 1:
        reading.params["ranks"] = reading.ranks
    unit = _header(reading, lines)
    if not unit:
        reading.refuse(0, "all values of this run", str(reading.facts["unit_problem"]), count_cells(lines))
        return reading
    ended = sum(one.joined.endswith("iozone test complete.") for one in lines)
    if ended < reading.ranks:
        reason = f"{reading.ranks} began, {ended} ended: what is missing is not known"
        reading.refuse(section.end, "later values of this run", reason, 0)
    reading.ended = ended == reading.ranks
    if reading.params["mode"] == "throughput":
        _throughput(reading, lines)
        return reading
    table, report = _table(reading, lines, ended >= reading.ranks), _report(lines)
    _values(reading, unit, table, report)
    return reading


def headerless(section: Section) -> Reading:
    """A table of iozone without anything above it: neither its unit nor its columns are known."""
    reading = Reading("iozone", facts={"unit": "unknown"})
    lines = [split(line) for line in section.lines]
    rows = [one for one in lines if len(one.words) == 15 and one.whole]
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


def _header(reading: Reading, lines: list[Split]) -> str:
    """Options and version; returns the unit, "" when it is not known."""
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
    return _unit(reading, units)


def _unit(reading: Reading, units: set[str]) -> str:
    known = {"kBytes/sec": KBYTES, "Kbytes/sec": KBYTES, "KBytes/sec": KBYTES, "operations per second": OPS}
    reading.facts["unit"] = "unknown"
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


def _table(reading: Reading, lines: list[Split], complete: bool) -> Cells:
    """The cells of all rows below the heads of tables."""
    columns = _selected(reading, lines)
    heads = {place for place, one in enumerate(lines) if one.words[1:] == HEAD and one.words[0] in ("kB", "KB")}
    start = min(heads, default=len(lines))
    rows: list[Split] = []
    for one in lines[start:]:
        if one.joined.startswith("Excel output is below") or REPORT.match(one.joined):
            break
        if len(one.words) >= 3 and one.whole:
            rows.append(one)
        elif len(one.words) >= 3 and 2 * sum(map(str.isdecimal, one.words)) > len(one.words):
            reading.refuse(one.line.number, one.joined, "a row with something else than numbers in it")
    spreadsheet = any("\t" in one.line.text for one in rows)
    widths = Counter(len(one.line.text.rstrip()) for one in rows)
    usual = 0 if spreadsheet or not widths else widths.most_common(1)[0][0]
    cells: Cells = defaultdict(list)
    for place, one in enumerate(rows):
        last = place == len(rows) - 1 and not complete
        names = ALL if len(one.words) == 2 + len(ALL) else columns if len(one.words) == 2 + len(columns) else ()
        if names is columns and not spreadsheet and below(lines[start], one) != columns:
            names = ()
        problem = _row_problem(one, names, last and one is lines[-1], usual)
        if problem:
            reading.refuse(one.line.number, one.joined, problem, max(1, len(one.words) - 2))
            continue
        file_kb, record_kb, *rates = map(int, one.words)
        line, _, _ = one.line
        for name, rate in zip(names, rates, strict=True):
            cells[file_kb, record_kb, name].append((line, rate, one.line.rank))
    return cells


def _selected(reading: Reading, lines: list[Split]) -> list[str]:
    """The columns of the tests that the command asks for, all when it asks for none; none when that is not known."""
    commands = [one for one in lines if COMMAND.match(one.joined)]
    if not commands or any("#NAME?" in one.joined for one in commands):
        return []
    tests = SELECTED.findall(commands[0].joined)
    for test in tests:
        if not (test.isascii() and test.isdecimal()):
            reason = f"{test!r} is not the number of a test: which columns a row has is not known"
            reading.refuse(commands[0].line.number, commands[0].joined, reason, 0)
            return []
    selected = {int(test[:9]) for test in tests} & set(TESTS) or TESTS
    return [column for test in sorted(selected) for column in TESTS[test]]


def below(head: Split, row: Split) -> list[str]:
    """The columns that the numbers of a row stand below: each ends near the end of its column's name."""
    ends = [found.end() for found in WORDS.finditer(head.line.text)][2:]
    places = [found.end() for found in WORDS.finditer(row.line.text)][2:]
    nearest = [min(range(len(ends)), key=lambda place: abs(ends[place] - end)) for end in places]
    return [ALL[place] for place in nearest] if len(ends) == len(ALL) else []


def _row_problem(one: Split, names: tuple[str, ...] | list[str], cut: bool, usual: int) -> str:
    if not names:
        return f"{len(one.words) - 2} values: which columns they are in is not known"
    file_kb, record_kb = int(one.words[0]), int(one.words[1])
    if not 0 < record_kb <= file_kb:
        return "a record larger than its file"
    if cut:
        return "the last row, and the output ends here: it may be cut off"
    width = len(one.line.text.rstrip())
    if usual and width < usual:
        return f"{width} characters wide, the other rows {usual}: something is missing in it"
    return ""


def _report(lines: list[Split]) -> Cells:
    """The cells of the report for spreadsheets."""
    cells: Cells = defaultdict(list)
    name = ""
    records: list[int] = []
    for one in lines:
        if found := REPORT.match(one.joined):
            name, records = REPORTS.get(found[1].lower(), ""), []
        elif name and not one.words:
            name = "" if records else name
        elif name and one.whole:
            if not records:
                records = [int(word) for word in one.words]
                continue
            for record, word in zip(records, one.words[1:], strict=False):
                cells[int(one.words[0]), record, name].append((one.line.number, int(word), one.line.rank))
        elif name:
            name = ""
    return cells


def _values(reading: Reading, unit: str, table: Cells, report: Cells) -> None:
    """The cells that every rank has once, and that the two ways of printing them agree in."""
    source = table or report
    bad: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (file_kb, record_kb, name), found in source.items():
        if len(found) != reading.ranks:
            where = f"{name} {file_kb}/{record_kb} kB"
            bad[f"{len(found)} values for one size and operation, but {reading.ranks} ranks"].append(
                (found[0][0], where)
            )
            continue
        other = report.get((file_kb, record_kb, name)) if table else None
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
        reading.refuse(reading_first(table, report), "all values of this run", "it has no table: aborted", 0)


def _numbers(found: list[tuple[int, int, str]]) -> list[int]:
    return sorted(rate for _, rate, _ in found)


def reading_first(table: Cells, report: Cells) -> int:
    return min((found[0][0] for cells in (table, report) for found in cells.values()), default=0)


def _throughput(reading: Reading, lines: list[Split]) -> None:
    """What all processes together reach, where their mean confirms it."""
    sizes = (0, 0)
    seen: set[tuple[str, str, tuple[int, int]]] = set()
    for place, one in enumerate(lines):
        if found := EACH.match(one.joined):
            sizes = (int(found[1]) * KIB, int(found[2]) * KIB)
        if (found := CHILDREN.match(one.joined)) is None:
            continue
        processes, name = found[1], TOGETHER.get(found[2], found[2].replace(" ", "_"))
        means = [m for after in lines[place + 1 : place + 7] if (m := PER_PROCESS.match(after.joined))]
        total = float(found[3])
        if len(means) != 1 or not agree(total, float(means[0][1]) * int(processes), 1e-4) or means[0][2] != found[4]:
            reading.refuse(one.line.number, name, "the mean per process is missing, or does not confirm it")
            continue
        key = (name, processes, sizes)
        if key in seen or reading.ranks > 1:
            reading.values = [v for v in reading.values if (v.labels["operation"], v.labels["processes"]) != key[:2]]
            reading.refuse(one.line.number, name, "it stands there more than once")
            continue
        seen.add(key)
        labels = {"operation": name, "processes": processes}
        if sizes[0]:
            labels |= {"file_bytes": str(sizes[0]), "record_bytes": str(sizes[1])}
        metric = PRIMARY if name in HEADLINES else THROUGHPUT
        if total <= 0:
            reading.refuse(one.line.number, name, "nothing was measured")
        elif found[4] == "ops":
            reading.values.append(Value(OPERATIONS, total, one.line.number, labels))
        else:
            reading.values.append(Value(metric, total * KIB, one.line.number, labels))
    if sizes[0]:
        reading.facts["file_bytes"] = sizes[0]
