"""An interval of the difference of two groups that are not paired, by Wilcoxon's rank sum: for runs without an end.

The shift lies between two of all differences b - a in order (Hollander, Wolfe, Chicken 2014, 4.2). Values may be
infinite (they ran into a time limit); a bound that would need one is infinite then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.paired import LEVEL
from vtax.analysis.estimate.signed_rank import EXACT_TO


def shift_interval(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Low and high of b - a, at least at 1 - `level`; infinite where no such bound is."""
    rank = bound_rank(len(a), len(b), level)
    if not rank:
        return -np.inf, np.inf
    with np.errstate(invalid="ignore"):
        differences = np.subtract.outer(np.asarray(b, float), np.asarray(a, float)).ravel()
    unknown = np.isnan(differences)  # both without an end: such a difference may lie anywhere
    below = np.sort(np.where(unknown, -np.inf, differences))
    above = np.sort(np.where(unknown, np.inf, differences))
    return float(below[rank - 1]), float(above[-rank])


@lru_cache(maxsize=256)
def bound_rank(m: int, n: int, level: float) -> int:
    """Which difference, counted from 1 from either end, bounds the interval; 0 when even the last covers too little.

    The largest k with P(U <= k - 1) <= `level` / 2.
    """
    if max(m, n) > EXACT_TO:
        sd = np.sqrt(m * n * (m + n + 1) / 12)
        return max(0, int(np.floor(m * n / 2 + float(ndtri(level / 2)) * sd)))
    return int(np.searchsorted(np.cumsum(u_distribution(m, n)), level / 2, side="right"))


@lru_cache(maxsize=256)
def u_distribution(m: int, n: int) -> Floats:
    """P(U = u) for u = 0 ... m n, where U counts the pairs in which b is above a, without ties.

    The chances are those of Gauss's binomial coefficient: the product of (1 - q^(n + i)) / (1 - q^i), i = 1 ... m.
    """
    counts = np.zeros(m * n + 1)
    counts[0] = 1.0
    for i in range(1, m + 1):
        counts[n + i :] -= counts[: max(0, counts.size - n - i)].copy()
        for first in range(min(i, counts.size)):
            counts[first::i] = np.cumsum(counts[first::i])
    return np.asarray(counts / counts.sum())
