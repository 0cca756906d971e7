"""From columns to cells to levels: ranks and nodes collapse to one number an iteration, iterations
to one number a cell, cells to one level. The arithmetic takes arrays of any shape, its last axis being collapsed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from vtax.analysis.estimate.blocks import round_of
from vtax.analysis.estimate.columns import Columns, Floats, Group, Ints
from vtax.analysis.estimate.diagnostics import outliers, spread
from vtax.analysis.estimate.failures import SPEEDS, Place, Timeouts
from vtax.analysis.records import CellValue, Level
from vtax.model.metric import Kind, Series, SeriesRecord

__all__ = ["Series", "cell_mean", "cell_summary", "levels_of", "typical"]

TRIMMED_FROM = 3  # iterations in a cell from which the median is taken
# Equal durations or tries: total over total. An amount that is often 0 has a mean, and a median that says nothing.
TOTALS = frozenset({Kind.RATE_FIXED_TIME, Kind.PROPORTION, Kind.AMOUNT, Kind.COUNT})
PER_PROCESS = "Star"  # HPCC's mark of figures of one process


def cell_summary(values: Floats | Sequence[float], kind: Kind) -> Floats:
    """The number of a cell from its iterations (shape (..., m) to (...)), in the units of the metric: typical."""
    ordered = np.sort(np.asarray(values, float), axis=-1)
    if kind in TOTALS or kind is Kind.RATIO or ordered.shape[-1] < TRIMMED_FROM:
        return cell_mean(ordered, kind)
    middle = (ordered.shape[-1] - 1) // 2
    return cell_mean(ordered[..., middle : ordered.shape[-1] - middle], kind)


def late_summary(values: Floats, late: int, kind: Kind) -> float | None:
    """The number of a cell in which so many iterations besides `values` hit their time limit: they are slower than
    all others. None where its summary would be one of theirs, which is unknown."""
    total = values.size + late
    if kind in TOTALS or total < TRIMMED_FROM:
        return None
    middle, ordered = (total - 1) // 2, np.sort(values)
    first = middle if kind is Kind.COST else middle - late  # rates: the slow ones come before all others
    last = total - 1 - middle if kind is Kind.COST else total - 1 - middle - late
    return float(cell_mean(ordered[first : last + 1], kind)) if first >= 0 and last < values.size else None


def cell_mean(values: Floats | Sequence[float], kind: Kind) -> Floats:
    """Total work over total time of iterations (shape (..., m) to (...)): the kind's own mean."""
    ordered = np.sort(np.asarray(values, float), axis=-1)
    if kind is Kind.RATIO:
        return np.asarray(np.exp(np.log(ordered).mean(axis=-1)))
    if kind is Kind.RATE_FIXED_WORK:
        return np.asarray(ordered.shape[-1] / (1 / ordered).sum(axis=-1))
    return np.asarray(ordered.mean(axis=-1))


def collapse(values: Floats, kind: Kind, metric: str) -> Floats:
    """One number from ranks or nodes that ran together (shape (..., k) to (...)): the last one to finish counts,
    throughputs add up, figures of one process are averaged."""
    if kind in (Kind.COST, Kind.LATENCY_QUANTILE, Kind.AMOUNT):
        return np.asarray(values.max(axis=-1))
    ordered = np.sort(values, axis=-1)
    if kind in (Kind.RATIO, Kind.PROPORTION):
        return cell_mean(ordered, kind)
    return np.asarray(ordered.mean(axis=-1) if metric.startswith(PER_PROCESS) else ordered.sum(axis=-1))


def typical(values: Sequence[float], kind: Kind) -> float:
    """The level over the rounds that suits the kind: total work over total time, where that means something."""
    if kind is Kind.LATENCY_QUANTILE:
        return float(statistics.median(values))
    return float(cell_mean(values, kind))


Key = tuple[str, Series]
Runs = Mapping[Key, tuple[tuple[Floats, ...], Floats]]  # iterations of each cell, when each began


class Iterations(NamedTuple):
    """Every measured iteration of a series in an environment that has a number, in order: its block (the round, where
    there is one machine), its number in it, counted from 1, and its value."""

    blocks: Ints
    numbers: Ints
    values: Floats


class Measured(NamedTuple):
    """One value an iteration, ranks and nodes collapsed: rows without warm-ups, which of them begin one, and values."""

    rows: Ints
    first: Ints
    values: Floats


def measured(table: Columns) -> Measured:
    """The iterations in a table."""
    rows = np.flatnonzero(~table.warmup)
    first = _starts(table.group[rows], table.trial[rows])
    return Measured(rows, first, _by_size(table, rows, first, table.value[rows], collapsing=True))


def iterations_of(table: Columns, found: Measured) -> dict[Key, Iterations]:
    """The iterations of each environment and series, also those of cells that have no number."""
    rows = found.rows[found.first]
    starts = _starts(table.group[rows])
    several = {}
    for start, end in pairwise((*starts, rows.size)):  # none where all runs failed
        own, group = rows[start:end], table.groups[table.group[rows[start]]]
        several[group.environment, group.series] = Iterations(
            table.block[own], table.iteration[own], found.values[start:end]
        )
    return several


def levels_of(
    table: Columns, found: Measured, started: Mapping[str, float], timeouts: Timeouts | None = None
) -> tuple[dict[Key, Level], Runs]:
    """One level for each environment and series, and its iterations: the values of each cell, and when each began.

    `started` is when trials began (Unix time, s); NaN stands for one that is not known. `timeouts` are runs that belong
    to cells and have no number: a cell that they leave without one is not part of its level.
    """
    groups: dict[Key, Group] = {}
    by_key: dict[Key, list[tuple[CellValue, Floats, Floats]]] = {}
    for group, cell, own, began in _cells(table, found, started, timeouts or {}):
        key = (group.environment, group.series)
        groups[key] = group
        by_key.setdefault(key, []).append((cell, own, began))
    levels: dict[Key, Level] = {}
    runs: dict[Key, tuple[tuple[Floats, ...], Floats]] = {}
    for key, several in by_key.items():
        cells, values, times_s = zip(*several, strict=True)
        levels[key] = _level(groups[key], cells, np.concatenate(values), [one.size for one in values])
        runs[key] = (values, np.concatenate(times_s))
    return levels, runs


def _cells(
    table: Columns, found: Measured, started: Mapping[str, float], timeouts: Timeouts
) -> Iterator[tuple[Group, CellValue, Floats, Floats]]:
    """Every cell with a number, with the values of its iterations and when each began."""
    if not found.rows.size:
        return
    values, rows = found.values, found.rows[found.first]
    cells = _starts(table.group[rows], table.block[rows])
    summaries = _by_size(table, rows, cells, values, collapsing=False)
    means = _by_size(table, rows, cells, values, collapsing=False, trimmed=False)
    times = np.array([started.get(name, np.nan) for name in table.trials])[table.trial[rows]]
    ends = np.append(cells, rows.size)
    bounds = np.append(found.rows.searchsorted(rows[cells]), found.rows.size)
    for i, start in enumerate(cells):
        group, block = table.groups[table.group[rows[start]]], int(table.block[rows[start]])
        mine, times_s = values[start : ends[i + 1]], times[start : ends[i + 1]]
        late = _late(timeouts, group, block)
        value = late_summary(mine, late, group.kind) if late else float(summaries[i])
        if value is None:
            continue
        places = table.source[found.rows[bounds[i] : bounds[i + 1]]].tolist()
        cell = CellValue.model_construct(
            round=round_of(block),
            machine=table.blocks.machine(block),
            value=value,
            mean=None if late else float(means[i]),
            iterations=mine.size,
            timed_out=late,
            started=None if np.isnan(times_s).any() else float(times_s.min()),
            sources=tuple(table.sources[j] for j in dict.fromkeys(places)),
        )
        yield group, cell, mine, times_s


def _late(timeouts: Timeouts, group: Group, block: int) -> int:
    """How many iterations of a cell hit their time limit, for metrics that say how fast something was."""
    if group.kind not in SPEEDS:
        return 0
    return len(timeouts.get(place_of_level(group), {}).get(block, ()))


def place_of_level(level: Level | Group) -> Place:
    """Where a level was measured: its environment, entry and nodes."""
    return level.environment, level.label, level.labels.get("target", "")


def empty_level(series: SeriesRecord, environment: str) -> Level:
    """The series in an environment that has no number of it; never shown, with NaN for what would be a number."""
    return Level.model_construct(
        **series.series_fields,
        environment=environment,
        n=0,
        mean=math.nan,
        median=math.nan,
        minimum=math.nan,
        maximum=math.nan,
        typical=math.nan,
        cells=(),
    )


def _starts(*keys: Ints) -> Ints:
    """Where a new combination of sorted keys begins."""
    changed = np.zeros(len(keys[0]), bool)
    changed[:1] = True
    for key in keys:
        changed[1:] |= np.diff(key) != 0
    return np.flatnonzero(changed)


def _by_size(
    table: Columns, rows: Ints, starts: Ints, values: Floats, *, collapsing: bool, trimmed: bool = True
) -> Floats:
    """One number for each run of values between `starts`, all runs of one kind and length at once."""
    sizes = np.diff(np.append(starts, rows.size))
    groups = table.group[rows[starts]]
    kinds = tuple(Kind)
    kind_of = np.array([kinds.index(group.kind) for group in table.groups])[groups]
    apart = np.array([group.metric.startswith(PER_PROCESS) for group in table.groups])[groups]
    out = values[starts].copy()
    for kind, size, star in {*zip(kind_of.tolist(), sizes.tolist(), apart.tolist(), strict=True)}:
        if size == 1:
            continue
        which = np.flatnonzero((kind_of == kind) & (sizes == size) & (apart == star))
        block = values[starts[which][:, None] + np.arange(size)]
        if collapsing:
            out[which] = collapse(block, kinds[kind], PER_PROCESS if star else "")
        else:
            out[which] = cell_summary(block, kinds[kind]) if trimmed else cell_mean(block, kinds[kind])
    return out


def within_machines(values: Floats, cells: Sequence[CellValue], sizes: Sequence[int] = ()) -> Floats:
    """Values of cells, or of the iterations of each, without how machines differ: each less the mean of its machine.
    On one machine they stay what they are."""
    names = [cell.machine for cell in cells]
    if len(set(names)) < 2:
        return values
    machines = np.repeat(np.array(names), sizes) if sizes else np.array(names)
    apart = values.copy()
    for name in set(names):
        apart[machines == name] -= values[machines == name].mean()
    return apart


def _deviation(cells: Sequence[CellValue], values: Sequence[float]) -> float | None:
    """From round to round; of several machines within each of them."""
    several = len({cell.machine for cell in cells})
    if len(values) <= several:
        return None
    if several == 1:
        return statistics.stdev(values)
    return float(within_machines(np.array(values), cells).std(ddof=several))


def _level(group: Group, cells: Sequence[CellValue], iterations: Floats, sizes: Sequence[int]) -> Level:
    values = [cell.value for cell in cells]
    several = len({cell.machine for cell in cells})
    logs = within_machines(np.log(values), cells) if group.kind.has_ratio else np.empty(0)
    varies = spread(logs, several)
    return Level(
        **group.series_fields,
        environment=group.environment,
        n=len({cell.round for cell in cells}),
        mean=statistics.fmean(values),
        sd=_deviation(cells, values),
        median=float(statistics.median(values)),
        minimum=min(values),
        maximum=max(values),
        cv=varies.sd if varies else None,
        cv_low=varies.low if varies else None,
        cv_high=varies.high if varies else None,
        outliers=int(outliers(within_machines(np.log(iterations), cells, sizes)).sum())
        if group.kind.has_ratio
        else None,
        runs=iterations.size,
        typical=typical(values, group.kind),
        cells=tuple(cells),
    )
