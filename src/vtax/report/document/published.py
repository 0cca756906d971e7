"""Published results from other machines, one by one, below the table of their entry."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.estimate.summary import Series
from vtax.report.document.cells import named
from vtax.report.document.model import Cell, Column, Row, Table
from vtax.report.document.numbers import labels_text, unit_for
from vtax.report.document.results import Results
from vtax.report.document.tables import Context
from vtax.report.records import Reference
from vtax.units import format_number

NOTE = (
    "Results from other machines: they show what is usual, not what is right here. Corrected: the report printed "
    "another number or unit, which its own logs prove wrong. `vtax reference show REPORT` shows what it printed, "
    "where, and for which machine."
)


def published(results: Results, several: Sequence[Series], context: Context) -> Table | None:
    """Every published result for an entry's metrics under its metric; None without any."""
    rows: list[Row] = []
    by_metric: dict[str, list[Series]] = {}
    for series in several:
        by_metric.setdefault(series.metric, []).append(series)
    for metric, members in by_metric.items():
        found: dict[int, Reference] = {}
        for series in members:
            found.update((id(item), item) for item in context.reference_of(series))
        if found:
            factor, unit = unit_for(level for series in members for level in results.levels[series].values())
            rows.append(Row((Cell(named(metric, unit)),), heading=True, unit=unit))
            rows += [_row(item, factor, unit) for item in found.values()]
    columns = tuple(Column(name) for name in ("Environment", "Published", "Report", "Remark"))
    return Table("Published results", columns, tuple(rows), NOTE) if rows else None


def _row(item: Reference, factor: float, unit: str) -> Row:
    name = Cell(item.environment or "not stated", labels_text(item.labels))
    remarks = [f"corrected: {item.corrected}" if item.corrected else "", item.caution]
    value = Cell(value_text(item, factor), scaled=True)
    return Row((name, value, Cell(item.source), Cell("; ".join(filter(None, remarks)))), unit=unit)


def value_text(item: Reference, factor: float) -> str:
    """`5.13`, `2.1–3.4`, `from 2.1` or `to 3.4`."""
    if item.value is not None:
        return format_number(item.value / factor)
    low, high = (None if end is None else format_number(end / factor) for end in (item.low, item.high))
    if low and high:
        return f"{low}–{high}"
    return f"from {low}" if low else f"to {high}"
