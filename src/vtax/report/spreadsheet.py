"""The analysis as a workbook (XLSX): comparisons, levels, findings, failures, with the numbers of `analysis.json`."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

from vtax.analysis.records import Analysis
from vtax.model.record import Record
from vtax.report.numbers import labels_text
from vtax.workbook import OPTIONS, write

SERIES = ("label", "benchmark", "metric", "labels", "unit", "environment")
LEVELS = (*SERIES, "n", "mean", "sd", "median", "minimum", "maximum", "typical", "primary")
RATIO = ("ratio", "low", "high", "difference", "difference_low", "difference_high", "p_value", "p_adjusted")
COMPARISONS = (*SERIES, "baseline", "n", *RATIO, "primary", "verdict", "sentence", "remark")
FINDINGS = ("id", "severity", "environment", "benchmark", "message", "remedy")
FAILURES = ("trial", "environment", "round", "label", "warmup", "status", "reason")


def spreadsheet(analysis: Analysis) -> bytes:
    """The XLSX file: one sheet a table, in base units; an empty cell is what does not exist."""
    import xlsxwriter

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, OPTIONS) as book:
        bold = book.add_format({"bold": True})
        sheets: tuple[tuple[str, Sequence[str], Iterable[Record]], ...] = (
            ("comparisons", COMPARISONS, analysis.comparisons),
            ("levels", LEVELS, analysis.levels),
            ("findings", FINDINGS, analysis.findings),
            ("failures", FAILURES, analysis.failures),
        )
        for name, columns, records in sheets:
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, columns, bold)
            for row, record in enumerate(records, start=1):
                for column, key in enumerate(columns):
                    value = getattr(record, key)
                    if value is None:
                        continue
                    write(sheet, row, column, labels_text(value) if isinstance(value, Mapping) else value)
            sheet.freeze_panes(1, 0)
            sheet.autofit()
    return buffer.getvalue()
