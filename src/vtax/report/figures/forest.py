"""The forest plot: for every primary metric the ratio to the baseline with its interval, on one logarithmic axis.

It is a table whose rows hold a strip of the plot each, so it sorts, filters, is read aloud and fits a narrow screen.
Places on the strips are shares of their width, 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.estimate.summary import Series
from vtax.analysis.records import Comparison, Level
from vtax.figures.intervals import ratio_ticks
from vtax.figures.theme import mark_of, ratio_domain, share, tick_text
from vtax.report.document.cells import explanation, range_cell
from vtax.report.document.groups import Group
from vtax.report.document.numbers import interval_text, labels_text, listed, ratio_text
from vtax.report.document.results import PLACES, Results, bundles
from vtax.report.document.tables import COLLAPSE_FROM

APART = 0.14  # share of the width between two numbers of the axis next to the answer


@dataclass(frozen=True)
class Whisker:
    """One comparison on a strip: `low` and `high` are absent without an interval, `cut_*` where they leave the plot."""

    at: float
    low: float | None
    high: float | None
    cut_low: bool
    cut_high: bool
    shape: str
    verdict: str
    title: str


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
    ticks: tuple[tuple[float, str], ...]
    one: float  # where the baseline is
    margin: tuple[float, float]
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]  # of all lines, each once


def forest(results: Results, margin: float) -> Forest | None:
    """The plot; None when no primary metric has a ratio."""
    rows = list(_rows(results))
    ratios = [item.ratio for _, _, found in rows for item in found if item.ratio is not None]
    if not ratios:
        return None
    ends = [end for _, _, found in rows for item in found for end in (item.low, item.high) if end is not None]
    domain = ratio_domain(ratios, ends, margin)

    def place(value: float) -> float:
        return round(min(1.0, max(0.0, share(value, domain, log=True))), 4)

    def whisker(item: Comparison) -> Whisker:
        assert item.ratio is not None
        text = f"{labels_text(item.labels)}: {ratio_text(item.ratio)}{interval_text(item)}, {item.verdict}"
        return Whisker(
            at=place(item.ratio),
            low=None if item.low is None else place(item.low),
            high=None if item.high is None else place(item.high),
            cut_low=item.low is not None and item.low < domain[0],
            cut_high=item.high is not None and item.high > domain[1],
            shape=mark_of(item.verdict).shape,
            verdict=str(item.verdict),
            title=text,
        )

    lines = []
    for several, environment, found in rows:
        known = [item for item in found if item.ratio is not None]
        if known:
            lines.append(_line(results, several, environment, known, tuple(map(whisker, known))))
    seen = dict.fromkeys(item.verdict for _, _, found in rows for item in found if item.ratio is not None)
    return Forest(
        lines=tuple(lines),
        ticks=tuple((place(tick), tick_text(tick)) for tick in ratio_ticks(*domain)),
        one=place(1.0),
        margin=(place(1 / (1 + margin)), place(1 + margin)),
        verdicts=tuple(map(str, seen)),
        reasons=tuple(sorted({reason for line in lines for reason in line.reasons})),
    )


def rug_plots(forest: Forest | None) -> Mapping[tuple[str, int], Mapping[str, Sequence[float]]]:
    """Next to the answer: for each group and place of an environment, all its ratios on the forest plot's axis, by
    verdict."""
    found: dict[tuple[str, int], dict[str, set[float]]] = {}
    for line in forest.lines if forest is not None else ():
        by_verdict = found.setdefault((line.group, line.environment), {})
        for whisker in line.whiskers:
            by_verdict.setdefault(whisker.verdict, set()).add(whisker.at)
    return {key: {verdict: sorted(places) for verdict, places in several.items()} for key, several in found.items()}


def rug_ticks(forest: Forest | None) -> tuple[tuple[float, str], ...]:
    """Of the axis the 1 and what fits next to it."""
    if forest is None:
        return ()
    kept = [(forest.one, "1")]
    for at, text in (forest.ticks[0], forest.ticks[-1]):
        if all(abs(at - other) > APART for other, _ in kept):
            kept.append((at, text))
    return tuple(sorted(kept))


def without_ratio(results: Results) -> tuple[str, ...]:
    """Why primary metrics are not in the plot, a sentence for each part of the machine and reason."""
    shown = {(s.label, s.metric) for s, found in results.comparisons.items() for c in found.values() if c.ratio}
    found: dict[tuple[Group, str], dict[str, None]] = {}
    for series in results.levels:
        level = results.first(series)
        if level.primary and (series.label, series.metric) not in shown:
            why = _why(results, series, level)
            found.setdefault((results.group(series), why), {}).setdefault(f"{series.label} {series.metric}")
    return tuple(f"{group}: {why} {listed(list(names))}." for (group, why), names in found.items())


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
    for group in Group:
        primary = [s for s in results.levels if results.first(s).primary and results.group(s) is group]
        for several in bundles(primary):
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
    counts: dict[str, int] = {}
    for item in found:
        counts[str(item.verdict)] = counts.get(str(item.verdict), 0) + 1
    cell = range_cell(found, results.baseline)
    single = found[0]
    assert single.ratio is not None
    vs = " and ".join(dict.fromkeys(item.baseline for item in found if item.baseline != results.baseline))
    words = (first.label, labels_text(labels), f"vs {vs}" if vs else "")
    where = ", ".join(word for word in words if word)
    return Line(
        group=str(results.group(first)),
        anchor=results.group(first).name.lower(),
        metric=first.metric,
        where=where if len(several) == 1 else f"{where}, {len(found)} results",
        environment=results.environments.index(environment),
        name=environment,
        ratio=min(item.ratio for item in found if item.ratio is not None),
        result=cell.text if len(found) > 1 else ratio_text(single.ratio) + interval_text(single),
        verdicts=tuple(sorted(counts, key=lambda word: -counts[word])),
        note=cell.note if len(found) > 1 else "" if single.ruled_out_by else explanation(single),
        reasons=tuple(dict.fromkeys(item.ruled_out_by for item in found if item.ruled_out_by)),
        whiskers=whiskers,
    )
