"""The tree of errors is the one that its module draws, with the exit codes drawn there."""

from __future__ import annotations

import re

import pytest

from vtax import errors
from vtax.errors import Mistake, StudyError, VtaxError

LINE = re.compile(r"^ {4}(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+) +(?P<code>\d+|exit code)", re.MULTILINE)


def drawn() -> list[tuple[str, str, int]]:
    """Name, parent and exit code of every error in the drawing."""
    found: list[tuple[str, str, int]] = []
    path: list[str] = []
    for match in LINE.finditer(errors.__doc__ or ""):
        depth = len(match["branch"]) // 4
        path = [*path[:depth], match["name"]]
        code = 1 if match["code"] == "exit code" else int(match["code"])
        found.append((match["name"], path[depth - 1] if depth else "Exception", code))
    return found


@pytest.mark.parametrize(("name", "parent", "code"), drawn(), ids=lambda value: str(value))
def test_an_error_stands_where_it_is_drawn(name: str, parent: str, code: int) -> None:
    kind = getattr(errors, name)
    assert kind.__base__.__name__ == parent
    assert kind.exit_code == code


def test_every_error_is_drawn() -> None:
    defined = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert {name for name, _, _ in drawn()} == defined


def test_an_error_says_what_why_and_what_next() -> None:
    error = VtaxError("it broke", detail="line one\nline two\n", remedy="mend it")
    assert str(error) == "it broke\n  line one\n  line two\n  next: mend it"
    assert str(VtaxError("it broke")) == "it broke"


def test_a_study_error_lists_all_mistakes() -> None:
    error = StudyError(
        "a.toml", [Mistake("rounds", "is missing"), Mistake("nodes.cpu", "unknown key", "allowed: cpus")]
    )
    assert str(error).splitlines() == [
        "study a.toml: 2 mistakes",
        "  rounds: is missing",
        "  nodes.cpu: unknown key (allowed: cpus)",
        "  next: fix the lines above; `vtax schema` prints every key, `vtax init` a commented example",
    ]
    assert str(StudyError("a.toml", [Mistake("a", "b")])).startswith("study a.toml: 1 mistake\n")
