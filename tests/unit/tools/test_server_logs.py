"""Outputs of programs that load servers, as they are found in logs: those that no last line proves to be whole."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from builders.recorded import DATA, PROVENANCE, Value, difference, expected
from vtax.importing.sections import cut
from vtax.tools.reading import Line, Reading, Section, clean, lines_of
from vtax.tools.trials import read_section

FOLDERS = sorted(path.parent for path in (DATA / "logs").glob("*/*/provenance.toml"))
each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")


def text_of(folder: Path) -> str:
    return (folder / "output").read_bytes().decode("utf-8")


def values(*readings: Reading) -> list[Value]:
    rows = [Value(v.metric.name, v.value, v.metric.unit, dict(v.labels)) for one in readings for v in one.values]
    return sorted(rows, key=lambda row: (row.metric, sorted(row.labels.items()), row.value))


def imported(text: str) -> list[Reading]:
    """The runs in a log, as `vtax import` finds and reads them."""
    lines = (Line(number, *clean(line)) for number, line in enumerate(text.split("\n"), start=1))
    return [read_section(section) for section in cut(lines)]


@each
def test_a_log_gives_the_numbers_in_it(folder: Path) -> None:
    facts = tomllib.loads((folder / "provenance.toml").read_text(encoding="utf-8"))
    assert all(str(facts[key]).strip() for key in PROVENANCE)
    assert facts["reader"] == folder.parent.name
    found = read_section(Section(facts["reader"], lines_of(text_of(folder))))
    assert not found.refusals
    assert found.ended
    assert not difference(values(found), expected(folder))


@each
def test_a_log_is_recognised_without_being_named(folder: Path) -> None:
    found = imported(f"$ cat notes.txt\nhello\n\n{text_of(folder)}\n")
    assert {one.benchmark for one in found} == {folder.parent.name}
    assert not difference(values(*found), expected(folder))


@each
def test_what_is_left_of_a_log_gives_no_other_number(folder: Path) -> None:
    text, whole = text_of(folder), expected(folder)
    for end in range(0, len(text), 7):
        found = read_section(Section(folder.parent.name, lines_of(text[:end])))
        missing = [row for row in values(found) if row not in whole and difference([row], whole[:0])]
        assert all(any(not difference([row], [one]) for one in whole) for row in missing), end
