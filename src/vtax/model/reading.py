"""What was read from a trial's output: values, facts, time series, refusals. Written next to the trial's record."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, JsonValue

from vtax.model.metric import Direction, Kind
from vtax.model.names import FileName, TrialId
from vtax.model.record import FORMAT, Labels, Record


class TimeSeries(Record):
    """What a tool printed while it ran. `columns` name what each number of a row is, with its unit (`end_s`)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


class ReadValue(Record):
    """One number in base units, and the line (from 1) that it was read from; 0 where several lines gave it."""

    metric: str
    value: float
    unit: str
    kind: Kind
    primary: bool = False
    better: Direction | None = None  # where the kind leaves it open
    labels: Labels = Field(default_factory=dict)
    file: FileName
    line: int = 0


class ReadOutput(Record):
    """What one output file says besides its values. `refused` are sentences about what was not taken."""

    file: FileName
    labels: Labels = Field(default_factory=dict)  # of the node or rank, where a trial has several outputs
    facts: Mapping[str, JsonValue] = Field(default_factory=dict)
    series: Mapping[str, TimeSeries] = Field(default_factory=dict)
    refused: tuple[str, ...] = ()


class TrialReading(Record):
    """Everything that was read from one trial: `measurements.json` next to its record.

    `reader` is a digest of the code that read it, `raw_sha256` of the files that it read: where either is another one,
    the output is read again.

    `failure` says why nothing was taken from a trial that ran to its end; "" when its output was accepted.
    """

    format: int = FORMAT
    trial: TrialId
    reader: str = ""
    raw_sha256: str = ""
    values: tuple[ReadValue, ...] = ()
    outputs: tuple[ReadOutput, ...] = ()
    failure: str = ""
