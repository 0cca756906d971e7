"""Cells of tables: a value with its deviation, a ratio with its interval and verdict, a range of either."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from vtax.analysis.records import Comparison, LadderStep, Level, Score, Verdict
from vtax.analysis.verdict import CAVEATS
from vtax.report.document.model import Cell, Number, Ratio
from vtax.report.document.numbers import ABSENT, interval_text, mean_sd, ratio_text
from vtax.units import format_number, signed_quantity


def level_cell(
    level: Level | None, factor: float, *, median: bool = True, raw: str = "", peak: float | None = None
) -> Cell:
    """`5.516 ± 0.027` over `n 3, median 5.51, 43 % of peak`, of which the first two stay on one line."""
    if level is None:
        return Cell(ABSENT)
    sd = None if level.sd is None else level.sd / factor
    note = f"n\u00a0{level.n}" + (f",\u00a0median\u00a0{format_number(level.median / factor)}" if median else "")
    if peak is not None:
        note += f", {100 * level.mean / peak:.3g}\u00a0% of\u00a0peak"
    mean = level.mean / factor
    return Cell(mean_sd(mean, sd), note, value=Number(mean, sd), raw=raw, scaled=True)


def ratio_cell(item: Comparison | None, baseline: str, *, explain: bool = False, exploratory: bool = False) -> Cell:
    """`0.984 [0.962, 1.007]` with the verdict, and what explains the verdict; without that, the ratio
    of the means. What it is compared with is named where that is not `baseline`. An exploratory entry has no verdict.
    """
    if item is None:
        return Cell(ABSENT)
    if item.difference is not None:
        return Cell(signed_quantity(item.difference, item.unit), "; ".join(("difference", *against(item, baseline))))
    text = ABSENT if item.ratio is None else ratio_text(item.ratio) + interval_text(item)
    caveat = "" if item.ruled_out_by in CAVEATS else item.caveat
    remarks = "; ".join(words for words in (by_means(item), item.ruled_out_by, caveat) if words)
    note = "; ".join(words for words in (*against(item, baseline), explanation(item) if explain else remarks) if words)
    other = "" if item.baseline == baseline else item.baseline
    return Cell(text, note, verdict=word_of(item, exploratory=exploratory), value=ratio_of(item, other))


def word_of(item: Comparison, *, exploratory: bool) -> str:
    """The verdict; of an exploratory entry only whether it can be compared."""
    if exploratory and item.verdict is not Verdict.NOT_COMPARABLE:
        return "exploratory"
    return str(item.verdict)


def against(item: Comparison, baseline: str) -> tuple[str, ...]:
    """`vs container`, where a comparison is not with `baseline`."""
    return () if item.baseline == baseline else (f"vs\u00a0{item.baseline}",)


def ratio_of(item: Comparison | Score | LadderStep, against: str = "") -> Ratio | None:
    """The ratio of a comparison as the value of a cell; `against` what, where that is not the baseline."""
    return None if item.ratio is None else Ratio(item.ratio, item.low, item.high, against)


def range_cell(found: Sequence[Comparison], baseline: str, *, exploratory: bool = False) -> Cell:
    """The smallest and largest ratio of several comparisons, how often each verdict was given, and with what some are
    compared instead of `baseline`."""
    ratios = [item.ratio for item in found if item.ratio is not None]
    counts = Counter(word_of(item, exploratory=exploratory) for item in found)
    words = [f"{counts[word]} × {word}" for word in (*Verdict, "exploratory") if counts[word]]
    others = list(dict.fromkeys(name for item in found for name in against(item, baseline)))
    if len(counts) == 1:
        return Cell(span(ratios, ratio_text), ", ".join(others), verdict=next(iter(counts)))
    return Cell(span(ratios, ratio_text), ", ".join((*words, *others)))


def span(values: Sequence[float], words: Callable[[float], str]) -> str:
    """`0.93 to 0.97`."""
    if not values:
        return ABSENT
    low, high = words(min(values)), words(max(values))
    return low if low == high else f"{low} to {high}"


def by_means(item: Comparison) -> str:
    """`by means 0.98`: total work over total time on both sides, next to the ratio of typical runs."""
    if item.mean_ratio is None:
        return ""
    ends = (
        ""
        if item.mean_low is None or item.mean_high is None
        else f"{ratio_text(item.mean_low)}, {ratio_text(item.mean_high)}"
    )
    return f"by\u00a0means\u00a0{ratio_text(item.mean_ratio)}" + (f" [{ends}]" if ends else "")


def explanation(item: Comparison) -> str:
    """What the number and its verdict do not say."""
    if not item.n:
        return f"no counterpart in {item.baseline}"
    if item.ruled_out_by:
        return item.ruled_out_by
    return item.sentence if item.ratio is None else item.remark


def named(metric: str, unit: str) -> str:
    return f"{metric} ({unit})" if unit else metric
