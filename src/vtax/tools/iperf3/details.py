"""What iperf3 prints besides its closing figures: amounts, the sender's rate, and every interval. Of logs only.

An interval is what the side that wrote the log counted, with its times and that side as labels. It is taken where
amount, time and rate fit and no other line is about the same interval.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from vtax.model.metric import Metric
from vtax.tools.documents import Document, Element, number_of
from vtax.tools.iperf3.lines import END, INTERVAL, UDP, Total, total_of
from vtax.tools.iperf3.metrics import INTERVALS, RATE_SENT, SENT, TRANSFER
from vtax.tools.iperf3.session import SHORTEST_S, labels_of
from vtax.tools.reading import Line, Reading, Value

RETR = re.compile(r"^(\d{1,9})(?: +\d{1,6}(?:\.\d{1,3})? [KMGT]?Bytes)?$")
UNFIT = "amount, time and rate of the line do not fit"


def in_text(reading: Reading, lines: Sequence[Line]) -> list[Value]:
    """The details of a session in text."""
    several = int(str(reading.params.get("streams", 1))) > 1
    found = _amounts(reading, lines, several)
    intervals: dict[str, list[tuple[Total, str]]] = {}
    for line in lines:
        match = INTERVAL.match(line.text)
        if match is None or END.match(line.text) or (match[1] == "SUM") != several:
            continue
        total = total_of(line, match)
        intervals.setdefault(f"{match[2]}-{match[3]}", []).append((total, match[9]))
    sender = _by_sender(reading)
    for times, said in intervals.items():
        total, extra = said[0]
        if len(said) > 1:
            reading.refuse(said[1][0].line, f"interval {times}", "it is there more than once", len(said))
        elif total.seconds >= SHORTEST_S and not total.fits:
            reading.refuse(total.line, f"interval {times}", UNFIT)
        elif total.seconds >= SHORTEST_S:
            labels = {**labels_of(reading), "interval": times, "counted_by": "sender" if sender else "receiver"}
            found += _of_interval(total, extra.strip(), labels, reading.params.get("protocol") == "udp")
    return found


def _by_sender(reading: Reading) -> bool:
    """Whether the side that wrote the log sent."""
    return (reading.facts.get("side") == "client") != bool(reading.facts.get("reverse"))


def _amounts(reading: Reading, lines: Sequence[Line], several: bool) -> list[Value]:
    """Amounts of both sides in the closing lines, and the sender's rate."""
    labels, found = labels_of(reading), []
    totals = [total_of(line, match) for line in lines if (match := END.match(line.text))]
    mine = [total for total in totals if (total.stream == "SUM") == several]
    for side, metrics in (("receiver", (TRANSFER,)), ("sender", (SENT, RATE_SENT))):
        one = [total for total in mine if total.side == side]
        if len(one) == 1 and one[0].fits and one[0].moved > 0:
            found += [
                Value(metric, one[0].rate if metric is RATE_SENT else one[0].moved, one[0].line, labels)
                for metric in metrics
            ]
    return found


def _of_interval(total: Total, extra: str, labels: dict[str, str], udp: bool) -> Iterator[Value]:
    if total.rate > 0:
        yield Value(INTERVALS["throughput"], total.rate, total.line, labels)
    yield Value(INTERVALS["transfer"], total.moved, total.line, labels)
    if udp and (found := UDP.match(extra)):
        jitter_ms, lost, packets = float(found[1]), int(found[2]), int(found[3])
        if jitter_ms > 0:
            yield Value(INTERVALS["jitter"], jitter_ms / 1000, total.line, labels)
        if 0 <= lost <= packets and packets > 0:
            yield Value(INTERVALS["lost_fraction"], lost / packets, total.line, labels)
    elif not udp and (found := RETR.match(extra)):
        yield Value(INTERVALS["retransmits"], float(found[1]), total.line, labels)


def in_document(reading: Reading, document: Document) -> list[Value]:
    """The details of a session in JSON."""
    labels, found = labels_of(reading), []
    for metric, path in (
        (TRANSFER, ("end", "sum_received", "bytes")),
        (SENT, ("end", "sum_sent", "bytes")),
        (RATE_SENT, ("end", "sum_sent", "bits_per_second")),
    ):
        number = number_of(document.get(*path))
        if number is not None and number > 0:
            found.append(Value(metric, number, document.line(*path), labels))
    seen: set[str] = set()
    for place in document.elements("intervals"):
        total = place.value.get("sum") if isinstance(place.value, dict) else None
        if not isinstance(total, dict) or total.get("omitted"):
            continue
        start_s, end_s, seconds, moved, rate = (
            number_of(total.get(name)) for name in ("start", "end", "seconds", "bytes", "bits_per_second")
        )
        if start_s is None or end_s is None or seconds is None or moved is None or rate is None:
            reading.refuse(place.line("sum"), "an interval", "one of its numbers is missing")
            continue
        times = f"{start_s:.2f}-{end_s:.2f}"
        if seconds < SHORTEST_S:
            continue
        if times in seen or not math.isclose(rate, moved * 8 / seconds, rel_tol=0.01, abs_tol=1):
            reading.refuse(place.line("sum"), f"interval {times}", "it is there twice, or does not fit")
            continue
        seen.add(times)
        own = {**labels, "interval": times, "counted_by": "sender" if total.get("sender", True) else "receiver"}
        found += _of_sum(place, total, own, rate, moved)
    return found


def _of_sum(
    place: Element, total: dict[str, object], labels: dict[str, str], rate: float, moved: float
) -> Iterator[Value]:
    def value(metric: Metric, number: float, name: str) -> Value:
        return Value(metric, number, place.line("sum", name), labels)

    if rate > 0:
        yield value(INTERVALS["throughput"], rate, "bits_per_second")
    yield value(INTERVALS["transfer"], moved, "bytes")
    if (again := number_of(total.get("retransmits"))) is not None:
        yield value(INTERVALS["retransmits"], again, "retransmits")
    jitter_ms, lost, packets = (number_of(total.get(name)) for name in ("jitter_ms", "lost_packets", "packets"))
    if jitter_ms:
        yield value(INTERVALS["jitter"], jitter_ms / 1000, "jitter_ms")
    if lost is not None and packets and lost <= packets:
        yield value(INTERVALS["lost_fraction"], lost / packets, "lost_packets")
