"""N08: whether there were enough packets, and whether they came back."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity
from vtax.model.trial import TrialRecord

FEWEST_PACKETS = 100


@row(
    "N08",
    Severity.WARNING,
    "packets of ping were lost, are few, or include the first one",
    short="few or lost packets",
    why="a handful of round trips has no reliable mean, and the first packet waits for address resolution",
    remedy="send 100 packets or more, after one that does not count",
    source="ping's closing lines; single packets where the log lists them",
    note="a note where an environment and what it is compared with are alike: few packets make the interval wider",
    benchmarks=("ping",),
    needs=Needs("the closing lines of ping", facts=("packets_sent",)),
)
def few_packets(evidence: Evidence) -> Iterator[Result]:
    """N08: loss, few packets, a first packet that waited."""
    unreliable: dict[tuple[str, str], Failed | None] = {}
    for (environment, label), trials in evidence.entries().items():
        counted = [
            (facts["packets_sent"], facts["packets_received"]) for facts in evidence.facts(trials, "packets_sent")
        ]
        sent, received = (sum(pair[side] for pair in counted) for side in (0, 1))
        fewest = min(pair[0] for pair in counted)
        faults = []
        if received < sent:
            faults.append(f"{sent - received} of {sent} packets were lost")
        if fewest < FEWEST_PACKETS:
            faults.append(f"runs have {fewest} packets, fewer than {FEWEST_PACKETS}")
        if late := sum(first_waited(evidence, trial) for trial in trials):
            faults.append(f"the first packet of {late} runs took more than twice as long as any other")
        unreliable[environment, label] = None
        if faults:
            message = f"{label} in {environment}: {'; '.join(faults)}"
            unreliable[environment, label] = Failed(message, environment, label)
        else:
            yield f"{label} in {environment}: {received} of {sent} packets came back"
    yield from weighed(evidence, unreliable, Severity.WARNING)


def first_waited(evidence: Evidence, trial: TrialRecord) -> bool:
    """Whether packet 1 took more than twice as long as every other."""
    times = {row[0]: row[1] for series in evidence.series(trial, "round_trips") for row in series.rows}
    rest = [time_s for number, time_s in times.items() if number != 1]
    return bool(rest) and times.get(1.0, 0.0) > 2 * max(rest)
