"""What the corrections for many comparisons leave of the claims of pairs, and whether the control arm differs.

Holm for the primary metrics, Benjamini and Hochberg for the exploratory ones, and for those about the machine by
themselves: every entry has them, and no other claim shall depend on that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vtax.analysis import verdict
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.paired import exponential
from vtax.analysis.estimate.pairs import Pair
from vtax.analysis.records import Verdict
from vtax.analysis.sequential.sequential_test import (
    CODES,
    InterimResult,
    adjusted_words,
    benjamini_hochberg,
    holm,
)
from vtax.model.machine_cost import MACHINE_METRICS

CONTROL_ROW = "R08"  # the audit's row about the control arm: the id under which an invalid campaign is reported
INVALID_BELOW = 0.01  # p of the control arm, over its primary metrics, at which the campaign is invalid


@dataclass(frozen=True)
class Claim:
    """What the correction for many comparisons leaves of a pair's claims."""

    p_adjusted: float
    verdict: Verdict
    family: int


def family_claims(results: Sequence[InterimResult], adjust: Callable[[Floats], Floats]) -> list[Claim]:
    """The claims of one family, corrected: "differs" and "inside the margin" each by itself."""
    if not results:
        return []
    differs = adjust(np.array([one.p_sequential for one in results]))
    within = adjust(np.array([one.p_within_sequential for one in results]))
    words = adjusted_words(np.array([one.word for one in results]), differs, within)
    return [Claim(p, CODES[code], len(results)) for p, code in zip(differs.tolist(), words.tolist(), strict=True)]


def claims(pairs: Sequence[Pair]) -> dict[int, Claim]:
    """The claims of every judged pair, by its place: primary ones are one family, exploratory ones another, and what
    trials cost the machine a third.

    The control arm makes no claim; it has its own families.
    """
    found: dict[int, Claim] = {}
    for control in (False, True):
        for family, adjust in FAMILIES.items():
            members = {
                i: one.interim
                for i, one in enumerate(pairs)
                if one.interim is not None and (one.control if control else one.judged) and family_of(one) == family
            }
            found |= dict(zip(members, family_claims(list(members.values()), adjust), strict=True))
    return found


def family_of(one: Pair) -> str:
    """The family of claims that a pair is corrected in."""
    if one.level.primary:
        return "primary"
    return "machine" if one.level.metric in MACHINE_METRICS else "exploratory"


FAMILIES: Mapping[str, Callable[[Floats], Floats]] = {
    "primary": holm,
    "exploratory": benjamini_hochberg,
    "machine": benjamini_hochberg,
}


@dataclass(frozen=True)
class ControlArm:
    """The baseline against itself, in its primary metrics: what the instrument cannot tell apart.

    `worst` is the metric that differs most, None where too few rounds allow a test; `p_adjusted` is Holm's.
    `resolution` is the widest half-width of the intervals, as ratio - 1.
    """

    tested: int = 0
    worst: Pair | None = None
    p_adjusted: float = 1.0
    resolution: float | None = None

    @property
    def excluded(self) -> str:
        """How it differs from the baseline that it repeats, so that the campaign is invalid; "" if it does not."""
        if self.worst is None or self.worst.effect is None or self.p_adjusted >= INVALID_BELOW:
            return ""
        what, ratio = f"{self.worst.level.label} {self.worst.level.metric}", exponential(self.worst.effect.theta)
        return f"{what} of the control arm is {ratio:.4g} times that of the baseline (adjusted p {self.p_adjusted:.2g})"


def control_arm(pairs: Sequence[Pair]) -> ControlArm:
    """The test of the control arm; an empty one where the study has none."""
    arms = [one for one in pairs if one.control and one.level.primary]
    widths = [verdict.half_width(one.effect) for one in arms if one.has_ratio and one.effect is not None]
    resolution = max((width for width in widths if width is not None), default=None)
    tested = [(one, one.interim) for one in arms if one.interim is not None]
    if not tested:
        return ControlArm(resolution=resolution)
    adjusted = holm(np.array([result.p_sequential for _, result in tested]))
    worst = int(np.argmin(adjusted))
    return ControlArm(len(tested), tested[worst][0], float(adjusted[worst]), resolution)
