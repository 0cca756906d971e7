"""Lines of iozone, as it prints them or as spreadsheets save them."""

from __future__ import annotations

from typing import NamedTuple

from vtax.tools.reading import Line

LONGEST_NUMBER = 18  # digits


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
