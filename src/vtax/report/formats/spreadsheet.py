"""The analysis as a workbook (XLSX): comparisons, levels, findings, failures, with the numbers of `analysis.json`."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

from vtax.analysis.records import Analysis
from vtax.export.workbook import OPTIONS, write
from vtax.model.record import Record
from vtax.report.document.numbers import labels_text

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


def spreadsheet(analysis: Analysis) -> bytes:
    """The XLSX file: one sheet a table, in base units; an empty cell is what does not exist."""
    import xlsxwriter

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, OPTIONS) as book:
        bold = book.add_format({"bold": True})
        sheets: tuple[tuple[str, Sequence[str], Iterable[Record]], ...] = (
            ("comparisons", COMPARISONS, analysis.comparisons),
            ("levels", LEVELS, analysis.levels),
            *((("scores", SCORES, analysis.scores),) if analysis.scores else ()),
            ("findings", FINDINGS, analysis.findings),
            ("failures", FAILURES, analysis.failures),
        )
        for name, columns, records in sheets:
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, columns, bold)
            for row, record in enumerate(records, start=1):
                for column, key in enumerate(columns):
                    value = getattr(record, key)
                    if key == "weights":
                        value = ", ".join(f"{metric} {weight:g}" for metric, weight in value.items())
                    elif isinstance(value, Mapping):
                        value = labels_text(value)
                    if value is not None:
                        write(sheet, row, column, value)
            sheet.freeze_panes(1, 0)
            sheet.autofit()
    return buffer.getvalue()
