"""Two campaigns against each other (a kernel upgrade, two machines), pure.

Rounds of different campaigns share neither the time nor the boot of the machine, so they cannot be paired: the interval
is Welch's on the logarithms of the cells, wider than a paired one, and it covers the noise of rounds only. What else
changed between the campaigns moves all rounds of one of them together, and no number of rounds averages that out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from vtax.analysis import verdict
from vtax.analysis.campaigns.missing_runs import MissingRuns
from vtax.analysis.campaigns.records import (
    CampaignComparison,
    Change,
    ChangeTimeouts,
    Outcome,
    RatioInterval,
    SetupDifference,
    Side,
)
from vtax.analysis.campaigns.setup_differences import Recorded, setup_differences
from vtax.analysis.estimate.paired import INTERVAL_FROM, LEVEL, exponential
from vtax.analysis.estimate.rank_sum import shift_interval
from vtax.analysis.estimate.summary import Key, place_of_level
from vtax.analysis.records import VERDICT_FROM, Level
from vtax.analysis.sequential.sequential_test import benjamini_hochberg, holm
from vtax.errors import UsageError
from vtax.model.finding import Severity
from vtax.model.metric import Direction
from vtax.model.study import Equivalence

CONFIDENCE = 0.95
CAUTION = (
    "Rounds of different campaigns are not paired: drift, temperature, neighbours and the boot of the machine are part "
    "of every difference below, whatever the intervals say. Those cover only the noise between rounds of one campaign.",
    "So a difference is stated and never attributed. To attribute it, put both variants into one study as two "
    "environments; where that is impossible (two kernels), repeat the campaigns in the order A, B, B, A.",
    "The change of the tax compares each environment with its own baseline, paired inside its campaign: what moved "
    "the whole machine is not in it.",
)


@dataclass(frozen=True)
class Estimate:
    """The difference of two means, b - a, of logarithms; `half_width` at 95 % from three values on each side."""

    mean: float
    error: float | None
    df: float | None
    half_width: float | None

    @property
    def low(self) -> float | None:
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        return None if self.half_width is None else self.mean + self.half_width

    @property
    def p_value(self) -> float | None:
        """Two-sided p of "no difference"; without any spread it is 0 or 1."""
        if self.error is None or self.df is None:
            return None
        if self.error == 0:
            return 1.0 if self.mean == 0 else 0.0
        return min(1.0, 2 * float(student.sf(abs(self.mean) / self.error, self.df)))


def welch(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Welch's interval with Satterthwaite's degrees of freedom (Welch 1947); each side has a value at least."""
    mean = statistics.fmean(sorted(b)) - statistics.fmean(sorted(a))
    if min(len(a), len(b)) < INTERVAL_FROM:
        return Estimate(mean, None, None, None)
    parts = [statistics.variance(sorted(side)) / len(side) for side in (a, b)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return Estimate(mean, 0.0, float(min(len(a), len(b)) - 1), 0.0)
    df = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    return Estimate(mean, error, df, float(student.ppf((1 + CONFIDENCE) / 2, df)) * error)


def compare_campaigns(a: Recorded, b: Recorded, environment: str = "") -> CampaignComparison:
    """Campaign B against campaign A in the environments that both have, or in one of them.

    Raises UsageError when there is none.
    """
    names = common_environments(a, b, environment)
    differences = setup_differences(a, b, names)
    levels = [{(level.environment, level.series): level for level in side.analysis.levels} for side in (a, b)]
    shared = _shared((a, b), levels, names)
    margin = max(a.plan.study.margin, b.plan.study.margin)
    found = {
        key: welch(_logs(levels[0][key]), _logs(levels[1][key]))
        for key, level in shared.items()
        if level.kind.has_ratio and key in levels[0] and key in levels[1]
    }
    blocks = {key: _blocker(a, b, level, differences) for key, level in shared.items()}
    adjusted = _adjusted(found, blocks, levels)
    missing = (MissingRuns.of(a), MissingRuns.of(b))
    changes = tuple(
        _change(
            _Both(key, level, levels[0].get(key), levels[1].get(key), missing),
            found.get(key),
            blocks[key],
            adjusted.get(key),
            margin,
            _tax(a, b, key, levels),
        )
        for key, level in shared.items()
    )
    return CampaignComparison(
        a=_side(a),
        b=_side(b),
        margin=margin,
        unlike=differences,
        caution=CAUTION,
        pairing_gain=pairing_gain(a, b),
        family=sum(levels[0][key].primary for key in adjusted),
        changes=changes,
    )


def _shared(
    sides: tuple[Recorded, Recorded], levels: Sequence[Mapping[Key, Level]], names: Sequence[str]
) -> dict[Key, Level]:
    """Every series that both campaigns have, or one of them while the other's plan has it too; with a level of it."""
    planned = [{(work.environment, work.label, work.target.label) for work in side.plan.work} for side in sides]
    found: dict[Key, Level] = {}
    for mine, other in ((0, 1), (1, 0)):
        for key, level in levels[mine].items():
            expected = key in levels[other] or place_of_level(level) in planned[other]
            if expected and key[0] in names and level.direction is not Direction.NONE:
                found.setdefault(key, level)
    return found


def common_environments(a: Recorded, b: Recorded, environment: str) -> tuple[str, ...]:
    """The environments that both campaigns have, in the order of A's, or the one that is asked for."""
    names = [tuple(spec.name for spec in side.plan.environments) for side in (a, b)]
    both = tuple(name for name in names[0] if name in names[1])
    have = f"A has {', '.join(names[0])}; B has {', '.join(names[1])}"
    if environment and environment not in both:
        raise UsageError(f"environment {environment!r} is not in both campaigns", remedy=have)
    if not both:
        raise UsageError("the campaigns have no environment in common", remedy=have)
    return (environment,) if environment else both


def pairing_gain(a: Recorded, b: Recorded) -> float | None:
    """How many times wider the intervals of these campaigns were, had their rounds not been paired: the median."""
    gains = []
    for side in (a, b):
        levels = {(level.environment, level.series): level for level in side.analysis.levels}
        for (name, series), level in levels.items():
            other = levels.get((side.analysis.baseline, series))
            if name == side.analysis.baseline or other is None or not level.kind.has_ratio:
                continue
            paired = paired_differences(level, other)
            if len(paired) >= INTERVAL_FROM and (sd := statistics.stdev(paired)) > 0:
                apart = math.hypot(statistics.stdev(_logs(level)), statistics.stdev(_logs(other)))
                gains.append(apart / sd)
    return float(statistics.median(gains)) if gains else None


def paired_differences(level: Level, other: Level) -> tuple[float, ...]:
    """One difference of logarithms for each round that both have, above zero for better."""
    mine, theirs = (dict(zip((cell.round for cell in one.cells), _logs(one), strict=True)) for one in (level, other))
    return tuple(mine[number] - theirs[number] for number in sorted(mine.keys() & theirs.keys()))


def _side(side: Recorded) -> Side:
    return Side(
        directory=side.directory,
        campaign=side.analysis.campaign,
        plan_sha256=side.plan.sha256,
        created=str(side.about.get("created", "")),
        rounds_complete=side.analysis.rounds_complete,
    )


def _logs(level: Level) -> tuple[float, ...]:
    """The logarithm of every cell, above for better."""
    sign = 1.0 if level.direction is Direction.HIGHER else -1.0
    return tuple(sign * math.log(cell.value) for cell in level.cells)


def _blocker(a: Recorded, b: Recorded, level: Level, differences: Sequence[SetupDifference]) -> str:
    """Why the two do not compare: other work, other units, or a blocker of the audit in either; "" when nothing."""
    for item in differences:
        touches = item.environment in ("", level.environment) and item.label in ("", level.label)
        if item.severity is Severity.BLOCKER and touches:
            return f"{item.what} is {item.a} in A and {item.b} in B"
    for name, side in (("A", a), ("B", b)):
        found = verdict.blocker(side.analysis.findings, (level.environment, level.environment), level, side.plan)
        if found is not None:
            return f"{found.id} in {name}: {found.message}"
    return ""


def _adjusted(
    found: Mapping[Key, Estimate], blocks: Mapping[Key, str], levels: Sequence[Mapping[Key, Level]]
) -> dict[Key, float]:
    """Adjusted p of every pair that makes a claim: Holm over the primary ones, Benjamini-Hochberg over the others."""
    adjusted: dict[Key, float] = {}
    for primary, adjust in ((True, holm), (False, benjamini_hochberg)):
        family = {
            key: one.p_value
            for key, one in found.items()
            if one.p_value is not None
            and not blocks[key]
            and levels[0][key].primary is primary
            and min(levels[0][key].n, levels[1][key].n) >= VERDICT_FROM
        }
        p_values = adjust(np.array([p for p in family.values() if p is not None]))
        adjusted |= dict(zip(family, p_values.tolist(), strict=True))
    return adjusted


def _tax(a: Recorded, b: Recorded, key: Key, levels: Sequence[Mapping[Key, Level]]) -> Estimate | None:
    name, series = key
    baselines = (a.analysis.baseline, b.analysis.baseline)
    if baselines[0] != baselines[1] or name == baselines[0]:
        return None
    sides = []
    for side in levels:
        if key not in side or (baselines[0], series) not in side or not side[key].kind.has_ratio:
            return None
        sides.append(paired_differences(side[key], side[baselines[0], series]))
    return welch(sides[0], sides[1]) if all(sides) else None


@dataclass(frozen=True)
class _Both:
    """One series in both campaigns; `like` is that of either, for what does not depend on numbers."""

    key: Key
    like: Level
    a: Level | None
    b: Level | None
    missing: tuple[MissingRuns, MissingRuns]

    @property
    def n(self) -> int:
        return min(level.n if level is not None else 0 for level in (self.a, self.b))

    @property
    def late(self) -> tuple[int, int]:
        """Cells of either that hit their time limit."""
        one, other = self.missing
        return one.cells(self.like, self.a), other.cells(self.like, self.b)


def _change(
    both: _Both, found: Estimate | None, block: str, p_adjusted: float | None, margin: float, tax: Estimate | None
) -> Change:
    like, a, b = both.like, both.a, both.b
    reach = None if found is None else _reach(both, found)
    outcome = _outcome(found, reach, both.n, block, p_adjusted, Equivalence.of(margin).delta)
    return Change(
        **like.series_fields,
        environment=like.environment,
        n_a=0 if a is None else a.n,
        n_b=0 if b is None else b.n,
        typical_a=None if a is None else a.typical,
        typical_b=None if b is None else b.typical,
        change=None if found is None else ratio_interval(found),
        tax=None if tax is None else ratio_interval(tax),
        p_value=None if found is None else found.p_value,
        p_adjusted=p_adjusted,
        outcome=outcome,
        sentence=f"{outcome}: {block or _change_text(both, found)}",
        tax_sentence="" if tax is None else f"the tax: {_interval_text(tax, '')}",
        timeouts=_timeouts(both, reach),
    )


def _reach(both: _Both, found: Estimate) -> tuple[float, float] | None:
    """The interval, as wide as cells leave it that hit their time limit; None without an interval."""
    if found.low is None or found.high is None or both.a is None or both.b is None:
        return None
    if not any(both.late):
        return found.low, found.high
    if both.n < VERDICT_FROM:
        return -math.inf, math.inf
    a, b = ((*_logs(level), *[-math.inf] * late) for level, late in zip((both.a, both.b), both.late, strict=True))
    low, high = shift_interval(a, b)
    return min(low, found.low), max(high, found.high)


def _timeouts(both: _Both, reach: tuple[float, float] | None) -> ChangeTimeouts | None:
    if not any(both.late):
        return None
    ends = [exponential(end) if math.isfinite(end) else None for end in reach or (-math.inf, math.inf)]
    return ChangeTimeouts(a=both.late[0], b=both.late[1], low=ends[0], high=ends[1])


def _outcome(
    found: Estimate | None,
    reach: tuple[float, float] | None,
    n: int,
    block: str,
    p_adjusted: float | None,
    delta: float,
) -> Outcome:
    if block:
        return Outcome.NOT_COMPARABLE
    if found is None or reach is None:
        return Outcome.DATA_ONLY
    if n < VERDICT_FROM:
        return Outcome.PILOT
    low, high = reach
    if -delta < low and high < delta:
        return Outcome.WITHIN
    if not low <= 0 <= high and p_adjusted is not None and p_adjusted <= LEVEL:
        return Outcome.DIFFERS
    return Outcome.NOT_RESOLVED


def _change_text(both: _Both, found: Estimate | None) -> str:
    """The change in words, or which of the two has no number."""
    sides = (("A", both.a, both.missing[0]), ("B", both.b, both.missing[1]))
    empty = [
        f"no round of {name} has a result{lost.endings_text(both.like)}" for name, own, lost in sides if own is None
    ]
    if empty:
        return "; ".join(empty)
    late = [
        f"{count} cell{'s' if count != 1 else ''} of {name}"
        for name, count in zip("AB", both.late, strict=True)
        if count
    ]
    excluded = f"; excluding {' and '.join(late)} that hit their time limit" if late else ""
    return _interval_text(found, "a proportion has no ratio") + excluded


def ratio_interval(found: Estimate) -> RatioInterval:
    return RatioInterval(
        ratio=exponential(found.mean),
        low=None if found.low is None else exponential(found.low),
        high=None if found.high is None else exponential(found.high),
    )


def _interval_text(found: Estimate | None, absent: str) -> str:
    if found is None:
        return absent
    made = ratio_interval(found)
    wide = not 1 / verdict.WIDE <= made.ratio <= verdict.WIDE
    words = verdict.factor if wide else verdict.percent
    bounds = "" if made.low is None or made.high is None else f" [{words(made.low)}, {words(made.high)}]"
    return f"B is {words(made.ratio)} times A{bounds}" if wide else f"B against A {words(made.ratio)} %{bounds}"
