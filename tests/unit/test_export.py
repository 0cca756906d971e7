"""The tables of measurements: exact numbers, fixed columns, nothing lost; a workbook and OpenMetrics text."""

from __future__ import annotations

import csv
import io
import json
import re

import openpyxl
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.measurements import measurement
from vtax.errors import UsageError
from vtax.export.tables import COLUMNS, FORMATS, LOSSLESS, SCHEMA, export, read_table
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind

ITEM = measurement(0.1 + 0.2, round=2, iteration=3, labels={"b": "2", "a": "ä"}, warmup=True)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)  # no line ends: names have none
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
MEASUREMENTS = st.builds(
    measurement,
    st.floats(allow_nan=False, allow_infinity=False),
    environment=NAMES,
    round=st.integers(1, 1000),
    iteration=st.integers(1, 1000),
    metric=NAMES,
    kind=st.sampled_from(Kind),
    primary=st.booleans(),
    warmup=st.booleans(),
    labels=st.dictionaries(TEXTS, TEXTS, max_size=3),
    source=st.just("trials/x/stdout"),
)


def test_csv_is_one_row_a_measurement() -> None:
    header, row = csv.reader(io.StringIO(export([ITEM], "csv").decode()))
    assert tuple(header) == COLUMNS
    assert row == [
        SCHEMA,
        "host",
        "2",
        "host-2",
        "host-2-tool-3",
        "3",
        "true",
        "tool",
        "tool",
        "elapsed",
        "0.30000000000000004",
        "s",
        "cost",
        "lower is better",
        "true",
        '{"a": "ä", "b": "2"}',
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


@pytest.mark.parametrize("format", LOSSLESS)
def test_no_measurement_is_an_empty_table(format: str) -> None:
    data = export([], format)
    if format == "parquet":
        assert polars.read_parquet(io.BytesIO(data)).shape == (0, len(COLUMNS))
    else:
        assert data.decode() == (",".join(COLUMNS) + "\n" if format == "csv" else "")
    assert read_table(data, format, "f") == ()


def test_another_format_is_refused() -> None:
    with pytest.raises(UsageError, match="ods"):
        export([ITEM], "ods")
    with pytest.raises(UsageError, match="xlsx is not read back"):
        read_table(b"", "xlsx", "f")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_csv_keeps_every_bit(value: float) -> None:
    (row,) = csv.DictReader(io.StringIO(export([measurement(value)], "csv").decode()))
    assert float(row["value"]).hex() == value.hex()


@pytest.mark.parametrize("format", LOSSLESS)
@given(items=st.lists(MEASUREMENTS, max_size=4))
@settings(max_examples=60, deadline=None)
def test_nothing_is_lost_on_the_way_out_and_back(format: str, items: list[Measurement]) -> None:
    again = read_table(export(items, format), format, "f")
    assert again == tuple(items)
    assert [item.value.hex() for item in again] == [item.value.hex() for item in items]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("0.30000000000000004", "nan"), "row 1 is not a measurement: value: "),
        (("0.30000000000000004", "fast"), "row 1 is not a measurement: could not convert"),
        ((SCHEMA, "vtax-measurements/9"), "this vtax reads"),
        (("true,tool", "yes,tool"), "'yes' is neither true nor false"),
        ((",kind,", ",sort,"), "columns kind, sort are missing, or unknown"),
        (("host,2,", "host,2,3,"), "row 1 is not a measurement"),
        (("lower is better", "best"), "direction: "),
    ],
)
def test_a_damaged_table_is_refused_with_its_row(change: tuple[str, str], said: str) -> None:
    damaged = export([ITEM], "csv").decode().replace(*change)
    with pytest.raises(UsageError, match=r"^f\.csv: row") as caught:
        read_table(damaged.encode(), "csv", "f.csv")
    assert said in str(caught.value)


@pytest.mark.parametrize("format", LOSSLESS)
def test_what_is_no_table_is_refused(format: str) -> None:
    with pytest.raises(UsageError):
        read_table(b"\xff\xfe\0nothing,\n1,2\n", format, "f")


# --- a workbook ----------------------------------------------------------------------------------------------------


def iozone(value: float, file_kib: int, record_kib: int, round: int = 1) -> Measurement:
    labels = {"operation": "write", "file_bytes": str(file_kib * 1024), "record_bytes": str(record_kib * 1024)}
    return measurement(value, round=round, metric="throughput", unit="byte/s", labels=labels, benchmark="iozone")


def test_a_workbook_has_a_sheet_for_every_benchmark() -> None:
    data = export([ITEM, measurement(5.0, benchmark="other")], "xlsx")
    book = openpyxl.load_workbook(io.BytesIO(data))
    assert book.sheetnames == ["about", "other", "tool"]
    header, row = book["tool"].iter_rows(values_only=True)
    assert dict(zip(header, row, strict=True)) | {"value": 0.1 + 0.2} == {
        "environment": "host",
        "round": 2,
        "iteration": 3,
        "warmup": True,
        "metric": "elapsed",
        "value": 0.1 + 0.2,
        "unit": "s",
        "direction": "lower is better",
        "a": "ä",
        "b": "2",
        "trial": "host-2-tool-3",
        "source": "trials/host-2-tool-3/stdout",
    }


def test_iozone_is_a_matrix_of_medians() -> None:
    items = [iozone(1.0, 64, 4), iozone(3.0, 64, 4, round=2), iozone(8.0, 64, 4, round=3), iozone(7.0, 128, 8)]
    sheet = openpyxl.load_workbook(io.BytesIO(export(items, "xlsx")))["iozone matrices"]
    rows = list(sheet.iter_rows(values_only=True))
    assert "operation write" in str(rows[0][0])
    assert rows[1] == ("file bytes \\ record bytes", 4096, 8192)
    assert rows[2] == (65536, 3, None)
    assert rows[3] == (131072, None, 7)


def test_text_never_becomes_a_formula_or_a_wrong_sheet() -> None:
    items = [
        measurement(1.0, environment="=1+1", benchmark="a/b[c]:" + "x" * 40, labels={"k": "=HYPERLINK(1)"}),
        measurement(1.0, benchmark="A/b[c]:" + "x" * 40),
        measurement(1.0, benchmark="history"),
    ]
    book = openpyxl.load_workbook(io.BytesIO(export(items, "xlsx")))
    assert len({name.lower() for name in book.sheetnames}) == 4
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not [cell for cell in cells if cell.data_type == "f"]
    assert "=1+1" in {cell.value for cell in cells}


# --- OpenMetrics ---------------------------------------------------------------------------------------------------

SAMPLE = re.compile(r'^([A-Za-z_][A-Za-z0-9_]*)\{((?:[A-Za-z_][A-Za-z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)$')


def test_openmetrics_names_carry_the_unit() -> None:
    lines = export([ITEM, iozone(2.0, 64, 4)], "openmetrics").decode().splitlines()
    assert lines[-1] == "# EOF"
    assert "# TYPE vtax_tool_elapsed_seconds gauge" in lines
    assert "# UNIT vtax_tool_elapsed_seconds seconds" in lines
    (sample,) = [line for line in lines if line.startswith("vtax_tool_elapsed_seconds{")]
    assert 'environment="host",round="2"' in sample
    assert sample.endswith(" 0.30000000000000004")
    assert "# UNIT vtax_iozone_throughput_bytes_per_second bytes_per_second" in lines


@given(st.lists(MEASUREMENTS, max_size=5))
@settings(max_examples=60, deadline=None)
def test_openmetrics_is_well_formed_whatever_the_names(items: list[Measurement]) -> None:
    lines = export(items, "openmetrics").decode().split("\n")
    assert lines[-2:] == ["# EOF", ""]
    samples = [line for line in lines if not line.startswith("#") and line]
    assert len(samples) == len(items)
    families = [line.split(" ")[2] for line in lines if line.startswith("# TYPE ")]
    assert len(families) == len(set(families))
    for line in samples:
        match = SAMPLE.match(line)
        assert match is not None, line
        assert match[1] in families
        names = re.findall(r'([A-Za-z_]\w*)="', re.sub(r'"(?:[^"\\]|\\.)*"', '""', match[2]))
        assert len(names) == len(set(names))


def test_the_formats_are_those_that_the_command_names() -> None:
    assert FORMATS == ("csv", "jsonl", "parquet", "xlsx", "openmetrics")
