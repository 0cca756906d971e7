"""N03, N04, N06, N07: what limited a stream of iperf3, and which side counted it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import fmean, median

from vtax.evidence import logs
from vtax.evidence.campaign import Evidence, blocker, unknown, warning
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity
from vtax.model.trial import TrialRecord
from vtax.units import format_quantity

REACHED = 0.98  # of the requested rate
DEFAULT_UDP = 1048576.0  # bit/s that iperf3 sends over UDP unless told otherwise
BUSY = 90.0  # % of a core
RETRANSMITTED = 0.001  # of all segments
SEGMENT_BYTES = 1448  # of Ethernet with timestamps, where the log does not tell
SLOW_START = 0.8  # of the later intervals' rate
LATE = 1.05  # an interval of a second ends a little later than that
SENT = re.compile(r"([\d.]+) ([KMGT]?)Bytes +[\d.]+ [KMGT]?bits/sec +(\d{1,12}) +sender")
FINAL = re.compile(r"\b(sender|receiver)[ \t]*\r?$", re.MULTILINE)
BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
JSON_ONLY = "iperf3's JSON; a plain text log does not tell"


@row(
    "N03",
    Severity.BLOCKER,
    "UDP arrives at the rate at which it was sent",
    why="then the figure is the request, not what the path can carry; iperf3 sends 1 Mbit/s unless told otherwise",
    remedy="raise `bitrate` until packets are lost, or compare TCP throughput",
    source="the plan's parameters, or iperf3's JSON; of an imported text log only iperf3's default rate is recognised",
    benchmarks=("iperf3",),
)
def udp_rate(evidence: Evidence) -> Iterator[Finding | str]:
    """N03: UDP that arrives at the rate at which it was sent."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        udp = [trial for trial in trials if is_udp(trial)]
        rates = evidence.values(environment, label, "throughput")
        if not udp or not rates:
            continue
        arrived, target = median(rates), requested(udp[0])
        if target is None and 0.9 * DEFAULT_UDP <= arrived <= 1.1 * DEFAULT_UDP:
            target = DEFAULT_UDP
        if target is None:
            yield unknown("N03", f"the rate that {label} was asked for is not known", environment, label)
            continue
        said = f"{label} in {environment} arrived at {format_quantity(arrived, 'bit/s')}, with "
        said += f"{format_quantity(target, 'bit/s')} requested"
        if arrived >= REACHED * target:
            message = f"{said}: this is the requested rate, not the capacity"
            yield blocker("N03", message, "", environment, label, metrics=("throughput",))
        else:
            yield said


def is_udp(record: TrialRecord) -> bool:
    """Whether a run of iperf3 was one over UDP."""
    if record.params.get("protocol"):
        return record.params["protocol"] == "udp"
    protocols = [str(logs.at(one, "start", "test_start", "protocol")).lower() for one in logs.documents(record)]
    return "udp" in protocols or "Lost/Total Datagrams" in logs.text_of(record)


def requested(record: TrialRecord) -> float | None:
    """The rate that was asked for, of all streams together, bit/s."""
    each, streams = logs.number(record.params.get("bitrate")), logs.number(record.params.get("parallel", 1))
    if each and streams:
        return each * streams
    for document in logs.documents(record):
        start = logs.at(document, "start", "test_start")
        each, streams = (logs.number(logs.at(start, name)) for name in ("target_bitrate", "num_streams"))
        if each and streams:
            return each * streams
    return None


@row(
    "N04",
    Severity.WARNING,
    "a single stream of iperf3 takes more than 90 % of a core",
    why="then the CPU is measured, not the network",
    remedy="read it as the CPU's cost of moving data, or use more streams (`parallel`)",
    source="`cpu_utilization_percent` in iperf3's JSON; imported text logs do not have it",
    benchmarks=("iperf3",),
)
def cpu_bound(evidence: Evidence) -> Iterator[Finding | str]:
    """N04: iperf3 limited by a CPU."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        shares: dict[str, list[float]] = {"host": [], "remote": []}
        for document in (document for trial in trials for document in logs.documents(trial)):
            if logs.at(document, "start", "test_start", "num_streams") not in (1, None):
                continue
            for side, seen in shares.items():
                value = logs.number(logs.at(document, "end", "cpu_utilization_percent", f"{side}_total"))
                seen += [] if value is None else [value]
        known = {side: median(seen) for side, seen in shares.items() if seen}
        if not known:
            yield unknown("N04", f"{label}: {JSON_ONLY}, or it had several streams", environment, label)
            continue
        said = ", ".join(f"{share:.0f} % of a core on the {name_of(side)}" for side, share in known.items())
        if max(known.values()) > BUSY:
            yield warning("N04", f"{label} in {environment} took {said}", "", environment, label)
        else:
            yield f"{label} in {environment}: {said}"


def name_of(side: str) -> str:
    return "client" if side == "host" else "server"


@row(
    "N06",
    Severity.WARNING,
    "TCP sent segments again, or its slow start is inside the interval",
    why="the mean then depends on losses and on the length of the run",
    remedy="set `omit_s` to 3 (iperf3 -O 3), and look for the cause of the losses",
    source="iperf3's JSON, or the closing lines of a text log",
    benchmarks=("iperf3",),
)
def retransmits(evidence: Evidence) -> Iterator[Finding | str]:
    """N06: retransmits, and slow start."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        tcp = [trial for trial in trials if not is_udp(trial)]
        counted = [each for trial in tcp for each in resent(trial)]
        if not tcp:
            continue
        if not counted:
            yield unknown("N06", f"the log of {label} has no count of retransmits", environment, label)
            continue
        again, segments = sum(count for count, _ in counted), sum(of for _, of in counted)
        slow = sum(any(starts_slowly(document) for document in logs.documents(trial)) for trial in tcp)
        if segments and again / segments > RETRANSMITTED:
            message = f"{label} in {environment}: {again:.0f} of about {segments:.0f} segments were sent again"
            yield warning("N06", message, "", environment, label)
        if slow:
            message = f"{label} in {environment}: {slow} of {len(tcp)} runs count TCP's slow start (nothing is omitted)"
            yield warning("N06", message, "", environment, label)
        yield f"{label} in {environment}: {again:.0f} of about {segments:.0f} segments sent again"


def resent(record: TrialRecord) -> Iterator[tuple[float, float]]:
    """(retransmits, segments) of every finished test in a log."""
    for document in logs.documents(record):
        total = logs.at(document, "end", "sum_sent")
        count, size = logs.number(logs.at(total, "retransmits")), logs.number(logs.at(total, "bytes"))
        each = logs.number(logs.at(document, "start", "tcp_mss_default")) or SEGMENT_BYTES
        if count is not None and size is not None:
            yield count, size / each
    for digits, prefix, count_text in SENT.findall(logs.text_of(record)):
        size = logs.number(digits)
        if size is not None:
            yield float(count_text), size * BYTES[prefix] / SEGMENT_BYTES


def starts_slowly(document: object) -> bool:
    """Whether nothing was omitted and the beginning is well below the rest: a second, or a tenth of a shorter run,
    so that the answer does not depend on how often iperf3 reported."""
    if logs.at(document, "start", "test_start", "omit") not in (0, None):
        return False
    told = [logs.at(interval, "sum") for interval in logs.at(document, "intervals") or ()]
    pairs = [(logs.number(logs.at(each, "end")), logs.number(logs.at(each, "bits_per_second"))) for each in told]
    rates = [(end_s, rate) for end_s, rate in pairs if end_s is not None and rate is not None]
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
    why="the sender also counts what is still in buffers, and with UDP what was lost",
    remedy="use the client's log with its closing lines, or iperf3 -J",
    source="`sum_received` in iperf3's JSON, or the `receiver` line of a text log",
    benchmarks=("iperf3",),
)
def sender_side(evidence: Evidence) -> Iterator[Finding | str]:
    """N07: which side counted."""
    for (environment, label), trials in evidence.entries("iperf3").items():
        sides = [sides_of(trial) for trial in trials]
        blind = [side for side in sides if "receiver" not in side]
        if blind and any(blind):
            message = f"{label} in {environment}: {len(blind)} of {len(sides)} logs have the sender's count only"
            yield blocker("N07", message, "", environment, label, metrics=("throughput",))
        elif blind:
            yield unknown("N07", f"{len(blind)} logs of {label} do not say which side counted", environment, label)
        else:
            yield f"{label} in {environment}: counted by the receiver"


def sides_of(record: TrialRecord) -> set[str]:
    """The sides whose totals a log holds."""
    sides = {side for document in logs.documents(record) for side in ends_of(document)}
    return sides | set(FINAL.findall(logs.text_of(record)))


def ends_of(document: object) -> Iterator[str]:
    for side, name in (("sender", "sum_sent"), ("receiver", "sum_received")):
        if logs.number(logs.at(document, "end", name, "bits_per_second")) is not None:
            yield side
