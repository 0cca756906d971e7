"""Estimates from pairs: an environment and the baseline in the same round, a t interval over rounds.

All functions take arrays whose last axis is the rounds; what comes before it are campaigns, or metrics, or nothing.
The same bits come out for one campaign and for many at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from vtax.analysis.estimate.columns import Floats

LEVEL = 0.05  # of every claim: at most this share of campaigns makes a false one
INTERVAL_FROM = 3  # rounds from which an interval is shown
ADJUST_FROM = 6  # rounds from which the order inside a round is adjusted for
BALANCED = 1 / 3  # share of the rounds in which the rarer order has to stand for that
EXPONENT_MAX = 700.0  # exp() of more does not fit a float


@dataclass(frozen=True)
class Fit:
    """The mean paired difference with its standard error, adjusted for the order where `carry_over` is there.

    `sd` is the deviation of the rounds from the fit, `information` the rounds that the estimate is worth: (sd / se)².
    Arrays of shape (...).
    """

    n: int
    df: int
    theta: Floats
    sd: Floats
    se: Floats
    carry_over: Floats | None
    information: Floats

    def interval(self, a: float) -> tuple[Floats, Floats]:
        """The two-sided t interval at 1 - `a`."""
        half = critical(self.df, a) * self.se
        return self.theta - half, self.theta + half

    @property
    def p_difference(self) -> Floats:
        """Two-sided p of "no difference". Without any spread it is 0 or 1."""
        return np.minimum(1.0, 2 * tail(np.abs(self.theta), self.se, self.df))

    def p_equivalence(self, delta: float) -> Floats:
        """Twice the larger of the two one-sided p of "outside the margin"; it is `a` where the interval touches it."""
        return np.minimum(1.0, 2 * tail(delta - np.abs(self.theta), self.se, self.df))


def fit(differences: Floats, first: Floats | None) -> Fit:
    """The estimate from at least two rounds; `first` is +1 where the environment ran before the baseline, else -1.

    With `first`: least squares of d = theta + carry_over * first, n - 2 degrees of freedom. Without: mean, n - 1.
    """
    n = differences.shape[-1]
    mean = differences.mean(axis=-1)
    if first is None:
        residual = differences - mean[..., None]
        sd = np.sqrt((residual * residual).sum(axis=-1) / (n - 1))
        return Fit(n, n - 1, mean, sd, sd / math.sqrt(n), None, np.array(float(n)))
    level = first.mean(axis=-1)
    centred = first - level[..., None]
    squares = (centred * centred).sum(axis=-1)
    slope = (centred * differences).sum(axis=-1) / squares
    theta = mean - slope * level
    residual = differences - theta[..., None] - slope[..., None] * first
    sd = np.sqrt((residual * residual).sum(axis=-1) / (n - 2))
    share = 1 / n + level * level / squares
    return Fit(n, n - 2, theta, sd, sd * np.sqrt(share), slope, 1 / share)


def adjustable(first: Floats | None) -> bool:
    """Whether these rounds allow to adjust for the order: six or more, neither order rare in any campaign."""
    if first is None or first.shape[-1] < ADJUST_FROM:
        return False
    before = (first > 0).sum(axis=-1)
    rarer = np.minimum(before, first.shape[-1] - before)
    return bool((rarer >= BALANCED * first.shape[-1]).all())


def critical(df: int, a: float = LEVEL) -> float:
    """Two-sided critical value of Student's t at level `a`."""
    return float(stdtrit(df, 1 - a / 2))


def tail(distance: Floats, error: Floats, df: int) -> Floats:
    """One-sided p of a t statistic `distance` / `error`; without any error 0 (distance above 0) or 1."""
    certain = np.where(np.asarray(distance) > 0, 0.0, 1.0)
    ratio = np.divide(distance, error, out=np.zeros_like(certain), where=np.asarray(error) > 0)
    return np.asarray(np.where(np.asarray(error) > 0, stdtr(df, -ratio), certain))


def log_differences(mine: Floats, theirs: Floats, *, higher_is_better: bool) -> Floats:
    """Above zero is better than the baseline."""
    change = np.log(mine) - np.log(theirs)
    return np.asarray(change if higher_is_better else -change)


def exponential(effect: float) -> float:
    """A ratio from an effect, kept within what a float holds."""
    return math.exp(max(-EXPONENT_MAX, min(effect, EXPONENT_MAX)))
