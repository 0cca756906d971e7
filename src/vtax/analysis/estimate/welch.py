"""The difference of two groups that are not paired: Welch's interval (Welch 1947)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from vtax.analysis.estimate.paired import INTERVAL_FROM

CONFIDENCE = 0.95


@dataclass(frozen=True)
class WelchEstimate:
    """The difference of two means, b - a, of logarithms; `half_width` at 95 % from three values on each side."""

    mean: float
    error: float | None
    df: float | None
    half_width: float | None

    @property
    def low(self) -> float | None:
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        return None if self.half_width is None else self.mean + self.half_width

    @property
    def p_value(self) -> float | None:
        """Two-sided p of "no difference"; without any spread it is 0 or 1."""
        if self.error is None or self.df is None:
            return None
        if self.error == 0:
            return 1.0 if self.mean == 0 else 0.0
        return min(1.0, 2 * float(stdtr(self.df, -abs(self.mean) / self.error)))


def welch(a: Sequence[float], b: Sequence[float]) -> WelchEstimate:
    """Welch's interval with Satterthwaite's degrees of freedom (Welch 1947); each side has a value at least."""
    mean = statistics.fmean(sorted(b)) - statistics.fmean(sorted(a))
    if min(len(a), len(b)) < INTERVAL_FROM:
        return WelchEstimate(mean, None, None, None)
    parts = [statistics.variance(sorted(side)) / len(side) for side in (a, b)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return WelchEstimate(mean, 0.0, float(min(len(a), len(b)) - 1), 0.0)
    df = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    return WelchEstimate(mean, error, df, float(stdtrit(df, (1 + CONFIDENCE) / 2)) * error)
