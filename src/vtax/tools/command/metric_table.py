"""One `[[benchmarks.metrics]]` of a command: what a number is called, what it means, and where it is found.

A number is found by exactly one of `regex`, `json`, `csv`, `builtin` and `reader`. `builtin` is measured by vtax
itself; a ready-made `reader` brings metrics of its own, or takes the one that the table declares.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from vtax.model.metric import OPEN_KINDS, Direction, Kind, Metric
from vtax.model.names import MetricName, OutputName, Unit
from vtax.model.record import Record
from vtax.tools.command.builtins import BUILTINS, DEFAULT, always_measured
from vtax.tools.command.json_path import EVERY, steps_of
from vtax.tools.command.readers import Reader, reader_names, reader_of
from vtax.tools.patterns import NumberPattern
from vtax.units import base_unit

WAYS = ("regex", "json", "csv", "builtin", "reader")
DIRECTIONS = {"higher": Direction.HIGHER, "lower": Direction.LOWER}
RESERVED = ("usage", "usage.json")  # vtax's own account of a command
TAKEN = ("machine_cpu_time", "machine_energy", "node_cpu_time", "memory_peak")  # what vtax computes for every trial
UNDECIDED = (Kind.COUNT, Kind.AMOUNT)  # kinds that decide nothing
MOST_METRICS = 100  # of one entry


def _path(text: str) -> str:
    steps_of(text)
    return text


def _separator(text: str) -> str:
    if text.isalnum() or text in ('"', "\n", "\r", "\0", ".", "-", "+"):
        raise ValueError("a delimiter is a single character that is not part of a number or a word")
    return text


Cell = Annotated[str, Field(min_length=1, max_length=200)]


class Csv(Record):
    """A number in a table with a header: the `column` by its name; the row by what its other columns hold, or the only
    one."""

    column: Cell
    where: dict[Cell, str] = Field(default_factory=dict, max_length=10)
    delimiter: Annotated[str, Field(min_length=1, max_length=1), AfterValidator(_separator)] = ","


class MetricTable(Record):
    """One metric of a command, or the metrics of a ready-made reader."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    name: MetricName | None = None
    unit: Unit | None = None
    kind: Kind | None = None
    direction: Literal["higher", "lower"] | None = None
    primary: bool | list[MetricName] = False
    source: OutputName = Field(default="stdout", alias="from")
    regex: NumberPattern | None = None
    path: Annotated[str, Field(max_length=500), AfterValidator(_path)] | None = Field(default=None, alias="json")
    csv: Csv | None = None
    builtin: str | None = None
    reader: str | None = None
    measure: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    count: Literal["one", "all"] = "one"
    aggregate: Literal["median", "mean", "sum", "min", "max"] | None = None
    meaning: Annotated[str, Field(max_length=300)] = ""

    @model_validator(mode="after")
    def _fits(self) -> MetricTable:
        given = [way for way, value in zip(WAYS, self._ways(), strict=True) if value is not None]
        if len(given) != 1:
            found = f"has {' and '.join(given)}" if given else "does not say where its number is found"
            raise ValueError(f"{self._called()} {found}; give exactly one of {', '.join(WAYS)}")
        if self.source in RESERVED:
            raise ValueError(f'"{self.source}" is the name of vtax\'s own report; let the command write another file')
        self._check_count()
        if self.builtin is not None:
            self._check_builtin(self.builtin)
        elif self.reader is not None:
            self._check_reader(known_reader(self.reader))
        else:
            self._check_declared()
            if self.measure is not None:
                raise ValueError("`measure` is only for a `reader`")
        return self

    def _ways(self) -> tuple[object, ...]:
        return (self.regex, self.path, self.csv, self.builtin, self.reader)

    def _called(self) -> str:
        return f'the metric "{self.name}"' if self.name else "a metric"

    def _check_count(self) -> None:
        several = self.count == "all"
        if several and (self.builtin or self.reader):
            raise ValueError('count = "all" is for regex, json and csv')
        if several and self.aggregate is None:
            raise ValueError('count = "all" needs an `aggregate`: median, mean, sum, min or max')
        if self.aggregate is not None and not several:
            raise ValueError('`aggregate` needs count = "all"; without it there is exactly one number')
        if self.path is not None and EVERY in steps_of(self.path) and not several:
            raise ValueError('[*] stands for several numbers: it needs count = "all" and an `aggregate`')

    def _check_declared(self) -> None:
        """Name, unit, kind and direction: none of them has a default, for a wrong one gives a wrong verdict."""
        for key in ("name", "unit", "kind"):
            if getattr(self, key) is None:
                raise ValueError(f"{self._called()} has no `{key}`")
        if isinstance(self.primary, list):
            raise ValueError("`primary` is true or false; a list is for the metrics of a `reader`")
        assert self.unit is not None and self.kind is not None
        base_unit(self.unit)
        self._check_direction(self.kind)
        if self.kind is Kind.COUNT and self.primary:
            raise ValueError(
                "a count is neither better nor worse, so it cannot be primary; use another kind, such as cost"
            )
        if self.kind is Kind.AMOUNT and self.primary:
            raise ValueError(
                "an amount may be zero, so it has no ratio and cannot be primary; a cost is always above zero"
            )

    def _check_direction(self, kind: Kind) -> None:
        if kind in OPEN_KINDS:
            if self.direction is None:
                raise ValueError(f'{self._called()} is a {kind}: say direction = "higher" or "lower", which is better')
            return
        settled = Metric(name="any", unit="1", kind=kind).direction
        if self.direction is not None and DIRECTIONS[self.direction] is not settled:
            hint = "leave `direction` out, or choose another kind"
            raise ValueError(f"{self._called()} is a {kind}, of which {settled}; {hint}")

    def _check_builtin(self, builtin: str) -> None:
        if builtin not in BUILTINS:
            raise ValueError(f"there is no builtin {json.dumps(builtin)}; allowed: {', '.join(BUILTINS)}")
        known = self._of_builtin(builtin)
        self._leave_out(("direction", "measure", "meaning"), "is settled by the builtin")
        if (self.unit is not None and self.unit != known.unit) or (
            self.kind is not None and self.kind is not known.kind
        ):
            raise ValueError(f"{builtin} is in {known.unit}, and its kind is {known.kind}; leave `unit` and `kind` out")
        if self.source != "stdout":
            raise ValueError("a builtin is not read from an output; leave `from` out")
        if isinstance(self.primary, list):
            raise ValueError("`primary` is true or false; a list is for the metrics of a `reader`")
        if self.primary and known.kind is Kind.COUNT:
            raise ValueError(f"{builtin} is a count, neither better nor worse, so it cannot be primary")

    def _of_builtin(self, builtin: str) -> Metric:
        """The metric of a builtin. An amount that decides is a cost: it has a ratio, and a run with 0 fails."""
        known = BUILTINS[builtin].metric
        decides = self.primary is True or self.kind is Kind.COST
        return known.model_copy(update={"kind": Kind.COST}) if decides and known.kind is Kind.AMOUNT else known

    def _check_reader(self, reader: Reader) -> None:
        if self.name is not None:
            if not reader.free:
                raise ValueError(
                    f"the reader {reader.name} names its metrics itself; leave `name` out, and list those that decide "
                    f'as primary = ["{reader.metrics[0].name}"]'
                )
            self._check_declared()
            return
        if not reader.metrics:
            raise ValueError(
                f"what the reader {reader.name} reads says neither unit nor direction: give `name`, `unit`, `kind`, "
                "and `measure` where the output has another name for it"
            )
        self._leave_out(("unit", "kind", "direction", "measure", "meaning"), f"comes from the reader {reader.name}")
        if self.primary is True:
            raise ValueError(f'name those that decide: primary = ["{reader.metrics[0].name}"]')
        known = {metric.name: metric.kind for metric in reader.metrics}
        for name in self.primary or ():
            if name not in known:
                raise ValueError(f"the reader {reader.name} has no {name}; it has {', '.join(sorted(known))}")
            if known[name] in UNDECIDED:
                raise ValueError(f"{name} of the reader {reader.name} is a {known[name]}, so it cannot be primary")

    def _leave_out(self, keys: Sequence[str], why: str) -> None:
        for key in keys:
            if key in self.model_fields_set and getattr(self, key) not in (None, ""):
                raise ValueError(f"`{key}` {why}; leave it out")

    @property
    def metric(self) -> Metric:
        """The metric that it declares, in base units. Not for a reader that brings its own."""
        if self.builtin is not None:
            own = self._of_builtin(self.builtin)
            return own.model_copy(update={"name": self.name or own.name, "primary": self.primary is True})
        assert self.name is not None and self.unit is not None and self.kind is not None
        return Metric(
            name=self.name,
            unit=base_unit(self.unit)[0],
            kind=self.kind,
            primary=self.primary is True,
            meaning=self.meaning,
            better=DIRECTIONS[self.direction] if self.kind in OPEN_KINDS and self.direction else None,
        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Every metric that it may report."""
        if self.reader is None or self.name is not None:
            return (self.metric,)
        chosen = self.primary if isinstance(self.primary, list) else ()
        return tuple(
            one.model_copy(update={"primary": one.name in chosen}) for one in known_reader(self.reader).metrics
        )


def known_reader(name: str) -> Reader:
    reader = reader_of(name)
    if reader is None:
        raise ValueError(f"there is no reader {json.dumps(name)}; allowed: {', '.join(reader_names())}")
    return reader


def declared(tables: Sequence[MetricTable]) -> tuple[Metric, ...]:
    """Every metric that an entry may report: its own, and what is always measured. `wall` decides where it has none."""
    own = [metric for table in tables for metric in table.metrics]
    asked = {table.builtin for table in tables}
    always = [*always_measured(asked, [metric.name for metric in own]).values()]
    if not tables:
        always = [one.model_copy(update={"primary": one.name == DEFAULT}) for one in always]
    return (*own, *always)


def outputs(tables: Sequence[MetricTable]) -> tuple[str, ...]:
    """The files besides stdout and stderr that the metrics are read from, each once."""
    every = (table.source for table in tables if table.builtin is None)
    return tuple(dict.fromkeys(name for name in every if name not in ("stdout", "stderr")))


def _together(tables: list[MetricTable]) -> list[MetricTable]:
    """What must hold of the metrics of one entry."""
    names = [metric.name for metric in declared(tables)]
    for name in TAKEN:
        if name in names:
            raise ValueError(f"vtax itself has a metric {name}; choose another name")
    for name in names:
        if names.count(name) > 1:
            always = name in BUILTINS and BUILTINS[name].always
            raise ValueError(f"two metrics are called {name}" + ", which vtax always measures" * always)
    builtins = [table.builtin for table in tables if table.builtin is not None]
    for builtin in builtins:
        if builtins.count(builtin) > 1:
            raise ValueError(f"the builtin {builtin} is named twice; one metric of it is enough")
    silent = len(tables) == 1 and "primary" not in tables[0].model_fields_set and tables[0].reader is None
    if silent and (tables[0].metric.kind not in UNDECIDED or tables[0].builtin in ("user", "system")):
        return [tables[0].model_copy(update={"primary": True})]  # the only one need not say so
    if tables and not any(metric.primary for table in tables for metric in table.metrics):
        raise ValueError('no metric decides: give the one that matters primary = true, or add builtin = "wall" with it')
    return tables


MetricTables = Annotated[list[MetricTable], Field(max_length=MOST_METRICS), AfterValidator(_together)]
