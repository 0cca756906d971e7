"""Where in a file one run ends and the next begins, and of which tool it is. Pure; one pass over the lines.

A tool is known by lines that only it prints, never by the name of the file. Ranks of one `mpirun` are one run: a new
run begins when a tool starts while none of those that started before is still going on. A command line with `-np N`
above says how many belong together even when each one's output came in one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from vtax.tools import log_formats
from vtax.tools.commands import prompt
from vtax.tools.reading import Line, Section
from vtax.tools.tool import LogFormat, never

SECTION_CHARS = 32 * 2**20  # of one run; what is longer is cut there, and its reader says what is missing
PREAMBLE_LINES = 40  # above the first line of a tool: titles, prompts, a login banner
RANKS = re.compile(r" -{1,2}(?:np|n|ntasks)[ =](\d{1,5})\b")


@dataclass
class _Open:
    """The section that lines are being added to, and the formats that it may have."""

    formats: tuple[LogFormat, ...]
    lines: list[Line]
    expected: int
    chars: int = 0
    started: int = field(init=False)
    ended: int = 0

    def __post_init__(self) -> None:
        self.started = int(self.formats[0].begins is never)

    @property
    def over(self) -> bool:
        """Whether all that started have ended, and as many as the command line promised."""
        return self.started > 0 and self.ended >= self.started and self.started >= self.expected

    def goes_on(self, formats: tuple[LogFormat, ...]) -> bool:
        """Whether a line with which runs of `formats` start is still part of this run."""
        mine = self.formats[0]
        if formats[0] is mine:
            return mine.together and not self.over
        return formats[0].name in mine.holds and not self.over

    def add(self, line: Line) -> None:
        mine, text = self.formats[0], line.text
        self.lines.append(line)
        self.chars += len(text) + 1
        if mine.begins is not never:
            self.started += mine.begins(text)
        if mine.ends is not never:
            self.ended += mine.ends(text)

    def chosen(self) -> LogFormat | None:
        """Of formats that start with the same line, the one whose mark is in the run, or one that needs none. None
        where nothing proves that it is of any of them: every document begins with a brace."""
        plain = [one for one in self.formats if not one.mark]
        marked = (one for one in self.formats if one.mark and any(one.mark in line.text for line in self.lines))
        return next(marked, plain[0] if plain else None)


def _by_first(formats: Iterable[LogFormat]) -> Mapping[str, tuple[LogFormat, ...]]:
    """Character -> the formats whose first line may begin with it."""
    found: dict[str, tuple[LogFormat, ...]] = {}
    for one in formats:
        for character in one.first:
            found[character] = (*found.get(character, ()), one)
    return found


@dataclass
class Cutter:
    """Lines go in, finished sections come out."""

    formats: Iterable[LogFormat] = field(default_factory=lambda: log_formats().values())
    open: _Open | None = None
    preamble: list[Line] = field(default_factory=list)
    expected: int = 1

    def __post_init__(self) -> None:
        every = tuple(self.formats)
        self.prompt = prompt()
        self.within = _by_first(one for one in every if not one.outside)
        self.outside = _by_first(one for one in every if one.outside)
        self.firsts = {*self.within, *self.outside}

    def sections(self, lines: Iterable[Line]) -> Iterator[Section]:
        for line in lines:
            if done := self.feed(line):
                yield done
        if done := self.close():
            yield done

    def feed(self, line: Line) -> Section | None:
        """Take a line; the section that it ended, if it did."""
        text, done = line.text, None
        if self.open and self.open.chars > SECTION_CHARS:
            done = self.close()
        if ("$" in text or "#" in text or ">" in text) and self.prompt.match(text):
            done = self.close() or done
            ranks = RANKS.search(text)
            self.expected = int(ranks[1]) if ranks and ("mpi" in text or "srun" in text) else 1
            self._above(line)
            return done
        formats = self._starting(text) if text[:1] in self.firsts else ()
        if formats and not (self.open and self.open.goes_on(formats)):
            done = self.close() or done
            self.open = _Open(formats, self.preamble, self.expected, sum(len(above.text) for above in self.preamble))
            self.preamble = []
        if self.open:
            self.open.add(line)
        else:
            self._above(line)
        return done

    def _starting(self, text: str) -> tuple[LogFormat, ...]:
        """The formats with whose first line a run may start here. Cheap tests first: files have millions of lines."""
        first, now = text[:1], self.open
        formats = self.within.get(first, ())
        if formats:
            formats = tuple(one for one in formats if one.starts(text))
            if formats and now and formats[0] is now.formats[0] and formats[0].restarts:
                return formats if formats[0].restarts(text) else ()
        if not formats and now is None:
            formats = tuple(one for one in self.outside.get(first, ()) if one.starts(text))
        return formats

    def _above(self, line: Line) -> None:
        self.preamble.append(line)
        del self.preamble[:-PREAMBLE_LINES]

    def close(self) -> Section | None:
        """End the section that is open. A prompt or title at its end is left there: it may belong to either."""
        done, self.open = self.open, None
        if done is None:
            return None
        self.expected = 1
        chosen, tail = done.chosen(), []
        if chosen is None:
            return None
        while done.lines and chosen.titles(done.lines[-1].text):
            tail.append(done.lines.pop())
        self.preamble = tail[::-1]
        return Section(chosen.name, tuple(done.lines))


def cut(lines: Iterable[Line]) -> Iterator[Section]:
    """The runs in the lines of one file, in order. Lines outside any run are left out."""
    return Cutter().sections(lines)
