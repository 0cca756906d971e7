"""One series in two campaigns: what may be said of the difference, never why it is there."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vtax.analysis import verdict
from vtax.analysis.campaigns.missing_runs import MissingRuns
from vtax.analysis.campaigns.records import Change, ChangeTimeouts, Outcome, RatioInterval
from vtax.analysis.estimate.machines import by_rounds
from vtax.analysis.estimate.paired import LEVEL, exponential
from vtax.analysis.estimate.rank_sum import shift_interval
from vtax.analysis.estimate.welch import WelchEstimate
from vtax.analysis.records import VERDICT_FROM, Level
from vtax.model.metric import Direction
from vtax.model.study import Equivalence


@dataclass(frozen=True)
class InBoth:
    """One series in both campaigns; `like` is that of either, for what does not depend on numbers.

    `estimate` is of the change, `tax` of the change of its ratio to the baseline; `block` is why the two do not
    compare, "" when nothing says so.
    """

    like: Level
    a: Level | None
    b: Level | None
    missing: tuple[MissingRuns, MissingRuns]
    estimate: WelchEstimate | None
    tax: WelchEstimate | None
    block: str

    @property
    def n(self) -> int:
        return min(level.n if level is not None else 0 for level in (self.a, self.b))

    @property
    def late(self) -> tuple[int, int]:
        """Cells of either that hit their time limit."""
        one, other = self.missing
        return one.cells(self.like, self.a), other.cells(self.like, self.b)

    @property
    def p_value(self) -> float | None:
        return None if self.estimate is None else self.estimate.p_value

    @property
    def claims(self) -> bool:
        """Whether it makes a claim at all, so that the correction counts it."""
        return self.p_value is not None and not self.block and self.n >= VERDICT_FROM


def change(both: InBoth, p_adjusted: float | None, margin: float) -> Change:
    """What is said of it; `p_adjusted` is None where it makes no claim."""
    a, b, reach = both.a, both.b, _reach(both)
    outcome = _outcome(both, reach, p_adjusted, Equivalence.of(margin).delta)
    return Change(
        **both.like.series_fields,
        environment=both.like.environment,
        n_a=0 if a is None else a.n,
        n_b=0 if b is None else b.n,
        typical_a=None if a is None else a.typical,
        typical_b=None if b is None else b.typical,
        change=_ratio_interval(both.estimate),
        tax=_ratio_interval(both.tax),
        p_value=both.p_value,
        p_adjusted=p_adjusted,
        outcome=outcome,
        sentence=f"{outcome}: {both.block or _change_text(both)}",
        tax_sentence="" if both.tax is None else f"the tax: {_interval_text(both.tax)}",
        timeouts=_timeouts(both, reach),
    )


def improving_logs(level: Level) -> tuple[float, ...]:
    """The logarithm of every cell, above for better; of several machines that each have whole rounds, one number for
    each round, their mean."""
    sign = 1.0 if level.direction is Direction.HIGHER else -1.0
    logs = tuple(sign * math.log(cell.value) for cell in level.cells)
    if not any(cell.machine for cell in level.cells):
        return logs
    return by_rounds({(cell.machine, cell.round): log for cell, log in zip(level.cells, logs, strict=True)})


def _reach(both: InBoth) -> tuple[float, float] | None:
    """The interval, as wide as cells leave it that hit their time limit; None without an interval."""
    found, a, b = both.estimate, both.a, both.b
    if found is None or found.low is None or found.high is None or a is None or b is None:
        return None
    if not any(both.late):
        return found.low, found.high
    if both.n < VERDICT_FROM:
        return -math.inf, math.inf
    mine, other = ((*improving_logs(one), *[-math.inf] * late) for one, late in zip((a, b), both.late, strict=True))
    low, high = shift_interval(mine, other)
    return min(low, found.low), max(high, found.high)


def _timeouts(both: InBoth, reach: tuple[float, float] | None) -> ChangeTimeouts | None:
    if not any(both.late):
        return None
    ends = [exponential(end) if math.isfinite(end) else None for end in reach or (-math.inf, math.inf)]
    return ChangeTimeouts(a=both.late[0], b=both.late[1], low=ends[0], high=ends[1])


def _outcome(both: InBoth, reach: tuple[float, float] | None, p_adjusted: float | None, delta: float) -> Outcome:
    if both.block:
        return Outcome.NOT_COMPARABLE
    if reach is None:
        return Outcome.DATA_ONLY
    if both.n < VERDICT_FROM:
        return Outcome.PILOT
    low, high = reach
    if -delta < low and high < delta:
        return Outcome.WITHIN
    if not low <= 0 <= high and p_adjusted is not None and p_adjusted <= LEVEL:
        return Outcome.DIFFERS
    return Outcome.NOT_RESOLVED


def _change_text(both: InBoth) -> str:
    """The change in words, or which of the two has no number."""
    sides = zip("AB", (both.a, both.b), both.missing, strict=True)
    lost = [(name, missing.endings_text(both.like)) for name, own, missing in sides if own is None]
    if lost:
        return "; ".join(f"no round of {name} has a result{endings}" for name, endings in lost)
    cells = zip("AB", both.late, strict=True)
    late = [f"{count} cell{'s' if count != 1 else ''} of {name}" for name, count in cells if count]
    excluded = f"; excluding {' and '.join(late)} that hit their time limit" if late else ""
    if both.estimate is None:
        return f"{both.like.kind.with_article} has no ratio{excluded}"
    return f"{_interval_text(both.estimate)}{excluded}"


def _ratio_interval(found: WelchEstimate | None) -> RatioInterval | None:
    if found is None:
        return None
    low, high = (None if end is None else exponential(end) for end in (found.low, found.high))
    return RatioInterval(ratio=exponential(found.mean), low=low, high=high)


def _interval_text(found: WelchEstimate) -> str:
    ratio, ends = exponential(found.mean), (found.low, found.high)
    wide = not 1 / verdict.WIDE <= ratio <= verdict.WIDE
    words = verdict.factor if wide else verdict.percent
    low, high = (None if end is None else words(exponential(end)) for end in ends)
    bounds = "" if low is None else f" [{low}, {high}]"
    return f"B is {words(ratio)} times A{bounds}" if wide else f"B against A {words(ratio)} %{bounds}"
