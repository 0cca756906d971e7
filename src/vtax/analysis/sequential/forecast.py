"""What it would take to know more: rounds until a verdict, and iterations for the next campaign (m*)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy.special import chdtri, gammaln, log_ndtr

from vtax.analysis.estimate.columns import Floats

NOISE_QUANTILE = 0.2  # of chi2: the noise that a campaign of this size cannot rule out
NEW_CAMPAIGN_MAX = 60  # rounds; beyond this a verdict is called out of reach
ITERATIONS_MAX = 100
STEPS = 401  # of a numerical integral, in each direction


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


def best_pairs(pair_logs: Sequence[Floats], round_s: float, pair_s: float) -> int | None:
    """m* where trials alternate, from the paired log differences of each round: an even number, 2 or more.

    `round_s` is what a new round costs before its first trial, `pair_s` one more iteration in all environments.
    """
    found = best_iterations(pair_logs, round_s, pair_s)
    return None if found is None else max(2, 2 * round(found / 2))


def expected_half_width(pair_sd: float, iterations: int, rounds: int, critical: float) -> float:
    """Half of the interval of the ratio, as ratio - 1, to be expected where trials alternate.

    `pair_sd` is the standard deviation of the log difference of two adjacent trials of the same thing; `iterations`
    (1 or even) pairs a round; `critical` is half of the interval in standard errors after so many rounds
    (`LookLevel.critical`). Differences between the clusters of two rounds come on top: no iteration reduces them.
    """
    round_sd = pair_sd * median_deviation(iterations)
    df = rounds - 1
    seen = math.sqrt(2 / df) * math.exp(float(gammaln((df + 1) / 2) - gammaln(df / 2)))  # a mean deviation is smaller
    return math.expm1(critical * seen * round_sd / math.sqrt(rounds))


def rounds_to_resolve(
    pair_sd: float, iterations: int, half_width: float, critical: Callable[[int], float], candidates: Sequence[int]
) -> int | None:
    """The first of the `candidates` (rising) after which intervals are expected to be at most `half_width` (as ratio -
    1) to either side; None where even the last is not enough."""
    fitting = (n for n in candidates if expected_half_width(pair_sd, iterations, n, critical(n)) <= half_width)
    return next(fitting, None)


@lru_cache(maxsize=64)
def median_deviation(count: int) -> float:
    """The standard deviation of the median of so many (1 or an even number) standard normal values.

    Of an even number it is the mean of the middle two, y - t and y + t, whose joint density is integrated.
    """
    if count == 1:
        return 1.0
    if count < 1 or count % 2:
        raise ValueError(f"{count} iterations: an entry has one or an even number in a round")
    half = count // 2
    y, t = np.linspace(-6, 6, STEPS)[:, None], np.linspace(0, 6, STEPS)[None, :]
    density = np.exp(
        (half - 1) * (log_ndtr(y - t) + log_ndtr(-y - t)) - (y * y + t * t) - 2 * gammaln(half) + gammaln(count + 1)
    )
    weights = np.where(t == 0, 0.5, 1.0)
    mass = (density * weights).sum(axis=1)
    return float(np.sqrt((mass * y[:, 0] ** 2).sum() / mass.sum()))
