"""What the corrections for many comparisons leave of the claims of pairs (METHOD 1.10), and the control arm (1.12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vtax.analysis.estimate.pairs import Pair
from vtax.analysis.records import Verdict
from vtax.analysis.sequential.sequential_test import CODES, adjusted_words, benjamini_hochberg, holm

INVALID = "INVALID_AA"
INVALID_BELOW = 0.01  # p of the control arm, over its primary metrics, at which the campaign is invalid


@dataclass(frozen=True)
class Claim:
    """What the correction for many comparisons leaves of a pair's claims."""

    p_adjusted: float
    word: Verdict
    family: int


def claims(pairs: Sequence[Pair]) -> dict[int, Claim]:
    """The claims of every judged pair, by its place: primary ones are one family, exploratory ones another.

    The control arm is no claim about anything; it is told at its own level.
    """
    found: dict[int, Claim] = {}
    families = (
        (holm, [i for i, one in enumerate(pairs) if one.judged and one.level.primary]),
        (benjamini_hochberg, [i for i, one in enumerate(pairs) if one.judged and not one.level.primary]),
        (holm, [i for i, one in enumerate(pairs) if one.control and one.look is not None and one.level.primary]),
        (benjamini_hochberg, [i for i, one in enumerate(pairs) if one.control and one.look and not one.level.primary]),
    )
    for adjust, places in families:
        looks = [look for i in places if (look := pairs[i].look) is not None]
        if not looks:
            continue
        differs = adjust(np.array([look.p_sequential for look in looks]))
        within = adjust(np.array([look.p_within_sequential for look in looks]))
        words = adjusted_words(np.array([look.word for look in looks]), differs, within)
        for place, p, code in zip(places, differs.tolist(), words.tolist(), strict=True):
            found[place] = Claim(p, CODES[code], len(places))
    return found


def control_excluded(pairs: Sequence[Pair]) -> Pair | None:
    """The primary pair of the control arm whose interval excludes 1 beyond doubt; then the campaign is invalid."""
    arms = [(one, one.look) for one in pairs if one.control and one.level.primary]
    looks = [(one, look) for one, look in arms if look is not None]
    if not looks:
        return None
    adjusted = holm(np.array([look.p_sequential for _, look in looks]))
    worst = int(np.argmin(adjusted))
    return looks[worst][0] if adjusted[worst] < INVALID_BELOW else None


def invalid(excluded: Pair | None) -> str:
    """Why nothing of the campaign compares; "" when the control arm is as the baseline."""
    if excluded is None:
        return ""
    what = f"{excluded.level.label} {excluded.level.metric}"
    return f"{INVALID}, the control arm differs from the baseline that it repeats, in {what}"
