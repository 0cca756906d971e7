"""Rows of other people's tables (CSV with a header): values by what an importer stated of the columns. Pure.

A statement is kept with every row, so that the row's values can be read again from its text.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from vtax.model.metric import Kind, Metric
from vtax.tools.reading import Reading, Section, Value, number
from vtax.units import base_unit, in_base_units

if TYPE_CHECKING:
    from vtax.tools.command.metric_table import MetricTable

STATED = "stated table"  # the `reader` of rows of a table
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
KINDS = {str(kind).replace(", ", "-").replace(" ", "-"): kind for kind in Kind}
OF_FILE = ("benchmark", "environment", "round", "delimiter")  # the same in every --table
OF_METRIC = ("value", "metric", "unit", "unit-column", "kind", "better")
REPEATED = ("label", "where")
NEEDED = ("value", "unit", "kind")
EMPTY = ("", "-", "na", "n/a", "null", "none")
LONGEST_SHOWN = 60


class Unclear(ValueError):
    """What is wrong with a statement, or with a header."""


class Column(NamedTuple):
    """A metric, the column of its values, the column that repeats its unit, and the rows that have it."""

    metric: Metric
    unit: str
    name: str
    unit_column: str
    where: Mapping[str, str]


@dataclass(frozen=True)
class Statement:
    """What the columns of a table are."""

    benchmark: str
    columns: tuple[Column, ...]
    environment: str = ""  # the column that has it
    round: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)  # name -> column
    delimiter: str = ""  # "" where the header shows it

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is needed, each once."""
        found = [self.environment, self.round, *self.labels.values()]
        for one in self.columns:
            found += [one.name, one.unit_column, *one.where]
        return tuple(dict.fromkeys(filter(None, found)))

    def of(self, row: Mapping[str, str]) -> list[Column]:
        """The metrics that a row has values of."""
        return [one for one in self.columns if all(row[name] == text for name, text in one.where.items())]


@lru_cache(maxsize=8)
def statement_of(options: tuple[str, ...]) -> Statement:
    """The statement in the texts of `--table`, one for each metric. Raises Unclear."""
    shared: dict[str, str] = {}
    labels: dict[str, str] = {}
    columns: list[Column] = []
    for option in options:
        given = _pairs(option)
        for key in OF_FILE:
            if key in given and shared.setdefault(key, given[key][0]) != given[key][0]:
                raise Unclear(f"{key} is {shared[key]!r} and {given[key][0]!r}: a table has one")
        for text in given.get("label", ()):
            name, colon, column = text.partition(":")
            if labels.setdefault(name, column if colon else name) != (column if colon else name):
                raise Unclear(f"the label {name} has two columns")
        columns.append(_column(given))
    if "benchmark" not in shared:
        raise Unclear("it does not say what was measured: add benchmark=NAME")
    names = [one.metric.name for one in columns]
    for name in names:
        if names.count(name) > 1:
            raise Unclear(f"two metrics are called {name}: add metric=NAME")
    headline = next((one.metric.name for one in columns if one.metric.kind is not Kind.COUNT), "")
    return Statement(
        benchmark=shared["benchmark"],
        columns=tuple(
            one._replace(metric=one.metric.model_copy(update={"primary": one.metric.name == headline}))
            for one in columns
        ),
        environment=shared.get("environment", ""),
        round=shared.get("round", ""),
        labels=labels,
        delimiter=_delimiter(shared.get("delimiter", "")),
    )


def _delimiter(text: str) -> str:
    if text and text not in DELIMITERS and text not in DELIMITERS.values():
        raise Unclear(f"delimiter={text} is not one of {', '.join(DELIMITERS)}")
    return DELIMITERS.get(text, text)


def _pairs(option: str) -> dict[str, list[str]]:
    """Key -> its texts; only those that may be repeated have several."""
    try:
        words = shlex.split(option)
    except ValueError as error:
        raise Unclear(f"{option!r}: {error}") from error
    found: dict[str, list[str]] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if key not in (*OF_METRIC, *OF_FILE, *REPEATED) or not equals or not text:
            known = ", ".join((*OF_METRIC, *OF_FILE, *REPEATED))
            raise Unclear(f"{word!r} is not KEY=TEXT with a key of {known}")
        if key in found and key not in REPEATED:
            raise Unclear(f"{key} is there twice: give one --table for each metric")
        found.setdefault(key, []).append(text)
    if missing := [key for key in NEEDED if key not in found]:
        raise Unclear(f"{option!r} has no {' and no '.join(missing)}")
    return found


def _column(given: Mapping[str, Sequence[str]]) -> Column:
    from vtax.tools.command.metric_table import MetricTable

    one = {key: texts[0] for key, texts in given.items()}
    if one["kind"] not in KINDS:
        raise Unclear(f"kind={one['kind']} is not one of {', '.join(KINDS)}")
    where = dict(_condition(text) for text in given.get("where", ()))
    content = {
        "name": one.get("metric", one["value"]),
        "unit": one["unit"],
        "kind": KINDS[one["kind"]],
        "csv": {"column": one["value"], "where": where},
        **({"direction": one["better"]} if "better" in one else {}),
    }
    try:
        table: MetricTable = MetricTable.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where_ = ".".join(map(str, first["loc"]))
        hint = ": add metric=NAME" if where_ == "name" and "metric" not in one else ""
        raise Unclear(f"{where_ + ': ' if where_ else ''}{first['msg'].removeprefix('Value error, ')}{hint}") from error
    return Column(table.metric, one["unit"], one["value"], one.get("unit-column", ""), where)


def _condition(text: str) -> tuple[str, str]:
    name, colon, wanted = text.rpartition(":")
    if not colon or not name:
        raise Unclear(f"where={text} is not COLUMN:TEXT")
    return name, wanted


def header_of(text: str, statement: Statement) -> tuple[str, list[str]]:
    """The delimiter of a header, and its columns. Raises Unclear unless it has every column that was stated, once."""
    found: list[tuple[str, list[str]]] = []
    for delimiter in [statement.delimiter] if statement.delimiter else DELIMITERS.values():
        try:
            cells = [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter, strict=True))]
        except (csv.Error, StopIteration):
            continue
        found.append((delimiter, cells))
    if not found:
        raise Unclear("its first line is not a header of a table")
    fits = [one for one in found if set(statement.names) <= set(one[1])]
    delimiter, cells = max(fits or found, key=lambda one: len(one[1]))
    if not fits:
        missing = ", ".join(repr(name) for name in statement.names if name not in cells)
        raise Unclear(f"the table has no column {missing}; it has {', '.join(map(repr, cells))[:1000]}")
    for name in statement.names:
        if cells.count(name) > 1:
            raise Unclear(f"the column {name!r} is there twice")
    return delimiter, cells


def read(section: Section) -> Reading:
    """The values of one row; the first line of the section is the header. Raises Unclear for another header."""
    statement = statement_of(section.table)
    delimiter, header = header_of(section.lines[0].text, statement)
    line = section.lines[1].number
    reading = Reading(statement.benchmark, ended=True, facts={"delimiter": delimiter})
    rows = list(csv.reader((one.text + "\n" for one in section.lines[1:]), delimiter=delimiter, strict=True))
    if len(rows) != 1 or len(rows[0]) != len(header):
        cells = len(rows[0]) if rows else 0
        reading.refuse(line, "the row", f"it has {cells} cells, and the header {len(header)}", 0)
        return reading
    row = dict(zip(header, (cell.strip() for cell in rows[0]), strict=True))
    mine = statement.of(row)
    if not mine:
        reading.refuse(line, "the row", "no --table has a `where` that it fits", 0)
    if any(one.where for one in statement.columns):
        reading.params["metric"] = "+".join(one.metric.name for one in mine) or "none"
    if statement.round:
        place = row[statement.round]
        if not (place.isascii() and place.isdecimal() and len(place) < 10):
            reading.refuse(line, "the row", f"its round is {place[:LONGEST_SHOWN]!r}, not a whole number", len(mine))
            return reading
        reading.facts["round"] = int(place)
    reading.values = list(_values(mine, row, line, reading))
    return reading


def _values(columns: Sequence[Column], row: Mapping[str, str], line: int, reading: Reading) -> Iterator[Value]:
    for one in columns:
        text, metric = row[one.name], one.metric
        if wrong := _wrong(text):
            reading.refuse(line, metric.name, wrong)
            continue
        unit = row[one.unit_column] if one.unit_column else one.unit
        try:
            base, factor = base_unit(unit)
        except ValueError as error:
            reading.refuse(line, metric.name, str(error))
            continue
        if base != metric.unit:
            reading.refuse(line, metric.name, f"its unit is {unit[:LONGEST_SHOWN]!r}, and {one.unit} was stated")
            continue
        try:
            value = in_base_units(number(text) or 0.0, factor)
        except OverflowError:
            reading.refuse(line, metric.name, f"{text[:LONGEST_SHOWN]} {unit} is too large")
            continue
        if value == 0 and metric.kind.has_ratio:
            reading.refuse(line, metric.name, f"it is 0, and a {metric.kind} is above zero")
            continue
        yield Value(metric, value, line)


def _wrong(text: str) -> str:
    """Why a cell is not a number; "" for one."""
    if number(text) is not None:
        return ""
    shown = repr(text[:LONGEST_SHOWN])
    if text.lower() in EMPTY:
        return "the cell is empty" if not text else f"the cell is {shown}, which stands for no value"
    if re.fullmatch(r"[0-9]{1,20}(?:[,.'’_\s][0-9]{1,20}){1,10}", text):
        return f"{shown} has a separator: whether it is a decimal comma or of thousands is unknown"
    if text[:1] in set("0123456789") and (text[-1:] == "%" or text[-1:].isalpha()):
        return f"{shown} is more than a number: a unit belongs to unit=, or to a column of its own"
    return f"{shown} is not a finite number of zero or more"
