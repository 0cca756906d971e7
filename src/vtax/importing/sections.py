"""Where in a file one run ends and the next begins, and of which tool it is. Pure; one pass over the lines.

A tool is known by lines that only it prints, never by the name of the file. Ranks of one `mpirun` are one run: a new
run begins when a tool starts while none of those that started before is still going on. A command line with `-np N`
above says how many belong together even when each one's output came in one piece. JSON objects are runs of their own,
wherever they are (`documents`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from vtax.importing.documents import Open, begins_document, inner
from vtax.importing.prefixes import overwritten, scheme_and_lines, separated
from vtax.tools import Registry, registry
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
        where nothing proves that it is of any of them."""
        plain = [one for one in self.formats if not one.mark]
        marked = (one for one in self.formats if one.mark and _marked(one, self.lines))
        return next(marked, plain[0] if plain else None)


def _marked(one: LogFormat, lines: Iterable[Line]) -> bool:
    text = "\n".join([line.text for line in lines])
    return any(mark in text for mark in one.marks)


def _by_first(formats: Iterable[LogFormat]) -> Mapping[str, tuple[LogFormat, ...]]:
    """Character -> the formats whose first line may begin with it."""
    found: dict[str, tuple[LogFormat, ...]] = {}
    for one in formats:
        for character in one.first:
            found[character] = (*found.get(character, ()), one)
    return found


class Known(NamedTuple):
    """All formats, as they are looked for."""

    documents: tuple[LogFormat, ...]
    within: Mapping[str, tuple[LogFormat, ...]]  # by the first character, also inside of a run
    apart: Mapping[str, tuple[LogFormat, ...]]  # by the first character, outside of runs only
    marks: tuple[str, ...]  # of documents


@lru_cache(maxsize=2)
def _sorted(tools: Registry) -> Known:
    every = tuple(tools.formats.values())
    documents = tuple(one for one in every if one.document)
    plain = [one for one in every if not one.document]
    within, apart = _by_first(one for one in plain if not one.outside), _by_first(one for one in plain if one.outside)
    return Known(documents, within, apart, tuple(mark for one in documents for mark in one.marks))


def _known() -> Known:
    return _sorted(registry())


def _nothing(_line: Line) -> None:
    pass


@dataclass
class Cutter:
    """Lines of one source go in, finished sections come out. `outside` is given every line that is in none."""

    source: str = ""
    outside: Callable[[Line], None] = _nothing
    open: _Open | None = None
    document: Open | None = None
    preamble: list[Line] = field(default_factory=list)
    expected: int = 1
    seen: set[str] = field(default_factory=set)  # names of the formats of runs so far

    def __post_init__(self) -> None:
        self.prompt = prompt()
        self.documents, self.within, self.apart, _ = _known()
        self.firsts = {*self.within, *self.apart}

    def sections(self, lines: Iterable[Line]) -> Iterator[Section]:
        for line in lines:
            if not self.continues(line):
                yield from self.feed(line)
        yield from self.finish()

    def continues(self, line: Line) -> bool:
        """Add a line that neither ends nor begins anything, as nearly all are; False for one that `feed` must take."""
        text, now = line.text, self.open
        if self.document is not None:
            return self.document.chars + len(text) < SECTION_CHARS and self.document.holds(line)
        if now is None or now.chars > SECTION_CHARS:
            return False
        if "{" in text or "$" in text or "#" in text or ">" in text:
            return False
        if text[:1] in self.firsts and self._starting(text):
            return False
        now.add(line)
        return True

    def feed(self, line: Line) -> Iterator[Section]:
        """Take a line; the sections that it ended."""
        text = line.text
        if self.document is not None:
            if not self._interrupts(text):
                yield from self._into_document(line)
                return
            yield from self._document_ends()
        if text[:1] in "{[ \t," and text and begins_document(text) and not self._starting(text):
            self.document = Open()
            yield from self._into_document(line)
            return
        yield from self._plain(line)

    def finish(self) -> Iterator[Section]:
        """The end of the lines."""
        if self.document is not None:
            yield from self._document_ends()
        if done := self._close():
            yield done
        for line in self.preamble:
            self.outside(line)
        self.preamble = []

    def _interrupts(self, text: str) -> bool:
        """Whether a line cannot be inside the object that is open: an object or a run of a tool begins at its start."""
        assert self.document is not None
        if text[:1] == "{":
            return self.document.resembles(text)
        return text[:1] not in ' \t}]"' and text[:1] in self.firsts and bool(self._starting(text))

    def _into_document(self, line: Line) -> Iterator[Section]:
        """Add a line to the object that is open; another one may begin behind its end."""
        assert self.document is not None
        rest = self.document.add(line)
        if rest is None:
            if self.document.chars > SECTION_CHARS:
                yield from self._document_ends()
            return
        yield from self._document_ends()
        if begins_document(rest):
            self.document = Open()
            yield from self._into_document(line._replace(text=rest))

    def _document_ends(self) -> Iterator[Section]:
        """The object as a section, or its lines as any others where it is not of a tool."""
        done, self.document = self.document, None
        assert done is not None
        text = "\n".join([line.text for line in done.lines])
        chosen = next((one for one in self.documents if any(mark in text for mark in one.marks)), None)
        if chosen is None:
            for line in done.whole:
                yield from self._plain(line)
            return
        above: list[Line] = []
        if self.open is not None:
            if section := self._close():
                yield section
        else:
            above, self.preamble = self._titles(), []
        several, others = inner(done.lines, self.documents)
        if not several:
            yield Section(chosen.name, (*above, *done.lines), self.source)
            return
        for line in (*above, *others):
            self.outside(line)
        named = len({one.path for one in several}) > 1  # names may say what tells the runs apart
        for one in several:
            yield Section(one.format.name, one.lines, " ".join(filter(None, (self.source, one.path if named else ""))))

    def _titles(self) -> list[Line]:
        """The lines above an object that are no part of another one."""
        braces = [place for place, line in enumerate(self.preamble) if line.text[:1] in ("{", "}", "[", "]")]
        first = braces[-1] + 1 if braces else 0
        for line in self.preamble[:first]:
            self.outside(line)
        return self.preamble[first:]

    def _plain(self, line: Line) -> Iterator[Section]:
        text = line.text
        if self.open and self.open.chars > SECTION_CHARS and (done := self._close()):
            yield done
        if ("$" in text or "#" in text or ">" in text) and self.prompt.match(text):
            if done := self._close():
                yield done
            ranks = RANKS.search(text)
            self.expected = int(ranks[1]) if ranks and ("mpi" in text or "srun" in text) else 1
            self._above(line)
            return
        formats = self._starting(text) if text[:1] in self.firsts else ()
        if formats and not (self.open and self.open.goes_on(formats)):
            if done := self._close():
                yield done
            self.seen.add(formats[0].name)
            self.open = _Open(formats, self.preamble, self.expected, sum(len(above.text) for above in self.preamble))
            self.preamble = []
        if self.open:
            self.open.add(line)
        else:
            self._above(line)

    def _starting(self, text: str) -> tuple[LogFormat, ...]:
        """The formats with whose first line a run may start here. Cheap tests first: files have millions of lines."""
        first, now = text[:1], self.open
        formats: tuple[LogFormat, ...] = ()
        for one in self.within.get(first, ()):
            if one.starts(text):
                formats = (*formats, one)
        if formats:
            if now and formats[0] is now.formats[0] and formats[0].restarts:
                return formats if formats[0].restarts(text) else ()
        elif now is None:
            formats = tuple([one for one in self.apart.get(first, ()) if one.starts(text)])
        return tuple([one for one in formats if self.seen.isdisjoint(one.never_after)]) if formats else ()

    def _above(self, line: Line) -> None:
        self.preamble.append(line)
        for dropped in self.preamble[:-PREAMBLE_LINES]:
            self.outside(dropped)
        del self.preamble[:-PREAMBLE_LINES]

    def _close(self) -> Section | None:
        """End the section that is open. A prompt or title at its end is left there: it may belong to either."""
        done, self.open = self.open, None
        if done is None:
            return None
        self.expected = 1
        chosen, tail = done.chosen(), []
        if chosen is None:
            for line in done.lines:
                self.outside(line)
            return None
        while done.lines and chosen.titles(done.lines[-1].text):
            tail.append(done.lines.pop())
        self.preamble = tail[::-1]
        return Section(chosen.name, tuple(done.lines), self.source)


def cut(lines: Iterable[Line], outside: Callable[[Line], None] = _nothing) -> Iterator[Section]:
    """The runs in the lines of one file: of every source that prefixes of lines name, in the order of their ends.

    Lines in no run are given to `outside`. Ranks are separated where a tool's runs are of one process.
    """
    scheme, head, every = scheme_and_lines(lines, _recognised)
    ranks = scheme is not None or any(line.rank for line in head)
    by_rank = ranks and _apart(separated(head, scheme))
    if scheme is None and not by_rank:
        yield from Cutter(outside=outside).sections(map(overwritten, every))
        return
    cutters: dict[str, Cutter] = {}
    for key, name, line in separated(every, scheme):
        if by_rank and line.rank:
            key, name = f"{key}\0{line.rank}", f"{name} rank {line.rank}".strip()
        cutter = cutters.get(key)
        if cutter is None:
            cutter = cutters[key] = Cutter(source=name, outside=outside)
        if not cutter.continues(line):
            yield from cutter.feed(line)
    for cutter in cutters.values():
        yield from cutter.finish()


def _recognised(texts: Sequence[str]) -> bool:
    """Whether the output of a tool begins in these lines."""
    known, marks = _known().within, _known().marks
    for text in texts:
        for one in known.get(text[:1], ()):
            if one.starts(text):
                return True
    if not any(begins_document(text) for text in texts):
        return False
    whole = "\n".join(texts)
    return any(mark in whole for mark in marks)


def _format_of(text: str, known: Mapping[str, tuple[LogFormat, ...]]) -> LogFormat | None:
    return next((one for one in known.get(text[:1], ()) if one.starts(text)), None)


def _apart(lines: Iterable[tuple[str, str, Line]]) -> bool:
    """Whether several ranks each print runs of a tool whose runs are of one process."""
    _, within, apart, _ = _known()
    begun: set[str] = set()
    for _, _, line in lines:
        if line.rank and (known := _format_of(line.text, within) or _format_of(line.text, apart)):
            if known.together:
                return False
            begun.add(line.rank)
    return len(begun) > 1
