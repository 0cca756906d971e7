"""What goes into one figure of bars: series of one unit, a category each. No drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from vtax.analysis.estimate.summary import Series
from vtax.model.metric import Direction
from vtax.report.document.matrices import matrices
from vtax.report.document.numbers import labels_text
from vtax.report.document.results import Results, bundles

SUITES = frozenset({"hpcc"})
CATEGORIES = 10  # in one panel, before its metrics get one each
CATEGORIES_MAX = 16


@dataclass(frozen=True)
class Panel:
    """Bars of one unit: a category for each series, a bar for each environment in it."""

    title: str
    unit: str
    categories: tuple[tuple[str, Series], ...]
    better: Direction


def panels(results: Results, several: Iterable[Series]) -> tuple[Panel, ...]:
    """What is worth a figure: of a suite such as HPCC all rates and costs, else the primary metrics."""
    return _panels(results, several, drawn)


def panels_of(results: Results, several: Iterable[Series], metrics: Sequence[str]) -> tuple[Panel, ...]:
    """The panels of these metrics, whatever their kind."""
    return _panels(results, several, lambda _, series: series.metric in metrics)


def _panels(
    results: Results, several: Iterable[Series], wanted: Callable[[Results, Series], bool]
) -> tuple[Panel, ...]:
    by_unit: dict[tuple[str, str, Direction], list[Series]] = {}
    for series in _largest_files([series for series in several if wanted(results, series)]):
        first = results.first(series)
        by_unit.setdefault((series.label, first.unit, first.direction), []).append(series)
    found = []
    for (label, unit, better), members in by_unit.items():
        bundled = bundles(members)
        parts = [members] if len(members) <= CATEGORIES and len(bundled) == len(members) else bundled
        found += [_panel(label, unit, better, part) for part in parts]
    return tuple(found)


def drawn(results: Results, series: Series) -> bool:
    """Whether a series belongs into the figures of its benchmark."""
    first = results.first(series)
    if not first.kind.has_ratio:
        return False
    if series.benchmark in SUITES:
        return not series.metric.endswith("_time")  # says the same as its rate
    return first.primary or series.label not in results.with_primary


def _largest_files(several: Sequence[Series]) -> list[Series]:
    """Of a matrix over two sizes only its largest file, as a line of record sizes."""
    left_out: set[Series] = set()
    for matrix in (found for found in matrices(several) if found.of_sizes):
        largest = matrix.values(matrix.outer)[-1]
        left_out |= {series for series in matrix.members if dict(series.labels)[matrix.outer] != largest}
    return [series for series in several if series not in left_out]


def _panel(label: str, unit: str, better: Direction, members: Sequence[Series]) -> Panel:
    """Whatever all the series share goes into the title, the rest names the categories."""
    shared = set.intersection(*(set(series.labels) for series in members))
    metrics = {series.metric for series in members}
    one_metric = len(metrics) == 1
    words = [label]
    if one_metric:
        words.append(members[0].metric)
    elif label in SUITES or members[0].benchmark in SUITES:
        words.append(_kind(unit))
    if shared:
        words.append(labels_text(dict(shared)))
    if len(members) > CATEGORIES_MAX:
        words.append(f"first {CATEGORIES_MAX} of {len(members)}")
    categories = []
    for series in members[:CATEGORIES_MAX]:
        text = labels_text({name: value for name, value in series.labels if (name, value) not in shared})
        categories.append((text if one_metric else f"{series.metric} {text}".strip(), series))
    return Panel(" · ".join(word for word in words if word), unit, tuple(categories), better)


def _kind(unit: str) -> str:
    """What a unit measures, of a suite's figures."""
    return {"s": "latency", "byte/s": "bandwidth", "flop/s": "arithmetic", "update/s": "random updates"}.get(unit, "")
