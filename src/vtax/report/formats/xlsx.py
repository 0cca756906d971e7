"""The report as a workbook (XLSX): its tables with numbers as numbers, and the whole analysis in base units."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vtax.export.workbook import OPTIONS, Value, sheet_name, write_rows
from vtax.model.record import Record
from vtax.report.document.model import Cell, Document, Number, Ratio, Table
from vtax.report.document.numbers import ABSENT, labels_text
from vtax.report.formats import Made

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

SERIES = ("label", "benchmark", "metric", "labels", "unit", "environment")
LEVELS = (*SERIES, "n", "mean", "sd", "median", "minimum", "maximum", "typical", "primary")
RATIO = ("ratio", "low", "high", "difference", "difference_low", "difference_high", "p_value", "p_adjusted")
COMPARISONS = (*SERIES, "baseline", "n", *RATIO, "primary", "verdict", "sentence", "remark")
SCORES = (
    "name",
    "weights",
    "environment",
    "baseline",
    "n",
    "ratio",
    "low",
    "high",
    "p_adjusted",
    "verdict",
    "sentence",
)
FINDINGS = ("id", "severity", "environment", "benchmark", "message", "remedy")
FAILURES = ("trial", "environment", "round", "label", "warmup", "status", "reason")


def files(document: Document, _made: Made) -> Mapping[str, bytes]:
    """`report.xlsx`."""
    return {"report.xlsx": workbook(document)}


def workbook(document: Document) -> bytes:
    """The XLSX file: a sheet for the answer, the overview and each part of the machine, in the units of the page; then
    a sheet for each list of the analysis, in base units, where an empty cell is what does not exist."""
    import xlsxwriter

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, OPTIONS) as book:
        bold = book.add_format({"bold": True})
        names: set[str] = set()
        for name, tables in _sheets(document):
            _tables(book.add_worksheet(sheet_name(name, names)), tables, bold)
        for name, columns, records in _records(document):
            sheet = book.add_worksheet(sheet_name(name, names))
            write_rows(sheet, [columns, *([_plain(getattr(one, key)) for key in columns] for one in records)], bold)
            sheet.freeze_panes(1, 0)
            sheet.autofit()
    return buffer.getvalue()


def _sheets(document: Document) -> Iterator[tuple[str, Sequence[Table]]]:
    yield "answer", [replace(document.answer.table, title=document.answer.headline)]
    above = (document.overview, document.machines, document.ladder, document.scores)
    yield "overview", [table for table in above if table.rows]
    for section in document.sections:
        several = [
            table
            for entry in section.entries
            for table in (entry.table, entry.counts, *entry.matrices, entry.published)
            if table is not None
        ]
        yield str(section.group), several


def _records(document: Document) -> Iterator[tuple[str, Sequence[str], Sequence[Record]]]:
    analysis = document.source.analysis
    yield "comparisons", COMPARISONS, analysis.comparisons
    yield "levels", LEVELS, analysis.levels
    if analysis.scores:
        yield "scores", SCORES, analysis.scores
    yield "findings", FINDINGS, analysis.findings
    yield "failures", FAILURES, analysis.failures


def _plain(value: Any) -> Value:
    """A value of a record as one cell holds it."""
    if not isinstance(value, Mapping):
        return value  # type: ignore[no-any-return]
    words = all(isinstance(one, str) for one in value.values())
    return labels_text(value) if words else ", ".join(f"{name} {number:g}" for name, number in value.items())


def _tables(sheet: Worksheet, tables: Sequence[Table], bold: Any) -> None:
    """Tables below each other."""
    row = 0
    for table in tables:
        columns = list(zip(*(one.cells for one in table.rows if not one.heading), strict=True))
        parts = [_parts([cell for cell in several if cell.text != ABSENT or cell.verdict]) for several in columns]
        sheet.write_string(row, 0, table.title, bold)
        sheet.write_string(row + 1, 0, table.note)
        head = [word for column, own in zip(table.columns, parts, strict=False) for word in (column.title, *own[1:])]
        lines: list[list[Value]] = [list(head)]
        for one in table.rows:
            cells = [[one.cells[0].text]] if one.heading else map(_spread, one.cells, parts)
            lines.append([value for spread in cells for value in spread])
        row += 2 + write_rows(sheet, lines, bold, first=row + 2) + 1
    sheet.autofit()


def _parts(cells: Sequence[Cell]) -> tuple[str, ...]:
    """What the cells of a column spread over: its text or number, and what else any of them has."""
    numbers = any(isinstance(cell.value, Number) for cell in cells)
    ratios = any(isinstance(cell.value, Ratio) for cell in cells)
    verdicts, notes = any(cell.verdict for cell in cells), any(cell.smaller for cell in cells)
    more = (("sd", numbers), ("low", ratios), ("high", ratios), ("verdict", verdicts), ("note", notes))
    return ("", *(name for name, there in more if there))


def _spread(cell: Cell, parts: Sequence[str]) -> list[Value]:
    """The values of one cell, for the parts of its column."""
    value = cell.value
    found: dict[str, Value] = {"": cell.text, "verdict": cell.verdict, "note": cell.smaller.replace("\u00a0", " ")}
    if isinstance(value, Number):
        found |= {"": value.value, "sd": value.sd}
    elif isinstance(value, Ratio):
        found |= {"": value.value, "low": value.low, "high": value.high}
    return [found.get(name) for name in parts]
