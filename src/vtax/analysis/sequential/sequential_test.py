"""From differences to verdict words at one look, for one campaign or many at once.

One t interval drives all words, so that none contradict. The Hodges-Lehmann interval has to agree, or the weaker word
holds. Then the correction for many claims: "differs" and "inside the margin" are two families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vtax.analysis.estimate.columns import Bools, Floats, Ints
from vtax.analysis.estimate.failures import with_censored
from vtax.analysis.estimate.paired import LEVEL, Fit, adjustable, fit
from vtax.analysis.estimate.signed_rank import hodges_lehmann
from vtax.analysis.records import VERDICT_FROM, Verdict
from vtax.analysis.sequential.group_sequential import LookLevel

CODES = (
    Verdict.INCONCLUSIVE,
    Verdict.EQUIVALENT,
    Verdict.TRIVIAL,
    Verdict.FASTER,
    Verdict.SLOWER,
    Verdict.UNADJUSTED,
)
NEVER = (0, 0)  # rounds that hit a time limit
INCONCLUSIVE, EQUIVALENT, TRIVIAL, FASTER, SLOWER, UNADJUSTED = range(6)


@dataclass(frozen=True)
class InterimResult:
    """What the rounds so far say at one interim analysis, before the correction for many claims; shape (...)."""

    fit: Fit
    low: Floats
    high: Floats
    companion: tuple[Floats, Floats, Floats]  # Hodges-Lehmann: estimate, low, high at 95 %, timeouts at infinity
    smallest_p: Floats  # of "no difference", over the looks so far
    smallest_p_within: Floats  # of "outside the margin"
    p_sequential: Floats
    p_within_sequential: Floats
    by_interval: Ints  # word of the t interval alone
    word: Ints  # the weaker of that and the companion's

    @property
    def robust(self) -> Bools:
        """Where the companion does not weaken the word."""
        return np.asarray(self.word == self.by_interval)


def interim_result(
    differences: Floats,
    first: Floats | None,
    level: LookLevel,
    delta: float,
    before: InterimResult | None = None,
    slow: tuple[int, int] = NEVER,
) -> InterimResult:
    """The result from differences of shape (..., n), n >= 6; `before` is the one before it in the same campaigns.

    `slow` counts further rounds, in which this side or the other hit its time limit: the companion has them at
    infinity, so that the word is no stronger than what they leave.
    """
    made = fit(differences, first)
    adjusted = differences
    if made.carry_over is not None and first is not None:
        adjusted = differences - made.carry_over[..., None] * first
    return result_of(made, adjusted, level, delta, before, slow)


def result_of(
    made: Fit,
    adjusted: Floats,
    level: LookLevel,
    delta: float,
    before: InterimResult | None = None,
    slow: tuple[int, int] = NEVER,
) -> InterimResult:
    """The result from an estimate, and the differences without what the order adds; see `interim_result`."""
    low, high = level.interval(made)
    smallest, within = level.p_difference(made), level.p_within(made, delta)
    if before is not None:
        smallest = np.minimum(smallest, before.smallest_p)
        within = np.minimum(within, before.smallest_p_within)
    companion = hodges_lehmann(with_censored(adjusted, *slow))
    by_interval = words(low, high, delta)
    return InterimResult(
        fit=made,
        low=low,
        high=high,
        companion=companion,
        smallest_p=smallest,
        smallest_p_within=within,
        p_sequential=level.sequential(smallest),
        p_within_sequential=level.sequential(within),
        by_interval=by_interval,
        word=weaker(by_interval, words(companion[1], companion[2], delta)),
    )


def last_interim(
    differences: Floats,
    first: Floats | None,
    sizes: Sequence[int],
    level: LookLevel,
    delta: float,
    slow: tuple[int, int] = NEVER,
) -> InterimResult | None:
    """The last of the results after the first `sizes` rounds each; None when none has the six rounds that it needs.

    Of the looks before it only the p values count, so `slow` is of all rounds so far.
    """
    found = None
    for size in sizes:
        if size >= VERDICT_FROM:
            so_far = None if first is None or not adjustable(first[..., :size]) else first[..., :size]
            found = interim_result(differences[..., :size], so_far, level, delta, found, slow)
    return found


def words(low: Floats, high: Floats, delta: float) -> Ints:
    """What an interval of the log ratio says by itself."""
    inside = (-delta < low) & (high < delta)
    has_zero = (low <= 0) & (high >= 0)
    differs = np.where(low > 0, FASTER, SLOWER)
    return np.where(inside, np.where(has_zero, EQUIVALENT, TRIVIAL), np.where(has_zero, INCONCLUSIVE, differs))


def weaker(word: Ints, other: Ints) -> Ints:
    """What two intervals of the same effect both support; `word` is the one that is reported."""
    inside = ((word == EQUIVALENT) | (word == TRIVIAL)) & ((other == EQUIVALENT) | (other == TRIVIAL))
    small = ((word == FASTER) | (word == SLOWER)) & (other == TRIVIAL)  # the companion sees it small, but there
    return np.where(word == other, word, np.where(inside, EQUIVALENT, np.where(small, word, INCONCLUSIVE)))


def adjusted_words(word: Ints, p_differs: Floats, p_within: Floats) -> Ints:
    """The words that survive the correction, from p values that are corrected already."""
    differs, within = p_differs <= LEVEL, p_within <= LEVEL
    outside = np.where((word == FASTER) | (word == SLOWER), np.where(differs, word, UNADJUSTED), word)
    inside = np.where(within, np.where((word == TRIVIAL) & ~differs, EQUIVALENT, word), UNADJUSTED)
    return np.where((word == EQUIVALENT) | (word == TRIVIAL), inside, outside)


def holm(p_values: Floats) -> Floats:
    """Adjusted p values over the last axis: reject those at or below the level."""
    p = np.asarray(p_values, float)
    count = p.shape[-1]
    order = np.argsort(p, axis=-1, kind="stable")
    scaled = np.minimum(1.0, np.take_along_axis(p, order, -1) * (count - np.arange(count)))
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.maximum.accumulate(scaled, axis=-1), -1)
    return adjusted


def benjamini_hochberg(p_values: Floats) -> Floats:
    """q values over the last axis."""
    p = np.asarray(p_values, float)
    count = p.shape[-1]
    order = np.argsort(-p, axis=-1, kind="stable")
    scaled = np.minimum(1.0, np.take_along_axis(p, order, -1) * count / (count - np.arange(count)))
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum.accumulate(scaled, axis=-1), -1)
    return adjusted
