"""Strips of ratios with their intervals, one in each row of a table, all on one logarithmic axis.

Places on a strip are shares of its width, 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vtax.analysis.records import Comparison
from vtax.figures.intervals import ratio_ticks
from vtax.figures.theme import mark_of, ratio_domain, share, tick_text
from vtax.report.document.cells import word_of
from vtax.report.document.numbers import interval_text, labels_text, ratio_text


@dataclass(frozen=True)
class Whisker:
    """One comparison on a strip: `low` and `high` are absent without an interval, `cut_*` where they leave the plot."""

    at: float
    low: float | None
    high: float | None
    cut_low: bool
    cut_high: bool
    shape: str
    verdict: str
    title: str


@dataclass(frozen=True)
class StripAxis:
    """The axis that strips share. `one` is where the baseline is, `margin` the ends of the margin of equivalence."""

    domain: tuple[float, float]
    ticks: tuple[tuple[float, str], ...]
    one: float
    margin: tuple[float, float]

    def whisker(self, item: Comparison, *, exploratory: bool = False) -> Whisker:
        """A comparison that has a ratio."""
        assert item.ratio is not None
        word = word_of(item, exploratory=exploratory)
        return Whisker(
            at=place(item.ratio, self.domain),
            low=None if item.low is None else place(item.low, self.domain),
            high=None if item.high is None else place(item.high, self.domain),
            cut_low=item.low is not None and item.low < self.domain[0],
            cut_high=item.high is not None and item.high > self.domain[1],
            shape=mark_of(word).shape,
            verdict=word,
            title=f"{labels_text(item.labels)}: {ratio_text(item.ratio)}{interval_text(item)}, {word}",
        )

    def whiskers(self, several: Sequence[Comparison], *, exploratory: bool = False) -> tuple[Whisker, ...]:
        """Those of all comparisons that have a ratio."""
        return tuple(self.whisker(item, exploratory=exploratory) for item in several if item.ratio is not None)


def axis_of(several: Sequence[Comparison], margin: float) -> StripAxis | None:
    """The axis on which all these ratios are seen; None where there is no ratio."""
    ratios = [item.ratio for item in several if item.ratio is not None]
    if not ratios:
        return None
    ends = [end for item in several for end in (item.low, item.high) if end is not None]
    domain = ratio_domain(ratios, ends, margin)
    return StripAxis(
        domain=domain,
        ticks=tuple((place(tick, domain), tick_text(tick)) for tick in ratio_ticks(*domain)),
        one=place(1.0, domain),
        margin=(place(1 / (1 + margin), domain), place(1 + margin, domain)),
    )


def place(value: float, domain: tuple[float, float]) -> float:
    """Where a ratio is on the strip, no further than its ends."""
    return round(min(1.0, max(0.0, share(value, domain, log=True))), 4)
