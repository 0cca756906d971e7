"""Composite scores as a table: one row for each score and environment."""

from __future__ import annotations

from vtax.analysis.records import Analysis
from vtax.report.document.cells import ratio_of
from vtax.report.document.model import Cell, Column, Row, Table
from vtax.report.document.numbers import ABSENT, interval_text, plural, ratio_text

NOTE = (
    "Weighted geometric means of ratios, above 1 for better, with weights that the study fixed before the first run. "
    "Exploratory: other weights give other scores, so none is a headline."
)


def score_table(analysis: Analysis) -> Table:
    """Without a row when the study has no weights."""
    columns = tuple(map(Column, ("Score", "Environment", "Ratio", "Verdict")))
    rows = []
    for one in analysis.scores:
        weights = ", ".join(f"{metric} {weight:g}" for metric, weight in one.weights.items())
        ratio = ABSENT if one.ratio is None else ratio_text(one.ratio) + interval_text(one)
        rounds = f"{one.n} {plural(one.n, 'round')}" if one.n else ""
        cells = (
            Cell(one.name, weights),
            Cell(one.environment),
            Cell(ratio, rounds, verdict=one.verdict, value=ratio_of(one)),
        )
        rows.append(Row((*cells, Cell(one.sentence, one.caveat))))
    return Table("Composite scores", columns, tuple(rows), NOTE)
