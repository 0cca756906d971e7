"""What a piece of a log is, and what a reader finds in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from vtax.model.metric import Metric
from vtax.model.nodes import Scope
from vtax.model.reading import TimeSeries

LONGEST_NEAR = 1000  # characters of a line that may be a near miss
MOST_LINES = 5000  # in which the cause of a refusal is looked for
LONGEST_SHOWN = 120  # characters of a line that a refusal repeats
# mpirun --tag-output: Open MPI 5 writes a blank behind it, 4 does not
TAG = re.compile(r"^\[(?:[\w.-]{1,200}@\d{1,6},(\d{1,6})\]<std(?:out|err)>: ?|\d{1,6},(\d{1,6})\]<std(?:out|err)>:)")
# Colours and cursor movements; the title of a terminal's window; the choice of a character set
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]{0,30}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>])")


class Line(NamedTuple):
    """A line of a file: its number from 1, the rank that its tag names ("" without a tag), and its text."""

    number: int
    rank: str
    text: str


def lines_of(text: str) -> tuple[Line, ...]:
    """The lines of an output of one process, as a reader takes them."""
    lines = text.removesuffix("\n").split("\n") if text else ()  # not splitlines, which knows other ends of lines
    return tuple(Line(number, "", line.rstrip("\r")) for number, line in enumerate(lines, start=1))


def clean(text: str) -> tuple[str, str]:
    """The rank that a tag names, and the line without tag, colours and the carriage return at its end."""
    text = text.rstrip("\r\n")
    if "\x1b" in text:
        text = ESCAPES.sub("", text)
    if text.startswith("[") and (tag := TAG.match(text)):
        return tag[1] or tag[2], text[tag.end() :]
    return "", text


class Section(NamedTuple):
    """The lines of a file that are one run of one tool, prompts and titles above it included.

    They are consecutive among the lines of their `source`: the node that their prefix names, "" without one.
    """

    tool: str
    lines: tuple[Line, ...]
    source: str = ""
    labels: Mapping[str, str] = {}  # of all values, as whoever imports it states
    unit: str = ""  # of values whose unit the text does not say, as whoever imports it states
    table: tuple[str, ...] = ()  # what the columns of a table are, as whoever imports it states

    @property
    def text(self) -> str:
        """Its lines again, each with the rank that it was tagged with."""
        return "\n".join(f"[1,{line.rank}]<stdout>:{line.text}" if line.rank else line.text for line in self.lines)

    @property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """Where its lines are in the file: first line and how many, of each piece without a gap."""
        found: list[list[int]] = []
        for line in self.lines:
            if found and line.number == sum(found[-1]):
                found[-1][1] += 1
            else:
                found.append([line.number, 1])
        return tuple((first, count) for first, count in found)

    @property
    def first(self) -> int:
        return self.lines[0].number if self.lines else 1

    @property
    def last(self) -> int:
        return self.lines[-1].number if self.lines else 1

    @property
    def end(self) -> int:
        """The number of its last line that is not empty: where an output that was cut off ends."""
        return next((line.number for line in reversed(self.lines) if line.text), self.first)


class Value(NamedTuple):
    """One number as the log has it, in base units. `rank` is "" when the log does not prove whose it is."""

    metric: Metric
    value: float
    line: int
    labels: Mapping[str, str] = {}
    of_ranks: bool = False  # one of the values that every rank has
    ordinal: str = ""  # the rank, where a tag names it


class Output(NamedTuple):
    """One output file of a trial that vtax ran, read; `labels` are those of all its values, above the reader's own."""

    file: str
    reading: Reading
    labels: Mapping[str, str] = {}


class Refusal(NamedTuple):
    """What was not taken, where, and why; how many `values`, 0 when that is not known."""

    line: int
    what: str
    reason: str
    values: int = 1


@dataclass
class Reading:
    """All that one section says. `params` tell what work it was: runs with equal ones repeat each other.

    `ended` is whether the tool's last line was seen. Own runs are accepted only with it and without a refusal; of other
    people's logs every value counts that the reader could prove.
    """

    benchmark: str
    params: dict[str, JsonValue] = field(default_factory=dict)
    facts: dict[str, JsonValue] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    series: dict[str, TimeSeries] = field(default_factory=dict)
    ended: bool = False
    scope: Scope = Scope.CLUSTER
    nodes: tuple[str, ...] = ()
    ranks: int = 1
    started: float | None = None  # Unix time, s
    elapsed_s: float | None = None
    no_test: str = ""  # why this is not a run of a test, such as one that only prepares files
    direction: str = ""  # part of what repeats: a test the other way round is another one

    def refuse(self, line: int, what: str, reason: str, values: int = 1) -> None:
        self.refusals.append(Refusal(line, what[:LONGEST_SHOWN], reason, values))

    def drop(self, reason: str, line: int) -> None:
        """Refuse all values taken so far, for one reason."""
        if self.values:
            self.refuse(line, "all values of this run", reason, len(self.values))
        self.values.clear()

    @property
    def label(self) -> str:
        """The benchmark and its parameters."""
        return " ".join((self.benchmark, *(f"{name}={value}" for name, value in self.params.items())))


# A number in a pattern, and what may be printed in its place by mistake.
NUMERIC = re.compile(
    r"\[\\d\.\](?:[+*]|\{[^}]*\})|-?\??\\d(?:[+*]|\{[^}]*\})?(?:\\\.\\d(?:[+*]|\{[^}]*\})?)?(?:\(\?:\\\.\\d(?:[+*]|\{[^}]*\})?\)\?)?"
)
ANYTHING_LIKE_A_NUMBER = r"[-+]?(?:(?i:nan|inf(?:inity)?)|[\d.]{1,400}(?:[eE][-+]?\d{1,9})?)"


@lru_cache(maxsize=256)
def _loose(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(NUMERIC.sub(lambda _: ANYTHING_LIKE_A_NUMBER, pattern.pattern), pattern.flags)


def near_miss(lines: Sequence[Line], *patterns: re.Pattern[str]) -> int:
    """The number of the only line that would match one of `patterns` if a word such as "nan" or "-1" were a number.

    0 when there is no such line, or more than one: when unsure, report no position; and for very many lines, because
    this looks at each of them with every pattern. Long lines are left out: what may stand for a number has no bound
    in front of it, so looking for it takes the square of a line's length.
    """
    if len(lines) > MOST_LINES:
        return 0
    found = {
        line.number
        for line in lines
        if len(line.text) <= LONGEST_NEAR
        for pattern in patterns
        if pattern.search(line.text) is None and _loose(pattern).search(line.text)
    }
    return found.pop() if len(found) == 1 else 0


NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


def number(text: str) -> float | None:
    """A finite number that is written out in full; None for anything else."""
    if NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if value < float("inf") else None


def agree(one: float, other: float, tolerance: float) -> bool:
    """Whether two positive numbers differ by no more than `tolerance`, relative to the larger."""
    return abs(one - other) <= tolerance * max(abs(one), abs(other))


def first(pattern: re.Pattern[str], lines: Iterable[Line]) -> re.Match[str] | None:
    """The first match in any line."""
    for line in lines:
        if found := pattern.search(line.text):
            return found
    return None


def distinct(pattern: re.Pattern[str], lines: Iterable[Line]) -> list[str]:
    """The different first groups of all matches, in order."""
    search = pattern.search
    return list(dict.fromkeys(found[1].strip() for line in lines if (found := search(line.text))))
