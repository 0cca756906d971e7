"""A workbook (XLSX) of measurements: a sheet for every entry of the study, iozone also as matrices of medians.

Text is written as text: a name that begins with `=` never becomes a formula.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from vtax.errors import UsageError
from vtax.model.measurement import Measurement

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

Value = str | int | float | bool | None

MOST_ROWS = 1_048_576  # of a sheet
LONGEST = 31  # characters in the name of a sheet
FORBIDDEN = re.compile(r"[\[\]:*?/\\']")
FIRST = ("environment", "round", "iteration", "warmup", "metric", "value", "unit", "direction")
LAST = ("trial", "source")
MATRIX = ("file_bytes", "record_bytes")
OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}


def workbook(measurements: Sequence[Measurement]) -> bytes:
    """The XLSX file. Raises UsageError for more rows than a sheet can hold."""
    import xlsxwriter

    entries: dict[str, list[Measurement]] = {}
    for item in measurements:
        entries.setdefault(item.label, []).append(item)
    largest = max(map(len, entries.values()), default=0)
    if largest >= MOST_ROWS:
        raise UsageError(f"a sheet holds {MOST_ROWS:,} rows, and one benchmark has {largest:,}", remedy="use parquet")
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, OPTIONS) as book:
        bold = book.add_format({"bold": True})
        names: set[str] = set()
        _about(book.add_worksheet(sheet_name("about", names)), entries, bold)
        for entry, items in sorted(entries.items()):
            _table(book.add_worksheet(sheet_name(entry, names)), items, bold)
            if any(set(MATRIX) <= set(item.labels) for item in items):
                _matrices(book, book.add_worksheet(sheet_name(f"{entry} matrices", names)), items, bold)
    return buffer.getvalue()


def sheet_name(text: str, taken: set[str]) -> str:
    """A name that no other sheet has, whatever its case, and without the characters that Excel refuses."""
    wanted = FORBIDDEN.sub("_", text)[:LONGEST].strip() or "sheet"
    name, number = wanted, 1
    while name.lower() in taken:
        number += 1
        name = f"{wanted[: LONGEST - len(str(number)) - 1]} {number}"
    taken.add(name.lower())
    return name


def _about(sheet: Worksheet, entries: Mapping[str, Sequence[Measurement]], bold: Any) -> None:
    sheet.write_string(0, 0, "Measurements, one row each, in base units; warm-ups are marked and never analysed.")
    sheet.write_row(2, 0, ["entry", "benchmark", "measurements"], bold)
    for row, (entry, items) in enumerate(sorted(entries.items()), start=3):
        sheet.write_string(row, 0, entry)
        sheet.write_string(row, 1, items[0].benchmark)
        sheet.write_number(row, 2, len(items))
    sheet.autofit()


def _table(sheet: Worksheet, items: Sequence[Measurement], bold: Any) -> None:
    labels = sorted({name for item in items for name in item.labels})
    first = (*FIRST, "machine") if any(item.machine for item in items) else FIRST
    header: list[Value] = [*first, *labels, *LAST]
    rows: list[list[Value]] = [header]
    for item in items:
        values = _cells(item)
        own: list[Value] = [item.labels.get(name, "") for name in labels]
        rows.append([*(values[name] for name in first), *own, *(values[name] for name in LAST)])
    write_rows(sheet, rows, bold)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, len(items), len(header) - 1)
    sheet.autofit()


def _cells(item: Measurement) -> dict[str, Value]:
    return {
        "environment": item.environment,
        "machine": item.machine,
        "round": item.round,
        "iteration": item.iteration,
        "warmup": item.warmup,
        "metric": item.metric,
        "value": item.value,
        "unit": item.unit,
        "direction": str(item.direction),
        "trial": item.trial,
        "source": item.source,
    }


def write_rows(sheet: Worksheet, rows: Sequence[Sequence[Value]], bold: Any, first: int = 0) -> int:
    """Write a heading and the rows below it from row `first` on, text always as text. Returns how many they are."""
    for row, values in enumerate(rows, start=first):
        style = (bold,) if row == first else ()
        for column, value in enumerate(values):
            if isinstance(value, bool):
                sheet.write_boolean(row, column, value, *style)
            elif isinstance(value, (int, float)):
                sheet.write_number(row, column, value, *style)
            elif value not in (None, ""):
                sheet.write_string(row, column, str(value), *style)
    return len(rows)


def _matrices(book: Workbook, sheet: Worksheet, items: Sequence[Measurement], bold: Any) -> None:
    """For every environment, place and operation: file sizes down, record sizes across, the median of all runs."""
    number = book.add_format({"num_format": "#,##0"})
    tables: dict[tuple[tuple[str, str], ...], dict[tuple[int, int], list[float]]] = {}
    for item in items:
        if item.warmup or not set(MATRIX) <= set(item.labels):
            continue
        others = {name: value for name, value in item.labels.items() if name not in MATRIX}
        key = (("environment", item.environment), ("metric", item.metric), ("unit", item.unit), *sorted(others.items()))
        size = (int(item.labels["file_bytes"]), int(item.labels["record_bytes"]))
        tables.setdefault(key, {}).setdefault(size, []).append(item.value)
    row = 0
    for key, cells in sorted(tables.items()):
        files, records = (sorted({size[axis] for size in cells}) for axis in (0, 1))
        sheet.write_string(row, 0, ", ".join(f"{name} {value}" for name, value in key) + ", median of all runs", bold)
        sheet.write_string(row + 1, 0, "file bytes \\ record bytes", bold)
        for column, record in enumerate(records, start=1):
            sheet.write_number(row + 1, column, record, bold)
        for down, file in enumerate(files, start=row + 2):
            sheet.write_number(down, 0, file, bold)
            for column, record in enumerate(records, start=1):
                if values := cells.get((file, record)):
                    sheet.write_number(down, column, median(values), number)
        row += len(files) + 3
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 16, 14)
