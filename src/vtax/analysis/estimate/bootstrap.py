"""An interval of the ratio of total work over total time: a bootstrap of two levels.

The ratio of two sums has no t interval. Rounds are drawn with replacement, and inside each drawn round the
iterations of either environment. Below twenty rounds such an interval misses too often, and there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.paired import LEVEL, exponential
from vtax.analysis.estimate.pairs import Pair
from vtax.analysis.estimate.summary import Runs
from vtax.analysis.order import RESAMPLES, generator
from vtax.analysis.records import Level
from vtax.model.metric import Direction, Kind

ROUNDS_FROM = 20
HALF = 1_000  # draws; as many again with the two streams of the environments exchanged
TOO_FEW = f"a bootstrap needs {ROUNDS_FROM} rounds"
MACHINES = "several machines have no total time in common"
LATE = "a run that hit its time limit has no total time"
Sizes = tuple[int, ...]


def mean_interval(pair: Pair, runs: Runs, seed: int) -> tuple[float, float] | None:
    """The 95 % interval of the ratio of means of one pair; None below twenty rounds, without a ratio, on several
    machines, and where a run of these rounds has no end."""
    if pair.alone or pair.base is None or not pair.has_ratio or pair.late or pair.rounds.size < ROUNDS_FROM:
        return None
    kind, higher = pair.level.kind, pair.level.direction is Direction.HIGHER
    if pair.by_round.values is not None:
        low, high = bootstrapped(*pair.by_round.values, kind, seed, paired=True)
    else:
        rounds = set(pair.rounds.tolist())
        mine, theirs = (_iterations(level, rounds, runs) for level in (pair.level, pair.base))
        low, high = bootstrapped(mine, theirs, kind, seed)
    ends = (float(low), float(high)) if higher else (-float(high), -float(low))
    return exponential(ends[0]), exponential(ends[1])


def _iterations(level: Level, rounds: set[int], runs: Runs) -> list[Floats]:
    cells, _ = runs[level.environment, level.series]
    return [values for cell, values in zip(level.cells, cells, strict=True) if cell.round in rounds]


def bootstrapped(
    mine: Sequence[Floats], theirs: Sequence[Floats], kind: Kind, seed: int, *, paired: bool = False
) -> tuple[Floats, Floats]:
    """Low and high end of the log ratio of means, from the iterations of each round, arrays of shape (iterations, ...).

    Exchanging the two negates it exactly: each half of the draws uses the other's random numbers in the other half;
    iterations that are `paired` are drawn together.
    """
    totals = []
    for several, flipped in ((mine, False), (theirs, not paired)):
        stacked = np.concatenate([_added(values, kind) for values in several])
        sizes = tuple(len(values) for values in several)
        totals.append(np.einsum("di,i...->d...", _weights(sizes, seed, flipped), stacked))
    if kind is Kind.RATIO:
        changes = totals[0] - totals[1]
    elif kind is Kind.RATE_FIXED_WORK:
        changes = np.log(totals[1]) - np.log(totals[0])
    else:
        changes = np.log(totals[0]) - np.log(totals[1])
    changes = np.sort(changes, axis=0)
    outside = math.floor(LEVEL / 2 * len(changes))
    return changes[outside], changes[-1 - outside]


def _added(values: Floats, kind: Kind) -> Floats:
    """What adds up: times of fixed work, logarithms of ratios, else the values themselves."""
    if kind is Kind.RATE_FIXED_WORK:
        return np.asarray(1 / values)
    return np.asarray(np.log(values)) if kind is Kind.RATIO else values


@lru_cache(maxsize=8)
def _weights(sizes: Sizes, seed: int, flipped: bool) -> Floats:
    """How much each iteration counts in each draw, shape (draws, iterations); `sizes` are those of the rounds."""
    count = len(sizes)
    drawn = generator(seed, 0, RESAMPLES).multinomial(count, np.full(count, 1 / count), size=HALF)
    streams = (2, 1) if flipped else (1, 2)
    return np.concatenate([_inside(drawn, sizes, seed, stream) for stream in streams]) / count


def _inside(drawn: np.ndarray[tuple[int, ...], np.dtype[np.int64]], sizes: Sizes, seed: int, stream: int) -> Floats:
    random = generator(seed, stream, RESAMPLES)
    found = np.empty((len(drawn), sum(sizes)))
    starts = np.cumsum((0, *sizes))
    for place, size in enumerate(sizes):
        times = random.multinomial(drawn[:, place] * size, np.full(size, 1 / size))
        found[:, starts[place] : starts[place + 1]] = times / size
    return found
