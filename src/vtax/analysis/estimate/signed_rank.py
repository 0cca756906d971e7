"""The Hodges-Lehmann estimate and its exact signed-rank interval: the companion of the t interval.

It assumes that differences are symmetric about the effect, and nothing else. The estimate is the median of the Walsh
averages (d_i + d_j) / 2, i <= j; the interval lies between two of them in order (Hollander, Wolfe, Chicken 2014, 3.2).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from vtax.analysis.estimate.columns import Floats, Ints
from vtax.analysis.estimate.paired import LEVEL

EXACT_TO = 200  # pairs; beyond, the normal approximation of the rank sum is exact to many digits
CHUNK = 2_000_000  # Walsh averages held at a time


def hodges_lehmann(differences: Floats, a: float = LEVEL) -> tuple[Floats, Floats, Floats]:
    """Estimate, low and high (shape (..., n) to three of (...)), at least at 1 - `a`; infinite where no such bound is.

    Differences may be infinite (censored); a bound that would need one is infinite then.
    """
    n = differences.shape[-1]
    rows = differences.reshape(-1, n)
    upper, lower = _pairs(n)
    count = upper.size
    rank = bound_rank(n, a)
    found = np.empty((3, rows.shape[0]))
    step = max(1, CHUNK // count)
    for start in range(0, rows.shape[0], step):
        block = rows[start : start + step]
        with np.errstate(invalid="ignore"):
            walsh = np.sort((block[:, upper] + block[:, lower]) / 2, axis=-1)
        below, above = walsh, walsh
        if np.isnan(walsh[:, -1]).any():  # censored both ways: such an average may lie anywhere
            below = np.sort(np.where(np.isnan(walsh), -np.inf, walsh), axis=-1)
            above = np.sort(np.where(np.isnan(walsh), np.inf, walsh), axis=-1)
        found[0, start : start + step] = _median(walsh)
        found[1, start : start + step] = below[:, rank - 1] if rank else -np.inf
        found[2, start : start + step] = above[:, count - rank] if rank else np.inf
    estimate, low, high = found.reshape(3, *differences.shape[:-1])
    return estimate, low, high


def _pairs(n: int) -> tuple[Ints, Ints]:
    upper, lower = np.triu_indices(n)
    return upper, lower


def _median(ordered: Floats) -> Floats:
    size = ordered.shape[-1]
    with np.errstate(invalid="ignore"):
        return np.asarray((ordered[..., (size - 1) // 2] + ordered[..., size // 2]) / 2)


@lru_cache(maxsize=1024)
def bound_rank(n: int, a: float) -> int:
    """Which Walsh average, counted from 1 from either end, bounds the interval; 0 when even the last covers too little.

    The largest k with P(rank sum <= k - 1) <= a / 2.
    """
    if n > EXACT_TO:
        total = n * (n + 1)
        sd = np.sqrt(total * (2 * n + 1) / 24)
        return max(0, int(np.floor(total / 4 + float(ndtri(a / 2)) * sd)))
    below = np.cumsum(rank_sum_distribution(n))
    return int(np.searchsorted(below, a / 2, side="right"))


@lru_cache(maxsize=256)
def rank_sum_distribution(n: int) -> Floats:
    """P(signed-rank sum = w) for w = 0 ... n (n + 1) / 2, without ties."""
    chances = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(chances.size + rank)
        longer[: chances.size] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return chances
