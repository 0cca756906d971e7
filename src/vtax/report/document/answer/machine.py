"""What a line of the answer adds about the machine: that the same speed took more CPU time, where that is certain."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.records import Analysis, Comparison, Verdict
from vtax.model.machine_cost import CPU_TIME
from vtax.report.document.answer.wording import beyond, size, sizes
from vtax.report.document.groups import group_of

CLAIMS = (Verdict.SLOWER, Verdict.FASTER)


def machine_words(analysis: Analysis, several: Sequence[Comparison]) -> str:
    """`38 % more CPU time`, of the entries that these comparisons are about; "" where none certainly differs.

    They are of one environment against one baseline. Only claims that hold after the correction count. An entry with
    results about other parts of the machine is left out: its cost is not of one part.
    """
    group = group_of(several[0])
    both = {(item.environment, item.baseline) for item in several}
    elsewhere = {item.label for item in analysis.comparisons if item.primary and group_of(item) is not group}
    places = {(item.label, item.labels.get("target", "")) for item in several if item.label not in elsewhere}
    claimed = [
        item
        for item in analysis.comparisons
        if item.metric == CPU_TIME
        and (item.environment, item.baseline) in both
        and (item.label, item.labels.get("target", "")) in places
        and item.verdict in CLAIMS
        and item.ratio is not None
        and item.low is not None
        and item.high is not None
        and not item.low <= 1 <= item.high
    ]
    words = []
    for verdict, word in ((Verdict.SLOWER, "more"), (Verdict.FASTER, "less")):
        own = [item for item in claimed if item.verdict is verdict]
        if own:
            labels = {item.label for item in own}
            only = "" if labels == {label for label, _ in places} else f" in {', '.join(sorted(labels))}"
            words.append(f"{_much([1 / (item.ratio or 1.0) for item in own], word)} CPU time{only}")
    return " and ".join(words)


def _much(costs: Sequence[float], word: str) -> str:
    """`38 % more`, `5 to 38 % more`, `3.2 times the`."""
    if len(set(costs)) == 1 and beyond(costs[0]) and costs[0] > 1:
        return f"{size(costs[0])} the"
    return f"{sizes(costs)} {word}"
