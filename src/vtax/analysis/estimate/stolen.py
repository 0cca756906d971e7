"""How far stolen CPU time may have moved a ratio: its paired difference between two environments, with an interval.

Time that all environments lose alike is noise, which the interval of the ratio covers. A difference is a bias: an
environment from which more was stolen looks slower by that much, however many rounds there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from vtax.analysis.estimate.paired import INTERVAL_FROM, LEVEL
from vtax.analysis.verdict import Effect

MEDIAN_FROM = 3  # trials of a round, as of a cell
TRUNCATED = 1 / 6  # ticks squared: the variance of the difference of two readings, each cut off to whole ticks


class Ticks(NamedTuple):
    """What was counted around one trial, on so many CPUs together."""

    stolen: float
    total: float
    cpus: int


@dataclass(frozen=True)
class StolenDifference:
    """Shares of CPU time that were stolen from an environment and from its baseline, over all common rounds, and the
    mean difference of a round. The interval is absent below three rounds."""

    share: float
    base: float
    n: int
    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def lost(self) -> bool:
        """Whether more was certainly stolen from the environment."""
        return self.low is not None and self.low > 0

    @property
    def spared(self) -> bool:
        """Whether more was certainly stolen from the baseline."""
        return self.high is not None and self.high < 0

    @property
    def largest(self) -> float:
        """The largest change of the log ratio that it may explain: what was stolen is missing from the rest."""
        if self.low is None or self.high is None:
            return 0.0
        kept = 1 - (self.share + self.base) / 2
        return math.inf if kept <= 0 else max(abs(self.low), abs(self.high)) / kept

    def explains(self, claimed: Effect | None, delta: float) -> bool:
        """Whether it could make half the margin `delta` of what an effect claims.

        More stolen from the environment makes it look slower, less makes it look faster, and either may hide a
        difference where the two are claimed to be alike. An interval that supports no claim has nothing to explain.
        """
        if claimed is None or claimed.low is None or claimed.high is None or self.largest <= delta / 2:
            return False
        alike = -delta < claimed.low and claimed.high < delta
        slower, faster = claimed.high < 0, claimed.low > 0
        return (self.lost and (slower or alike)) or (self.spared and (faster or alike))


def stolen_difference(
    mine: Mapping[int, Sequence[Ticks]], theirs: Mapping[int, Sequence[Ticks]], comparisons: int = 1
) -> StolenDifference | None:
    """The difference of two environments, by round the ticks of the trials that both have, in one order; None without a
    round.

    That of a round is made as the ratio's: the median over its pairs of trials, below three the share of all.
    The t interval over rounds holds for all of `comparisons` together. Counters count whole ticks, so rounds that agree
    to the tick are not known any better than that: the deviation between rounds counts for no less than what is cut
    off.
    """
    both = sorted(mine.keys() & theirs.keys())
    rounds = [number for number in both if _total(mine[number]) and _total(theirs[number])]
    if not rounds:
        return None
    differences = np.array([_difference(mine[number], theirs[number]) for number in rounds])
    share, base = (_share([one for number in rounds for one in side[number]]) for side in (mine, theirs))
    n, mean = len(rounds), float(differences.mean())
    if n < INTERVAL_FROM:
        return StolenDifference(share, base, n, mean)
    cut_off = fmean(_cut_off(mine[number]) + _cut_off(theirs[number]) for number in rounds)
    variance = max(float(differences.var(ddof=1)), cut_off)
    half = -float(stdtrit(n - 1, LEVEL / comparisons / 2)) * math.sqrt(variance / n)
    return StolenDifference(share, base, n, mean, mean - half, mean + half)


def _difference(mine: Sequence[Ticks], theirs: Sequence[Ticks]) -> float:
    pairs = [(one, two) for one, two in zip(mine, theirs, strict=False) if one.total and two.total]
    if len(pairs) < MEDIAN_FROM or len(mine) != len(theirs):
        return _share(mine) - _share(theirs)
    return float(np.median([one.stolen / one.total - two.stolen / two.total for one, two in pairs]))


def _total(trials: Sequence[Ticks]) -> float:
    return sum(one.total for one in trials)


def _share(trials: Sequence[Ticks]) -> float:
    return sum(one.stolen for one in trials) / _total(trials)


def _cut_off(trials: Sequence[Ticks]) -> float:
    """The variance of a round's share that whole ticks leave open."""
    return TRUNCATED * sum(one.cpus for one in trials) / _total(trials) ** 2
