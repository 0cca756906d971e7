"""Published results from other machines, one by one, below the table of their entry, next to the campaign's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vtax.analysis.estimate.summary import Series
from vtax.model.metric import Direction
from vtax.report.document.cells import named
from vtax.report.document.model import Cell, Column, Paragraph, Row, Section, Table
from vtax.report.document.numbers import ABSENT, interval_text, labels_text, ratio_text, unit_for
from vtax.report.document.results import Results
from vtax.report.document.tables import Context
from vtax.report.records import Reference
from vtax.units import format_number

TITLE = "Published results: others' numbers, on other machines"
NOTE = (
    "Others' numbers, on other machines: they show what is usual, not what is right here. A ratio is to the baseline "
    "of the same source; above 1 is better. Corrected: the source printed another number or unit, which its own logs "
    "prove wrong. `vtax reference show REPORT` shows what it printed, where and on which machine, and what is wrong "
    "with it."
)
COLUMNS = ("Environment", "Value", "Ratio to baseline", "n", "Whose", "Remark")
OWN = "this campaign"


def published(results: Results, several: Sequence[Series], context: Context) -> Table | None:
    """Every published result for an entry's metrics under its metric, after its own; None without any."""
    rows: list[Row] = []
    by_metric: dict[str, list[Series]] = {}
    for series in several:
        by_metric.setdefault(series.metric, []).append(series)
    for metric, members in by_metric.items():
        found = {series: context.reference_of(series) for series in members}
        if not any(found.values()):
            continue
        factor, unit = unit_for(level for series in members for level in results.levels[series].values())
        rows.append(Row((Cell(named(metric, unit)),), heading=True, unit=unit))
        shown: dict[int, Reference] = {}
        for series in (one for one, references in found.items() if references):
            rows += _own(results, series, factor, unit)
            shown.update((id(item), item) for item in found[series])
        better = results.first(members[0]).direction
        rows += [_row(item, factor, unit, better) for item in shown.values()]
    return Table(TITLE, tuple(map(Column, COLUMNS)), tuple(rows), NOTE) if rows else None


def _own(results: Results, series: Series, factor: float, unit: str) -> Iterator[Row]:
    """What this campaign measured."""
    for environment, level in results.levels[series].items():
        item = results.comparisons.get(series, {}).get(environment)
        ratio = ABSENT if item is None or item.ratio is None else ratio_text(item.ratio) + interval_text(item)
        name = Cell(environment, labels_text(dict(series.labels)))
        value = Cell(format_number(level.mean / factor), scaled=True)
        yield Row((name, value, Cell(ratio), Cell(str(level.n)), Cell(OWN), Cell("")), unit=unit)


def _row(item: Reference, factor: float, unit: str, better: Direction) -> Row:
    name = Cell(item.environment or "not stated", labels_text(item.labels))
    remarks = [f"corrected: {item.corrected}" if item.corrected else "", item.caution]
    value = Cell(value_text(item, factor), scaled=True)
    ratio = item.ratio if item.ratio is None or better is not Direction.LOWER else 1 / item.ratio
    cells = (
        *(name, value, Cell(ABSENT if ratio is None else ratio_text(ratio))),
        *(Cell(ABSENT if item.n is None else str(item.n)), Cell(item.source), Cell("; ".join(filter(None, remarks)))),
    )
    return Row(cells, unit=unit)


def value_text(item: Reference, factor: float) -> str:
    """`5.13`, `2.1–3.4`, `from 2.1` or `to 3.4`."""
    if item.value is not None:
        return format_number(item.value / factor)
    low, high = (None if end is None else format_number(end / factor) for end in (item.low, item.high))
    if low and high:
        return f"{low}–{high}"
    return f"from {low}" if low else f"to {high}"


def about_published(asked: Sequence[str], sections: Sequence[Section]) -> tuple[Paragraph, ...]:
    """What was found of the reports that were asked for; nothing where none was."""
    if not asked:
        return ()
    entries = list(dict.fromkeys(entry.label for section in sections for entry in section.entries if entry.published))
    whose = f"in {asked[0]}" if len(asked) == 1 else f"in the {len(asked)} reports that vtax has"
    if not entries:
        said = (
            f"Nothing {whose} is about the same metric under the same conditions as anything that was measured here. "
            "`vtax reference list` lists what there is."
        )
    else:
        said = (
            f"Results of others were found {whose} for {', '.join(entries)}. They are below the tables of these "
            "entries: numbers of other machines, other versions and other years, which no verdict here uses."
        )
    return (Paragraph("Published results", (said,)),)
