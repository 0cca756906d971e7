"""What it would take to know more: rounds until a verdict, and iterations for the next campaign (m*)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import chdtri

from vtax.analysis.estimate.columns import Floats

NOISE_QUANTILE = 0.2  # of chi2: the noise that a campaign of this size cannot rule out
NEW_CAMPAIGN_MAX = 60  # rounds; beyond this a verdict is called out of reach
ITERATIONS_MAX = 100


def rounds_needed(
    theta: float, sd: float, df: int, delta: float, critical: Callable[[int], float], candidates: Sequence[int]
) -> tuple[int | None, int | None]:
    """At which of the `candidates` (rising) a verdict is to be expected: with this noise, and with the worst that it
    may hide. None is beyond the last. The nearer of two verdicts counts: "differs" or "inside the margin". `critical`
    is half of the interval after so many rounds, in standard errors.
    """
    needed = max(abs(theta), delta - abs(theta))
    worst = sd * math.sqrt(df / float(chdtri(df, 1 - NOISE_QUANTILE)))

    def reached(noise: float) -> int | None:
        fitting = (n for n in candidates if critical(n) * noise / math.sqrt(n) <= needed)
        return next(fitting, None)

    return reached(sd), reached(worst)


def more_rounds(found: tuple[int | None, int | None], n: int, round_s: float | None) -> str:
    """`need about 4 to 10 more rounds (about 20 min to 50 min)`."""
    few, many = found
    if few is None:
        return ""
    least, most = few - n, None if many is None else many - n
    rounds = f"{least} or more" if most is None else f"{least}" if least == most else f"{least} to {most}"
    plural = "" if (least, most) == (1, 1) else "s"
    if round_s is None:
        return f"need about {rounds} more round{plural}"
    times = duration(least * round_s)
    if most is not None and duration(most * round_s) != times:
        times += f" to {duration(most * round_s)}"
    return f"need about {rounds} more round{plural} (about {times}{' or more' if most is None else ''})"


def duration(seconds: float) -> str:
    """A rough duration for a person: `40 s`, `25 min`, `3.5 h`, `2.1 d`."""
    for size, unit in ((86400 * 2, "d"), (5400, "h"), (90, "min")):
        if seconds >= size:
            value = seconds / {"d": 86400, "h": 3600, "min": 60}[unit]
            return f"{value:.0f} {unit}" if value >= 10 or unit == "min" else f"{value:.1f} {unit}"
    return f"{seconds:.0f} s"


def best_iterations(log_values: Sequence[Floats], cell_s: float, iteration_s: float) -> int | None:
    """m*: how many iterations in a cell give the most precision in a given time: sqrt(cost ratio x variance ratio).

    `log_values` has the iterations of each cell. None without repeated iterations, or without any variance of cells.
    """
    sizes = [len(values) for values in log_values]
    if not sizes or min(sizes) < 2 or len(sizes) < 2:
        return None
    inner = float(np.mean([values.var(ddof=1) for values in log_values]))
    outer = float(np.var([values.mean() for values in log_values], ddof=1)) - inner / float(np.mean(sizes))
    if inner <= 0 or outer <= 0 or iteration_s <= 0 or cell_s <= 0:
        return None
    return max(1, min(ITERATIONS_MAX, round(math.sqrt(cell_s / iteration_s * inner / outer))))
