"""The ladder as a table: one row for each metric, one column for each step, intervals and no verdicts."""

from __future__ import annotations

from vtax.analysis.records import Analysis, LadderStep
from vtax.model.machine_cost import MACHINE_METRICS
from vtax.report.document.cells import ratio_of
from vtax.report.document.model import Cell, Column, Row, Table
from vtax.report.document.numbers import ABSENT, interval_text, labels_text, ratio_text

NOTE = (
    "Each step is the ratio to the environment before it, above 1 for better, paired within rounds; the last column is "
    "all steps together. Intervals are individual, and a step is not a verdict."
)


def ladder_table(analysis: Analysis) -> Table:
    """Primary metrics first; without a row when the study has no ladder."""
    several = [one for one in analysis.ladder if one.metric not in MACHINE_METRICS]
    steps = list(dict.fromkeys((rung.previous, rung.environment) for one in several for rung in one.rungs))
    rows = []
    for one in sorted(several, key=lambda one: not one.primary):
        rungs = {(rung.previous, rung.environment): rung for rung in one.rungs}
        name = " ".join(part for part in (one.label, one.metric, labels_text(one.labels)) if part)
        cells = [_cell(rungs.get(step)) for step in steps]
        rows.append(Row((Cell(name, f"{one.n} rounds"), *cells, _cell(one.total))))
    titles = ["Metric", *(f"{previous} to {environment}" for previous, environment in steps), "all steps"]
    return Table("What each step of the ladder costs", tuple(map(Column, titles)), tuple(rows), NOTE)


def _cell(rung: LadderStep | None) -> Cell:
    if rung is None:
        return Cell(ABSENT)
    note = f"not comparable: {rung.blocker}" if rung.blocker else ""
    interval = "" if rung.blocker else interval_text(rung)
    return Cell(ratio_text(rung.ratio) + interval, note, value=ratio_of(rung))
