"""Paths into a JSON document: `$.results[0].mean`, `$["p 99"]`, and `$.runs[*].time` for several numbers.

A path is `$` and then names (`.name`, or in brackets and quotes), indices from 0, and `[*]` for all elements of a list.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final

from vtax.tools.documents import Document, Unfit, members, number_of
from vtax.tools.reading import Line, number

STEP = re.compile(
    r"""\.([A-Za-z_][A-Za-z0-9_-]{0,199})|\[(\d{1,9})\]|\[(\*)\]|\[("(?:[^"\\]|\\.){0,200}"|'[^'\\]{0,200}')\]"""
)
MOST_STEPS = 20
SHOWN_KEYS = 8


class Every(Enum):
    """Stands for all elements of a list, as `[*]` does; the name "*" is another thing."""

    ELEMENT = "[*]"


EVERY: Final = Every.ELEMENT
Step = str | int | Every


def steps_of(path: str) -> tuple[Step, ...]:
    """The parts of a path. Raises ValueError, with what is allowed, when it is not one."""
    if not path.startswith("$"):
        raise ValueError("a path begins with $, such as $.results[0].mean")
    at, steps = 1, list[Step]()
    while at < len(path):
        part = STEP.match(path, at)
        if part is None:
            raise ValueError(
                f'cannot read the path from {path[at : at + 20]!r} on; its parts are .name, [0], [*] and ["a name"]'
            )
        steps.append(_step(part))
        at = part.end()
    if len(steps) > MOST_STEPS:
        raise ValueError(f"a path has at most {MOST_STEPS} parts")
    return tuple(steps)


def _step(part: re.Match[str]) -> Step:
    name, index, every, quoted = part.groups()
    if every:
        return EVERY
    if index:
        return int(index)
    if quoted is None:
        return name
    try:
        return str(json.loads(quoted)) if quoted[0] == '"' else quoted[1:-1]
    except ValueError as error:
        raise ValueError(f"{quoted} is not a name: {error}") from error


class Node:
    """A value of a document, what it is called in messages, and its line. Its parts are found once, when asked for."""

    def __init__(self, source: Source, value: Any, at: int, where: str) -> None:
        self.value, self.where = value, where
        self._source, self._at = source, at
        self._inside: dict[str | int, int] | None = None

    @property
    def line(self) -> int:
        return self._source.line_at(self._at)

    def get(self, key: str | int) -> Node | None:
        """The part under a name, or at an index; None when there is none."""
        value = self.value
        if isinstance(value, dict) if isinstance(key, str) else isinstance(value, list) and key < len(value):
            if self._inside is None:
                self._inside = dict(members(self._source.text, self._at))
            if key in self._inside:
                where = f"{self.where}{_written(key)}"
                return Node(self._source, value[key], self._inside[key], where)
        return None

    def at(self, *path: str | int) -> Node:
        """The part under a path. Raises Unfit, with what is there, when there is none."""
        node = self
        for key in path:
            part = node.get(key)
            if part is None:
                raise Unfit(node.line, f"there is no {node.where}{_written(key)}: {node.where} {_holds(node.value)}")
            node = part
        return node

    def every(self) -> Iterator[Node]:
        """The elements of a list, of which there is one at least. Raises Unfit for anything else."""
        if not isinstance(self.value, list) or not self.value:
            raise Unfit(self.line, f"{self.where} {_holds(self.value)}, not a list with something in it")
        for index in range(len(self.value)):
            yield self.at(index)

    def number(self) -> float:
        """The number that it is, also where it is written as a string. Raises Unfit for anything else."""
        value = number(self.value.strip()) if isinstance(self.value, str) else number_of(self.value)
        if value is None:
            raise Unfit(self.line, f"{self.where} is {_shown(self.value)}, not a finite number of zero or more")
        return value

    def string(self) -> str:
        """The text that it is. Raises Unfit for anything else."""
        if not isinstance(self.value, str):
            raise Unfit(self.line, f"{self.where} is {_shown(self.value)}, not a text")
        return self.value

    def found(self, steps: Sequence[Step]) -> Iterator[Node]:
        """Every value under a path, in order. Raises Unfit where a part of it leads nowhere."""
        if not steps:
            yield self
            return
        step, rest = steps[0], steps[1:]
        for part in self.every() if isinstance(step, Every) else (self.at(step),):
            yield from part.found(rest)


class Source:
    """The text of a document, and the lines in it."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.text = "\n".join(line.text for line in lines)
        self._numbers = [line.number for line in lines]  # with gaps where lines of other sources are between them
        self._ends = [place.start() for place in re.finditer("\n", self.text)]

    def line_at(self, at: int) -> int:
        return self._numbers[bisect_left(self._ends, at)]


def document(lines: Sequence[Line]) -> Node:
    """The JSON document that an output is, with nothing but blanks around it. Raises Unfit when it is anything else."""
    first = next((place for place, line in enumerate(lines) if line.text.strip()), 0)
    rest = list(lines[first:])
    if rest:
        rest[0] = rest[0]._replace(text=rest[0].text.lstrip())
    found = Document(rest, lists=True)
    if found.rest:
        raise Unfit(0, f"not one JSON document: it is followed by {found.rest[:40]!r}")
    return Node(Source(rest), found.value, 0, "$")


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,199}", step) else f"[{json.dumps(step)}]"


def _holds(value: Any) -> str:
    if isinstance(value, dict):
        more = f" and {len(value) - SHOWN_KEYS} more" if len(value) > SHOWN_KEYS else ""
        names = ", ".join(json.dumps(name[:40], ensure_ascii=False) for name in list(value)[:SHOWN_KEYS])
        return f"has {names}{more}" if value else "is an empty object"
    if isinstance(value, list):
        return f"is a list of {len(value)}"
    return f"is {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**60:
        return "a number of more than 60 digits"
    return json.dumps(value[:60] if isinstance(value, str) else value, ensure_ascii=False)
