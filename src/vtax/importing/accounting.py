"""What became of every line of a file: a value, a refusal, numbers that are not taken (by name), or prose. Pure.

Prose is a line without a number next to a known unit. Nothing is silent: of what is not taken, the report says how many
lines there are, what they are, and where the first one is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from vtax.tools import log_formats
from vtax.tools.reading import Line, Reading, Section

UNIT = (
    r"(?:%|[numµμ]?s(?:ecs?|econds?)?|min|h|cycles|[kKMGTP]?i?(?:[Bb]|[Bb]ytes?|bits?)(?:/s(?:ec)?(?:ond)?|ps)?"
    r"|[kKMGTP]?(?:[Ff]lops?|FLOPS|FLOP)(?:/s)?|GUP/s|[a-z]{2,12}/s(?:ec)?|/s(?:ec)?|per sec(?:ond|\.)?|tps|[KM]?IOPS"
    r"|[numkMG]?Hz|ops|requests|transactions|queries|updates)"
)
NUMBER = r"\d{1,20}(?:[.,]\d{1,20})?(?:[eE][+-]?\d{1,3})?"
# Two patterns that begin with a set of characters: `search` then skips everything else at once
WITH_UNIT = re.compile(
    rf"[0-9](?<![\w.].)\d{{0,19}}(?:[.,]\d{{1,20}})?(?:[eE][+-]?\d{{1,3}})? {{0,3}}[(\[]?{UNIT}(?![\w/])"
)
UNIT_FIRST = re.compile(rf"[(\[,]{UNIT}[)\]]? {{0,3}}[:=] {{0,12}}{NUMBER}")
IN_JSON = re.compile(
    rf'"\w{{0,60}}(?:bytes|seconds|usec|msec|latency|time|rate|bw|iops|bits_per_second|_[num]?s)"\s{{0,8}}:\s{{0,8}}{NUMBER}'
)
OUTSIDE = "numbers outside any run"
OTHER = "numbers that vtax does not take"


@dataclass
class Rest:
    """Lines of one name that are not taken."""

    lines: int = 0
    first: int = 0

    def add(self, line: int) -> None:
        self.lines += 1
        self.first = min(self.first or line, line)


@dataclass
class Account:
    """The lines of one file, counted."""

    lines: int = 0
    values: int = 0
    refused: int = 0
    rest: dict[str, Rest] = field(default_factory=dict)

    @property
    def remainder(self) -> int:
        return sum(one.lines for one in self.rest.values())

    @property
    def prose(self) -> int:
        return self.lines - self.values - self.refused - self.remainder

    def outside(self, line: Line) -> None:
        """Count a line that is in no run."""
        self.lines += 1
        if has_quantity(line.text):
            self.rest.setdefault(OUTSIDE, Rest()).add(line.number)

    def run(self, section: Section, reading: Reading) -> None:
        """Count the lines of a run that was read."""
        taken = {value.line for value in reading.values}
        refused = {refusal.line for refusal in reading.refusals}
        whole = not taken and bool(refused)
        document = section.lines[-1].text.endswith("}") if section.lines else False
        self.lines += len(section.lines)
        for line in section.lines:
            if line.number in taken:
                self.values += 1
            elif whole or line.number in refused:
                self.refused += 1
            elif name := _name(section.tool, line.text):  # also what has no unit, such as the rows of a histogram
                self.rest.setdefault(name, Rest()).add(line.number)
            elif IN_JSON.search(line.text) if document else has_quantity(line.text):
                self.rest.setdefault(OTHER, Rest()).add(line.number)


def has_quantity(text: str) -> bool:
    """Whether a line has a number next to a unit that vtax knows."""
    if WITH_UNIT.search(text):
        return True
    return (":" in text or "=" in text) and UNIT_FIRST.search(text) is not None


def _name(tool: str, text: str) -> str:
    """What a line with a number is that is not taken, where the tool has a name for it; "" where it has none."""
    return next((name for pattern, name in _names(tool) if pattern.search(text)), "")


@lru_cache(maxsize=64)
def _names(tool: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    known = log_formats().get(tool)
    unread: Mapping[str, str] = known.unread if known else {}
    return tuple((re.compile(pattern), name) for pattern, name in unread.items())
