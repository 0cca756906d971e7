"""N03, N04, N06, N07: what limited a stream of iperf3, and which side counted it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean, median
from typing import Any

from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.trial import TrialRecord
from vtax.tools.iperf3.session import DEFAULT_UDP
from vtax.units import format_quantity

REACHED = 0.98  # of the requested rate
LOST_FEW = 0.02  # of the packets: the path carried what was sent
BUSY = 90.0  # % of a core
RETRANSMITTED = 0.001  # of all segments
SEGMENT_BYTES = 1448  # of Ethernet with timestamps, where the log does not say
SLOW_START = 0.8  # of the later intervals' rate
LATE = 1.05  # an interval of a second ends a little later than that


@row(
    "N03",
    Severity.BLOCKER,
    "UDP arrives at the rate at which it was sent",
    short="UDP at the requested rate",
    why="then the figure is the request, not what the path can carry; iperf3 sends 1 Mbit/s unless a rate is given",
    remedy="raise `bitrate` (iperf3 -b) until packets are lost, or compare TCP throughput",
    source="the plan's parameters, iperf3's JSON, or the command above a text log; where none says the rate, the loss",
    benchmarks=("iperf3",),
    needs=Needs("the protocol of iperf3", facts=("protocol",)),
)
def udp_rate(evidence: Evidence) -> Iterator[Result]:
    """N03: UDP that arrives at the rate at which it was sent."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        facts = [one for one in evidence.facts(trials, "protocol") if one["protocol"] == "udp"]
        rates = evidence.values(environment, label, "throughput")
        if not facts or not rates:
            continue
        arrived, target = median(rates), next((one["requested_bit_s"] for one in facts if "requested_bit_s" in one), 0)
        lost = evidence.values(environment, label, "lost_fraction")
        default = any(one.get("bitrate_asked") == "default" for one in facts)
        if not target and 0.9 * DEFAULT_UDP <= arrived <= 1.1 * DEFAULT_UDP:
            target, default = DEFAULT_UDP, True
        said = f"{label} in {environment} arrived at {format_quantity(arrived, 'bit/s')}"
        if target:
            said += f", with {format_quantity(target, 'bit/s')} requested" + (" (iperf3's default rate)" * default)
        if (target and arrived >= REACHED * target) or (not target and lost and max(lost) <= LOST_FEW):
            message = f"{said}: this is the requested rate, not the capacity"
            yield Failed(message, environment, label, metrics=("throughput",))
        elif target or lost:
            yield said
        else:
            yield Undecided(f"the rate that {label} was asked for is not known", environment, label)


@row(
    "N04",
    Severity.WARNING,
    "a single stream of iperf3 takes more than 90 % of a core",
    short="iperf3 limited by a CPU",
    why="then the CPU is measured, not the network",
    remedy="read it as the CPU's cost of moving data, or use more streams (`parallel`)",
    source="`cpu_utilization_percent` in iperf3's JSON; text logs do not have it",
    note="a note where an environment and what it is compared with have it alike: it is then about what the number "
    "means",
    benchmarks=("iperf3",),
    needs=Needs("the CPU use of iperf3 (only its JSON has it)", facts=("cpu_client_percent", "cpu_server_percent")),
)
def cpu_bound(evidence: Evidence) -> Iterator[Result]:
    """N04: iperf3 limited by a CPU."""
    bound: dict[tuple[str, str], Failed | None] = {}
    for (environment, label), trials in evidence.entries("iperf3").items():
        single = [facts for facts in evidence.facts(trials) if facts.get("streams", 1) == 1]
        shares = {side: [one[name] for one in single if (name := f"cpu_{side}_percent") in one] for side in SIDES}
        known = {side: median(seen) for side, seen in shares.items() if seen}
        if not known:
            yield Undecided(f"{label} in {environment} had several streams", environment, label)
            continue
        said = ", ".join(f"{share:.0f} % of a core on the {side}" for side, share in known.items())
        if max(known.values()) > BUSY:
            bound[environment, label] = Failed(f"{label} in {environment} took {said}", environment, label)
        else:
            bound[environment, label] = None
            yield f"{label} in {environment}: {said}"
    yield from weighed(evidence, bound, Severity.WARNING)


SIDES = ("client", "server")


@row(
    "N06",
    Severity.WARNING,
    "TCP sent segments again, or its slow start is inside the interval",
    short="TCP retransmits or slow start",
    why="the mean then depends on losses and on the length of the run",
    remedy="set `omit_s` to 3 (iperf3 -O 3), and find the cause of the losses",
    source="iperf3's JSON, or the closing lines of a text log",
    note="a note where an environment and what it is compared with have it alike: it is then about what the number "
    "means",
    benchmarks=("iperf3",),
    needs=(Needs("the count of retransmits", facts=("segments_resent",)),),
    about=lambda trial: trial.params.get("protocol") != "udp",
)
def retransmits(evidence: Evidence) -> Iterator[Result]:
    """N06: retransmits, and slow start."""
    losing: dict[tuple[str, str], Failed | None] = {}
    starting: dict[tuple[str, str], Failed | None] = {}
    for (environment, label), trials in _tcp(evidence):
        counted = evidence.facts(trials, "segments_resent", "sent_bytes")
        if not counted:
            continue
        again = sum(one["segments_resent"] for one in counted)
        segments = sum(one["sent_bytes"] / (one.get("mss_bytes") or SEGMENT_BYTES) for one in counted)
        slow = sum(starts_slowly(evidence, trial) for trial in trials)
        said = f"{label} in {environment}: {again:.0f} of about {segments:.0f} segments"
        losing[environment, label] = starting[environment, label] = None
        if segments and again / segments > RETRANSMITTED:
            losing[environment, label] = Failed(f"{said} were sent again", environment, label)
        if slow:
            message = (
                f"{label} in {environment}: {slow} of {len(trials)} runs count TCP's slow start (nothing is omitted)"
            )
            starting[environment, label] = Failed(message, environment, label)
        yield f"{said} sent again"
    yield from weighed(evidence, losing, Severity.WARNING)
    yield from weighed(evidence, starting, Severity.WARNING)


def _tcp(evidence: Evidence) -> Iterator[tuple[tuple[str, str], list[TrialRecord]]]:
    """Entries with their runs over TCP, of those that have any."""
    for entry, trials in evidence.entries("iperf3").items():
        if tcp := [one for one in trials if all(facts.get("protocol") != "udp" for facts in evidence.facts_of(one))]:
            yield entry, tcp


def starts_slowly(evidence: Evidence, trial: TrialRecord) -> bool:
    """Whether nothing was omitted and the beginning is well below the rest: a second, or a tenth of a shorter run,
    so that the answer does not depend on how often iperf3 reported."""
    if any(facts.get("omit_s") for facts in evidence.facts_of(trial)):
        return False
    rates = [(end_s, rate) for series in evidence.series(trial, "throughput") for _, end_s, rate in series.rows]
    if not rates:
        return False
    begin_s = max(rates[0][0], LATE * min(1.0, rates[-1][0] / 10))
    first = [rate for end_s, rate in rates if end_s <= begin_s]
    later = [rate for end_s, rate in rates if end_s > begin_s]
    return len(later) >= 2 and fmean(first) < SLOW_START * median(later)


@row(
    "N07",
    Severity.BLOCKER,
    "throughput counted at the sender",
    short="throughput of the sender",
    why="the sender also counts what is still in buffers, and with UDP what was lost",
    remedy="use the client's log with its closing lines, or iperf3 -J",
    source="`sum_received` in iperf3's JSON, or the `receiver` line of a text log",
    benchmarks=("iperf3",),
    needs=Needs("which side counted", facts=("counted_by",)),
)
def sender_side(evidence: Evidence) -> Iterator[Result]:
    """N07: which side counted."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        every = [_counted_by(evidence.facts_of(trial)) for trial in trials]
        blind = [sides for sides in every if "receiver" not in sides]
        if any(blind):
            message = f"{label} in {environment}: {len(blind)} of {len(every)} logs have the sender's count only"
            yield Failed(message, environment, label, metrics=("throughput",))
        elif blind:
            yield Undecided(f"{len(blind)} logs of {label} do not say which side counted", environment, label)
        else:
            yield f"{label} in {environment}: counted by the receiver"


def _counted_by(facts: list[Mapping[str, Any]]) -> set[str]:
    return {side for one in facts for side in one.get("counted_by", ())}
