"""Measurements as a table for other programs: CSV, JSON Lines or Parquet, one row for each measurement."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence

from vtax.errors import UsageError
from vtax.model import Measurement

COLUMNS = (
    "environment",
    "round",
    "cell",
    "trial",
    "benchmark",
    "metric",
    "value",
    "unit",
    "direction",
    "warmup",
    "labels",
    "source",
)
FORMATS = ("csv", "jsonl", "parquet")

Row = Mapping[str, str | int | float | bool]


def export(measurements: Sequence[Measurement], format: str) -> bytes:
    """The table in `format`, in the given order; `labels` is JSON text. Raises UsageError for another format.

    Floats keep every digit. The labels also hold what tells repetitions apart: "entry", the label of the benchmark in
    the study, and "iteration".
    """
    writers = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}
    if format not in writers:
        raise UsageError(f'unknown export format "{format}"', remedy=f"use one of {', '.join(FORMATS)}")
    return writers[format]([row_of(item) for item in measurements])


def row_of(item: Measurement) -> Row:
    """One measurement under the names of `COLUMNS`."""
    labels = {**item.labels, "entry": item.label, "iteration": str(item.iteration)}
    return {
        "environment": item.environment,
        "round": item.round,
        "cell": item.cell,
        "trial": item.trial,
        "benchmark": item.benchmark,
        "metric": item.metric,
        "value": item.value,
        "unit": item.unit,
        "direction": str(item.direction),
        "warmup": item.warmup,
        "labels": json.dumps(labels, sort_keys=True, ensure_ascii=False),
        "source": item.source,
    }


def _csv(rows: Sequence[Row]) -> bytes:
    """RFC 4180 but for the line ends: "\\n". `value` is the shortest text that reads back as the same number."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "value": repr(row["value"]), "warmup": str(row["warmup"]).lower()})
    return text.getvalue().encode()


def _jsonl(rows: Sequence[Row]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _parquet(rows: Sequence[Row]) -> bytes:
    import polars  # only this format needs it, and it takes a while to load

    texts = dict.fromkeys(COLUMNS, polars.String)
    schema: dict[str, type[polars.DataType]] = {
        **texts,
        "round": polars.Int64,
        "value": polars.Float64,
        "warmup": polars.Boolean,
    }
    buffer = io.BytesIO()
    polars.DataFrame(list(rows), schema=schema).write_parquet(buffer)
    return buffer.getvalue()
