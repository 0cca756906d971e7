"""From what a command printed to its metrics, or to the reason why there is no number. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vtax.tools import ranks
from vtax.tools.command.builtins import DEFAULT, always_measured, read_usage
from vtax.tools.command.metric_table import MetricTable, known_reader
from vtax.tools.command.numbers import MOST_NUMBERS, NoNumber, Output, combined, numbers_of
from vtax.tools.command.readers import Wanted
from vtax.tools.reading import Reading, Refusal, Value
from vtax.units import base_unit, in_base_units
from vtax.wording import listed

USAGE = "usage"  # what `texts` calls vtax-run's report
NOTHING: Mapping[str, str] = {}
LARGEST_TEXT = 16 * 2**20  # characters of an output that metrics are read from


@dataclass
class Extracted:
    """What was read, by the output that it was read from: "stdout", "stderr", a file, or "usage".

    A reading without refusals has every number that was asked of its output. That of an output that is not there has a
    refusal, so look for the file before you show its lines.
    """

    readings: dict[str, Reading] = field(default_factory=dict)

    @property
    def values(self) -> list[Value]:
        return [value for reading in self.readings.values() for value in reading.values]

    @property
    def refusals(self) -> list[tuple[str, Refusal]]:
        return [(source, refusal) for source, reading in self.readings.items() for refusal in reading.refusals]


def extract(
    metrics: Sequence[MetricTable], texts: Mapping[str, str], label: str, not_kept: Mapping[str, str] = NOTHING
) -> Extracted:
    """The metrics of a command from its `texts`: "stdout", "stderr", files that it left, and "usage". What it left and
    was `not_kept` has a reason.

    What is always measured is added where `texts` has a usage.
    """
    found = Extracted()
    for source in dict.fromkeys(table.source for table in metrics if table.builtin is None):
        tables = [table for table in metrics if table.builtin is None and table.source == source]
        found.readings[source] = _from_output(label, source, tables, texts, not_kept.get(source, ""))
    asked = {table.builtin: table.metric for table in metrics if table.builtin is not None}
    if USAGE in texts or asked:
        reading = found.readings[USAGE] = Reading(label, ended=True)
        wanted = always_measured(asked, {metric.name for table in metrics for metric in table.metrics}) | asked
        if not metrics:
            wanted[DEFAULT] = wanted[DEFAULT].model_copy(update={"primary": True})
        if USAGE in texts:
            read_usage(reading, texts[USAGE], wanted, frozenset(asked))
        else:
            reading.refuse(0, listed(sorted(asked)), "vtax-run left no report", len(asked))
    for reading in found.readings.values():
        _check(reading)
    return found


def _from_output(
    label: str, source: str, tables: Sequence[MetricTable], texts: Mapping[str, str], not_kept: str
) -> Reading:
    """All metrics of one output."""
    reading = Reading(label, ended=True)
    text = texts.get(source)
    if text is None:
        there = listed(sorted(name for name in texts if name != USAGE))
        why = f"{source} was not kept: {not_kept}" if not_kept else f"there is no {source}; there is {there}"
        reading.refuse(0, _names(tables), why, len(tables))
        return reading
    if len(text) > LARGEST_TEXT:
        why = f"{source} has {len(text):,} characters; metrics are read from {LARGEST_TEXT:,} at most"
        reading.refuse(0, _names(tables), why, len(tables))
        return reading
    output = Output(text.replace("\r\n", "\n"))
    for table in tables:
        if table.reader is not None:
            _by_reader(reading, table, output)
            continue
        metric = table.metric
        try:
            numbers = numbers_of(table, output)
            value = combined(table, numbers)
        except NoNumber as error:
            reading.refuse(error.line, metric.name, error.reason)
            continue
        line = numbers[0].line if len(numbers) == 1 else 0
        assert table.unit is not None
        reading.values.append(Value(metric, in_base_units(value, base_unit(table.unit)[1]), line))
    return reading


def _names(tables: Sequence[MetricTable]) -> str:
    return listed([table.name or str(table.reader) for table in tables])


# --- ready-made readers --------------------------------------------------------------------------------------------


def _by_reader(reading: Reading, table: MetricTable, output: Output) -> None:
    """What a ready-made reader finds: all of it or, with a reason, nothing."""
    assert table.reader is not None
    reader = known_reader(table.reader)
    if reader.ends and not output.text.endswith(reader.ends):
        why = "the last line does not end with a line feed, so a part of it may be missing"
        reading.refuse(0, f"what {reader.name} reads", why)
        return
    wants: dict[str, Wanted] = {}
    if table.name is not None and table.unit is not None:
        wants[table.measure or table.name] = Wanted(table.metric, base_unit(table.unit)[1])
    own = reader.read(output.section(reader.name), wants)
    reading.facts |= own.facts
    reading.series |= own.series
    if own.refusals or not own.ended:
        reading.refusals += own.refusals
        if not own.refusals:
            reading.refuse(0, f"what {reader.name} reads", "the last line is missing: interrupted, or cut off")
        return
    if len(own.values) > MOST_NUMBERS:
        reading.refuse(0, f"what {reader.name} reads", f"there are more than {MOST_NUMBERS:,} numbers", 0)
        return
    chosen = {metric.name for metric in table.metrics if metric.primary}
    seen = {value.metric.name for value in own.values}
    if missing := sorted(chosen - seen):
        why = f"it is primary, and the output has only {listed(sorted(seen))}"
        reading.refuse(0, listed(missing), why, len(missing))
        return
    for metric, value, labels, lines in ranks.combined(own):
        decides = metric.model_copy(update={"primary": metric.name in chosen})
        reading.values.append(Value(decides, value, lines[0] if len(lines) == 1 else 0, labels))


def _check(reading: Reading) -> None:
    """Refuse values that no metric of their kind can have; strict, as for vtax's own tools."""
    values, reading.values = reading.values, []
    for value in values:
        metric = value.metric
        if not math.isfinite(value.value) or value.value < 0:
            reading.refuse(value.line, metric.name, f"{value.value!r} is not a finite number of zero or more")
        elif value.value == 0 and metric.kind.has_ratio:
            reading.refuse(value.line, metric.name, f"it is 0, and a {metric.kind} is above zero")
        else:
            reading.values.append(value)
    if not reading.values and not reading.refusals:
        reading.refuse(0, "all values", "there are none")
