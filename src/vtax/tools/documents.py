"""JSON documents that tools print: their values, and the lines that these are on."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from vtax.tools.reading import Line

SPACE = re.compile(r"[ \t\n\r]*")
DECODER = json.JSONDecoder()
LARGEST = 1e300  # JSON has whole numbers that are too large for any float
Path = tuple[str | int, ...]


class Unfit(Exception):
    """A document, or a value in it, cannot be what the tool wrote. `line` is 0 where that is unsure."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line, self.what = line, what


class Document:
    """The JSON object, or where `lists` may be the list, that begins on the first of `lines`.

    Raises Unfit when it is cut, damaged or another thing.
    """

    def __init__(self, lines: Sequence[Line], *, lists: bool = False) -> None:
        self._numbers = [line.number for line in lines]  # with gaps where lines of other sources are between them
        self._text = "\n".join(line.text for line in lines)
        self._inside: dict[int, dict[str | int, int]] = {}  # where the members begin of what begins here
        try:
            self.value, end = json.JSONDecoder(object_pairs_hook=_once).raw_decode(self._text)
        except json.JSONDecodeError as error:
            line = self._line(error.pos) if error.pos < len(self._text) else 0
            raise Unfit(line, f"not one JSON document: {error.msg}") from error
        except RecursionError as error:
            raise Unfit(0, "not one JSON document: its brackets are nested too deeply") from error
        except ValueError as error:
            raise Unfit(0, f"not one JSON document: {str(error)[:100]}") from error
        if not isinstance(self.value, (dict, list) if lists else dict):
            raise Unfit(0, "not one JSON document: not an object" + " and not a list" * lists)
        self.rest = self._text[end:].strip()  # what follows it

    def get(self, *path: str | int) -> Any:
        """The value under `path`; None when there is none."""
        value = self.value
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def at(self, *path: str | int) -> Any:
        """The value under `path`. Raises Unfit when there is none."""
        value = self.get(*path)
        if value is None:
            raise Unfit(0, f"no {dotted(path)}")
        return value

    def number(self, *path: str | int) -> float:
        """The number under `path`, finite and not negative. Raises Unfit for anything else."""
        value = self.at(*path)
        if (number := number_of(value)) is None:
            raise Unfit(self.line(*path), f"{dotted(path)} is {value!r}, not a finite number of zero or more")
        return number

    def line(self, *path: str | int) -> int:
        """The line that the value under `path` begins on; 0 when there is none."""
        start = self._place(path)
        return 0 if start is None else self._line(start)

    def elements(self, *path: str | int) -> list[Element]:
        """The elements of the list under `path`; none where there is no list."""
        several, start = self.get(*path), self._place(path)
        if not isinstance(several, list) or start is None:
            return []
        places = members(self._text, start)
        return [Element(self, value, at) for value, (_, at) in zip(several, places, strict=True)]

    def _place(self, path: Path, start: int = 0) -> int | None:
        """Where the value under `path` begins, below the value at `start`."""
        for key in path:
            if start not in self._inside:
                self._inside[start] = dict(members(self._text, start))  # of a key that is there twice the last value
            if key not in self._inside[start]:
                return None
            start = self._inside[start][key]
        return start

    def _line(self, at: int) -> int:
        return self._numbers[bisect_left(self._ends, at)]

    @cached_property
    def _ends(self) -> list[int]:
        return [found.start() for found in re.finditer("\n", self._text)]


class Element:
    """An element of a list in a document, and where it is: looking for it again each time would take too long."""

    def __init__(self, document: Document, value: Any, at: int) -> None:
        self.value, self._document, self._at = value, document, at

    def line(self, *path: str | int) -> int:
        """The line that the value under `path` of this element begins on; 0 when there is none."""
        start = self._document._place(path, self._at)
        return 0 if start is None else self._document._line(start)


def number_of(value: object) -> float | None:
    """A finite number of zero or more; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST:
        return None
    return float(value)


def dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no key is there twice with different values (iperf3 writes some of them twice)."""
    found = dict(pairs)
    if any(found[key] is not value and found[key] != value for key, value in pairs):
        raise ValueError("a key appears twice in an object, with different values")
    return found


def members(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """Key or index, and where its value starts, of everything in the object or list that begins at `at`."""
    decoder, closed, index = DECODER, {"{": "}", "[": "]"}.get(text[at], ""), 0
    at = _after_space(text, at + 1)
    while closed and text[at] != closed:
        name: str | int = index
        if closed == "}":
            name, at = decoder.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # past the colon
        yield name, at
        _, end = decoder.raw_decode(text, at)
        at, index = _after_space(text, end), index + 1
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at
