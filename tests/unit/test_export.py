"""The table of measurements: exact numbers, fixed columns, three formats that agree."""

from __future__ import annotations

import csv
import io
import json

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from measurements import measurement
from vtax.errors import UsageError
from vtax.export import COLUMNS, FORMATS, export

ITEM = measurement(0.1 + 0.2, round=2, iteration=3, labels={"b": "2", "a": "ä"}, warmup=True)


def test_csv_is_one_row_a_measurement() -> None:
    header, row = csv.reader(io.StringIO(export([ITEM], "csv").decode()))
    assert tuple(header) == COLUMNS
    assert row == [
        "host",
        "2",
        "host-2",
        "host-2-tool-3",
        "tool",
        "elapsed",
        "0.30000000000000004",
        "s",
        "lower is better",
        "true",
        '{"a": "ä", "b": "2", "entry": "tool", "iteration": "3"}',
        "trials/host-2-tool-3/stdout",
    ]


def test_json_lines_keep_types() -> None:
    row = json.loads(export([ITEM], "jsonl").decode().splitlines()[0])
    assert tuple(row) == COLUMNS
    assert (row["round"], row["value"], row["warmup"]) == (2, 0.1 + 0.2, True)


def test_parquet_reads_back() -> None:
    frame = polars.read_parquet(io.BytesIO(export([ITEM, ITEM], "parquet")))
    assert tuple(frame.columns) == COLUMNS
    assert frame["value"].to_list() == [0.1 + 0.2] * 2
    assert frame["round"].dtype == polars.Int64


@pytest.mark.parametrize("format", FORMATS)
def test_no_measurement_is_an_empty_table(format: str) -> None:
    data = export([], format)
    if format == "parquet":
        assert polars.read_parquet(io.BytesIO(data)).shape == (0, len(COLUMNS))
    else:
        assert data.decode() == (",".join(COLUMNS) + "\n" if format == "csv" else "")


def test_another_format_is_refused() -> None:
    with pytest.raises(UsageError, match="xlsx"):
        export([ITEM], "xlsx")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_csv_keeps_every_bit(value: float) -> None:
    (row,) = csv.DictReader(io.StringIO(export([measurement(value)], "csv").decode()))
    assert float(row["value"]).hex() == value.hex()


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_label_survives_csv(text: str) -> None:
    data = io.StringIO(export([measurement(1.0, labels={"k": text})], "csv").decode(), newline="")
    (row,) = csv.DictReader(data)
    assert json.loads(row["labels"])["k"] == text
