"""Sizes of differences in words: percent, factors where percent would mislead, and ranges that say nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

FACTOR_FROM = 2.0  # ratios beyond it, or below its inverse, are factors
NOISE_FROM = 10.0  # an interval that reaches so far from its middle, or contains 1 and reaches so far, says nothing
NOISE = "the noise hides any difference"
VOWELS = frozenset("aeiouy")


def shown(name: str) -> str:
    """The name of an environment at the beginning of a sentence: `Container`, `VM`, `VMs`, `Bare-metal`."""
    first, dash, rest = name.partition("-")
    abbreviation = first.isalpha() and not VOWELS & set(first.lower())
    several = "s" if len(first) > 2 and first.endswith("s") else ""
    return (
        (first.removesuffix(several).upper() + several if abbreviation else first[:1].upper() + first[1:]) + dash + rest
    )


def capitalised(text: str) -> str:
    """A sentence that does not begin with the name of an environment, of an entry or a path begins with a capital."""
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def size(ratio: float) -> str:
    """How far a ratio is from 1: `11 %`, `0.8 %`, `3.2 times`."""
    if beyond(ratio):
        return f"{_short(max(ratio, 1 / ratio))} times"
    return f"{_short(100 * abs(ratio - 1))} %"


def sizes(ratios: Sequence[float]) -> str:
    """`11 %`, `3 to 11 %`, `5 % to 3.2 times`; from the smallest difference to the largest."""
    words = list(dict.fromkeys(map(size, sorted(ratios, key=lambda ratio: abs(math.log(ratio))))))
    if len(words) == 1:
        return words[0]
    first, last = words[0], words[-1]
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(unit) else first} to {last}"


def at_most(ratio: float) -> str:
    """The same, rounded away from 1, for what can be excluded beyond it."""
    if beyond(ratio):
        return f"{_up(max(ratio, 1 / ratio), 0.1)} times"
    percent = 100 * abs(ratio - 1)
    return f"{_up(percent, 1.0 if percent > 1 else 0.1)} %"


def within(ends: Sequence[float]) -> str:
    """The smallest share that holds all these ends of intervals: `2 %`."""
    return at_most(max(ends, key=lambda end: abs(end - 1)))


def says_nothing(low: float, high: float) -> bool:
    """Whether an interval leaves nearly everything possible. A narrow one far from 1 does not: 9 to 20 times slower."""
    far = low < 1 / NOISE_FROM or high > NOISE_FROM
    return far and (low <= 1 <= high or high > low * NOISE_FROM**2)


def excluded(low: float, high: float) -> str:
    """What an interval leaves possible: `at most 7 % slower or 4 % faster`."""
    if says_nothing(low, high):
        return NOISE
    if high <= 1:
        return f"at most {at_most(low)} slower, not faster"
    if low >= 1:
        return f"at most {at_most(high)} faster, not slower"
    return f"at most {at_most(low)} slower or {at_most(high)} faster"


def change(ratio: float, *, factor: bool | None = None) -> str:
    """A signed difference: `-11 %`, `+0.8 %`, `× 3.2` where percent would mislead, or where a `factor` is wanted."""
    if factor is None:
        factor = beyond(ratio)
    if factor:
        return f"× {ratio:.2g}"
    percent = round(100 * (ratio - 1), 1) + 0.0  # no "-0.0 %"
    return f"{percent:+.0f} %" if abs(percent) >= 9.95 else f"{percent:+.1f} %"


def beyond(ratio: float) -> bool:
    """Whether a factor says more than percent."""
    return not 1 / FACTOR_FROM <= ratio <= FACTOR_FROM


def changes(ratios: Sequence[float], low: float | None, high: float | None) -> str:
    """Ratios and the interval around all of them: `-11 % [-14 %, -8 %]`, `-11 % to -5 % [-14 %, -2 %]`; all of them
    in percent or all as factors, as the ratios are."""
    factor = any(map(beyond, ratios))
    ends = dict.fromkeys((change(min(ratios), factor=factor), change(max(ratios), factor=factor)))
    if low is None or high is None:
        return " to ".join(ends)
    interval = (
        "too wide to say" if says_nothing(low, high) else f"{change(low, factor=factor)}, {change(high, factor=factor)}"
    )
    return f"{' to '.join(ends)} [{interval}]"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}"


def _up(value: float, step: float) -> str:
    """The next multiple of `step`."""
    return f"{max(step, math.ceil(value / step - 1e-6) * step):g}"
