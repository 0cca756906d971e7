"""What trials cost the machine, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Comparison, Level
from vtax.evidence.machine_cost import SHORTEST_S, too_short
from vtax.model.machine_cost import CPU_TIME, ENERGY, MACHINE_METRICS, NODE_TIME, SECOND, unit_in
from vtax.report.document.model import Cell, Row, Table
from vtax.report.document.numbers import ABSENT, labels_text, unit_for
from vtax.report.document.results import Results, bundles
from vtax.report.document.tables import COLLAPSE_FROM, columns_of, overview_row, range_row
from vtax.report.records import ReportInput

TITLE = "What it cost the machine"
HEADINGS = {
    CPU_TIME: "CPU time of the whole machine",
    NODE_TIME: "CPU time that the nodes see",
    ENERGY: "Energy of processors and memory",
}
EACH_SECOND = {CPU_TIME: "CPUs in use", NODE_TIME: "CPUs in use", ENERGY: "power"}
NOTE = (
    "What all CPUs together spent while the measured commands ran, emulators and kernel threads included, vtax itself "
    "not. What else runs on the machine is part of it (C10). Exploratory: above 1 is less than {baseline}, below 1 is "
    "more (0.5 is twice as much)."
)


def machine_table(report: ReportInput) -> Table:
    """Every entry, also those whose runs were too short; without a row where nothing was counted."""
    results = _results(report)
    timed = {work.label for work in report.plan.work if work.clocked_s > 0}
    rows: list[Row] = []
    for metric, heading in HEADINGS.items():
        measured = [series for series, levels in results.levels.items() if set(levels) & set(results.compared)]
        own = [series for series in measured if series.metric == metric]
        rows += [Row((Cell(heading),), heading=True)] if own else []
        for several in bundles(own):
            if len(several) >= COLLAPSE_FROM:
                rows.append(range_row(results, several, _title(results, several, several[0].label in timed)))
                continue
            rows += [
                overview_row(results, series, _title(results, [series], series.label in timed)) for series in several
            ]
    columns = columns_of(results, "Entry", results.compared)
    rows += _too_short(report, len(columns) - 1)
    return Table(TITLE, columns, tuple(rows), NOTE.format(baseline=results.baseline))


def _too_short(report: ReportInput, others: int) -> list[Row]:
    """A row without numbers for each entry that has none because its runs were too short."""
    short = too_short(report.plan, report.trials, report.readings)
    why = f"a run took less than {SHORTEST_S:g} s, and the kernel counts in steps of 10 ms"
    labels = [spec.label for spec in report.plan.study.benchmarks if spec.label in short]
    return [Row((Cell(label, why), *[Cell(ABSENT)] * others)) for label in labels]


def _title(results: Results, several: Sequence[Series], timed: bool) -> Cell:
    """`sysbench-cpu` over `per operation, µs; target worker1`."""
    first = several[0]
    every = [level for series in several for level in results.levels[series].values()]
    _, unit = unit_for([level for level in every if level.environment in results.compared])
    of = unit_in(every[0].unit, first.metric)
    if of == SECOND:
        what = f"{EACH_SECOND[first.metric]}{f', {unit}' if unit else ''}"
    else:
        what = unit if of.of else f"per {'operation' if timed else 'run'}, {unit}"
    where = labels_text(dict(first.labels)) if len(several) == 1 else f"{len(several)} rows in the data"
    return Cell(first.label, "; ".join(word for word in (what, where) if word))


def _results(report: ReportInput) -> Results:
    analysis = report.analysis
    levels: dict[Series, dict[str, Level]] = {}
    comparisons: dict[Series, dict[str, Comparison]] = {}
    for level in (one for one in analysis.levels if one.metric in MACHINE_METRICS):
        levels.setdefault(level.series, {})[level.environment] = level
    for item in (one for one in analysis.comparisons if one.metric in MACHINE_METRICS):
        comparisons.setdefault(item.series, {})[item.environment] = item
    entries = [spec.label for spec in report.plan.study.benchmarks]
    ordered = sorted(levels, key=lambda one: (entries.index(one.label) if one.label in entries else len(entries), one))
    return Results(
        analysis.environments,
        analysis.baseline,
        {series: levels[series] for series in ordered},
        comparisons,
        analysis.emulated,
        frozenset(levels),
    )
