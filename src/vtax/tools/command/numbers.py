"""The number in an output that a metric means: by a pattern, by a path into JSON, or in a column of a table. Pure.

A number is taken only where the output leaves no doubt about it: the pattern, path or row is there exactly once, and
the number is whole. What is missing, there twice, negative, NaN, infinite or cut off has a reason instead,
with its line.
"""

from __future__ import annotations

import csv
import io
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from vtax.tools.command.json_path import Node, document, steps_of
from vtax.tools.command.metric_table import Csv, MetricTable
from vtax.tools.documents import Unfit
from vtax.tools.patterns import Match, compile_pattern, encoded
from vtax.tools.reading import MOST_LINES, Line, Section, clean, lines_of, number
from vtax.wording import listed

MOST_NUMBERS = 10_000  # that an aggregate may have
MARK = "\ufeff"  # of bytes' order, which programs of Windows put before a text
SHOWN = 5  # lines that a refusal names
LONGEST_SHOWN = 100  # characters of a line or a number
MOST_WORK = 2 * 10**9  # instructions of a pattern x bytes of the text: 17 s at worst for one search
SEARCH_S = 20.0  # of processor time, for one pattern: checked after every match
AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": median,
    "mean": fmean,
    "sum": math.fsum,
    "min": min,
    "max": max,
}
# What is next to a number that a pattern took, and makes another number of it.
GOES_ON = re.compile(rb"[0-9]|\.[0-9]|[eE][-+]?[0-9]")
THOUSANDS = re.compile(rb",[0-9]{3}(?![0-9])")
UNIT = re.compile(rb"[A-Za-z%]|[\x80-\xff]")
BEGAN = re.compile(rb"[0-9]\.?\Z|(?<![A-Za-z0-9])\.\Z")
NEGATIVE = re.compile(rb"(?<![A-Za-z0-9._)\]-])(?:-|\xe2\x88\x92)\Z")
BLANK = re.compile(rb"[\x00-\x20]")
AROUND = 24  # bytes on either side
WORDS = re.compile(r"[A-Za-z]{3,40}")
SYNTAX = re.compile(r"\\.|\[[^\]]{0,200}\]|\(\?[a-zA-Z<:]{0,20}")


class Number(NamedTuple):
    """A number as it is written, and its line."""

    value: float
    line: int


class NoNumber(Exception):
    """Why a metric has no value, and the line that it is about (0: none of them)."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


class Output:
    """A text, and what it is turned into once for all metrics."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._data: bytes | None = None
        self._json: Node | None = None

    @property
    def data(self) -> bytes:
        if self._data is None:
            self._data = encoded(self.text)
        return self._data

    @property
    def json(self) -> Node:
        if self._json is None:
            self._json = document(lines_of(self.text))
        return self._json

    def section(self, tool: str) -> Section:
        lines = enumerate(self.text.removesuffix("\n").split("\n"), start=1)
        return Section(tool, tuple(Line(number, *clean(text)) for number, text in lines))


def numbers_of(table: MetricTable, output: Output) -> list[Number]:
    """The numbers that a table finds. Raises NoNumber unless there is one, or several where that is wanted."""
    if table.regex is not None:
        found = _by_regex(table, table.regex, output)
    elif table.path is not None:
        found = _by_path(table.path, output)
    else:
        assert table.csv is not None
        found = _by_csv(table.csv, output.text, several=table.count == "all")
    if len(found) > MOST_NUMBERS:
        raise NoNumber(0, f"there are more than {MOST_NUMBERS:,} numbers")
    return found


def combined(table: MetricTable, numbers: Sequence[Number]) -> float:
    values = [one.value for one in numbers]
    value = AGGREGATES[table.aggregate](values) if table.aggregate else values[0]
    if not math.isfinite(value):
        raise NoNumber(0, f"the {table.aggregate} of {len(values)} numbers is not finite")
    return value


# --- regular expressions -------------------------------------------------------------------------------------------


def _by_regex(table: MetricTable, text: str, output: Output) -> list[Number]:
    """The numbers in a pattern's group, one of each match."""
    data, pattern = output.data, compile_pattern(text)
    if pattern.size * len(data) > MOST_WORK:
        raise NoNumber(0, f"{text} is too large a pattern for {len(data):,} bytes: use smaller repetitions, such as x*")
    several, began = table.count == "all", time.process_time()
    matches: list[Match] = []
    for match in pattern.matches(data):
        matches.append(match)
        if len(matches) > MOST_NUMBERS:
            break
        if time.process_time() - began > SEARCH_S:
            raise NoNumber(0, f"{text} takes more than {SEARCH_S:g} s: each match searches all the rest again")
    if not matches:
        raise _never(text, output.text)
    if not several and len(matches) > 1:
        lines = [_line_of(data, match.start) for match in matches[: SHOWN + 1]]
        hint = 'make the pattern say which, or use count = "all" with an `aggregate`'
        raise NoNumber(lines[0], f"{text} matches {_times(len(matches))}, {_on_lines(lines)}; {hint}")
    return list(_whole(text, data, matches))


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times" if count <= MOST_NUMBERS else f"more than {MOST_NUMBERS:,} times"


def _on_lines(lines: Sequence[int]) -> str:
    shown = list(map(str, dict.fromkeys(lines)))[:SHOWN]
    more = [*shown, "more"] if len(lines) > SHOWN else shown
    return f"on {'line' if len(more) == 1 else 'lines'} {listed(more)}"


def _line_of(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _whole(text: str, data: bytes, matches: Iterable[Match]) -> Iterable[Number]:
    """Each group as a number. Raises NoNumber where it is none, or only a part of one."""
    line, counted = 1, 0
    for match in matches:
        start, end = match.group
        if start < 0:
            raise NoNumber(_line_of(data, match.start), f"{text} matches, but its group takes no part in it")
        line, counted = line + data.count(b"\n", counted, start), start
        taken = data[start:end].decode("utf-8", "replace")
        value, wrong = number(taken), ""
        if value is None:
            wrong = f"{taken[:LONGEST_SHOWN]!r}, not a finite number of zero or more"
        elif why := _neighbours(data, match):
            wrong = f"{taken}{why}"
        if value is None or wrong:
            raise NoNumber(line, f"{text} finds {wrong}")
        yield Number(value, line)


def _neighbours(data: bytes, match: Match) -> str:
    """What is wrong with a number because of what is next to it; "" when nothing is.

    What the pattern itself matched behind its group is meant to be there, such as a unit or the comma of a list.
    """
    start, end = match.group
    before, after = data[max(0, start - AROUND) : start], data[end : end + AROUND]
    meant = match.end > end
    if NEGATIVE.search(before):
        return " behind a minus sign, not a number of zero or more"
    if not after:
        return ", the last that was printed, so more of it may be missing: print a line feed behind it"
    if BEGAN.search(before) or GOES_ON.match(after) or (THOUSANDS.match(after) and not meant):
        word = BLANK.split(before)[-1] + data[start:end] + BLANK.split(after)[0]
        return f", only a part of {word.decode('utf-8', 'replace')!r}"
    if UNIT.match(after) and not meant:
        unit = after.decode("utf-8", "replace").split()[0]
        return f" in front of {unit!r}: put the unit into the pattern, because tools change units with the size"
    return ""


def _never(pattern: str, text: str) -> NoNumber:
    """That a pattern does not match, with the line that has most of its words, or the last one."""
    words = set(WORDS.findall(SYNTAX.sub(" ", pattern)))
    lines = lines_of(text)
    why = f"{pattern} matches nothing"
    if not text:
        return NoNumber(0, f"{why}: there is no output")
    if words and len(lines) <= MOST_LINES:
        shared = Counter({line: sum(word in line.text for word in words) for line in lines})
        (best, count), *_ = shared.most_common(1)
        if 2 * count > len(words):
            return NoNumber(best.number, f"{why}; most like it is line {best.number}: {best.text[:LONGEST_SHOWN]!r}")
    last = next((line for line in reversed(lines) if line.text.strip()), None)
    return NoNumber(0, f"{why}; the last line is {last.text[:LONGEST_SHOWN]!r}" if last else f"{why}: it is blank")


# --- JSON and CSV --------------------------------------------------------------------------------------------------


def _by_path(path: str, output: Output) -> list[Number]:
    try:
        found = []
        for node in output.json.found(steps_of(path)):
            found.append(Number(node.number(), node.line))
            if len(found) > MOST_NUMBERS:
                break
        return found
    except Unfit as error:
        raise NoNumber(error.line, f"{path}: {error.what}") from error


def _by_csv(table: Csv, text: str, *, several: bool) -> list[Number]:
    """The numbers in a column, of the rows that fit."""
    if not text:
        raise NoNumber(0, "there is no output")
    if not text.endswith("\n"):
        raise NoNumber(0, "the last row does not end with a line feed, so a part of it may be missing")
    try:
        rows = csv.reader(io.StringIO(text.removeprefix(MARK), newline=""), delimiter=table.delimiter, strict=True)
        header = next(rows, [])
        places = {name: _column(header, name) for name in (table.column, *table.where)}
        found = []
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise NoNumber(rows.line_num, f"the header has {len(header)} columns and this row {len(row)}")
            if all(row[places[name]] == wanted for name, wanted in table.where.items()):
                found.append(_cell(table.column, row[places[table.column]], rows.line_num))
    except csv.Error as error:
        raise NoNumber(0, f"not a table with {table.delimiter!r} between its columns: {error}") from error
    if not found or (len(found) > 1 and not several):
        which = f"with {listed([f'{name} = {value!r}' for name, value in table.where.items()])}" if table.where else ""
        how = f"there are {len(found)} rows {which}".rstrip()
        hint = 'say in `where` which row, or use count = "all"' if found else "the table has others, or none"
        raise NoNumber(found[0].line if found else 0, f"{how} instead of one; {hint}")
    return found


def _column(header: Sequence[str], name: str) -> int:
    if header.count(name) == 1:
        return header.index(name)
    how = "twice" if name in header else f"only {listed([repr(one[:40]) for one in header[:20]])}"
    raise NoNumber(1, f"the header has no column {name!r}, {how}" if how != "twice" else f"it has {name!r} twice")


def _cell(column: str, text: str, line: int) -> Number:
    value = number(text.strip())
    if value is None:
        raise NoNumber(line, f"{column} is {text[:LONGEST_SHOWN]!r}, not a finite number of zero or more")
    return Number(value, line)
