"""Rows of other people's tables as sections of a file: header and row, the environment and the labels of each."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vtax.errors import UsageError
from vtax.importing.layout import VALUE, check_name, slug
from vtax.importing.source import DAMAGED
from vtax.tools import benchmarks, tools
from vtax.tools.reading import Line, Section
from vtax.tools.stated import LONGEST_SHOWN, STATED, Statement, Unclear, header_of, statement_of

NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
ENVIRONMENT = re.compile(r"[A-Za-z0-9][^\x00-\x1f\x7f]{0,59}")
EXAMPLE = "for example --table 'benchmark=redis value=rps unit=1/s kind=rate-fixed-work environment=host label=clients'"


class Row(NamedTuple):
    """One row. `refused` says why no value of it can be used; `environment` is "" where no column has it."""

    section: Section
    environment: str = ""
    refused: str = ""


def checked(options: Sequence[str], labels: Iterable[str], *, elsewhere: bool) -> Statement:
    """What `--table` says. `elsewhere` is whether another option gives the environment. Raises UsageError."""
    try:
        statement = statement_of(tuple(options))
    except Unclear as error:
        raise UsageError(f"--table: {error}", remedy=EXAMPLE) from error
    known = {name for tool in tools() for name in (tool.name, *(one.name for one in tool.benchmarks))} | {*benchmarks()}
    if NAME.fullmatch(statement.benchmark) is None or statement.benchmark in known:
        raise UsageError(
            f"--table: benchmark={statement.benchmark} cannot be the name of what a table holds",
            remedy="use a-z, digits and -, and none of the names of vtax's own benchmarks, such as redis-table",
        )
    for name in statement.labels:
        check_name(name, f"--table label={name}")
        if name in labels:
            raise UsageError(f"the label {name} is in --table and in another option", remedy="state it in one of them")
    if bool(statement.environment) == elsewhere:
        raise UsageError(
            "give the environment of the rows, in one way",
            remedy="environment=COLUMN in --table, or --environment NAME, or {environment} in --layout",
        )
    return statement


@dataclass
class Rows:
    """Reads the rows of one file. `problem` says what ended it before its end, `unread` names its other columns."""

    statement: Statement
    options: tuple[str, ...]
    lines: Iterator[Line]
    whole: bool  # whether the last line has its end
    outside: Callable[[Line], None]  # is given every line that is in no row
    problem: str = ""
    header: list[str] = field(default_factory=list)
    seen: dict[tuple[str, ...], int] = field(default_factory=dict)  # work and round -> line
    spelled: dict[str, str] = field(default_factory=dict)  # environment -> the text of its cells

    @property
    def unread(self) -> tuple[str, ...]:
        return tuple(name for name in self.header if name not in self.statement.names)

    def __iter__(self) -> Iterator[Row]:
        first = next((line for line in self.lines if line.text.strip()), None)
        if first is None:
            self.problem = "it is empty"
            return
        try:
            delimiter, self.header = header_of(first.text, self.statement)
        except Unclear as error:
            self.problem = str(error)
            return
        self.outside(first)
        before: Row | None = None
        for cells, lines in self._cells(delimiter):
            if before:
                yield before
            before = self._row(first, lines, cells) if cells else None
            for line in () if cells else lines:
                self.outside(line)
        if before and not self.whole and self.header[-1] in self.statement.names:
            before = before._replace(refused="the file does not end with a line feed: its last cell may be cut")
        if before:
            yield before

    def _cells(self, delimiter: str) -> Iterator[tuple[list[str], tuple[Line, ...]]]:
        """Each row with its lines. What is not CSV ends them: where the next row begins is then unknown."""
        taken: list[Line] = []

        def texts() -> Iterator[str]:
            for line in self.lines:
                taken.append(line)
                yield line.text + "\n"

        try:
            for cells in csv.reader(texts(), delimiter=delimiter, strict=True):
                yield cells, tuple(taken)
                taken.clear()
        except csv.Error as error:
            where = taken[0].number if taken else 0
            self.problem = f"line {where}: not a row of a table ({error}); it and all lines below it are not read"

    def _row(self, header: Line, lines: tuple[Line, ...], cells: Sequence[str]) -> Row:
        section = Section(STATED, (header, *lines), table=self.options)
        if any(DAMAGED in line.text for line in lines):
            return Row(section, refused="it is too long, or has bytes that are not text")
        if len(cells) != len(self.header):
            return Row(section, refused=f"it has {len(cells)} cells, and the header {len(self.header)}")
        row = dict(zip(self.header, (cell.strip() for cell in cells), strict=True))
        labels = {name: row[column] for name, column in self.statement.labels.items()}
        environment = row.get(self.statement.environment, "")
        refused = next((f"its {name} is empty or too long" for name, t in labels.items() if not VALUE.fullmatch(t)), "")
        if self.statement.environment:
            refused = self._environment(environment) or refused
        return Row(
            section._replace(labels=labels),
            slug(environment) if environment else "",
            refused or self._repeated(row, lines[0].number, labels),
        )

    def _environment(self, text: str) -> str:
        """Why a cell cannot name an environment; "" when it can."""
        if ENVIRONMENT.fullmatch(text) is None:
            return f"its environment is {text[:LONGEST_SHOWN]!r}, not a name"
        other = self.spelled.setdefault(slug(text), text)
        return (
            "" if other == text else f"its environment {text!r} cannot be told apart from {other!r} in names of files"
        )

    def _repeated(self, row: Mapping[str, str], line: int, labels: Mapping[str, str]) -> str:
        """Why a row is not another run; "" for a new one, and where no column numbers the runs."""
        if not self.statement.round:
            return ""
        metrics = [one.metric.name for one in self.statement.of(row)]
        place = row[self.statement.round]
        key = (row.get(self.statement.environment, ""), place.lstrip("0"), *labels.values(), *metrics)
        first = self.seen.setdefault(key, line)
        return "" if first == line else f"round {place[:LONGEST_SHOWN]} of the same work is in line {first}"
