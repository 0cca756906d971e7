"""From measurements to cells to levels (METHOD 1.6): iterations collapse to one number a cell, cells to one level."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vtax.analysis.records import CellValue, Level
from vtax.errors import ParseError
from vtax.model import Kind, Measurement

UNLOGGED = frozenset({Kind.PROPORTION, Kind.COUNT})
TRIMMED_FROM = 3  # iterations in a cell from which the median is taken


class Series(NamedTuple):
    """What makes two numbers comparable: the same metric of the same benchmark entry, with the same labels."""

    benchmark: str
    label: str
    metric: str
    labels: tuple[tuple[str, str], ...]


def series_of(item: Measurement | Level) -> Series:
    return Series(item.benchmark, item.label, item.metric, tuple(sorted(item.labels.items())))


def cell_summary(values: Sequence[float], kind: Kind) -> float:
    """The number of a cell from its iterations, in the units of the metric."""
    ordered = sorted(values)
    if kind is Kind.RATIO:
        return statistics.geometric_mean(ordered)
    if kind in (Kind.RATE_FIXED_TIME, Kind.PROPORTION, Kind.COUNT):
        return statistics.fmean(ordered)  # equal durations, equal numbers of tries: total over total
    if len(ordered) >= TRIMMED_FROM:
        return float(statistics.median(ordered))
    if kind is Kind.RATE_FIXED_WORK:
        return statistics.harmonic_mean(ordered)
    return statistics.fmean(ordered)


def typical(values: Sequence[float], kind: Kind) -> float:
    """The level over the rounds that suits the kind: total work over total time, where that means something."""
    ordered = sorted(values)
    if kind is Kind.RATIO:
        return statistics.geometric_mean(ordered)
    if kind is Kind.RATE_FIXED_WORK:
        return statistics.harmonic_mean(ordered)
    if kind is Kind.LATENCY_QUANTILE:
        return float(statistics.median(ordered))
    return statistics.fmean(ordered)


def levels(measurements: Iterable[Measurement]) -> dict[tuple[str, Series], Level]:
    """One level for each environment and series. Warm-ups are left out.

    Raises ParseError for a rate or cost that is not above zero, and for numbers that contradict each other.
    """
    groups: dict[tuple[str, Series], list[Measurement]] = defaultdict(list)
    for item in measurements:
        if not item.warmup:
            _refuse_impossible(item)
            groups[item.environment, series_of(item)].append(item)
    _refuse_two_units(groups)
    return {key: _level(group) for key, group in groups.items()}


def _level(group: Sequence[Measurement]) -> Level:
    first = min(group, key=lambda item: (item.round, item.trial))
    by_round: dict[int, list[Measurement]] = defaultdict(list)
    for item in group:
        by_round[item.round].append(item)
    cells = tuple(_cell(by_round[number]) for number in sorted(by_round))
    values = [cell.value for cell in cells]
    return Level(
        environment=first.environment,
        benchmark=first.benchmark,
        label=first.label,
        metric=first.metric,
        unit=first.unit,
        kind=first.kind,
        direction=first.direction,
        primary=first.primary,
        labels=dict(sorted(first.labels.items())),
        n=len(cells),
        mean=statistics.fmean(values),
        sd=statistics.stdev(values) if len(values) > 1 else None,
        median=float(statistics.median(values)),
        minimum=min(values),
        maximum=max(values),
        typical=typical(values, first.kind),
        cells=cells,
    )


def _cell(group: Sequence[Measurement]) -> CellValue:
    trials: dict[str, Measurement] = {}
    for item in group:
        if item.trial in trials:
            raise ParseError(
                f"{item.source}: two values of {item.metric} with the same labels in one trial",
                detail=f"{dict(item.labels)}: {sorted((trials[item.trial].value, item.value))}",
                remedy="the parser of this benchmark must tell them apart with a label",
            )
        trials[item.trial] = item
    ordered = sorted(group, key=lambda item: (item.iteration, item.trial))
    return CellValue(
        round=ordered[0].round,
        value=cell_summary([item.value for item in ordered], ordered[0].kind),
        iterations=len(ordered),
        sources=tuple(dict.fromkeys(item.source for item in ordered)),
    )


def _refuse_impossible(item: Measurement) -> None:
    if item.kind not in UNLOGGED and item.value <= 0:
        raise ParseError(
            f"{item.source}: {item.metric} is {item.value:g} {item.unit}, and a {item.kind} is above zero",
            remedy="read the raw output; a metric that can be zero is declared as a count or a proportion",
        )


def _refuse_two_units(groups: dict[tuple[str, Series], list[Measurement]]) -> None:
    """A series has one unit, kind and direction in all environments; otherwise a ratio would be one of units."""
    seen: dict[Series, Measurement] = {}
    for (_, series), group in sorted(groups.items()):
        for item in sorted(group, key=lambda item: (item.round, item.trial)):
            first = seen.setdefault(series, item)
            if (item.unit, item.kind, item.direction) != (first.unit, first.kind, first.direction):
                raise ParseError(
                    f"{item.source}: {item.metric} is a {item.kind} in {item.unit}, "
                    f"but a {first.kind} in {first.unit} in {first.source}",
                    remedy="results of two versions of a benchmark cannot be compared",
                )
