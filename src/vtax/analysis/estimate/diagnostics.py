"""Checks of the numbers themselves: drift, two modes, outliers, unequal spread. Pure.

The tests take arrays whose last axis is runs or rounds, and return one p or statistic for each row. They remove
nothing: outliers stay in the data, drift is removed by the design, and a clean test proves no design without rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import chdtri, stdtr

from vtax.analysis.estimate.columns import Bools, Floats
from vtax.analysis.estimate.paired import fit

ALPHA = 0.01  # of every diagnostic
MAD_SIGMA = 1.4826  # median absolute deviation -> standard deviation, for normal values
OUTLIER_SIGMA = 5.0
OUTLIERS_FROM = 5  # runs from which a median absolute deviation means something
MODES_FROM = 20  # runs: with fewer, two modes are found in a quarter of the cases at best
MODES_TO = 1_000  # runs; with more, the critical value falls no further to speak of
MODES_DRAWS, MODES_SEED = 50_000, 20_240_102
TAILS_FROM = 100  # runs of each environment from which rates of outliers can be distinguished
SLOPES_TO = 2_000  # runs from which the robust slope takes every second, third, ... only
RANKS_FROM = 6  # rounds from which ranks are correlated


@dataclass(frozen=True)
class Trend:
    """A drift over the campaign: Spearman's correlation with time, and the robust slope where it was asked for."""

    rho: float
    p_value: float
    per_hour: float | None = None  # log units an hour (Theil-Sen)
    hours: float = 0.0  # from the first run to the last

    @property
    def change(self) -> float:
        """What the slope comes to from the first run to the last, as ratio - 1."""
        return math.expm1((self.per_hour or 0.0) * self.hours)

    @property
    def found(self) -> bool:
        return self.p_value < ALPHA


@dataclass(frozen=True)
class Spread:
    """Deviation of the logarithms over runs, which is the coefficient of variation when small, with a 95 % interval."""

    sd: float
    low: float
    high: float


def spearman(values: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Correlation of the ranks and its two-sided p (t approximation), over the last axis; 0 and 1 without spread."""
    ranks, order = ranks_of(values), ranks_of(times)
    rho = correlation(ranks, np.broadcast_to(order, ranks.shape))
    return rho, p_correlation(rho, values.shape[-1])


def ranks_of(values: Floats) -> Floats:
    """Ranks from 1 over the last axis; equal values have the mean of theirs.

    As scipy.stats.rankdata, without scipy.stats, which takes longer to load than a report to analyse.
    """
    order = np.argsort(values, axis=-1, kind="stable")
    ordered, place = np.take_along_axis(values, order, axis=-1), np.arange(values.shape[-1])
    apart = np.diff(ordered, axis=-1) != 0
    edge = np.ones((*values.shape[:-1], 1), bool)
    first = np.maximum.accumulate(np.where(np.concatenate((edge, apart), axis=-1), place, 0), axis=-1)
    ends = np.where(np.concatenate((apart, edge), axis=-1), place, values.shape[-1])
    last = np.minimum.accumulate(ends[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=-1)
    return ranks


def slope_of(values: Floats, times: Floats) -> float:
    """Theil and Sen's slope: the median over all pairs at different times."""
    later = times[:, None] - times[None, :]
    rise = values[:, None] - values[None, :]
    return float(np.median(rise[later > 0] / later[later > 0]))


def correlation(one: Floats, other: Floats) -> Floats:
    """Pearson's correlation over the last axis; 0 where one of both does not vary."""
    a, b = one - one.mean(axis=-1, keepdims=True), other - other.mean(axis=-1, keepdims=True)
    scale = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    product = (a * b).sum(axis=-1)
    return np.asarray(np.clip(np.divide(product, scale, out=np.zeros_like(scale), where=scale > 0), -1, 1))


def p_correlation(rho: Floats, n: int) -> Floats:
    """Two-sided p of "not correlated" from n pairs, by Student's t."""
    left = np.maximum(1 - rho * rho, np.finfo(float).eps ** 2)
    return np.asarray(2 * stdtr(n - 2, -np.abs(rho) * np.sqrt((n - 2) / left)))


def drift(logs: Sequence[Floats], times_s: Sequence[Floats]) -> Trend | None:
    """Drift that environments have in common: their log values, each centred, against when they were measured."""
    values = np.concatenate([one - one.mean() for one in logs])
    times = np.concatenate(list(times_s))
    if values.size < RANKS_FROM or np.ptp(times) == 0 or np.ptp(values) == 0:
        return None
    rho, p = spearman(values, times)
    chosen = np.argsort(times, kind="stable")[:: 1 + values.size // SLOPES_TO]  # it looks at all pairs of them
    return Trend(float(rho), float(p), slope_of(values[chosen], times[chosen] / 3600), float(np.ptp(times)) / 3600)


def effect_drifts(differences: Floats, rounds: Floats) -> tuple[Bools, Floats, Floats]:
    """Whether the effect itself changes over the rounds, the p of its trend, its correlation between neighbours."""
    _, p = spearman(differences, rounds)
    centred = differences - differences.mean(axis=-1, keepdims=True)
    squares = (centred * centred).sum(axis=-1)
    product = (centred[..., 1:] * centred[..., :-1]).sum(axis=-1)
    rho = np.divide(product, squares, out=np.zeros_like(squares), where=squares > 0)
    return (p < ALPHA) | (np.abs(rho) > 2 / math.sqrt(differences.shape[-1])), p, rho


def outliers(logs: Floats) -> Bools:
    """Which runs of one environment lie more than five (median absolute) deviations from its median."""
    if logs.shape[-1] < OUTLIERS_FROM:
        return np.zeros(logs.shape, bool)
    away = np.abs(logs - np.median(logs, axis=-1, keepdims=True))
    scale = MAD_SIGMA * np.median(away, axis=-1, keepdims=True)
    return np.asarray((scale > 0) & (away > OUTLIER_SIGMA * scale))


def p_outliers(mine: int, of_mine: int, theirs: int, of_theirs: int) -> float:
    """Fisher's exact p of "as many outliers in both"."""
    both = range(max(0, mine + theirs - of_theirs), min(mine + theirs, of_mine) + 1)
    ways = [math.comb(of_mine, k) * math.comb(of_theirs, mine + theirs - k) for k in both]
    found = math.comb(of_mine, mine) * math.comb(of_theirs, theirs)
    return sum(one for one in ways if one <= found) / sum(ways)


def two_modes(logs: Floats) -> Floats:
    """How much of the variance the best split into two sets explains (R²), over the last axis."""
    centred = logs - logs.mean(axis=-1, keepdims=True)
    squares = (centred * centred).sum(axis=-1)
    between = _between(logs).max(axis=-1)
    return np.asarray(np.divide(between, squares, out=np.zeros_like(squares), where=squares > 0))


def _between(logs: Floats) -> Floats:
    """The sum of squares between the smallest 1, 2, ... n - 1 values and the others."""
    ordered = np.sort(logs, axis=-1)
    n = ordered.shape[-1]
    left = np.cumsum(ordered - ordered.mean(axis=-1, keepdims=True), axis=-1)[..., :-1]
    size = np.arange(1, n)
    return np.asarray(left * left * n / (size * (n - size)))


@lru_cache(maxsize=256)
def two_modes_critical(n: int) -> float:
    """The R² that 1 % of normal samples of this size exceed, from simulated ones."""
    if n > MODES_TO:
        return two_modes_critical(MODES_TO)
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([MODES_SEED, n])))
    draws = max(4_000, min(MODES_DRAWS, 4_000_000 // n))
    return float(np.quantile(two_modes(random.standard_normal((draws, n))), 1 - ALPHA))


def modes(logs: Floats) -> tuple[float, float] | None:
    """The two modes (means) of one environment's runs; None when it has one or there are too few runs."""
    n = logs.size
    if n < MODES_FROM or float(two_modes(logs)) <= two_modes_critical(n):
        return None
    ordered = np.sort(logs)
    split = 1 + int(np.argmax(_between(logs)))
    return float(ordered[:split].mean()), float(ordered[split:].mean())


def p_warmup(iterations: Sequence[Floats]) -> float | None:
    """Paired p of "the first measured iteration is like the later ones"; `iterations` are the logs of each cell's."""
    several = [cell for cell in iterations if len(cell) > 1]
    if len(several) < RANKS_FROM:
        return None
    return float(fit(np.array([cell[0] - cell[1:].mean() for cell in several]), None).p_difference)


def p_equal_spread(mine: Floats, theirs: Floats) -> Floats:
    """Pitman and Morgan's paired test of equal variances: the correlation of sum and difference."""
    return p_correlation(correlation(mine + theirs, mine - theirs), mine.shape[-1])


def spread(logs: Floats, means: int = 1) -> Spread | None:
    """How much an environment varies from round to round. None below three rounds. From the logarithms so many means
    were taken, those of machines."""
    df = logs.size - means
    if df < 2:
        return None
    sd = float(logs.std(ddof=means))
    return Spread(sd, sd * math.sqrt(df / float(chdtri(df, 0.025))), sd * math.sqrt(df / float(chdtri(df, 0.975))))
