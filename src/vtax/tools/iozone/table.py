"""iozone's table of rates, and the report for spreadsheets that `-R` prints below it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from vtax.tools.iozone.lines import Split
from vtax.tools.iozone.metrics import ALL, TESTS
from vtax.tools.reading import Reading

WORDS = re.compile(r"[^\s,;\"]+")
COMMAND = re.compile(r"^Command line used: (.{1,2000})$")
SELECTED = re.compile(r"(?<=\s)-i\s*(\S+)")
HEAD = (
    "reclen write rewrite read reread read write read rewrite read fwrite frewrite fread freread".split()  # noqa: SIM905
)
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
NOT_NUMBERS = "a row with something else than numbers in it"
Cells = dict[tuple[int, int, str], list[tuple[int, int, str]]]  # (file kB, record kB, operation) -> (line, value, rank)


def table(reading: Reading, lines: list[Split], complete: bool, *, head: bool = True) -> Cells:
    """The cells of all rows below the heads of tables, or, without a `head`, of all rows."""
    columns = _selected(reading, lines)
    heads = {place for place, one in enumerate(lines) if one.words[1:] == HEAD and one.words[0] in ("kB", "KB")}
    start = min(heads, default=len(lines)) if head else 0
    rows: list[Split] = []
    for one in lines[start:]:
        if one.joined.startswith("Excel output is below") or REPORT.match(one.joined):
            break
        if len(one.words) >= 3 and one.whole:
            rows.append(one)
        elif mostly_numbers(one):
            reading.refuse(one.line.number, one.joined, NOT_NUMBERS)
    spreadsheet = any("\t" in one.line.text for one in rows)
    widths = Counter(len(one.line.text.rstrip()) for one in rows)
    usual = 0 if spreadsheet or not widths else widths.most_common(1)[0][0]
    cells: Cells = defaultdict(list)
    for place, one in enumerate(rows):
        last = place == len(rows) - 1 and not complete and (head or not usual)  # else its width shows a cut
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


def report(reading: Reading, lines: list[Split]) -> Cells:
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
        elif name and mostly_numbers(one):
            reading.refuse(one.line.number, one.joined, NOT_NUMBERS, 0)
        elif name:
            name = ""
    return cells


def mostly_numbers(one: Split) -> bool:
    """Whether a line with another word in it can only be a row that is damaged."""
    return len(one.words) >= 3 and 2 * sum(map(str.isdecimal, one.words)) > len(one.words)
