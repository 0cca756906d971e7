r"""What other programs put in front of every line of a log: names, times, marks of a quotation. Pure.

A file has one scheme of prefixes, at most two deep, or none. Where lines of tools are recognised without removing
anything, nothing is removed, and a prefix that ordinary text may have (`host: `, `> `, blanks) counts only where a
tool's first line is behind it. Each source (service, pod, host and process) has lines of its own; its name labels its
values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from vtax.tools.reading import Line

HEAD_LINES = 2000  # in which the scheme of a file is looked for
SHARE = 0.5  # of the lines that are not empty have the prefix
NEARLY = 0.9  # of them, where only what was printed over shows a tool
FEW = 3  # lines that have a prefix which only some lines have
MOST_SOURCES = 2000
LONGEST = 32 * 2**20  # characters of a line that was written in parts
ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
CTIME = (
    rf"(?:{DAY} {MONTH} [ \d]?\d \d\d:\d\d:\d\d(?: [A-Z]{{3,5}})? \d{{4}}"
    rf"|{DAY} \d\d {MONTH} \d{{4}} \d\d:\d\d:\d\d [AP]M(?: [A-Z]{{3,5}})?)"
)
SHORT = rf"{MONTH} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{{1,6}})?"
FULL = rf"{DAY} \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]{{3,5}}"
LEVEL = "(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)"
POD = r"[a-z0-9][a-z0-9.-]{0,200}-[a-z0-9]{1,10}"
STREAM = "<std(?:out|err|diag)>"
NAME = r"[A-Za-z0-9][\w.-]{0,80}"
PROCESS = r"(?P<process>[\w./@:-]{1,80}(?:\[\d{1,9}\])?)"


class Split(NamedTuple):
    """A line without its prefix. `key` separates sources, `name` is what is written of them, `rank` is MPI's."""

    key: str
    name: str
    rank: str
    text: str
    part: bool = False  # of a long line, which goes on in the next one of its source


@dataclass(frozen=True)
class Prefix:
    """One kind of prefix. `certain` ones are in no output of a tool; `partial` ones are on some lines only."""

    name: str
    pattern: re.Pattern[str]
    certain: bool = True
    partial: bool = False

    def split(self, text: str) -> Split | None:
        found = self.pattern.match(text)
        if found is None:
            return None
        groups = found.groupdict()
        name = groups.get("name") or ""
        key, part = f"{name}{groups.get('process') or ''}", groups.get("part") == "P"
        return Split(key, name, groups.get("rank") or "", text[found.end() :], part)


class DockerJson:
    """Docker's json-file driver: an object a line, whose `log` is the line, or where it has no end a part of it."""

    name, certain, partial = "docker's JSON", True, False

    def split(self, text: str) -> Split | None:
        if not text.startswith('{"log":'):
            return None
        try:
            said = json.loads(text)["log"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if not isinstance(said, str):
            return None
        return Split("", "", "", said.rstrip("\r\n"), part=not said.endswith("\n"))


class JournalJson:
    """`journalctl -o json`: an object a line, whose `MESSAGE` is the line."""

    name, certain, partial = "the journal's JSON", True, False

    def split(self, text: str) -> Split | None:
        if not text.startswith("{") or '"MESSAGE"' not in text:
            return None
        try:
            said = json.loads(text)
            line, host, process = said["MESSAGE"], said.get("_HOSTNAME", ""), said.get("_PID", "")
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if not (isinstance(line, str) and isinstance(host, str) and isinstance(process, str)):
            return None
        return Split(f"{host}[{process}]", host, "", line)


Kind = Prefix | DockerJson | JournalJson


def _prefix(name: str, pattern: str, *, certain: bool = True, partial: bool = False) -> Prefix:
    return Prefix(name, re.compile(pattern, re.ASCII), certain, partial)


KINDS: tuple[Kind, ...] = (
    DockerJson(),
    JournalJson(),
    _prefix("compose", rf"(?P<name>{NAME}) {{0,40}}\| ?"),
    _prefix("kubectl", r"\[pod/(?P<name>[\w.-]{1,253}(?:/[\w.-]{1,63})?)\] ?"),
    _prefix("mpirun 5", rf"(?:{CTIME}|{ISO})?\[[\w.-]{{1,200}}@\d{{1,6}},(?P<rank>\d{{1,6}})\]{STREAM}: "),
    _prefix("mpirun", rf"(?:{CTIME}|{ISO})?\[\d{{1,6}},(?P<rank>\d{{1,6}})\]{STREAM}:"),
    _prefix("mpirun 5, times alone", rf"(?:{CTIME}|{ISO}){STREAM}: "),
    _prefix("mpirun, times alone", rf"(?:{CTIME}|{ISO}){STREAM}:"),
    _prefix(
        "mpirun 5, detailed",
        rf"(?:{CTIME}|{ISO})?\[(?:[\w.-]{{1,200}}@)?\d{{1,6}},(?P<rank>\d{{1,6}})\]\[[\w.-]{{1,200}}:\d{{1,9}}\]"
        rf"{STREAM}: ",
    ),
    _prefix("GitLab", rf"{ISO} \d\d[OE]\+? ?"),
    _prefix("CRI", rf"{ISO} std(?:out|err) (?P<part>[FP]) ?"),
    _prefix("journal", rf"(?:{SHORT}|{ISO}) (?P<name>{NAME}) {PROCESS}: ?"),
    _prefix("journal since boot", rf"\[ {{0,8}}\d{{1,9}}\.\d{{6}}\] (?P<name>{NAME}) {PROCESS}: ?"),
    _prefix("syslog", rf"<\d{{1,3}}>(?:{SHORT}|{ISO}) (?P<name>{NAME}) {PROCESS}: ?"),
    _prefix(
        "syslog (RFC 5424)",
        rf"<\d{{1,3}}>1 {ISO} (?P<name>{NAME}) (?P<process>\S{{1,48}} \S{{1,128}}) \S{{1,32}} (?:-|\[.{{0,400}}?\]) ?",
    ),
    _prefix("GitHub's steps", rf"(?P<name>[^\t]{{1,120}})(?P<process>\t[^\t]{{0,120}}\t)\ufeff?{ISO} ?"),
    _prefix("times", rf"\ufeff?\[?(?:{CTIME}|{ISO})\]? "),
    _prefix("short times", rf"{SHORT} "),
    _prefix("clock", r"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]? "),
    _prefix("seconds", r"\d{10}\.\d{3,9} "),
    _prefix("journal, full times", rf"{FULL} (?P<name>{NAME}) {PROCESS}: ?"),
    _prefix("journal, seconds", rf"\d{{10}}\.\d{{6}} (?P<name>{NAME}) {PROCESS}: ?"),
    _prefix("seconds since the start", r"\d{1,9}\.\d{6} ", certain=False),
    _prefix("mpiexec", r"\[(?P<rank>\d{1,6})\] ", certain=False),
    _prefix("srun", r" {0,6}(?P<rank>\d{1,6}): ", certain=False),
    _prefix("pdsh", rf"(?P<name>{NAME}): ", certain=False),
    _prefix("kernel's clock", r"\[ {0,8}\d{1,9}\.\d{1,9}\] ", certain=False),
    _prefix("Heroku", rf"{ISO} (?P<name>[\w-]{{1,80}}\[[\w.-]{{1,80}}\]): ", certain=False),
    _prefix("stern", rf"(?P<name>{POD}) [a-z0-9][a-z0-9-]{{0,62}} ", certain=False),
    _prefix("loggers of Java", rf"(?:\[?{ISO}\]? )?\[?{LEVEL}\]? {{1,5}}[\w.$-]{{1,120}} ?[-:] ", certain=False),
    _prefix("loggers of Python", rf"(?:{ISO} - [\w.-]{{1,120}} - {LEVEL} - |{LEVEL}:[\w.-]{{1,120}}:)", certain=False),
    _prefix("line numbers", r" {0,8}\d{1,7}\t", certain=False),
    _prefix("grep", r"(?:(?P<name>[\w-]{0,100}[./][\w./-]{1,100}):(?:\d{1,7}:)?|\d{1,7}:)", certain=False),
    _prefix("GNU parallel", rf"(?P<name>{NAME})\t", certain=False),
    _prefix("quotation", r"(?:> ?|\| )", certain=False, partial=True),
)
Recognised = Callable[[Sequence[str]], bool]  # whether a tool's output begins in these lines


@dataclass(frozen=True)
class Scheme:
    """The prefixes of a file, from the outside in."""

    levels: tuple[Kind, ...]

    def split(self, text: str) -> Split | None:
        """A line without its prefixes; None for one that lacks the first of them."""
        keys: list[str] = []
        names: list[str] = []
        rank, part = "", False
        for place, level in enumerate(self.levels):
            found = level.split(text)
            if found is None:
                bare = level.split(text + " ") if text and not text.endswith(" ") else None  # an empty line, trimmed
                if bare is not None and not bare.text.strip():
                    found = bare._replace(text="")
                elif place == 0:
                    return None
                else:
                    found = Split("", "", "", text)
            keys.append(found.key)
            names.append(found.name)
            rank, text, part = found.rank or rank, found.text, part or found.part
        return Split("\0".join(keys), " ".join(filter(None, names)), rank, text, part)


def shown(text: str) -> str:
    """A line as a terminal shows it: what is behind its last carriage return."""
    return text.rstrip("\r").rpartition("\r")[2] if "\r" in text else text


def scheme_of(texts: Sequence[str], tool_in: Recognised) -> Scheme | None:
    """What is in front of every line of a file that begins with these; None where nothing is, or it is not certain."""

    def recognised(several: Sequence[str]) -> bool:
        return tool_in([shown(text) for text in several])

    def certainly(several: Sequence[str]) -> bool:  # of a line that was printed over, another prefix may be hidden
        return tool_in([text for text in several if shown(text) == text])

    filled = [text for text in texts if text.strip()]
    if len(filled) < 2 or certainly(filled):
        return None
    plausible: list[Scheme] = []
    hidden: list[tuple[int, Scheme]] = []  # with how many characters remain
    for first in _having(filled):
        behind = [found.text for text in filled if (found := first.split(text)) and found.text.strip()]
        if certainly(behind):
            return Scheme((first,))
        for second in _having(behind):
            inside = [found.text for text in behind if (found := second.split(text))]
            if certainly(inside):
                return Scheme((first, second))
            if recognised(inside):
                hidden.append((_left(filled, Scheme((first, second))), Scheme((first, second))))
            if first.certain and second.certain:
                plausible.append(Scheme((first, second)))
        if recognised(behind):
            hidden.append((_left(filled, Scheme((first,))), Scheme((first,))))
        if first.certain:
            plausible.append(Scheme((first,)))
    # The one that leaves least, of those that are equal the simplest; a few lines may be without it
    hidden = [one for one in hidden if sum(one[1].split(text) is not None for text in filled) >= NEARLY * len(filled)]
    if hidden:
        return min(hidden, key=lambda one: (one[0], len(one[1].levels)))[1]
    return plausible[0] if plausible else None


def _left(texts: Sequence[str], scheme: Scheme) -> int:
    """How many characters a scheme leaves of these lines."""
    return sum(len(found.text if (found := scheme.split(text)) else text) for text in texts)


def _having(texts: Sequence[str]) -> list[Kind]:
    """The kinds that enough of these lines have; an indentation among them where every line of a run has it."""
    kinds: list[Kind] = [*KINDS, *_indentations(texts)]
    found: list[tuple[Kind, int]] = []
    for kind in kinds:
        count = sum(kind.split(text) is not None for text in texts)
        if count >= (min(FEW, max(2, len(texts))) if kind.partial else max(2, SHARE * len(texts))):
            found.append((kind, count))
    # Of kinds that resemble each other, the one that more lines have: `<stdout>: ` also begins lines with a blank
    found.sort(key=lambda one: (not one[0].certain, one[0].partial, -one[1]))
    return [kind for kind, _ in found]


def _indentations(texts: Sequence[str]) -> Iterator[Prefix]:
    """The depths of lines that begin with blanks, the most frequent first."""
    depths: dict[str, int] = {}
    for text in texts:
        blanks = text[: len(text) - len(text.lstrip(" \t"))]
        if blanks and len(blanks) <= 16:
            depths[blanks] = depths.get(blanks, 0) + 1
    for blanks in sorted(depths, key=lambda one: -depths[one])[:4]:
        yield Prefix("indentation", re.compile(rf"{re.escape(blanks)}|\s*$"), certain=False, partial=True)


def scheme_and_lines(lines: Iterable[Line], recognised: Recognised) -> tuple[Scheme | None, list[Line], Iterator[Line]]:
    """The scheme of a file, the lines that it was looked for in, and all lines."""
    every = iter(lines)
    head = list(islice(every, HEAD_LINES))
    return scheme_of([line.text for line in head], recognised), head, chain(head, every)


def overwritten(line: Line) -> Line:
    """A line without what a terminal does not show of it."""
    return line._replace(text=shown(line.text)) if "\r" in line.text else line


def separated(lines: Iterable[Line], scheme: Scheme | None) -> Iterator[tuple[str, str, Line]]:
    """Key of the source, its name and the line without prefix, of every line, in order. A line without the prefix of
    the file is of the source "", as are all lines of a file that has none."""
    known: set[str] = set()
    parts: dict[str, tuple[Split, Line]] = {}  # the beginnings of long lines, by their sources
    for line in lines:
        found = scheme.split(line.text) if scheme else None
        if found is None or (found.key not in known and len(known) == MOST_SOURCES):
            yield "", "", overwritten(line)
            continue
        known.add(found.key)
        whole = Line(line.number, found.rank or line.rank, found.text)
        if found.key in parts:
            begun = parts.pop(found.key)[1]
            whole = begun._replace(text=begun.text + found.text)
        if found.part and len(whole.text) < LONGEST:
            parts[found.key] = found, whole
        else:
            yield f"\0{found.key}", found.name, overwritten(whole)
    for found, whole in parts.values():  # a log that ends within a line
        yield f"\0{found.key}", found.name, overwritten(whole)
