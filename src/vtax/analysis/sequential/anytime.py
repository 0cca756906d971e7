"""Intervals that hold at whatever round a campaign stops (`anytime = true`).

A confidence sequence: with the effect, in standard deviations, drawn from a normal distribution of variance g = 1, and
the deviation itself unknown, the ratio of the likelihoods of "some effect" and of "exactly this effect" is a martingale
under the latter (Lai 1976; with covariates Lindon and others 2022). By Ville's inequality it ever exceeds 20 in 5 % of
campaigns at most. The interval holds every effect at which it is below 20; its reciprocal is
a p value that needs no correction for looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.paired import LEVEL, Fit

VARIANCE = 1.0  # g: of the effect, in standard deviations of the paired differences
ANYTIME = "anytime-valid"


@dataclass(frozen=True)
class Anytime:
    """What `group_sequential.Calibration` is for planned looks, for a look after every round."""

    looks: tuple[int, ...]
    a_look: float = LEVEL
    source: str = ANYTIME

    def critical(self, n: int, parameters: int = 1) -> float:
        """Half of the interval in standard errors, with n balanced rounds and so many parameters."""
        return float(critical(n - parameters, np.array(float(n))))

    def interval(self, made: Fit) -> tuple[Floats, Floats]:
        """Infinite where so few rounds exclude nothing (below five)."""
        width = critical(made.df, made.information)
        half = width * np.where(np.isfinite(width), made.se, 1.0)
        return made.theta - half, made.theta + half

    def p_difference(self, made: Fit) -> Floats:
        return p_away(np.abs(made.theta), made)

    def p_within(self, made: Fit, delta: float) -> Floats:
        """Of "outside the margin": it is 5 % where the interval touches it."""
        return p_away(delta - np.abs(made.theta), made)

    def sequential(self, smallest: Floats) -> Floats:
        """It holds at all looks already."""
        return np.asarray(smallest)


def critical(df: int, information: Floats, a: float = LEVEL) -> Floats:
    """How many standard errors from the estimate the likelihood ratio reaches 1 / `a`; infinite where it never does.

    `information` is the number of rounds, or what is left of it after the adjustment: (sd / se)².
    """
    grown = 1 + VARIANCE * np.asarray(information, float)
    c = (grown / a**2) ** (1 / (df + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.sqrt(df * (c - 1) / (1 - c / grown))
    return np.where(c < grown, width, np.inf)


def p_away(distance: Floats, made: Fit) -> Floats:
    """The reciprocal of the likelihood ratio for an effect that lies `distance` from the estimate; 1 below zero."""
    grown = 1 + VARIANCE * np.asarray(made.information, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = (np.maximum(distance, 0.0) / made.se) ** 2 / made.df
        gain = np.where(np.isfinite(u), np.log1p(u) - np.log1p(u / grown), np.log(grown))
    gain = np.where(np.asarray(distance) > 0, gain, 0.0)
    return np.asarray(np.minimum(1.0, np.exp(np.log(grown) / 2 - (made.df + 1) / 2 * gain)))


def wider(n: int, parameters: int, planned: float) -> float:
    """How much wider than an interval of `planned` standard errors: 0.41 for 41 %."""
    return math.expm1(math.log(Anytime(()).critical(n, parameters) / planned))
