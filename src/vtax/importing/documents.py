"""JSON objects in the lines of a file: one over many lines, one a line (NDJSON), several on a line, or in a list."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vtax.tools.documents import DECODER, members
from vtax.tools.reading import Line
from vtax.tools.tool import LogFormat

BEGIN = re.compile(r"^[\s,]{0,40}\[?\s{0,40}\{\s{0,40}(?:$|[\"}])")
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')
SAME = 9  # characters with which objects of one kind begin, each on its line
BETWEEN = " \t,]"  # what may be between two objects
DEPTH = 8  # of objects and lists around a run


def begins_document(text: str) -> bool:
    """Whether an object may begin on this line."""
    return "{" in text and BEGIN.match(text) is not None


@dataclass
class Open:
    """An object whose lines are being collected. `lines` begin and end with its braces; `whole` are as in the file."""

    lines: list[Line] = field(default_factory=list)
    whole: list[Line] = field(default_factory=list)
    depth: int = 0
    chars: int = 0

    def resembles(self, text: str) -> bool:
        """Whether a line can only begin another object: none inside of this one begins at the start of a line, unless
        this one's first line has more than a brace, and then other objects begin like it."""
        first = self.lines[0].text.strip() if self.lines else ""
        return first == "{" or text[:SAME] == first[:SAME]

    def holds(self, line: Line) -> bool:
        """Add a line that can only be inside of this object, as nearly all are; False for one that `add` must take."""
        text = line.text
        if text[:1] not in " \t" or "{" in text or "}" in text or not self.lines:
            return False
        self.whole.append(line)
        self.lines.append(line)
        self.chars += len(text) + 1
        return True

    def add(self, line: Line) -> str | None:
        """Take a line. What is behind the end of the object, if it ends here; None while it goes on."""
        text = line.text
        self.whole.append(line)
        if not self.lines:
            text = text[text.index("{") :]
            line = line._replace(text=text)
        self.chars += len(text) + 1
        if "{" in text or "}" in text:
            for token in TOKENS.finditer(text):
                if token[0] == "{":
                    self.depth += 1
                elif token[0] == "}":
                    self.depth -= 1
                    if self.depth <= 0:
                        self.lines.append(line._replace(text=text[: token.end()]))
                        return text[token.end() :].strip(BETWEEN)
        self.lines.append(line)
        return None


class Inner(NamedTuple):
    """A run inside of another program's object: its lines, and the names that lead to it."""

    format: LogFormat
    lines: tuple[Line, ...]
    path: str


def inner(lines: Sequence[Line], formats: Sequence[LogFormat]) -> tuple[list[Inner], list[Line]]:
    """The runs in an object that is no run itself, and its other lines. None where it is one, or cannot be read."""
    text = "\n".join([line.text for line in lines])
    try:
        value = json.loads(text)
        if not isinstance(value, dict) or any(one.whole is not None and one.whole(value) for one in formats):
            return [], []
        places = list(_runs(text, 0, formats))
    except (ValueError, RecursionError):  # the reader says where
        return [], []
    ends = [found.start() for found in re.finditer("\n", text)]
    found, taken = [], set[int]()
    for one, begin, end, path in places:
        first, last = bisect_left(ends, begin), bisect_left(ends, end)
        texts = text[begin:end].split("\n")
        own = tuple(line._replace(text=part) for line, part in zip(lines[first : last + 1], texts, strict=True))
        found.append(Inner(one, own, ".".join(path)))
        taken.update(range(first, last + 1))
    return found, [line for place, line in enumerate(lines) if place not in taken] if found else []


def _runs(
    text: str, at: int, formats: Sequence[LogFormat], path: tuple[str, ...] = (), depth: int = 1
) -> Iterator[tuple[LogFormat, int, int, tuple[str, ...]]]:
    """Every run below the object or list that begins at `at`: its format, where it begins and ends, and its path."""
    for name, begin in members(text, at):
        if text[begin] not in "{[":
            continue
        value, end = DECODER.raw_decode(text, begin)
        below = (*path, name) if isinstance(name, str) else path
        known = isinstance(value, dict) and next((one for one in formats if one.whole and one.whole(value)), None)
        if known and any(mark in text[begin:end] for mark in known.marks):
            yield known, begin, end, below
        elif depth < DEPTH:
            yield from _runs(text, begin, formats, below, depth + 1)
