"""Results as tables: the overview of primary metrics, and one table for each entry of the study."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from vtax.analysis.estimate.summary import Series
from vtax.model.nodes import EVERY_PAIR
from vtax.report.document.cells import level_cell, named, range_cell, ratio_cell, span
from vtax.report.document.groups import Group
from vtax.report.document.model import Cell, Column, Row, Table
from vtax.report.document.numbers import labels_text, plural, unit_for
from vtax.report.document.peaks import has_peak
from vtax.report.document.results import PLACES, Results, bundles, shared_labels
from vtax.report.records import Reference
from vtax.units import format_number, scale_of

EXPLORATORY = " (exploratory)"
COLLAPSE_FROM = 7  # series of one metric that the overview shows as one row
MOST_ROWS = EVERY_PAIR * (EVERY_PAIR - 1)  # of one metric that the table of an entry shows all of
ENDS = 3  # of more, how many of the lowest and of the highest ratios it shows
ALIKE = 1e4  # values of one dimension up to this far apart have one unit in a table


@dataclass(frozen=True)
class Context:
    """What is shown next to the numbers: the peak of an entry, in flop/s, and values from elsewhere.

    `words` are what an entry of the study has besides the labels of its results: its point in a sweep, its workload.
    """

    peaks: Mapping[str, float] = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)

    def reference_of(self, series: Series) -> tuple[Reference, ...]:
        """The references of a series: those of its metric of which it has every label."""
        labels = {*series.labels, *self.words.items()}
        return tuple(
            item
            for item in self.references
            if (item.benchmark, item.metric) == (series.benchmark, series.metric) and set(item.labels.items()) <= labels
        )


NOTHING = Context()


def columns_of(results: Results, first: str, environments: Sequence[str]) -> tuple[Column, ...]:
    """Each environment, and next to it (but for the baseline, and for what is emulated) how it compares."""
    columns = [Column(first)]
    for name in environments:
        columns.append(Column(name, results.environments.index(name)))
        if name in results.others:
            columns.append(Column(f"{name} / {results.baseline}"))
    return tuple(columns)


def overview(results: Results) -> Table:
    """Every primary metric; many series of one metric, such as all pairs of nodes, as one row of ranges. Then those of
    exploratory entries."""
    rows: list[Row] = []
    for exploratory in (False, True):
        for group in Group:
            own = [
                series
                for series in results.levels
                if results.main(series)
                and results.group(series) is group
                and (series in results.exploratory) is exploratory
            ]
            if own:
                rows.append(Row((Cell(f"{group.shown}{EXPLORATORY if exploratory else ''}"),), heading=True))
            for several in bundles(own):
                if len(several) < COLLAPSE_FROM:
                    rows += [overview_row(results, series) for series in several]
                else:
                    rows.append(range_row(results, several))
    note = f"mean ± standard deviation over n rounds; next to it the performance relative to {results.baseline}"
    columns = columns_of(results, "Metric", results.compared)
    return Table("Every primary metric", columns, tuple(rows), note)


def overview_row(results: Results, series: Series, title: Cell | None = None) -> Row:
    """A series; under another `title` than that of its metric, it has no raw files in the page."""
    factor, unit = unit_for([level for name, level in results.levels[series].items() if name in results.compared])
    cells = [title or Cell(named(series.metric, unit), f"{series.label}, {labels_text(dict(series.labels))}")]
    for environment in results.compared:
        level = results.levels[series].get(environment)
        cells.append(level_cell(level, factor, median=False, raw="" if title else results.raw(series)))
        if environment != results.baseline:
            item = results.comparisons.get(series, {}).get(environment)
            exploratory = series in results.exploratory
            cells.append(ratio_cell(item, results.baseline, explain=True, exploratory=exploratory))
    return Row(tuple(cells), unit=unit)


def range_row(results: Results, several: Sequence[Series], title: Cell | None = None) -> Row:
    """Several series of one metric as ranges."""
    every = [level for series in several for level in results.levels[series].values()]
    levels = [level for level in every if level.environment in results.compared]
    factor, unit = unit_for(levels)
    shared = set.intersection(*(set(series.labels) for series in several))
    where = labels_text({k: v for k, v in shared if k not in PLACES})
    words = ", ".join(word for word in (several[0].label, where, f"{len(several)} rows in the table below") if word)
    cells = [title or Cell(named(several[0].metric, unit), words)]
    for environment in results.compared:
        means = [level.mean / factor for level in levels if level.environment == environment]
        cells.append(Cell(span(means, format_number)))
        if environment != results.baseline:
            found = [results.comparisons.get(series, {}).get(environment) for series in several]
            known = [item for item in found if item is not None]
            cells.append(range_cell(known, results.baseline, exploratory=several[0] in results.exploratory))
    return Row(tuple(cells))


def benchmark_table(
    results: Results, several: Sequence[Series], meanings: Mapping[str, str], context: Context = NOTHING
) -> Table | None:
    """One row for each series, under its metric where a metric has several. None when all are in matrices.

    What is the same in all rows is in the note of the table.
    """
    rows: list[Row] = []
    shared = shared_labels(several)
    by_metric: dict[str, list[Series]] = {}
    for series in several:
        by_metric.setdefault(series.metric, []).append(series)
    scales = _scales(results, by_metric)
    for metric, members in by_metric.items():
        factor, unit = scales[metric]
        title = Cell(named(metric, unit), meaning=meanings.get(metric, ""))
        shown = shown_of(results, members)
        names = [labels_text({k: v for k, v in series.labels if shared.get(k) != v}) for series in shown]
        if len(members) > 1:
            rows.append(Row((title,), heading=True, unit=unit))
            if len(shown) < len(members):
                rows.append(_all_of_them(results, members, factor))
            rows += [
                replace(_series_row(results, s, (factor, unit), Cell(name), context), inside=True)
                for s, name in zip(shown, names, strict=True)
            ]
        else:
            rows.append(_series_row(results, members[0], (factor, unit), replace(title, note=names[0]), context))
    columns = columns_of(results, "Metric", results.environments)
    if any(context.reference_of(series) for series in several):
        columns = (*columns, Column("Published"))
    alike = labels_text(shared)  # "" where they share only what is not shown
    note = f"All rows: {alike}." if alike else ""
    return Table(several[0].label, columns, tuple(_filled(row, len(columns)) for row in rows), note) if rows else None


def _all_of_them(results: Results, several: Sequence[Series], factor: float) -> Row:
    """Many series as one row of ranges, above those of them that a table shows."""
    cells = [Cell(f"all {len(several)}", f"then those with the {ENDS} lowest and the {ENDS} highest ratios")]
    for environment in results.environments:
        levels = [results.levels[series].get(environment) for series in several]
        cells.append(Cell(span([level.mean / factor for level in levels if level is not None], format_number)))
        if environment in results.others:
            found = [results.comparisons.get(series, {}).get(environment) for series in several]
            known = [item for item in found if item is not None]
            cells.append(range_cell(known, results.baseline, exploratory=several[0] in results.exploratory))
    return Row(tuple(cells), inside=True)


def shown_of(results: Results, several: Sequence[Series]) -> list[Series]:
    """The series that the table of an entry has rows for: of a metric with very many, such as all pairs of many nodes,
    those with the lowest and the highest ratio to the baseline, or where nothing is compared, mean."""
    by_metric: dict[str, list[Series]] = {}
    for series in several:
        by_metric.setdefault(series.metric, []).append(series)
    chosen = (one if len(one) <= MOST_ROWS else _ends(results, one) for one in by_metric.values())
    return [series for one in chosen for series in one]


def _ends(results: Results, several: Sequence[Series]) -> list[Series]:

    def key(series: Series) -> float:
        found = results.comparisons.get(series, {})
        ratios = [one.ratio for name, one in found.items() if name in results.others and one.ratio is not None]
        means = [level.mean for level in results.levels[series].values()]
        return ratios[0] if ratios else means[0]

    ordered = sorted(several, key=key)
    return [*ordered[:ENDS], *ordered[-ENDS:]]


def _scales(results: Results, by_metric: Mapping[str, Sequence[Series]]) -> Mapping[str, tuple[float, str]]:
    """The factor and unit of every metric: one for all of a dimension, so that its rows can be read against each
    other, unless they are further apart than ALIKE."""
    levels = {m: [level for s in members for level in results.levels[s].values()] for m, members in by_metric.items()}
    by_unit: dict[str, dict[str, float]] = {}
    for metric, found in levels.items():
        by_unit.setdefault(found[0].unit, {})[metric] = max(abs(level.mean) for level in found)
    scales = {metric: unit_for(found) for metric, found in levels.items()}
    for unit, largest in by_unit.items():
        above = [value for value in largest.values() if value > 0]
        if above and max(above) <= ALIKE * min(above):
            scales |= dict.fromkeys(largest, scale_of(statistics.geometric_mean(above), unit))
    return scales


def _filled(row: Row, width: int) -> Row:
    """A row without a reference among rows that have one."""
    if row.heading or len(row.cells) == width:
        return row
    return replace(row, cells=(*row.cells, Cell("")))


def _series_row(results: Results, series: Series, scale: tuple[float, str], title: Cell, context: Context) -> Row:
    factor, unit = scale
    peak = context.peaks.get(series.label) if has_peak(results.first(series)) else None
    cells = [title]
    for environment in results.environments:
        level = results.levels[series].get(environment)
        cells.append(level_cell(level, factor, raw=results.raw(series), peak=peak))
        comparison = results.comparisons.get(series, {}).get(environment)
        if environment in results.others:
            cells.append(ratio_cell(comparison, results.baseline, exploratory=series in results.exploratory))
    references = context.reference_of(series)
    if references:
        values = [item.value / factor for item in references if item.value is not None]
        ends = values or [end / factor for item in references for end in item.ends]  # of what was not measured
        figures = f"{len(references)} {plural(len(references), 'result')}"
        cells.append(Cell(span(ends, format_number), figures, raw=results.published(series)))
    return Row(tuple(cells), unit=unit)
