"""Estimates from pairs (METHOD 1.7): an environment and the baseline in the same round, a t interval over rounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t as student

from vtax.analysis.records import Level
from vtax.analysis.summary import UNLOGGED
from vtax.model import Direction

CONFIDENCE = 0.95
INTERVAL_FROM = 3  # rounds from which an interval is shown
EXPONENT_MAX = 700.0  # exp() of more does not fit a float


@dataclass(frozen=True)
class Estimate:
    """The mean of the paired differences; its interval from three rounds on. Logarithms, but for proportions."""

    n: int
    mean: float
    sd: float | None
    half_width: float | None

    @property
    def standard_error(self) -> float:
        """Raises ValueError for a single round."""
        if self.sd is None:
            raise ValueError("one round has no standard error")
        return self.sd / math.sqrt(self.n)

    @property
    def low(self) -> float | None:
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        return None if self.half_width is None else self.mean + self.half_width


def paired_differences(level: Level, baseline: Level) -> tuple[float, ...]:
    """One difference for each round that both have, in order of rounds: above zero is better than the baseline."""
    if level.direction is Direction.NONE:
        return ()
    theirs = {cell.round: cell.value for cell in baseline.cells}
    pairs = [(cell.value, theirs[cell.round]) for cell in level.cells if cell.round in theirs]
    if level.kind in UNLOGGED:
        return tuple(mine - other for mine, other in pairs)  # a plain difference keeps its sign: more is more
    sign = 1.0 if level.direction is Direction.HIGHER else -1.0
    return tuple(sign * (math.log(mine) - math.log(other)) for mine, other in pairs)


def estimate(differences: Sequence[float]) -> Estimate | None:
    """Mean, standard deviation and half the width of the 95 % t interval. None without a single pair."""
    n = len(differences)
    if n == 0:
        return None
    ordered = sorted(differences)
    mean = statistics.fmean(ordered)
    sd = statistics.stdev(ordered) if n > 1 else None
    if sd is None or n < INTERVAL_FROM:
        return Estimate(n, mean, sd, None)
    return Estimate(n, mean, sd, critical(n - 1) * sd / math.sqrt(n))


def critical(df: int) -> float:
    """Two-sided critical value of Student's t at 95 %."""
    return float(student.ppf((1 + CONFIDENCE) / 2, df))


def p_difference(found: Estimate) -> float:
    """Two-sided p of "no difference". Without any spread it is 0 or 1."""
    error = found.standard_error
    if error == 0:
        return 1.0 if found.mean == 0 else 0.0
    return min(1.0, 2 * float(student.sf(abs(found.mean) / error, found.n - 1)))


def p_equivalence(found: Estimate, delta: float) -> float:
    """Twice the larger of the two one-sided p of "outside the margin": .05 is the 95 % interval touching the margin."""
    error = found.standard_error
    nearest = delta - abs(found.mean)
    if error == 0:
        return 0.0 if nearest > 0 else 1.0
    return min(1.0, 2 * float(student.sf(nearest / error, found.n - 1)))


def exponential(effect: float) -> float:
    """A ratio from an effect, kept within what a float holds."""
    return math.exp(min(effect, EXPONENT_MAX))
