"""Measurements as tables for other programs, and back: CSV, JSON Lines, Parquet; a workbook; OpenMetrics text.

CSV, JSON Lines and Parquet are lossless: `read_table` gives the same measurements again. A workbook is for people (a
sheet for each benchmark, iozone as matrices) and OpenMetrics for monitoring; neither is read back.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from vtax.errors import UsageError
from vtax.export import parquet
from vtax.export.openmetrics import exposition
from vtax.export.parquet import ROWS
from vtax.export.workbook import workbook
from vtax.model.measurement import Measurement

SCHEMA = "vtax-measurements/1"  # raised when readers of the old version would misread it
COLUMNS = (
    "schema",
    "environment",
    "round",
    "cell",
    "trial",
    "iteration",
    "warmup",
    "benchmark",
    "entry",
    "metric",
    "value",
    "unit",
    "kind",
    "direction",
    "primary",
    "labels",
    "source",
)
MACHINE = "machine"  # a column more, after that of the trial, in tables of campaigns on a study's own machines
WHOLE, TRUTH = ("round", "iteration"), ("warmup", "primary")
LOSSLESS = ("csv", "jsonl", "parquet")

Row = Mapping[str, str | int | float | bool]


def export(measurements: Sequence[Measurement], format: str) -> bytes:
    """The measurements in `format`, in the given order. Floats keep every digit; `labels` is JSON text in a table.

    Raises UsageError for another format.
    """
    check(format)
    return WRITERS[format](measurements)


def check(format: str) -> None:
    """Raises UsageError for a format that does not exist."""
    if format not in WRITERS:
        raise UsageError(f"there is no format {format!r}", remedy=f"choose one of {', '.join(FORMATS)}")


def columns_of(measurements: Iterable[Measurement]) -> tuple[str, ...]:
    """The columns of a table of measurements, in order."""
    if not any(item.machine for item in measurements):
        return COLUMNS
    place = COLUMNS.index("trial") + 1
    return (*COLUMNS[:place], MACHINE, *COLUMNS[place:])


def rows_of(measurements: Sequence[Measurement]) -> Iterator[Row]:
    """The measurements under the names of their columns."""
    columns = columns_of(measurements)
    for item in measurements:
        row = row_of(item)
        yield {name: row[name] for name in columns}


def row_of(item: Measurement) -> Row:
    """One measurement under the names of `COLUMNS`, and its machine; `entry` is the benchmark's label in the study."""
    return {
        MACHINE: item.machine,
        "schema": SCHEMA,
        "environment": item.environment,
        "round": item.round,
        "cell": item.cell,
        "trial": item.trial,
        "iteration": item.iteration,
        "warmup": item.warmup,
        "benchmark": item.benchmark,
        "entry": item.label,
        "metric": item.metric,
        "value": item.value,
        "unit": item.unit,
        "kind": str(item.kind),
        "direction": str(item.direction),
        "primary": item.primary,
        "labels": json.dumps(dict(item.labels), sort_keys=True, ensure_ascii=False),
        "source": item.source,
    }


def _csv(measurements: Sequence[Measurement]) -> bytes:
    """RFC 4180 but for the line ends: "\\n". `value` is the shortest text that reads back as the same number."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns_of(measurements), lineterminator="\n")
    writer.writeheader()
    for row in rows_of(measurements):
        truth = {name: str(row[name]).lower() for name in TRUTH}
        writer.writerow({**row, **truth, "value": repr(row["value"])})
    return text.getvalue().encode()


def _jsonl(measurements: Sequence[Measurement]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows_of(measurements)).encode()


def _parquet(measurements: Sequence[Measurement]) -> bytes:
    import polars  # only this format needs it, and it takes a while to load

    schema: dict[str, type[polars.DataType]] = {
        **dict.fromkeys(columns_of(measurements), polars.String),
        **dict.fromkeys(WHOLE, polars.Int64),
        **dict.fromkeys(TRUTH, polars.Boolean),
        "value": polars.Float64,
    }
    buffer = io.BytesIO()
    polars.DataFrame(list(rows_of(measurements)), schema=schema).write_parquet(buffer)
    return buffer.getvalue()


def _openmetrics(measurements: Sequence[Measurement]) -> bytes:
    return exposition(measurements).encode()


WRITERS: Mapping[str, Callable[[Sequence[Measurement]], bytes]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "xlsx": workbook,
    "openmetrics": _openmetrics,
}
FORMATS = tuple(WRITERS)


# --- and back --------------------------------------------------------------------------------------------------------


def read_table(data: bytes, format: str, name: str) -> tuple[Measurement, ...]:
    """The measurements of a lossless export. Raises UsageError with the row that is damaged; `name` is the file."""
    readers = {"csv": _csv_rows, "jsonl": _jsonl_rows, "parquet": _parquet_rows}
    if format not in readers:
        raise UsageError(f"{name}: {format} is not read back", remedy=f"export as one of {', '.join(LOSSLESS)}")
    found: list[Measurement] = []
    try:
        for row in readers[format](data):
            if len(found) == ROWS:
                raise UsageError(f"{name}: a table of more than {ROWS} rows", remedy="export it in parts")
            found.append(_measurement(row))
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        what = f"{first['loc'][0]}: {first['msg']}" if first and first["loc"] else str(error)
        raise UsageError(
            f"{name}: row {len(found) + 1} is not a measurement: {what}", remedy="export it again"
        ) from error
    return tuple(found)


def _measurement(row: Mapping[str, Any]) -> Measurement:
    if wrong := set(COLUMNS) ^ (set(map(str, row)) - {MACHINE}):
        raise ValueError(f"columns {', '.join(sorted(wrong))} are missing, or unknown")
    if row["schema"] != SCHEMA:
        raise ValueError(f"the table has schema {row['schema']!r}, this vtax reads {SCHEMA!r}")
    own = {name: value for name, value in row.items() if name not in ("schema", "entry", "labels")}
    labels = json.loads(row["labels"])
    return Measurement.model_validate({**own, "label": row["entry"], "labels": labels})


def _csv_rows(data: bytes) -> Iterable[Mapping[str, Any]]:
    for row in csv.DictReader(io.StringIO(data.decode(), newline="")):
        if None in row or None in row.values():
            raise ValueError("its number of columns differs from the header's")
        whole = {name: int(row[name]) for name in WHOLE}
        yield {**row, **whole, **{name: _truth(row[name]) for name in TRUTH}, "value": float(row["value"])}


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


def _jsonl_rows(data: bytes) -> Iterable[Mapping[str, Any]]:
    for line in data.decode().split("\n"):
        if line:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("the line is not a JSON object")
            yield row


def _parquet_rows(data: bytes) -> Iterable[Mapping[str, Any]]:
    return _jsonl_rows(parquet.lines(data).encode())
