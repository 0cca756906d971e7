"""Regular expressions of users, run by RE2: in time that grows with the text and never with its content.

RE2 has no backreferences and no look-around, so a pattern with one of these is a mistake. `^` and `$` are the beginning
and the end of a line. A program that no longer fits RE2's memory runs instruction by instruction, so its size is
bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, NamedTuple

import re2
from pydantic import AfterValidator, Field

LONGEST = 1000  # characters of a pattern
LARGEST_PROGRAM = 500  # instructions: at most some 8 ns for each of them and byte of the text
WHY = (
    (
        re.compile(r"\(\?<?[=!]"),
        "look-ahead and look-behind are not supported: match what is around the number instead",
    ),
    (re.compile(r"\\[1-9]|\(\?P="), "backreferences are not supported"),
    (re.compile(r"[*+?}]\+|\(\?>"), "possessive repetitions and atomic groups are not supported, and not needed"),
    (re.compile(r"\\Z"), r"the end of the text is \z"),
    (re.compile(r"\(\?[(#]"), "conditions and comments are not supported"),
)


class Match(NamedTuple):
    """One place where a pattern matches: positions are bytes of the text."""

    start: int
    end: int
    group: tuple[int, int]  # the first group's place; (-1, -1) where it took no part


class Pattern:
    """A compiled pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._compiled = _compiled("(?m)" + text)

    @property
    def groups(self) -> int:
        return int(self._compiled.groups)

    @property
    def size(self) -> int:
        """Instructions of its program."""
        return int(self._compiled.programsize)

    def found(self, text: str) -> bool:
        """Whether it matches anywhere in `text`."""
        return self._compiled.search(encoded(text)) is not None

    def matches(self, data: bytes) -> Iterator[Match]:
        """Every place where it matches, from left to right, without overlaps."""
        for match in self._compiled.finditer(data):
            yield Match(match.start(), match.end(), match.span(1) if self.groups else (-1, -1))

    def removed(self, data: bytes) -> bytes:
        """Without everything that it matches."""
        end, kept = 0, []
        for match in self.matches(data):
            kept.append(data[end : match.start])
            end = match.end
        return b"".join((*kept, data[end:]))


def encoded(text: str) -> bytes:
    """A text as RE2 takes it. Halves of surrogate pairs, which no file contains, become question marks."""
    return text.encode("utf-8", "replace")


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Pattern:
    """The pattern in `text`. Raises ValueError, in words for a study's author, when it cannot be used."""
    if len(text) > LONGEST:
        raise ValueError(f"a pattern has at most {LONGEST} characters")
    if not text:
        raise ValueError("the pattern is empty")
    try:
        _compiled(text)  # by itself first: "a)(b" must not become right by what is put around it
        pattern = Pattern(text)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(_explained(text, error)) from error
    if pattern.size > LARGEST_PROGRAM:
        raise ValueError("the pattern is too large: use smaller repetitions, such as x* instead of x{500}")
    return pattern


def _compiled(text: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(text, options)


def _explained(text: str, error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "the pattern is not valid Unicode"
    said = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
    place = said.partition(": ")[2]
    reasons = [words for pattern, words in WHY if pattern.search(place or text)] or [
        words for pattern, words in WHY if pattern.search(text)
    ]
    return f"{said}; {reasons[0]}" if reasons else said


def _usable(text: str) -> str:
    compile_pattern(text)
    return text


def _with_one_group(text: str) -> str:
    groups = compile_pattern(text).groups
    if groups != 1:
        raise ValueError(
            f"the pattern has {groups} groups, and exactly one is the number: write ( ) around it, and (?: ) elsewhere"
        )
    return text


PatternText = Annotated[str, Field(max_length=LONGEST), AfterValidator(_usable)]  # that is only looked for
NumberPattern = Annotated[str, Field(max_length=LONGEST), AfterValidator(_with_one_group)]  # whose group is a number
