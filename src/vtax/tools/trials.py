"""From a trial's raw output to a reading: the tool's one reader, strict for vtax's own runs, lenient for logs. Pure.

A reading of an own run holds every number of it or none: the tool's last line was seen and nothing was refused. Of an
imported log it holds every value that the reader could prove.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vtax.errors import PLUGIN_FAILURES, ParseError
from vtax.model.measurement import Measurement
from vtax.model.metric import Metric
from vtax.model.reading import ReadOutput, ReadValue, TrialReading
from vtax.model.trial import Status, TrialRecord
from vtax.tools import benchmarks, log_formats, ranks, stated
from vtax.tools.benchmark import source_of
from vtax.tools.reading import Line, Output, Reading, Section, clean

REMEDY = "the raw output is kept; read it, and report it if the tool succeeded"
SHOWN_LINES = 8
TABLE = "vtax table"  # the `reader` of trials that are rows of an exported table


def read_trial(record: TrialRecord) -> TrialReading:
    """All that the output of a trial says. What cannot be accepted is the reading's `failure`, never an error."""
    if record.status is not Status.OK:
        return TrialReading(trial=record.id, outputs=_said(record))
    try:
        return accepted(record)
    except ParseError as error:
        failure = str(error)
    except PLUGIN_FAILURES as error:
        failure = f"the reader of {record.benchmark} failed: {type(error).__name__}: {error}"
    return TrialReading(trial=record.id, outputs=_said(record), failure=failure)


def accepted(record: TrialRecord) -> TrialReading:
    """All that the output of a trial that ended well says. Raises ParseError, naming the trial, where it is refused."""
    try:
        return _imported(record) if record.imported is not None else _own(record)
    except ParseError as error:
        if error.message.startswith(source_of(record)):
            raise
        message = f"{source_of(record)}: {error.message}"
        raise ParseError(message, detail=error.detail, remedy=error.remedy) from error


def _said(record: TrialRecord) -> tuple[ReadOutput, ...]:
    """What the outputs of a trial that failed or was refused say besides values: why it did may be among it."""
    known = benchmarks().get(record.benchmark)
    if known is None or not record.texts or record.imported is not None:
        return ()
    try:
        return tuple(_output(one.file, one.reading, one.labels) for one in known.read(record))
    except (ParseError, *PLUGIN_FAILURES):  # an output is missing
        return ()


def measurements_of(
    record: TrialRecord, reading: TrialReading, explores: Callable[[str], bool] = lambda _: False
) -> tuple[Measurement, ...]:
    """The values of a reading as measurements of its trial; no metric is primary that its entry `explores`."""
    if record.imported is not None and record.imported.reader == TABLE:
        return _rows_of(record)
    return tuple(
        Measurement.of(
            record,
            Metric(
                name=v.metric, unit=v.unit, kind=v.kind, primary=v.primary and not explores(v.metric), better=v.better
            ),
            v.value,
            v.labels,
            v.file,
        )
        for v in reading.values
    )


def as_read(record: TrialRecord, reading: TrialReading) -> TrialRecord:
    """The record as it counts: failed, with the reason, where its output was refused."""
    if not reading.failure:
        return record
    return record.model_copy(update={"status": Status.FAILED, "failure": reading.failure})


def _own(record: TrialRecord) -> TrialReading:
    """A trial that vtax ran. Raises ParseError unless every output is complete and nothing in it was refused."""
    known = benchmarks().get(record.benchmark)
    if known is None:
        raise ParseError(
            f"trials/{record.id}: no benchmark {record.benchmark!r} is known here",
            remedy="install the plug-in that the campaign was run with",
        )
    outputs = known.read(record)
    for output in outputs:
        _accept(record, output)
    found = collected(record, outputs)
    if not found.values:
        raise ParseError(f"{source_of(record)}: no value", remedy=REMEDY)
    return found


def collected(record: TrialRecord, outputs: Iterable[Output]) -> TrialReading:
    """All that outputs say, accepted or not; a value's labels are the reader's own and then those of its output."""
    several = tuple(outputs)
    return TrialReading(
        trial=record.id,
        values=tuple(
            _value(value.metric, value.value, {**value.labels, **output.labels}, output.file, value.line)
            for output in several
            for value in output.reading.values
        ),
        outputs=tuple(_output(output.file, output.reading, output.labels) for output in several),
    )


def _accept(record: TrialRecord, output: Output) -> None:
    """Raise ParseError, with file and line, for an output that is not complete or has what cannot be."""
    reading = output.reading
    for refusal in reading.refusals[:1]:
        raise refused(record, output.file, refusal.line, f"{refusal.what}: {refusal.reason}")
    if not reading.ended:
        raise refused(record, output.file, 0, "the tool's last line is missing: interrupted, or cut off")
    for value in reading.values:
        metric = value.metric
        what = f"{metric.name} is {value.value:g} {metric.unit}"
        if not math.isfinite(value.value):
            raise refused(record, output.file, value.line, f"{what}, which is not a finite number")
        if value.value <= 0 and metric.kind.has_ratio:
            raise refused(record, output.file, value.line, f"{what}, and a {metric.kind} is above zero")


def refused(record: TrialRecord, file: str, line: int, what: str) -> ParseError:
    """An error that names file and line, and shows the lines up to it; the last lines where `line` is 0."""
    text = record.texts.get(file, "")
    lines = (text.split("\n")[:line] if line else text.rstrip().splitlines())[-SHOWN_LINES:]
    return ParseError(
        f"{source_of(record)}/{file}{f':{line}' if line else ''}: {what}",
        detail=f"{f'up to line {line}' if line else 'the output ends with'}:\n" + ("\n".join(lines) or "(no output)"),
        remedy=REMEDY,
    )


def _imported(record: TrialRecord) -> TrialReading:
    """A run in a log of others, read again from its raw text."""
    if record.imported is not None and record.imported.reader == TABLE:
        return TrialReading(trial=record.id)
    reading, file = read_section(_section_of(record)), record.steps[-1].stdout
    values = [
        _value(metric, value, labels, file, lines[0] if len(lines) == 1 else 0)
        for metric, value, labels, lines in ranks.combined(reading)
    ]
    return TrialReading(trial=record.id, values=tuple(values), outputs=(_output(file, reading, {}),))


def read_section(section: Section) -> Reading:
    """What a run in a log says. Refusals without a line have the first one of the section.

    A reader that fails refuses its run, with the reason: an import goes on with all others.
    """
    known = log_formats().get(section.tool)
    read = stated.read if section.tool == stated.STATED else known.read if known else None
    if read is None:
        raise ParseError(f"no reader {section.tool!r} is known here", remedy="install the plug-in that it came with")
    try:
        reading = read(section)
    except PLUGIN_FAILURES as error:
        reading = Reading(section.tool)
        reading.refuse(section.first, "all values of this run", failed(error), 0)
    if section.source:
        reading.facts["source"] = section.source
        reading.values = [
            one if "node" in one.labels else one._replace(labels={**one.labels, "node": section.source})
            for one in reading.values
        ]
    if section.labels:  # what the log itself says comes first
        reading.values = [one._replace(labels={**section.labels, **one.labels}) for one in reading.values]
    reading.refusals = [one if one.line else one._replace(line=section.first) for one in reading.refusals]
    return reading


def failed(error: BaseException) -> str:
    """The reason for a run or a file on which code failed: what was raised, and where."""
    place = error.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    where = f" in {Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
    return f"this reader failed; please report it ({type(error).__name__}{where}: {str(error)[:200]})"


def _section_of(record: TrialRecord) -> Section:
    """The section that an imported trial was made from, with the numbers of its lines in the original file."""
    assert record.imported is not None
    lines = (clean(text) for text in record.output().split("\n"))
    pieces = record.imported.pieces
    numbers = (n for first, count in pieces for n in range(first, first + count)) if pieces else None
    numbered = tuple(
        Line(next(numbers, 0) if numbers else record.imported.first_line + i, rank, text)
        for i, (rank, text) in enumerate(lines)
    )
    section = Section(record.imported.reader, numbered, record.imported.source)
    imported = record.imported
    return section._replace(labels=imported.labels, unit=imported.unit, table=imported.table)


def _rows_of(record: TrialRecord) -> tuple[Measurement, ...]:
    """The rows of a table that a trial was made of, in their order. Raises ParseError when its files are damaged."""
    found: list[tuple[int, Measurement]] = []
    for step in record.steps:
        for number, line in enumerate(record.texts[step.stdout].splitlines(), start=1):
            try:
                content: dict[str, Any] = json.loads(line)
                found.append((int(content.pop("row")), Measurement.model_validate(content)))
            except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
                raise ParseError(f"trials/{record.id}/{step.stdout}:{number}: not a row of a table: {error}") from error
    return tuple(row for _, row in sorted(found, key=lambda one: one[0]))


def _value(metric: Metric, value: float, labels: Mapping[str, str], file: str, line: int) -> ReadValue:
    try:
        return ReadValue(
            metric=metric.name,
            value=value,
            unit=metric.unit,
            kind=metric.kind,
            primary=metric.primary,
            better=metric.better,
            labels=dict(labels),
            file=file,
            line=line,
        )
    except ValidationError as error:  # a record refuses what is not finite
        raise ParseError(f"{file}:{line}: {metric.name}: {value!r} is not a finite number", remedy=REMEDY) from error


def _output(file: str, reading: Reading, labels: Mapping[str, str]) -> ReadOutput:
    return ReadOutput(
        file=file,
        labels=dict(labels),
        facts=reading.facts,
        series=reading.series,
        refused=tuple(f"line {r.line}: {r.what}: {r.reason}" for r in reading.refusals),
    )
