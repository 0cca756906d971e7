"""Levels and comparisons of an analysis, looked up by series; computed once for a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Comparison, Level
from vtax.model.machine_cost import MACHINE_METRICS
from vtax.report.document.groups import Group, group_of
from vtax.report.document.numbers import natural
from vtax.report.records import ReportInput
from vtax.tools import declared_metrics

PLACES = frozenset({"client", "server", "target", "node"})


@dataclass(frozen=True)
class Results:
    """Levels and comparisons by series, in the order in which the benchmarks declare their metrics."""

    environments: tuple[str, ...]
    baseline: str
    levels: Mapping[Series, Mapping[str, Level]]
    comparisons: Mapping[Series, Mapping[str, Comparison]]
    emulated: tuple[str, ...] = ()  # environments that are not compared
    exploratory: frozenset[Series] = frozenset()  # what would be primary, had the study not left it out of the verdicts

    @property
    def compared(self) -> tuple[str, ...]:
        """The environments that are not emulated."""
        return tuple(name for name in self.environments if name not in self.emulated)

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in self.compared if name != self.baseline)

    def main(self, series: Series) -> bool:
        """Whether a series is one of those that an overview shows: primary or exploratory, and not only emulated."""
        measured = any(name in self.compared for name in self.levels[series])
        return measured and (self.first(series).primary or series in self.exploratory)

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
        """The anchor of the published results for an entry, in one part of the machine."""
        return self._published[self.group(series), series.label]

    @cached_property
    def with_primary(self) -> frozenset[str]:
        """The labels of benchmark entries that an overview shows something of."""
        return frozenset(series.label for series in self.levels if self.main(series))

    def first(self, series: Series) -> Level:
        return next(iter(self.levels[series].values()))

    @cached_property
    def _groups(self) -> Mapping[Series, Group]:
        return {series: group_of(self.first(series)) for series in self.levels}

    def group(self, series: Series) -> Group:
        """The part of the machine that a series is about."""
        return self._groups[series]


def results_of(report: ReportInput) -> Results:
    """The analysis, looked up by series; entries of the study in their order, metrics as declared, labels as read. What
    trials cost the machine has a table of its own."""
    analysis = report.analysis
    levels: dict[Series, dict[str, Level]] = {}
    comparisons: dict[Series, dict[str, Comparison]] = {}
    for level in (one for one in analysis.levels if one.metric not in MACHINE_METRICS):
        levels.setdefault(level.series, {})[level.environment] = level
    for item in (one for one in analysis.comparisons if one.metric not in MACHINE_METRICS):
        series = Series(item.benchmark, item.label, item.metric, tuple(sorted(item.labels.items())))
        comparisons.setdefault(series, {})[item.environment] = item
    entries = [spec.label for spec in report.plan.study.benchmarks]

    def place(series: Series) -> tuple[object, ...]:
        declared = list(report.meanings.get(series.label, ()))
        metric = declared.index(series.metric) if series.metric in declared else len(declared)
        entry = entries.index(series.label) if series.label in entries else len(entries)
        return (entry, series.label, metric, natural(series.metric), natural(repr(series.labels)))

    ordered = {series: levels[series] for series in sorted(levels, key=place)}
    return Results(
        analysis.environments, analysis.baseline, ordered, comparisons, analysis.emulated, _exploratory(report, ordered)
    )


def _exploratory(report: ReportInput, several: Iterable[Series]) -> frozenset[Series]:
    """The exploratory series whose metrics their tools declare as primary, or read as primary (iozone: of some
    operations)."""
    study = report.plan.study
    labels = {spec.label for spec in study.benchmarks if spec.exploratory}
    declared = declared_metrics(study.benchmarks)
    primary = {(label, metric.name) for label, known in declared.items() for metric in known if metric.primary}
    read = {
        (trial.label, value.metric, frozenset(value.labels.items()))
        for trial in report.trials
        if trial.label in labels and trial.id in report.readings
        for value in report.readings[trial.id].values
        if value.primary
    }

    def main(one: Series) -> bool:
        return (one.label, one.metric) in primary or any(
            (label, metric) == (one.label, one.metric) and own <= set(one.labels) for label, metric, own in read
        )

    return frozenset(one for one in several if study.explores(one.label, one.metric) and main(one))


def bundles(several: Iterable[Series]) -> list[list[Series]]:
    """Series that differ only in sizes and in the nodes they ran on, together."""
    found: dict[tuple[object, ...], list[Series]] = {}
    for series in several:
        kept = tuple((k, v) for k, v in series.labels if k not in PLACES and not v.isdecimal())
        found.setdefault((series.label, series.metric, kept), []).append(series)
    return list(found.values())


def shared_labels(several: Sequence[Series]) -> dict[str, str]:
    """The labels that all the series have alike; where they ran only if that is wholly the same."""
    if len(several) < 2:
        return {}
    shared = dict(set.intersection(*(set(series.labels) for series in several)))
    places = {name for series in several for name, _ in series.labels} & PLACES
    return shared if places <= shared.keys() else {k: v for k, v in shared.items() if k not in PLACES}
