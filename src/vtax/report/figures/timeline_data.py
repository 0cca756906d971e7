"""What was counted while a campaign ran: cells, drift, load, steal, throttling and temperature, over time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.records import Analysis
from vtax.model.cluster import CellRecord
from vtax.model.metric import Direction
from vtax.model.trial import Status
from vtax.report.records import ReportInput

Counters = Mapping[str, float]


@dataclass(frozen=True)
class Spot:
    """One value at a moment (s since the beginning), and what it is of."""

    at: float
    value: float
    environment: str
    name: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Strip:
    """One quantity over time."""

    title: str
    unit: str
    spots: tuple[Spot, ...]


@dataclass(frozen=True)
class Lane:
    """When one cell ran, provisioning first."""

    cell: str
    environment: str
    round: int
    start: float
    ready: float
    end: float
    failed: int


def lanes_of(report: ReportInput) -> tuple[Lane, ...]:
    """Every recorded cell, in the order of time, in seconds since the first began."""
    if not report.cells:
        return ()
    first = min(cell.started for cell in report.cells)
    ends: dict[str, float] = {}
    failed: dict[str, int] = {}
    for trial in report.trials:
        ends[trial.cell] = max(ends.get(trial.cell, 0.0), trial.started + trial.elapsed_s)
        failed[trial.cell] = failed.get(trial.cell, 0) + (trial.status is not Status.OK)
    lanes = []
    for cell in sorted(report.cells, key=lambda cell: (cell.started, cell.cell, cell.instance)):
        ready = cell.started + cell.provision_s
        end = max(ready, ends.get(cell.cell, ready))
        times = (cell.started - first, ready - first, end - first)
        lost = failed.get(cell.cell, 0) + (cell.status is not Status.OK)
        lanes.append(Lane(cell.cell, cell.environment, cell.round, *times, lost))
    return tuple(lanes)


def strips_of(report: ReportInput, lanes: Sequence[Lane]) -> tuple[tuple[Strip, ...], tuple[str, ...]]:
    """The quantities that were recorded, and the names of those that were not."""
    first = min(cell.started for cell in report.cells)
    found = [
        Strip("drift", "%", tuple(drift(report.analysis, lanes))),
        Strip("load", "tasks", tuple(_counted(report, first, _load))),
        Strip("steal", "% of CPU time", tuple(_counted(report, first, _steal))),
        Strip("throttling", "% of periods", tuple(_counted(report, first, _throttled))),
        Strip("temperature", "°C", tuple(_temperatures(report.cells, first))),
    ]
    return tuple(s for s in found if s.spots), tuple(s.title for s in found if not s.spots)


def drift(analysis: Analysis, lanes: Sequence[Lane]) -> Iterator[Spot]:
    """How much better (above zero) or worse a cell was than the mean of its environment, in percent."""
    deviations: dict[tuple[str, int], list[float]] = {}
    for level in analysis.levels:
        if not level.primary or not level.kind.has_ratio or level.n < 2:
            continue
        sign = -1.0 if level.direction is Direction.LOWER else 1.0
        logs = [math.log(cell.value) for cell in level.cells]
        centre = statistics.fmean(logs)
        for cell, log in zip(level.cells, logs, strict=True):
            deviations.setdefault((level.environment, cell.round), []).append(sign * 100 * math.expm1(log - centre))
    for lane in lanes:
        found = deviations.get((lane.environment, lane.round))
        if found:
            low, middle, high = _quartiles(found)
            name = f"{lane.environment}, round {lane.round}"
            yield Spot((lane.ready + lane.end) / 2, middle, lane.environment, name, low, high)


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _load(counters: Counters) -> float | None:
    return counters.get("load1")


def _steal(counters: Counters) -> float | None:
    total = counters.get("cpu_ticks", 0.0)
    return 100 * counters["steal_ticks"] / total if total > 0 and "steal_ticks" in counters else None


def _throttled(counters: Counters) -> float | None:
    total = counters.get("cpu_periods", 0.0)
    return (
        100 * counters["cpu_throttled_periods"] / total if total > 0 and "cpu_throttled_periods" in counters else None
    )


def _counted(report: ReportInput, first: float, value: Callable[[Counters], float | None]) -> Iterator[Spot]:
    """One spot for each trial that has it: the worst of its nodes, at the middle of the trial."""
    for trial in report.trials:
        found = [number for node in trial.counters.values() if (number := value(node)) is not None]
        if found:
            at = trial.started - first + trial.elapsed_s / 2
            yield Spot(at, max(found), trial.environment, f"{trial.id}")


def _temperatures(cells: Sequence[CellRecord], first: float) -> Iterator[Spot]:
    """The hottest sensor that the machine or a node reported when the cell began."""
    for cell in cells:
        known = [cell.host_facts, *(facts.values for facts in cell.facts)]
        found = [
            number
            for values in known
            for key, value in values.items()
            if "temperature" in key
            for number in _numbers(value)
        ]
        if found:
            yield Spot(cell.started - first + cell.provision_s, max(found), cell.environment, cell.cell)


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _numbers(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _numbers(inner)
