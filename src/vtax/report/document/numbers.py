"""Numbers, labels and names as a person reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from vtax.analysis.records import Comparison, LadderStep, Level, MachineEffect, Score
from vtax.units import format_number, scale_of
from vtax.wording import label_value as label_value
from vtax.wording import labels_text as labels_text
from vtax.wording import listed as listed
from vtax.wording import natural as natural
from vtax.wording import plural as plural

ABSENT = "–"


def unit_for(levels: Iterable[Level]) -> tuple[float, str]:
    """The factor and unit in which a row of levels reads well: that of the largest."""
    several = list(levels)
    return scale_of(max(abs(level.mean) for level in several), several[0].unit)


def mean_sd(mean: float, sd: float | None) -> str:
    """`5.128 ± 0.013`: the deviation to two significant digits, the mean to the same decimals."""
    if not sd:
        return format_number(mean)
    if abs(mean) >= 1e9 or (mean != 0 and abs(mean) < 1e-4):
        return f"{mean:.3e} ± {sd:.1e}"
    decimals = min(6, max(0, 1 - math.floor(math.log10(sd))))
    return f"{mean:,.{decimals}f} ± {sd:,.{decimals}f}"


def ratio_text(ratio: float) -> str:
    """A ratio to three decimals near one, to three significant digits elsewhere."""
    return f"{ratio:.3f}" if 0.1 <= ratio < 10 else f"{ratio:.3g}"


def interval_text(item: Comparison | LadderStep | MachineEffect | Score) -> str:
    """` [0.981, 1.004]`, or nothing where no interval exists."""
    if item.low is None or item.high is None:
        return ""
    return f" [{ratio_text(item.low)}, {ratio_text(item.high)}]"
