"""One goal against what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

SIGMAS = 3.0  # of Monte-Carlo error that a measured share may lie beyond its goal


@dataclass(frozen=True)
class Check:
    """`measured` has to be at most (or at least) `bound`, but for `tolerance`. A reference has no bound: it shows what
    another procedure does."""

    goal: str
    what: str
    measured: float
    bound: float | None
    at_most: bool
    tolerance: float
    replicates: int
    unit: str = "%"

    @property
    def met(self) -> bool:
        if self.bound is None:
            return True
        if self.at_most:
            return self.measured <= self.bound + self.tolerance
        return self.measured >= self.bound - self.tolerance


def share(goal: str, what: str, measured: float, bound: float, replicates: int, *, at_most: bool = True) -> Check:
    """A share of campaigns, in percent, with the Monte-Carlo error of a share of this size."""
    error = SIGMAS * math.sqrt(max(bound * (1 - bound), 1 / replicates) / replicates)
    return Check(goal, what, 100 * measured, 100 * bound, at_most, 100 * error, replicates)


def amount(goal: str, what: str, measured: float, bound: float, replicates: int, error: float, unit: str) -> Check:
    """A mean or median that may not be larger, with its standard error."""
    return Check(goal, what, measured, bound, True, SIGMAS * error, replicates, unit)


def reference(goal: str, what: str, measured: float, replicates: int) -> Check:
    """What another procedure does, as a share in percent."""
    return Check(goal, what, 100 * measured, None, True, 0.0, replicates)


def size(goal: str, what: str, measured: float, replicates: int) -> Check:
    """A size without a goal, in percent of the baseline."""
    return Check(goal, what, measured, None, True, 0.0, replicates, "% of the baseline")


def reproduced(goal: str, what: str, measured: float, expected: float, within: float, replicates: int) -> Check:
    """How far a share lies from a published one, in points."""
    error = SIGMAS * math.sqrt(expected * (1 - expected) / replicates)
    what = f"{what}: {100 * measured:.1f} %, published {100 * expected:.0f} %"
    return Check(goal, what, 100 * abs(measured - expected), 100 * within, True, 100 * error, replicates)
