"""One difference a round from several machines, each of which has the round alone. Pure.

The effect is the mean over the machines of the difference on each: pairs never cross machines. Where all of them have
a difference in every round, that of a round is the mean over them, and its variation from round to round is all that
the interval needs: machines may vary unequally, and what hits several of them at once is in it. So one machine is the
case without anything to average.

Where some are missing, a machine's own mean still counts as much as any other's. A round is then that mean, and how far
the machines that it has were away from theirs: what a machine lacks widens the interval and does not move the estimate.
How much the interval can rely on is what the machine with the fewest rounds has.

All arrays have the machines as the last axis but one and the rounds as the last; NaN is a difference that is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import fdtrc, stdtrit

from vtax.analysis.estimate.columns import Bools, Floats, Ints
from vtax.analysis.estimate.paired import ADJUST_FROM, INTERVAL_FROM, Fit, fit
from vtax.analysis.records import VERDICT_FROM

DIFFER = 0.01  # p below which machines are said to differ, as of every diagnostic
GENERAL_FROM = 3  # machines from which anything is said about others like them
ORDER_COST = 1 / 8  # of the information, at most, for adjusting for the order: two thirds of the rounds against one


def covered(known: Bools) -> Bools:
    """Which machines an estimate is about, from where they have a difference (machines, rounds): those that have six
    rounds, or half of what the one with most has, and three at least where any has them.

    So one that lost a round stays, and the interval is wider. One that was lost soon does not keep the others open.
    """
    counts = known.sum(axis=-1)
    most = int(counts.max(initial=0))
    half = max(INTERVAL_FROM, min((most + 1) // 2, VERDICT_FROM))
    return np.asarray(counts >= (half if most >= INTERVAL_FROM else 1))


def pooled(values: Floats) -> Floats:
    """One value a round, shape (..., machines, rounds) to (..., rounds). Their mean is the mean of the machines' means.

    Their variance over the number of rounds is that of this mean, whatever that of each machine is. Each machine has a
    value, and each round.
    """
    known = ~np.isnan(values)
    if known.all():
        return np.asarray(values.mean(axis=-2))
    machines, rounds = values.shape[-2:]
    counts = known.sum(axis=-1, keepdims=True)
    means = _means(values, known)
    bessel = counts / np.maximum(counts - 1, 1) * ((rounds - 1) / rounds)
    weights = rounds / (machines * counts) * np.sqrt(bessel)
    away = np.where(known, (values - means) * weights, 0.0)
    return np.asarray(means.mean(axis=-2) + away.sum(axis=-2))


def by_rounds(values: Mapping[tuple[str, int], float]) -> tuple[float, ...]:
    """Values by machine and round as one number a round, over the machines that an estimate is about."""
    names = sorted({machine for machine, _ in values})
    numbers = sorted({number for _, number in values})
    grid = np.array([[values.get((name, number), np.nan) for number in numbers] for name in names])
    about = grid[covered(~np.isnan(grid))]
    return tuple(pooled(about[:, ~np.isnan(about).all(axis=0)]).tolist())


def _means(values: Floats, known: Bools) -> Floats:
    return np.asarray(np.where(known, values, 0.0).sum(axis=-1, keepdims=True) / known.sum(axis=-1, keepdims=True))


def _away(values: Floats, known: Bools) -> Floats:
    """How far each value is from the mean of its machine; 0 where it is missing."""
    return np.where(known, values - _means(values, known), 0.0)


def fit_over(differences: Floats, first: Floats | None) -> tuple[Fit, Floats]:
    """The mean over machines, from differences of shape (..., machines, rounds), and one value a round without what the
    order adds; `first` is +1 where the environment ran before the baseline, else -1.

    What running second costs is the same on all machines, and is estimated within them. It uses up to one round of the
    variation, none where orders are opposite and cancel, and always one degree of freedom.
    """
    known = ~np.isnan(differences)
    rounds, machines = differences.shape[-1], differences.shape[-2]
    fewest = int(known.sum(axis=-1).min())
    given = pooled(differences)
    if first is None:
        made = fit(given, None)
        return replace(made, df=fewest - 1), given
    ours = _away(first, known)
    squares = (ours * ours).sum(axis=(-1, -2))
    slope = (ours * _away(differences, known)).sum(axis=(-1, -2)) / squares
    order = pooled(np.where(known, first, np.nan))
    level = order.mean(axis=-1)
    common = order - level[..., None]
    used = np.minimum(machines * (common * common).sum(axis=-1) / squares, 1.0)
    left = given - slope[..., None] * order
    theta = left.mean(axis=-1)
    residual = left - theta[..., None]
    sd = np.sqrt((residual * residual).sum(axis=-1) / (rounds - 1 - used))
    share = 1 / rounds + level * level * machines / squares
    return Fit(rounds, fewest - 2, theta, sd, sd * np.sqrt(share), slope, 1 / share), left


def adjustable_over(differences: Floats, first: Floats) -> bool:
    """Whether the order can be adjusted for: `adjustable` for several machines."""
    rounds, machines = differences.shape[-1], differences.shape[-2]
    if rounds < ADJUST_FROM:
        return False
    known = ~np.isnan(differences)
    ours = _away(first, known)
    squares = (ours * ours).sum(axis=(-1, -2))
    level = pooled(np.where(known, first, np.nan)).mean(axis=-1)
    return bool(((squares > 0) & (level * level * machines * rounds <= ORDER_COST * squares)).all())


@dataclass(frozen=True)
class Spread:
    """How machines differ: `p` of "the effect is the same on all of them", and the interval of the effect on machines
    of which these are a sample, None below three. Arrays of shape (...)."""

    p: Floats
    low: Floats | None
    high: Floats | None

    @property
    def differ(self) -> bool:
        """Of one campaign: whether the machines differ for certain."""
        return bool(self.p < DIFFER)


def spread_over(means: Floats, errors: Floats, counts: Ints, interval: tuple[Floats, Floats], a: float) -> Spread:
    """From the effect on each machine, its standard error and rounds, shape (..., machines) each.

    `interval` is that of their mean for these machines alone, at 1 - `a`. What is said of others is never narrower:
    machines that happen to agree do not say more about others than about themselves.
    """
    machines = means.shape[-1]
    low = high = None
    if machines >= GENERAL_FROM:
        centre, deviation = means.mean(axis=-1), means.std(axis=-1, ddof=1)
        half = float(stdtrit(machines - 1, 1 - a / 2)) * deviation / math.sqrt(machines)
        low, high = np.minimum(centre - half, interval[0]), np.maximum(centre + half, interval[1])
    return Spread(p_same(means, errors, counts), low, high)


def p_same(means: Floats, errors: Floats, counts: Ints) -> Floats:
    """Welch's (1951) p of "all machines have the same effect", which allows unequal variances; 1 without any spread."""
    machines = means.shape[-1]
    if machines < 2:
        return np.ones(means.shape[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = 1 / (errors * errors)
        total = weights.sum(axis=-1, keepdims=True)
        centre = (weights * means).sum(axis=-1, keepdims=True) / total
        between = (weights * (means - centre) ** 2).sum(axis=-1) / (machines - 1)
        uneven = ((1 - weights / total) ** 2 / (counts - 1)).sum(axis=-1)
        statistic = between / (1 + 2 * (machines - 2) / (machines * machines - 1) * uneven)
        p = fdtrc(machines - 1, (machines * machines - 1) / (3 * uneven), statistic)
    return np.asarray(np.where(np.isfinite(statistic), p, 1.0))
