"""The forest plot: for every primary metric the ratio to the baseline with its interval, on one logarithmic axis.

It is a table whose rows hold a strip of the plot each, so it sorts, filters, is read aloud and fits a narrow screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Comparison, Level
from vtax.report.document.cells import explanation, range_cell
from vtax.report.document.groups import Group
from vtax.report.document.numbers import interval_text, labels_text, listed, ratio_text
from vtax.report.document.results import PLACES, Results, bundles
from vtax.report.document.tables import COLLAPSE_FROM, EXPLORATORY
from vtax.report.figures.strips import StripAxis, Whisker, axis_of


@dataclass(frozen=True)
class Line:
    """One row: a metric of an environment, or a metric at many places together."""

    group: str
    anchor: str
    metric: str
    where: str
    environment: int
    name: str
    ratio: float
    result: str
    verdicts: tuple[str, ...]  # the different ones, most frequent first
    note: str
    reasons: tuple[str, ...]  # rows of the audit that rule it out
    whiskers: tuple[Whisker, ...]


@dataclass(frozen=True)
class Forest:
    lines: tuple[Line, ...]
    axis: StripAxis
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]  # of all lines, each once


def forest(results: Results, margin: float) -> Forest | None:
    """The plot, exploratory entries below the others; None when none of its metrics has a ratio."""
    rows = list(_rows(results))
    axis = axis_of([item for _, _, found in rows for item in found], margin)
    if axis is None:
        return None
    lines = []
    for several, environment, found in rows:
        known = [item for item in found if item.ratio is not None]
        if known:
            whiskers = axis.whiskers(known, exploratory=several[0] in results.exploratory)
            lines.append(_line(results, several, environment, known, whiskers))
    return Forest(
        lines=tuple(lines),
        axis=axis,
        verdicts=tuple(dict.fromkeys(whisker.verdict for line in lines for whisker in line.whiskers)),
        reasons=tuple(sorted({reason for line in lines for reason in line.reasons})),
    )


def without_ratio(results: Results) -> tuple[str, ...]:
    """Why primary metrics are not in the plot, a sentence for each part of the machine and reason."""
    shown = {(s.label, s.metric) for s, found in results.comparisons.items() for c in found.values() if c.ratio}
    found: dict[tuple[Group, str], dict[str, None]] = {}
    for series in results.levels:
        level = results.first(series)
        if (
            results.main(series)
            and set(results.levels[series]) & set(results.compared)
            and (series.label, series.metric) not in shown
        ):
            why = _why(results, series, level)
            found.setdefault((results.group(series), why), {}).setdefault(f"{series.label} {series.metric}")
    return tuple(f"{group.shown}: {why} {listed(list(names))}." for (group, why), names in found.items())


def _why(results: Results, series: Series, level: Level) -> str:
    """Words that end before the names of metrics."""
    having = {
        name
        for other, levels in results.levels.items()
        if (other.label, other.metric) == (series.label, series.metric)
        for name in levels
    }
    if results.baseline not in having:
        return f"{results.baseline} has no result of"
    if having == {results.baseline}:
        return f"only {results.baseline} has a result of"
    return "no round has both results of" if level.kind.has_ratio else "there are differences, and no ratios, of"


def _rows(results: Results) -> list[tuple[list[Series], str, list[Comparison]]]:
    """Series that share a row, an environment, and what compares them with the baseline."""
    rows = []
    parts_of = [(exploratory, group) for exploratory in (False, True) for group in Group]
    for exploratory, group in parts_of:
        own = [
            series
            for series in results.levels
            if results.main(series)
            and results.group(series) is group
            and (series in results.exploratory) is exploratory
        ]
        for several in bundles(own):
            parts = [several] if len(several) >= COLLAPSE_FROM else [[series] for series in several]
            for part in parts:
                for environment in results.others:
                    found = [results.comparisons.get(series, {}).get(environment) for series in part]
                    rows.append((part, environment, [item for item in found if item is not None]))
    return rows


def _line(
    results: Results,
    several: Sequence[Series],
    environment: str,
    found: Sequence[Comparison],
    whiskers: tuple[Whisker, ...],
) -> Line:
    first = several[0]
    labels = dict(first.labels)
    if len(several) > 1:
        labels = {k: v for k, v in labels.items() if k not in PLACES and not v.isdecimal()}
    exploratory = first in results.exploratory
    counts = Counter(whisker.verdict for whisker in whiskers)
    cell = range_cell(found, results.baseline, exploratory=exploratory)
    single = found[0]
    assert single.ratio is not None
    vs = " and ".join(dict.fromkeys(item.baseline for item in found if item.baseline != results.baseline))
    words = (first.label, labels_text(labels), f"vs {vs}" if vs else "")
    where = ", ".join(word for word in words if word)
    return Line(
        group=f"{results.group(first).shown}{EXPLORATORY if exploratory else ''}",
        anchor=results.group(first).anchor,
        metric=first.metric,
        where=where if len(several) == 1 else f"{where}, {len(found)} results",
        environment=results.environments.index(environment),
        name=environment,
        ratio=min(item.ratio for item in found if item.ratio is not None),
        result=cell.text if len(found) > 1 else ratio_text(single.ratio) + interval_text(single),
        verdicts=tuple(word for word, _ in counts.most_common()),
        note=cell.note if len(found) > 1 else "" if single.ruled_out_by else explanation(single),
        reasons=tuple(dict.fromkeys(item.ruled_out_by for item in found if item.ruled_out_by)),
        whiskers=whiskers,
    )
