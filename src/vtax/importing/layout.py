"""What the path of a file says: the environment that it is from, and labels of its runs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from vtax.errors import UsageError

ENVIRONMENT = "environment"
NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
VALUE = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
RESERVED = ("target", "benchmark", "metric", "round", "iteration")  # what a measurement says itself
_PARTS = re.compile(r"(\{[^{}]*\}|\*\*|\*)")


class NoFit(Exception):
    """Why a path does not fit a layout."""


@dataclass(frozen=True)
class Layout:
    """`{name}` is one part of a path or of the name of a file, `*` any part of one, `**` any number of parts."""

    text: str

    def check(self) -> None:
        """Raise UsageError for a layout that has a name twice, or one that no label may have."""
        names = self.names
        for name in names:
            if name != ENVIRONMENT:
                check_name(name, f"--layout {self.text!r}")
            if names.count(name) > 1:
                raise UsageError(f"--layout has {{{name}}} more than once", remedy="use * for a part that repeats")

    @property
    def names(self) -> list[str]:
        return [part[1:-1] for part in _PARTS.findall(self.text) if part[0] == "{"]

    def fit(self, path: Path, shown: str) -> Mapping[str, str]:
        """What the names stand for in a path. It is matched below the folder that was given (`shown`), as it was given,
        and with the folders above that one; never from the middle of what is below it. Raises NoFit."""
        greedy, lazy = self._pattern("+", "*"), self._pattern("+?", "*?")
        for text in _texts(path, shown):
            found, other = greedy.fullmatch(text), lazy.fullmatch(text)
            if found is None or other is None:
                continue
            if found.groupdict() != other.groupdict():
                ways = " or ".join(_said(one.groupdict()) for one in (lazy.fullmatch(text), found) if one)
                raise NoFit(f"its path fits --layout {self.text!r} in more than one way: {ways}")
            return found.groupdict()
        raise NoFit(f"its path does not fit --layout {self.text!r}")

    def _pattern(self, some: str, any_: str) -> re.Pattern[str]:
        words = {"**": f".{any_}", "*": f"[^/]{any_}"}
        parts = _PARTS.split(self.text.strip("/"))
        return re.compile(
            "".join(
                f"(?P<{part[1:-1]}>[^/]{some})" if part[:1] == "{" else words.get(part, re.escape(part))
                for part in parts
            ),
            re.DOTALL,
        )


def check_name(name: str, where: str) -> None:
    """Raise UsageError for what cannot be the name of a label."""
    if NAME.fullmatch(name) is None:
        raise UsageError(f"{name!r} in {where} is not a name", remedy="use a-z, digits and _, for example {condition}")
    if name in RESERVED or name == ENVIRONMENT:
        raise UsageError(f"{name!r} in {where} is a name that measurements have themselves", remedy="use another one")


def labels_given(pairs: Iterable[str]) -> dict[str, str]:
    """`k=v` of the command line. Raises UsageError."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or VALUE.fullmatch(value) is None:
            raise UsageError(f"--label {pair!r} is not NAME=VALUE", remedy="for example --label condition=idle")
        check_name(name, f"--label {pair!r}")
        if found.setdefault(name, value) != value:
            raise UsageError(f"--label has two values for {name}", remedy="import the files in two steps, with --into")
    return found


def units_given(pairs: Iterable[str]) -> dict[str, str]:
    """`TOOL=UNIT` of the command line. Raises UsageError."""
    found: dict[str, str] = {}
    for pair in pairs:
        tool, equals, unit = pair.partition("=")
        if not equals or found.setdefault(tool, unit) != unit:
            raise UsageError(f"--unit {pair!r} is not TOOL=UNIT, once for each tool", remedy="--unit iozone=operations")
    return found


def slug(text: str) -> str:
    """A name that is safe in a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:60] or "x"


def _texts(path: Path, shown: str) -> Iterable[str]:
    yield shown
    yield path.as_posix()
    below, whole = PurePath(shown).parts, path.absolute().parts
    if whole[-len(below) :] == below:
        for start in range(1, len(whole) - len(below) + 1):
            yield "/".join(whole[start:])


def _said(names: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in names.items())
