"""What goes into one figure of bars: series of one unit, a row each. No drawing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vtax.analysis.estimate.summary import Series
from vtax.figures.bars import Topic
from vtax.model.metric import Direction
from vtax.report.document.matrices import matrices
from vtax.report.document.numbers import labels_text
from vtax.report.document.results import Results, bundles

CATEGORIES = 10  # in one figure, before its metrics get one each


def topics(results: Results, several: Iterable[Series], *, suite: bool, every_size: bool = False) -> tuple[Topic, ...]:
    """What is worth a figure: of a suite such as HPCC all rates and costs, else the primary metrics. Of a matrix
    over two sizes only its largest file, unless `every_size`."""

    def wanted(series: Series) -> bool:
        first = results.first(series)
        if not first.kind.has_ratio:
            return False
        if suite:
            return not series.metric.endswith("_time")  # says the same as its rate
        return first.primary or series.label not in results.with_primary

    chosen = [series for series in several if wanted(series)]
    return _topics(results, chosen if every_size else _largest_files(chosen), suite=suite)


def topics_of(results: Results, several: Iterable[Series], metrics: Sequence[str]) -> tuple[Topic, ...]:
    """The topics of these metrics, whatever their kind."""
    return _topics(results, [series for series in several if series.metric in metrics], suite=False)


def _topics(results: Results, several: Iterable[Series], *, suite: bool) -> tuple[Topic, ...]:
    by_unit: dict[tuple[str, str, Direction], list[Series]] = {}
    for series in several:
        first = results.first(series)
        by_unit.setdefault((series.label, first.unit, first.direction), []).append(series)
    found = []
    for (label, unit, better), members in by_unit.items():
        bundled = bundles(members)
        parts = [members] if len(members) <= CATEGORIES and len(bundled) == len(members) else bundled
        found += [_topic(label, unit, better, part, suite=suite) for part in parts]
    return tuple(found)


def _largest_files(several: Sequence[Series]) -> list[Series]:
    """Of a matrix over two sizes only its largest file, as a line of record sizes."""
    left_out: set[Series] = set()
    for matrix in (found for found in matrices(several) if found.of_sizes):
        largest = matrix.values(matrix.outer)[-1]
        left_out |= {series for series in matrix.members if dict(series.labels)[matrix.outer] != largest}
    return [series for series in several if series not in left_out]


def _topic(label: str, unit: str, better: Direction, members: Sequence[Series], *, suite: bool) -> Topic:
    """Whatever all the series share goes into the title, the rest names the rows."""
    shared = set.intersection(*(set(series.labels) for series in members))
    one_metric = len({series.metric for series in members}) == 1
    words = [label, members[0].metric if one_metric else _kind(unit) if suite else ""]
    words += [labels_text(dict(shared))] if shared else []
    rows = []
    for series in members:
        text = labels_text({name: value for name, value in series.labels if (name, value) not in shared})
        rows.append((text if one_metric else f"{series.metric} {text}".strip(), series))
    return Topic(" · ".join(word for word in words if word), unit, tuple(rows), better)


def _kind(unit: str) -> str:
    """What a unit measures, of a suite's figures."""
    return {"s": "latency", "byte/s": "bandwidth", "flop/s": "arithmetic", "update/s": "random updates"}.get(unit, "")
