"""Verdicts for a fixed number of rounds (METHOD 1.9, 1.10): one interval drives every word, so none contradict.

Fewer than three rounds show the data, fewer than six are a pilot. From six on a claim needs its own 95 % interval and
the correction for the number of claims: Holm over the primary metrics, Benjamini-Hochberg over the exploratory ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from scipy.stats import chi2

from vtax.analysis.compare import INTERVAL_FROM, Estimate, critical, exponential
from vtax.analysis.records import VERDICT_FROM, Verdict
from vtax.model import Finding, Severity

LEVEL = 0.05
ROUNDS_MAX = 60  # beyond this a campaign is called out of reach
NOISE_QUANTILE = 0.2  # of chi2: the noise that a campaign of this size cannot rule out
CAVEATS = {"T04": "software emulation, not virtualization"}
FEW_ROUNDS = "R01"  # the audit's finding "fewer than six rounds", which the verdict says itself
WIDE = 2.0  # ratios beyond it are not said in percent


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p values, in the given order: reject those at or below the level."""
    count = len(p_values)
    adjusted = [0.0] * count
    largest = 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """q values, in the given order."""
    count = len(p_values)
    adjusted = [1.0] * count
    smallest = 1.0
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i], reverse=True)):
        smallest = min(smallest, p_values[index] * count / (count - rank))
        adjusted[index] = smallest
    return tuple(adjusted)


def blocker(findings: Sequence[Finding], environments: tuple[str, str], benchmark: str, label: str) -> Finding | None:
    """The first blocker that touches a comparison of two environments in one benchmark."""
    touching = (
        finding
        for finding in findings
        if finding.severity is Severity.BLOCKER
        and finding.id != FEW_ROUNDS
        and finding.environment in ("", *environments)
        and finding.benchmark in ("", benchmark, label)
    )
    return next(touching, None)


def caveat(findings: Sequence[Finding], environments: tuple[str, str]) -> str:
    """What must stand beside every number of a comparison of two environments that a study allowed all the same."""
    allowed = {finding.id for finding in findings if finding.environment in environments}
    return "; ".join(f"{word} ({name})" for name, word in CAVEATS.items() if name in allowed)


def word_of(found: Estimate, delta: float, *, differs: bool, within: bool) -> Verdict:
    """The verdict of one comparison; `differs` and `within` say which claims survive the correction."""
    if found.n < INTERVAL_FROM:
        return Verdict.DATA_ONLY
    if found.n < VERDICT_FROM or found.low is None or found.high is None:
        return Verdict.PILOT
    has_zero = found.low <= 0 <= found.high
    if -delta < found.low and found.high < delta:
        if not within:
            return Verdict.UNADJUSTED
        return Verdict.EQUIVALENT if has_zero else Verdict.TRIVIAL
    if has_zero:
        return Verdict.INCONCLUSIVE
    if not differs:
        return Verdict.UNADJUSTED
    return Verdict.FASTER if found.mean > 0 else Verdict.SLOWER


def sentence_of(word: Verdict, found: Estimate, margin: float) -> str:
    """The verdict in words, with the size of the effect and its interval."""
    ratio, low, high = exponential(found.mean), found.low, found.high
    bounds = None if low is None or high is None else (exponential(low), exponential(high))
    change = signed(ratio, bounds)
    within = f"{100 * margin:g} %"
    if word in (Verdict.FASTER, Verdict.SLOWER):
        return f"{word}{by(ratio, bounds)}"
    if word is Verdict.EQUIVALENT:
        return f"equivalent within {within}: {change}"
    if word is Verdict.TRIVIAL:
        return f"differs by {change}, practically equivalent (within {within})"
    if word is Verdict.UNADJUSTED:
        inside = low is not None and high is not None and -math.log1p(margin) < low and high < math.log1p(margin)
        leaning = "equivalent" if inside else "faster" if ratio > 1 else "slower"
        return f"leans {leaning}: {change}"
    if word is Verdict.INCONCLUSIVE:
        return f"inconclusive: {change}"
    rounds = f"{found.n} round" + ("s" if found.n != 1 else "")
    return f"{word} ({rounds}): {change}"


def remark_of(word: Verdict, found: Estimate, margin: float, family: int) -> str:
    """What the verdict needs to be understood: what did not confirm it, or how many rounds could decide."""
    if word is Verdict.UNADJUSTED:
        return f"not confirmed over {family} comparisons"
    if word is Verdict.INCONCLUSIVE:
        return rounds_needed(found, math.log1p(margin))
    return ""


def difference_of(found: Estimate) -> str:
    """What is said of a proportion: no ratio, no verdict."""
    bounds = "" if found.low is None or found.high is None else f" [{found.low:+.3g}, {found.high:+.3g}]"
    return f"{Verdict.DIFFERENCE_ONLY}: {found.mean:+.3g}{bounds}"


def rounds_needed(found: Estimate, delta: float) -> str:
    """How many rounds a new campaign would take, from this noise and from the worst that it may hide (METHOD 1.9)."""
    if found.sd is None:
        return "one round says nothing about the noise"
    needed = max(abs(found.mean), delta - abs(found.mean))
    worst = found.sd * math.sqrt((found.n - 1) / float(chi2.ppf(NOISE_QUANTILE, found.n - 1)))
    few, many = _rounds(found.sd, needed), _rounds(worst, needed)
    if few is None:
        return f"not reachable within {ROUNDS_MAX} rounds with this noise"
    if many is None:
        return f"a new campaign needs {few} rounds or more"
    return f"a new campaign needs about {few} rounds" if few == many else f"a new campaign needs {few} to {many} rounds"


def _rounds(sd: float, half_width: float) -> int | None:
    fitting = (n for n in range(VERDICT_FROM, ROUNDS_MAX + 1) if critical(n - 1) * sd / math.sqrt(n) <= half_width)
    return next(fitting, None)


def signed(ratio: float, bounds: tuple[float, float] | None) -> str:
    """`+3.1 % [-1.2, +7.6]`; a factor where percent would mislead."""
    if not 1 / WIDE <= ratio <= WIDE:
        return f"{factor(ratio)} times the baseline{_bracket(bounds, factor)}"
    return f"{percent(ratio)} %{_bracket(bounds, percent)}"


def by(ratio: float, bounds: tuple[float, float] | None) -> str:
    """` by 8.3 % [5.1, 11.6]`, the way that the verdict points; a factor where percent would mislead."""
    if not 1 / WIDE <= ratio <= WIDE:
        return f": {signed(ratio, bounds)}"
    size = abs(ratio - 1)
    ends = sorted(abs(bound - 1) for bound in bounds) if bounds else None
    inside = f" [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else ""
    return f" by {100 * size:.1f} %{inside}"


def percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}"


def factor(ratio: float) -> str:
    return f"{ratio:.3g}"


def _bracket(bounds: tuple[float, float] | None, words: Callable[[float], str]) -> str:
    return "" if bounds is None else f" [{words(bounds[0])}, {words(bounds[1])}]"
