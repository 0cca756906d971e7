"""The intervals of the primary metrics while a campaign runs: one line each, for the progress display."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.records import BEYOND_ROUNDS, CONCLUSIVE, Analysis, Comparison
from vtax.model.record import Record


class InterimInterval(Record):
    """One primary metric against the baseline, as it stands now. `decided`: more rounds change nothing."""

    name: str
    environment: str
    n: int
    ratio: float
    low: float | None
    high: float | None
    verdict: str
    decided: bool = False

    @property
    def width(self) -> float:
        """The upper end over the lower; without an interval, endless."""
        return self.high / self.low if self.low is not None and self.high is not None else float("inf")


def interim_intervals(analysis: Analysis) -> tuple[InterimInterval, ...]:
    """Every primary metric that has a ratio, in the order of the analysis."""
    return tuple(
        InterimInterval(
            name=" ".join([item.label, item.metric, *item.labels.values(), *_against(item, analysis)]),
            environment=item.environment,
            n=item.n,
            ratio=item.ratio,
            low=item.low,
            high=item.high,
            verdict=str(item.verdict),
            decided=item.verdict in CONCLUSIVE | BEYOND_ROUNDS,
        )
        for item in analysis.comparisons
        if item.primary and item.ratio is not None
    )


def _against(item: Comparison, analysis: Analysis) -> tuple[str, ...]:
    """What it is compared with, where that is not the baseline."""
    return () if item.baseline == analysis.baseline else (f"(vs {item.baseline})",)


def selected(several: Sequence[InterimInterval], most: int) -> tuple[tuple[InterimInterval, ...], str]:
    """At most `most` of them, in their order, and what to say of the rest: first those that are open, the selected
    before the narrower."""
    if len(several) <= most:
        return tuple(several), ""
    wanted = sorted(range(len(several)), key=lambda place: (several[place].decided, -several[place].width))
    rest = [several[place] for place in wanted[most:]]
    decided = sum(one.decided for one in rest)
    words = f"and {len(rest)} more, {decided} of them settled" if decided else f"and {len(rest)} more"
    return tuple(several[place] for place in sorted(wanted[:most])), words
