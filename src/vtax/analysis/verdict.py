"""Verdicts in words, and the findings of the audit that rule one out."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from vtax.analysis.estimate.paired import INTERVAL_FROM, exponential
from vtax.analysis.records import VERDICT_FROM, Verdict
from vtax.model.finding import Finding, Severity
from vtax.model.metric import SeriesRecord
from vtax.model.plan import Plan
from vtax.model.study import Equivalence, Study
from vtax.units import scale_of
from vtax.wording import listed, plural

CAVEATS = {"T04": "software emulation, not virtualization"}
FEW_ROUNDS = "R01"  # the audit's finding "fewer than six rounds", which the verdict says itself
UNPLANNED = frozenset({FEW_ROUNDS, "R02"})  # of every imported campaign: they keep a verdict away, not a difference
WIDE = 2.0  # ratios beyond it are not said in percent


@dataclass(frozen=True)
class Effect:
    """An estimate as it is reported: logarithms, except of proportions. No interval below three rounds."""

    n: int
    theta: float
    sd: float | None
    low: float | None
    high: float | None

    @property
    def bounds(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (exponential(self.low), exponential(self.high))


def blocker(
    findings: Sequence[Finding],
    environments: tuple[str, str],
    series: SeriesRecord,
    plan: Plan,
    besides: frozenset[str] = frozenset({FEW_ROUNDS}),
) -> Finding | None:
    """The most fundamental blocker that touches a comparison of an environment with another in one series.

    `besides` are rows of the audit that do not count.
    """
    names = plan.names_of(series.benchmark, series.label)
    touching = (
        finding
        for finding in findings
        if finding.severity is Severity.BLOCKER
        and finding.id not in besides
        and finding.touches(environments, names, series.metric, series.labels)
    )
    return min(touching, key=lambda finding: _depth(finding, environments[0]), default=None)


def _depth(finding: Finding, environment: str) -> tuple[bool, bool, bool, bool]:
    """Sorts first what rules out the most: that the CPU was not real, then what is about the environment itself rather
    than about the other one, about all of it, about an entry whole."""
    return (
        finding.id not in CAVEATS,
        finding.environment not in ("", environment),
        bool(finding.benchmark),
        bool(finding.metrics or finding.labels),
    )


def caveat(findings: Sequence[Finding], environments: tuple[str, str]) -> str:
    """What must accompany every number of a comparison of two environments that a study allowed all the same."""
    allowed = {finding.id for finding in findings if finding.environment in environments}
    return "; ".join(f"{word} ({name})" for name, word in CAVEATS.items() if name in allowed)


def few_rounds_verdict(found: Effect) -> Verdict | None:
    """The word for too few rounds; None from six rounds on."""
    if found.n >= VERDICT_FROM:
        return None
    return Verdict.DATA_ONLY if found.n < INTERVAL_FROM else Verdict.PILOT


def sentence_of(word: Verdict, found: Effect, margin: float) -> str:
    """The verdict in words, with the size of the effect and its interval."""
    ratio, bounds = exponential(found.theta), found.bounds
    change = signed(ratio, bounds)
    within = f"{100 * margin:g} %"
    if word in (Verdict.FASTER, Verdict.SLOWER):
        return f"{word}{size_text(ratio, bounds)}"
    if word is Verdict.EQUIVALENT:
        return f"equivalent within {within}: {change}"
    if word is Verdict.TRIVIAL:
        return f"differs by {change}, practically equivalent (within {within})"
    if word is Verdict.UNADJUSTED:
        low, high, _ = Equivalence.of(margin)
        inside = bounds is not None and low < bounds[0] and bounds[1] < high
        leaning = "equivalent" if inside else "faster" if ratio > 1 else "slower"
        return f"leans {leaning}: {change}"
    if word is Verdict.INCONCLUSIVE:
        return f"inconclusive: {change}"
    rounds = f"{found.n} round" + ("s" if found.n != 1 else "")
    return f"{word} ({rounds}): {change}"


def difference_text(found: Effect, unit: str) -> str:
    """The difference of a proportion or an amount, which have no ratio: `+1.2 [0.9, 1.5] ms`."""
    known = [found.theta] if found.low is None or found.high is None else [found.theta, found.low, found.high]
    factor, scaled = scale_of(max(map(abs, known)), unit)
    theta, *bounds = (f"{value / factor:+.3g}" for value in known)
    return " ".join(filter(None, (theta, f"[{', '.join(bounds)}]" if bounds else "", scaled)))


def machines_text(
    study: Study, covered: Collection[str] = (), few: Collection[str] = (), *, differ: bool = False
) -> str:
    """` on 3 machines`: which of a study's machines an effect is about; "" where it has this machine alone."""
    count = len(study.machines)
    if not count:
        return ""
    if few:
        text = f" on {len(covered)} of {count} machines (not on {listed(list(few))})"
    else:
        text = f" on {count} {plural(count, 'machine')}"
    return f"{text}, which differ" if differ else text


def one_boot_text(study: Study) -> str:
    """What a verdict is about where an environment is the same instance in all rounds."""
    return "for this one boot of each" if len(study.machines) > 1 else "for this one boot"


def signed(ratio: float, bounds: tuple[float, float] | None) -> str:
    """`+3.1 % [-1.2, +7.6]`; a factor where percent would mislead."""
    if not 1 / WIDE <= ratio <= WIDE:
        return f"{factor(ratio)} times the baseline{_bracket(bounds, factor)}"
    return f"{percent(ratio)} %{_bracket(bounds, percent)}"


def size_text(ratio: float, bounds: tuple[float, float] | None) -> str:
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


def half_width(found: Effect) -> float | None:
    """Half of the interval, as ratio - 1."""
    return None if found.low is None or found.high is None else math.expm1((found.high - found.low) / 2)
