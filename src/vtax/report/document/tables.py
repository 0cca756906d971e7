"""Results as tables of cells, the same for HTML and Markdown: the overview, one table a benchmark, size matrices."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Comparison, Level, Verdict
from vtax.analysis.verdict import CAVEATS
from vtax.report.document.groups import Group, group_of
from vtax.report.document.numbers import (
    ABSENT,
    interval_text,
    labels_text,
    mean_sd,
    natural,
    plural,
    ratio_text,
    unit_for,
)
from vtax.report.records import Reference, ReportInput
from vtax.units import format_number, scale_of

COLLAPSE_FROM = 7  # series of one metric that the overview shows as one row
ALIKE = 1e4  # values of one dimension up to this far apart have one unit in a table
PLACES = frozenset({"client", "server", "target", "node"})


@dataclass(frozen=True)
class Cell:
    """Text, a line of smaller text, and a word that stands out."""

    text: str
    note: str = ""
    badge: str = ""
    environment: int | None = None  # its place in the plan: the colour of its swatch
    raw: str = ""  # the anchor of the raw files that the number comes from
    scaled: bool = False  # whether the text is a number in the unit of its row
    file: str = ""  # of the campaign, that the text links to


@dataclass(frozen=True)
class Row:
    cells: tuple[Cell, ...]  # the first names the row; a heading has no other
    heading: bool = False
    unit: str = ""  # of its scaled cells


@dataclass(frozen=True)
class Column:
    title: str
    environment: int | None = None  # its place in the plan: the colour of its swatch


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""


@dataclass(frozen=True)
class Context:
    """What stands beside the numbers where it is known: the peak of an entry, in flop/s, and values from elsewhere."""

    peaks: Mapping[str, float] = field(default_factory=dict)
    references: tuple[Reference, ...] = ()

    def reference_of(self, series: Series) -> tuple[Reference, ...]:
        """The references of a series: those of its metric of which it has every label."""
        labels = set(series.labels)
        return tuple(
            item
            for item in self.references
            if (item.benchmark, item.metric) == (series.benchmark, series.metric) and set(item.labels.items()) <= labels
        )


NOTHING = Context()


@dataclass(frozen=True)
class Results:
    """Levels and comparisons by series, in the order in which the benchmarks declare their metrics."""

    environments: tuple[str, ...]
    baseline: str
    levels: Mapping[Series, Mapping[str, Level]]
    comparisons: Mapping[Series, Mapping[str, Comparison]]

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in self.environments if name != self.baseline)

    @cached_property
    def _raw(self) -> Mapping[tuple[Group, str, str], str]:
        places = dict.fromkeys((self.group(s), s.label, dict(s.labels).get("target", "")) for s in self.levels)
        return {place: f"raw{number}" for number, place in enumerate(places, 1)}

    def raw(self, series: Series) -> str:
        """The anchor of the raw files of a series: one for each part of the machine, entry and target."""
        return self._raw[self.group(series), series.label, dict(series.labels).get("target", "")]

    @cached_property
    def _published(self) -> Mapping[tuple[Group, str], str]:
        entries = dict.fromkeys((self.group(series), series.label) for series in self.levels)
        return {entry: f"published{number}" for number, entry in enumerate(entries, 1)}

    def published(self, series: Series) -> str:
        """The anchor of the published figures beside an entry, in one part of the machine."""
        return self._published[self.group(series), series.label]

    @cached_property
    def with_primary(self) -> frozenset[str]:
        """The labels of benchmark entries that have a primary metric."""
        return frozenset(series.label for series in self.levels if self.first(series).primary)

    def first(self, series: Series) -> Level:
        return next(iter(self.levels[series].values()))

    def group(self, series: Series) -> Group:
        return group_of(self.first(series))


def results_of(report: ReportInput) -> Results:
    """The analysis, looked up by series; entries of the study in their order, metrics as declared, labels as read."""
    analysis = report.analysis
    levels: dict[Series, dict[str, Level]] = {}
    comparisons: dict[Series, dict[str, Comparison]] = {}
    for level in analysis.levels:
        levels.setdefault(level.series, {})[level.environment] = level
    for item in analysis.comparisons:
        series = Series(item.benchmark, item.label, item.metric, tuple(sorted(item.labels.items())))
        comparisons.setdefault(series, {})[item.environment] = item
    entries = [spec.label for spec in report.plan.study.benchmarks]

    def place(series: Series) -> tuple[object, ...]:
        declared = list(report.meanings.get(series.benchmark, ()))
        metric = declared.index(series.metric) if series.metric in declared else len(declared)
        entry = entries.index(series.label) if series.label in entries else len(entries)
        return (entry, series.label, metric, natural(series.metric), natural(repr(series.labels)))

    ordered = {series: levels[series] for series in sorted(levels, key=place)}
    return Results(analysis.environments, analysis.baseline, ordered, comparisons)


def columns_of(results: Results, first: str) -> tuple[Column, ...]:
    """Each environment, and beside it (but for the baseline) how it compares."""
    columns = [Column(first)]
    for place, name in enumerate(results.environments):
        columns.append(Column(name, place))
        if name != results.baseline:
            columns.append(Column(f"{name} / {results.baseline}"))
    return tuple(columns)


def overview(results: Results) -> Table:
    """Every primary metric; many series of one metric, such as all pairs of nodes, as one row of ranges."""
    rows: list[Row] = []
    for group in Group:
        primary = [s for s in results.levels if results.first(s).primary and results.group(s) is group]
        if primary:
            rows.append(Row((Cell(group),), heading=True))
        for several in bundles(primary):
            if len(several) < COLLAPSE_FROM:
                rows += [_overview_row(results, series) for series in several]
            else:
                rows.append(_range_row(results, several))
    note = f"mean ± standard deviation over n rounds; beside it the performance relative to {results.baseline}"
    return Table("Every primary metric", columns_of(results, "Metric"), tuple(rows), note)


def bundles(several: Iterable[Series]) -> list[list[Series]]:
    """Series that differ only in sizes and in the nodes they ran on, together."""
    found: dict[tuple[object, ...], list[Series]] = {}
    for series in several:
        kept = tuple((k, v) for k, v in series.labels if k not in PLACES and not v.isdecimal())
        found.setdefault((series.label, series.metric, kept), []).append(series)
    return list(found.values())


def _overview_row(results: Results, series: Series) -> Row:
    factor, unit = unit_for(results.levels[series].values())
    name = Cell(named(series.metric, unit), f"{series.label}, {labels_text(dict(series.labels))}")
    cells = [name]
    for environment in results.environments:
        level = results.levels[series].get(environment)
        cells.append(level_cell(level, factor, median=False, raw=results.raw(series)))
        if environment != results.baseline:
            cells.append(ratio_cell(results.comparisons.get(series, {}).get(environment), explain=True))
    return Row(tuple(cells), unit=unit)


def _range_row(results: Results, several: Sequence[Series]) -> Row:
    levels = [level for series in several for level in results.levels[series].values()]
    factor, unit = unit_for(levels)
    shared = set.intersection(*(set(series.labels) for series in several))
    where = labels_text({k: v for k, v in shared if k not in PLACES})
    words = ", ".join(word for word in (several[0].label, where, f"{len(several)} rows in the table below") if word)
    cells = [Cell(named(several[0].metric, unit), words)]
    for environment in results.environments:
        means = [level.mean / factor for level in levels if level.environment == environment]
        cells.append(Cell(span(means, format_number)))
        if environment != results.baseline:
            found = [results.comparisons.get(series, {}).get(environment) for series in several]
            cells.append(range_cell([item for item in found if item is not None]))
    return Row(tuple(cells))


def range_cell(found: Sequence[Comparison]) -> Cell:
    """The smallest and largest ratio of several comparisons, and how often each verdict was given."""
    ratios = [item.ratio for item in found if item.ratio is not None]
    counts = Counter(item.verdict for item in found)
    words = ", ".join(f"{counts[word]} × {word}" for word in Verdict if counts[word])
    if len(counts) == 1:
        return Cell(span(ratios, ratio_text), badge=str(next(iter(counts))))
    return Cell(span(ratios, ratio_text), words)


def span(values: Sequence[float], words: Callable[[float], str]) -> str:
    """`0.93 to 0.97`."""
    if not values:
        return ABSENT
    low, high = words(min(values)), words(max(values))
    return low if low == high else f"{low} to {high}"


def level_cell(
    level: Level | None, factor: float, *, median: bool = True, raw: str = "", peak: float | None = None
) -> Cell:
    """`5.516 ± 0.027` over `n 3, median 5.51, 43 % of peak`, of which the first two stay on one line."""
    if level is None:
        return Cell(ABSENT)
    sd = None if level.sd is None else level.sd / factor
    note = f"n\u00a0{level.n}" + (f",\u00a0median\u00a0{format_number(level.median / factor)}" if median else "")
    if peak is not None:
        note += f", {100 * level.mean / peak:.3g}\u00a0% of\u00a0peak"
    return Cell(mean_sd(level.mean / factor, sd), note, raw=raw, scaled=True)


def ratio_cell(item: Comparison | None, *, explain: bool = False) -> Cell:
    """`0.984 [0.962, 1.007]` with the verdict, and what the verdict needs to be understood; without that, the ratio
    of the means."""
    if item is None:
        return Cell(ABSENT)
    if item.difference is not None:
        return Cell(f"{item.difference:+.3g}", "difference")
    text = ABSENT if item.ratio is None else ratio_text(item.ratio) + interval_text(item)
    caveat = "" if item.ruled_out_by in CAVEATS else item.caveat
    beside = "; ".join(words for words in (by_means(item), item.ruled_out_by, caveat) if words)
    note = explanation(item) if explain else beside
    return Cell(text, note, item.verdict)


def by_means(item: Comparison) -> str:
    """`by means 0.98`: total work over total time on both sides, beside the ratio of the typical runs."""
    if item.mean_ratio is None:
        return ""
    ends = (
        ""
        if item.mean_low is None or item.mean_high is None
        else f"{ratio_text(item.mean_low)}, {ratio_text(item.mean_high)}"
    )
    return f"by\u00a0means\u00a0{ratio_text(item.mean_ratio)}" + (f" [{ends}]" if ends else "")


def explanation(item: Comparison) -> str:
    """What the number and the verdict beside it do not say."""
    if not item.n:
        return f"no counterpart in {item.baseline}"
    if item.ruled_out_by:
        return item.ruled_out_by
    return item.sentence if item.ratio is None else item.remark


def named(metric: str, unit: str) -> str:
    return f"{metric} ({unit})" if unit else metric


def shared_labels(several: Sequence[Series]) -> dict[str, str]:
    """The labels that all the series have alike; where they ran only if that is wholly the same."""
    if len(several) < 2:
        return {}
    shared = dict(set.intersection(*(set(series.labels) for series in several)))
    places = {name for series in several for name, _ in series.labels} & PLACES
    return shared if places <= shared.keys() else {k: v for k, v in shared.items() if k not in PLACES}


def benchmark_table(
    results: Results, several: Sequence[Series], meanings: Mapping[str, str], context: Context = NOTHING
) -> Table | None:
    """One row for each series, under its metric where a metric has several. None when all are in matrices.

    What is the same in all rows stands in the note of the table.
    """
    rows: list[Row] = []
    shared = shared_labels(several)
    by_metric: dict[str, list[Series]] = {}
    for series in several:
        by_metric.setdefault(series.metric, []).append(series)
    scales = _scales(results, by_metric)
    for metric, members in by_metric.items():
        factor, unit = scales[metric]
        title = Cell(named(metric, unit), meanings.get(metric, ""))
        names = [labels_text({k: v for k, v in series.labels if shared.get(k) != v}) for series in members]
        if len(members) > 1:
            rows.append(Row((title,), heading=True, unit=unit))
            rows += [
                _series_row(results, s, (factor, unit), Cell(name), context)
                for s, name in zip(members, names, strict=True)
            ]
        else:
            note = "; ".join(text for text in (title.note, names[0]) if text)
            rows.append(_series_row(results, members[0], (factor, unit), Cell(title.text, note), context))
    columns = columns_of(results, "Metric")
    if any(context.reference_of(series) for series in several):
        columns = (*columns, Column("Published"))
    note = f"All rows: {labels_text(shared)}." if shared else ""
    return Table(several[0].label, columns, tuple(_filled(row, len(columns)) for row in rows), note) if rows else None


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
    """A row without a reference beside rows that have one."""
    if row.heading or len(row.cells) == width:
        return row
    return Row((*row.cells, Cell("")), unit=row.unit)


def _series_row(results: Results, series: Series, scale: tuple[float, str], title: Cell, context: Context) -> Row:
    factor, unit = scale
    peak = context.peaks.get(series.label) if series.metric == "HPL" else None
    cells = [title]
    for environment in results.environments:
        level = results.levels[series].get(environment)
        cells.append(level_cell(level, factor, raw=results.raw(series), peak=peak))
        comparison = results.comparisons.get(series, {}).get(environment)
        if environment != results.baseline:
            cells.append(ratio_cell(comparison))
    references = context.reference_of(series)
    if references:
        values = [item.value / factor for item in references if item.value is not None]
        ends = values or [end / factor for item in references for end in item.ends]  # of what nobody measured
        figures = f"{len(references)} {plural(len(references), 'figure')}"
        cells.append(Cell(span(ends, format_number), figures, raw=results.published(series)))
    return Row(tuple(cells), unit=unit)
