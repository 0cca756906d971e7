"""No regular expression of the package takes longer than the text is long: 1 MB of the worst letters in a second.

The lines are made from each pattern's own letters: one of them repeated, all of them repeated, and each of its
repetitions going on for ever behind what the pattern wants before it. A short line shows whether a pattern may be slow.

Patterns are found in the values of modules, in the objects there that are vtax's own (tools, readers, prefixes: all
that a plug-in could bring), in calls of `re`, and where they are made of others when they are first used.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import vtax
from vtax.importing import prefixes
from vtax.importing.prefixes import Prefix
from vtax.tools import log_formats
from vtax.tools.commands import prompt

DEEPEST = 3  # objects in objects
SHORT, LONG, LIMIT_S = 20_000, 1_000_000, 1.0
SUSPICIOUS_S = 0.01  # of a short line; a pattern whose time grows with the text needs a tenth of that
CALLS = ("compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "split")
KINDS = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_DIGIT: "x",
    codes.CATEGORY_NOT_SPACE: "x",
    codes.CATEGORY_NOT_WORD: "-",
}
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def patterns_in(content: object, seen: dict[int, int], depth: int = 0) -> Iterator[re.Pattern[str]]:
    """Compiled patterns in a value of a module, and in what it consists of.

    `seen` has how deep in objects each thing was, by its identity: nothing is looked through again, unless it is less
    deep now.
    """
    if seen.get(id(content), DEEPEST + 1) <= depth:
        return
    seen[id(content)] = depth
    if isinstance(content, re.Pattern):
        if isinstance(content.pattern, str):
            yield content
    elif isinstance(content, Mapping):
        for pair in content.items():
            for one in pair:
                yield from patterns_in(one, seen, depth)
    elif isinstance(content, (tuple, list, set, frozenset)):
        for one in content:
            yield from patterns_in(one, seen, depth)
    elif depth < DEEPEST and (content if isinstance(content, type) else type(content)).__module__.startswith("vtax."):
        for one in attributes(content):
            yield from patterns_in(one, seen, depth + 1)


def attributes(content: object) -> Iterator[object]:
    """The values of an object and of its class."""
    own = content if isinstance(content, type) else type(content)
    yield from vars(own).values()
    if not isinstance(content, type):
        yield from getattr(content, "__dict__", {}).values()


def made_when_used() -> Iterator[re.Pattern[str]]:
    """Patterns that functions make of the texts and names that tools give."""
    yield prompt()
    for known in log_formats().values():
        yield from (re.compile(text) for text in known.unread)


def written_in(source: str) -> Iterator[re.Pattern[str]]:
    """Patterns that are written into calls of `re`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            first = node.args[0] if node.args else None
            is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if is_re and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield re.compile(first.value, re.MULTILINE if "re.MULTILINE" in ast.unparse(node) else 0)


def every_pattern() -> dict[tuple[str, int], str]:
    """Pattern and flags -> where it is."""
    found = {(one.pattern, one.flags): "made when it is used" for one in made_when_used()}
    seen: dict[int, int] = {}
    for module in pkgutil.walk_packages(vtax.__path__, "vtax."):
        if not module.name.endswith("__main__"):
            loaded = importlib.import_module(module.name)
            several = [one for value in tuple(vars(loaded).values()) for one in patterns_in(value, seen)]
            if loaded.__file__ and loaded.__file__.endswith(".py"):
                several += written_in(Path(loaded.__file__).read_text(encoding="utf-8"))
            for one in several:
                found.setdefault((one.pattern, one.flags), module.name)
    return found


# These are matched where a line begins, and not sought in it.
PREFIXES = {(one.pattern.pattern, one.pattern.flags) for one in prefixes.KINDS if isinstance(one, Prefix)}
PATTERNS = every_pattern()


def letters(tree: Any) -> Iterator[str]:
    """A letter for each thing that a pattern looks at."""
    for code, value in tree:
        if code is codes.LITERAL:
            yield chr(value)
        elif code in (codes.ANY, codes.NOT_LITERAL):
            yield "x"
        elif code is codes.IN:
            yield from ("x", "1", " ") if value[0][0] is codes.NEGATE else (_letter([one]) for one in value)
        elif code in REPEATS:
            yield from letters(value[2])
        elif code is codes.SUBPATTERN:
            yield from letters(value[3])
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from letters(branch)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from letters(value[1])


def _letter(members: Sequence[Any]) -> str:
    """A letter of a set."""
    if members[0][0] is codes.NEGATE:
        banned = {chr(value) for code, value in members if code is codes.LITERAL}
        kinds = {value for code, value in members if code is codes.CATEGORY}
        spaces = {" "} if codes.CATEGORY_SPACE in kinds else set()
        return next(one for one in "x1a-; " if one not in banned | spaces)
    code, value = members[0]
    return chr(value) if code is codes.LITERAL else chr(value[0]) if code is codes.RANGE else KINDS.get(value, "x")


def parts(tree: Any) -> Iterator[tuple[str, int, bool]]:
    """What a pattern wants, in order: a text, how often at least, and whether it may be repeated."""
    for code, value in tree:
        if code is codes.LITERAL:
            yield chr(value), 1, False
        elif code in (codes.ANY, codes.NOT_LITERAL):
            yield "x", 1, False
        elif code is codes.IN:
            yield _letter(value), 1, False
        elif code in REPEATS:
            yield "".join(text * least for text, least, _ in parts(value[2])), max(1, value[0]), True
        elif code is codes.SUBPATTERN:
            yield from parts(value[3])
        elif code is codes.BRANCH:
            yield from parts(value[1][0])


def lines_for(pattern: str, flags: int, size: int) -> Iterator[str]:
    """Lines that may be bad for a pattern; a NUL at the end keeps it from matching."""
    tree = parser.parse(pattern, flags)
    alphabet = list(dict.fromkeys(letters(tree)))
    texts = [*alphabet, "".join(alphabet)]
    before = ""
    found = []
    for text, least, repeated in parts(tree):
        if repeated and text:
            found.append(before + text * (size // len(text)))
            texts.append(before + text * least)
        before += text * least
    texts.append(before[:-1])
    for text in dict.fromkeys(texts):
        if text:
            found.append(text * (size // len(text)))
    yield from (line + "\0" for line in found)


class TooSlow(Exception):
    pass


def seconds(pattern: re.Pattern[str], line: str) -> float:
    """Of processor time, to look for a pattern everywhere in a line; only at its beginning, where it is used so."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    began = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, 2 * LIMIT_S)
        if (pattern.pattern, pattern.flags) in PREFIXES:
            pattern.match(line)
        else:
            for _ in pattern.finditer(line):
                pass
    except TooSlow:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return time.process_time() - began


def slow_line(pattern: str, flags: int) -> str:
    """The beginning of a line that takes too long; "" when there is none."""
    compiled = re.compile(pattern, flags)
    for place, line in enumerate(lines_for(pattern, flags, SHORT)):
        if seconds(compiled, line) > SUSPICIOUS_S:
            whole = next(islice(lines_for(pattern, flags, LONG), place, None))
            if min(seconds(compiled, whole) for _ in range(2)) > LIMIT_S:
                return line[:60]
    return ""


def test_there_are_patterns() -> None:
    assert len(PATTERNS) > 450
    assert PATTERNS.keys() > PREFIXES
    assert len(PREFIXES) > 15


def test_a_pattern_in_an_object_is_found() -> None:
    """As the readers and prefixes of a tool keep theirs."""
    kept = Prefix("name", re.compile("kept"))
    assert list(patterns_in({"one": (kept,)}, {})) == [kept.pattern]


@pytest.mark.parametrize("pattern", [r"(\w+)=1", r"^\s*(1?)\s*\s*$", r"a.*b.*c"])
def test_a_slow_pattern_is_noticed(pattern: str) -> None:
    assert slow_line(pattern, 0)


@pytest.mark.parametrize(("pattern", "flags"), PATTERNS)
def test_no_pattern_is_slow(pattern: str, flags: int) -> None:
    assert slow_line(pattern, flags) == "", f"{PATTERNS[pattern, flags]}: bound its repetitions, or anchor it"
