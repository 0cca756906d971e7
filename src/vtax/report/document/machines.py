"""What each of several machines says: a row for each metric and environment, a column for each machine."""

from __future__ import annotations

from vtax.analysis.records import Analysis, Comparison, MachineEffect
from vtax.model.machine_cost import MACHINE_METRICS
from vtax.report.document.model import Cell, Column, Ratio, Row, Table
from vtax.report.document.numbers import ABSENT, interval_text, labels_text, plural, ratio_text
from vtax.units import signed_quantity

TITLE = "On each machine"
NOTE = (
    "The ratio to the baseline on each machine alone, with an individual interval and no verdict; the verdict is about "
    "their mean. Others like them: an interval for the mean of machines of which these are a sample, which takes three "
    "or more. Pairs never cross machines."
)
DIFFERS = "the machines differ"


def by_machine(analysis: Analysis) -> list[Comparison]:
    """The primary comparisons of machines that each have whole rounds, those on which machines differ first."""
    found = [one for one in analysis.comparisons if one.machines and one.primary and one.metric not in MACHINE_METRICS]
    return sorted(found, key=lambda one: not differ(one))


def differ(one: Comparison) -> bool:
    """Whether the machines differ for certain."""
    return any(note.id == "MACHINES_DIFFER" for note in one.notes)


def row_name(one: Comparison) -> str:
    return " ".join(part for part in (one.label, one.metric, labels_text(one.labels)) if part)


def machines_table(analysis: Analysis) -> Table:
    """Without a row where there is one machine, or where clusters are spread over all of them."""
    rows = []
    for one in by_machine(analysis):
        known = {effect.machine: effect for effect in one.machines}
        note = f"{one.environment}; {DIFFERS}" if differ(one) else one.environment
        cells = [_cell(known.get(name), one.unit) for name in analysis.machines]
        mean = Cell(ratio_text(one.ratio) + interval_text(one), str(one.verdict)) if one.ratio else Cell(ABSENT)
        rows.append(Row((Cell(row_name(one), note), *cells, mean, _others(one))))
    titles = ("Metric", *analysis.machines, "mean", "others like them")
    return Table(TITLE, tuple(map(Column, titles)), tuple(rows), NOTE)


def _cell(effect: MachineEffect | None, unit: str) -> Cell:
    if effect is None:
        return Cell(ABSENT)
    rounds = f"{effect.n} {plural(effect.n, 'round')}"
    if not effect.covered:
        return Cell(ABSENT, f"{rounds}: too few")
    if effect.ratio is None:
        return Cell(ABSENT if effect.difference is None else signed_quantity(effect.difference, unit), rounds)
    value = Ratio(effect.ratio, effect.low, effect.high)
    return Cell(ratio_text(effect.ratio) + interval_text(effect), rounds, value=value)


def _others(one: Comparison) -> Cell:
    if one.spread is None or one.spread.low is None or one.spread.high is None:
        return Cell(ABSENT)
    return Cell(f"[{ratio_text(one.spread.low)}, {ratio_text(one.spread.high)}]")
