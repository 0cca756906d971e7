"""L01 and L02: messages that are not in sockperf's latencies, and quantiles of few messages."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.alike import A_NOTE, Condition, judged
from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Result, row
from vtax.model.finding import Severity

LOST_SHARE = 0.001  # of the messages: as many as are above the 99.9th percentile
FEWEST_ABOVE = 10  # messages above the 99.9th percentile
TAIL = 0.001
KINDS = ("dropped", "duplicated", "out_of_order")
ABOUT = ("sockperf",)


@row(
    "L01",
    Severity.WARNING,
    "more than one message in a thousand was dropped, duplicated or out of order",
    short="lost messages",
    why="a message without an answer has no latency and is left out, so the slowest of all are not in the quantiles",
    remedy="send less at a time, use TCP, or enlarge the buffers of the sockets",
    source="the counts that sockperf prints",
    note=A_NOTE,
    benchmarks=ABOUT,
    needs=Needs("messages that were dropped, duplicated or out of order", facts=("dropped",)),
)
def lost(evidence: Evidence) -> Iterator[Result]:
    """L01: messages that have no latency."""
    found = {}
    for key, trials in evidence.entries().items():
        known = evidence.facts(trials, "observations", *KINDS)
        counts = {kind: sum(facts[kind] for facts in known) for kind in KINDS}
        share = sum(counts.values()) / max(1, sum(facts["observations"] for facts in known))
        said = ", ".join(f"{count:,} messages {kind.replace('_', ' ')}" for kind, count in counts.items())
        found[key] = Condition(said, share > LOST_SHARE)
    yield from judged(evidence, found, Severity.WARNING)


@row(
    "L02",
    Severity.WARNING,
    "the 99.9th percentile is that of a few messages",
    short="a quantile of few messages",
    why="with fewer than ten messages above it, the quantile is what happened to single messages",
    remedy="measure longer",
    source="the number of observations that sockperf prints",
    note=A_NOTE,
    benchmarks=ABOUT,
    needs=Needs("the number of observations", facts=("observations",)),
)
def few_messages(evidence: Evidence) -> Iterator[Result]:
    """L02: how many messages are above the highest quantile."""
    found = {}
    for key, trials in evidence.entries().items():
        fewest = min(facts["observations"] for facts in evidence.facts(trials, "observations"))
        said = f"{fewest:,} messages in a run, {fewest * TAIL:.0f} of them above the 99.9th percentile"
        found[key] = Condition(said, fewest * TAIL < FEWEST_ABOVE, ("latency_p99.9",))
    yield from judged(evidence, found, Severity.WARNING)
