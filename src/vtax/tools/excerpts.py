"""Where in an output something stands, so that an error names the line. Unsure is unsure: then there is no place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from vtax.model.trial import TrialRecord

WORD = r"[-+]?(?:(?i:nan|inf(?:inity)?)|[\d.]+(?:[eE][-+]?\d+)?)"  # what a tool may print in the place of a number
LOOSE = {r"[\d.]+": WORD, r"\d+": WORD, r"\d{1,9}": WORD, r"[ \d]*": r"[-+ \w.]*"}
STRICT = re.compile("|".join(map(re.escape, LOOSE)))
TOKEN = re.compile(r"[-+\w.]+")
IMPOSSIBLE = re.compile(r"(?<![\w.])(?:[-+]?(?:nan|inf(?:inity)?)|-\d[\d.]*)(?![\w.])", re.IGNORECASE)
JSON_SPACE = re.compile(r"[ \t\n\r]*")
JSON_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(-?(?:NaN|Infinity))')


class Piece(str):
    """A part of an output that knows where in the whole it stands."""

    whole: str
    start: int

    @classmethod
    def of(cls, whole: str, start: int, end: int | None = None) -> Piece:
        """From `start` to `end`, or to the end of the line."""
        if end is None:
            end = whole.find("\n", start)
        piece = cls(whole[start:] if end < 0 else whole[start:end])
        piece.whole, piece.start = whole, start
        return piece

    @property
    def line(self) -> int:
        """The number of its first line, from 1."""
        return self.whole.count("\n", 0, self.start) + 1


def pieces(match: re.Match[str]) -> tuple[Piece, ...]:
    """The groups of a match; one that took no part is an empty piece where the match begins."""
    found = []
    for group in range(1, match.re.groups + 1):
        start, end = match.span(group) if match[group] is not None else (match.start(), match.start())
        found.append(Piece.of(match.string, start, end))
    return tuple(found)


def file_of(record: TrialRecord, text: str) -> str:
    """The file of a trial that holds `text`; "" when there is none, or when several may be meant."""
    kinds = (
        {name for step in record.steps for name in step.outputs.values()},
        {step.stdout for step in record.steps},
        {step.stderr for step in record.steps},
    )
    for kind in kinds:
        held = [name for name in kind if record.texts.get(name) == text]
        held = [name for name in held if record.texts[name] is text] or held
        if held:
            return held[0] if len(held) == 1 else ""
    return ""


def misfit(pattern: re.Pattern[str], text: str) -> str:
    """The piece of `text` that keeps it from having another match of `pattern`; all of `text` when that is unsure.

    That is a word such as "nan" where the pattern has a number, the line after the last one that fits a pattern of
    several lines, or the last line of an output that was cut.
    """
    for find in (_wrong_word, _line_after_fit, _cut_line):
        if (start := find(pattern, text)) is not None:
            return Piece.of(text, start)
    return text


def _wrong_word(pattern: re.Pattern[str], text: str) -> int | None:
    """Where the word is that another match would need another number for, in the only text that is like a match."""
    loose = re.compile(STRICT.sub(lambda number: LOOSE[number[0]], pattern.pattern), pattern.flags)
    fits = {match.start() for match in pattern.finditer(text)}
    others = [match for match in loose.finditer(text) if match.start() not in fits]
    if len(others) != 1:
        return None
    start, fit = others[0].start(), others[0][0]
    for word in TOKEN.finditer(fit):
        if not word[0].isdecimal() and pattern.match(f"{fit[: word.start()]}1{fit[word.end() :]}"):
            return start + word.start()
    if impossible := IMPOSSIBLE.search(fit):  # there are several
        return start + impossible.start()
    return None if "\n" in fit.rstrip("\n") else start


def _line_after_fit(pattern: re.Pattern[str], text: str) -> int | None:
    lines = pattern.pattern.split(r"\n")
    after = None
    for count in range(1, len(lines)):
        try:
            head = re.compile(r"\n".join(lines[:count]) + r"\n", pattern.flags)
        except re.error:  # the lines end inside a group
            return None
        found = list(head.finditer(text))
        if len(found) != 1:
            break
        after = min(found[0].end(), len(text) - 1)
    return after


def _cut_line(_: re.Pattern[str], text: str) -> int | None:
    return None if not text or text.endswith("\n") else text.rfind("\n") + 1


def blame(*numbers: str) -> str:
    """Of numbers that do not fit together, the only one that is not above zero; else the whole output."""
    bad = [number for number in numbers if not float(number) > 0]
    first = numbers[0]
    return bad[0] if len(bad) == 1 else first.whole if isinstance(first, Piece) else first


def json_constant(text: str) -> str:
    """The first NaN or Infinity of a JSON document."""
    found = next((match for match in JSON_CONSTANT.finditer(text) if match[1]), None)
    return text if found is None else Piece.of(text, *found.span())


def json_value(text: str, path: tuple[str | int, ...]) -> str:
    """What stands under `path` in a JSON document; the whole document when there is nothing."""
    start, end = _after_space(text, 0), len(text)
    for key in path:
        found = [(first, last) for name, first, last in _members(text, start) if name == key]
        if not found:
            return text
        start, end = found[-1]  # as json itself: of a key that stands there twice the last value
    return Piece.of(text, start, end)


def _members(text: str, at: int) -> Iterator[tuple[str | int, int, int]]:
    """Key or index, start and end of everything in the object or list that begins at `at`."""
    decoder, closed, index = json.JSONDecoder(), {"{": "}", "[": "]"}.get(text[at], ""), 0
    at = _after_space(text, at + 1)
    while closed and text[at] != closed:
        name: str | int = index
        if closed == "}":
            name, at = decoder.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # past the colon
        _, end = decoder.raw_decode(text, at)
        yield name, at, end
        at, index = _after_space(text, end), index + 1
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    match = JSON_SPACE.match(text, at)
    return match.end() if match else at
