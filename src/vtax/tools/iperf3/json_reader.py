"""iperf3's JSON, of a client or a server: one document is one session."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from vtax.model.reading import TimeSeries
from vtax.tools.documents import Document, Unfit, number_of
from vtax.tools.iperf3.metrics import JITTER, LOST, RETRANSMITS, THROUGHPUT
from vtax.tools.iperf3.session import SHORTEST_S, connected, describe, labels_of
from vtax.tools.reading import Line, Reading, Section, Value

EVENT = re.compile(r'^\{ ?"event": ?"(\w{1,30})", ?"data": ?')
FIRST_STREAM = ("start", "connected", 0)
SHORTEST = 0.1  # of the longest interval: a last one of a few ms has an absurd rate
RECEIVED = ("end", "sum_received")


def document_of(section: Section) -> Document:
    """The document of a section. Raises Unfit where it is damaged."""
    start = next(place for place, line in enumerate(section.lines) if line.text.startswith("{"))
    lines = section.lines[start:]
    return Document(_of_events(lines) if EVENT.match(lines[0].text) else lines)


def _of_events(lines: Sequence[Line]) -> list[Line]:
    """The events of `--json-stream`, one a line, as the lines of the document that iperf3 writes without it."""
    made: list[Line] = []
    several = False
    for place, line in enumerate(lines):
        found = EVENT.match(line.text)
        content = line.text.rstrip()[found.end() : -1] if found and line.text.rstrip().endswith("}") else ""
        name = found[1] if content and found else ""
        if place == 0:
            text = f'{{"start": {content}, "intervals": ['
        elif name == "interval":
            text, several = ("," if several else " ") + content, True
        elif name == "end":
            made.append(line._replace(text=f'], "end": {content}}}'))
            break
        elif name == "error":
            text = f'], "error": {content}, "rest": ['
        else:
            text = ""
        made.append(line._replace(text=text))
    return made


def read_document(reading: Reading, section: Section) -> Document | None:
    """Read the document of a section. A damaged one is refused as a whole, and None: JSON has no half."""
    try:
        document = document_of(section)
        _facts(reading, document)
        _session(reading, document)
    except Unfit as error:
        reading.values.clear()
        reading.refuse(error.line, "all values of this run", error.what, 0)
        return None
    reading.ended = not document.rest  # whatever follows is another document, or nothing of iperf3's
    return document


def _facts(reading: Reading, document: Document) -> None:
    """What it says besides its values, each where it is there."""
    get, server = document.get, document.get("start", "accepted_connection") is not None
    reading.facts["side"] = "server" if server else "client"
    reading.facts["iperf3_version"] = str(get("start", "version") or "")[:60]
    reading.started = number_of(get("start", "timestamp", "timesecs"))
    if get("start", "test_start", "target_bitrate"):
        reading.facts["bitrate_asked"] = str(get("start", "test_start", "target_bitrate"))
    ours, theirs = ("server", "client") if server else ("client", "server")
    for name, path in (
        ("omit_s", ("start", "test_start", "omit")),
        ("mss_bytes", ("start", "tcp_mss_default")),
        ("sent_bytes", ("end", "sum_sent", "bytes")),
        ("segments_resent", ("end", "sum_sent", "retransmits")),
        (f"cpu_{ours}_percent", ("end", "cpu_utilization_percent", "host_total")),
        (f"cpu_{theirs}_percent", ("end", "cpu_utilization_percent", "remote_total")),
    ):
        if (number := number_of(get(*path))) is not None:
            reading.facts[name] = number
    each, streams = (number_of(get("start", "test_start", name)) for name in ("target_bitrate", "num_streams"))
    if streams:
        reading.facts["streams"] = int(streams)
    if each and streams:
        reading.facts["requested_bit_s"] = each * streams
    sides = (("sender", "sum_sent"), ("receiver", "sum_received"))
    reading.facts["counted_by"] = [
        side for side, name in sides if number_of(get("end", name, "bits_per_second")) is not None
    ]
    if rows := _intervals(get("intervals")):
        reading.series["throughput"] = TimeSeries(columns=("start_s", "end_s", "bit/s"), rows=rows)


def _intervals(intervals: Any) -> tuple[tuple[float, float, float], ...]:
    """(start s, end s, bit/s) of every counted interval: what this side sent or, in reverse, received."""
    rows: list[tuple[float, float, float]] = []
    for interval in intervals if isinstance(intervals, list) else ():
        total = interval.get("sum") if isinstance(interval, dict) else None
        if not isinstance(total, dict):
            return ()
        start_s, end_s, rate = (number_of(total.get(name)) for name in ("start", "end", "bits_per_second"))
        if start_s is None or end_s is None or rate is None:
            return ()
        if not total.get("omitted", False):
            rows.append((start_s, end_s, rate))
    longest_s = max((end_s - start_s for start_s, end_s, _ in rows), default=0.0)
    return tuple(row for row in rows if row[1] - row[0] >= SHORTEST * longest_s > 0)


def _session(reading: Reading, document: Document) -> None:
    """Both ends, what was tested, and the values. Raises Unfit."""
    if document.get("start") is None:
        raise Unfit(0, "not what iperf3 writes: no start")
    if document.get("error") and not document.get(*FIRST_STREAM):
        raise Unfit(document.line("error"), f"iperf3 says: {str(document.get('error'))[:100]}")
    streams = document.at("start", "connected")
    ours, theirs = (
        (str(document.at(*FIRST_STREAM, f"{end}_host"))[:200], str(document.at(*FIRST_STREAM, f"{end}_port")))
        for end in ("local", "remote")
    )
    connected(reading, ours, theirs)
    protocol = str(document.at("start", "test_start", "protocol")).lower()
    if error := document.get("error"):
        raise Unfit(document.line("error"), f"iperf3 says: {str(error)[:100]}")
    if protocol not in ("tcp", "udp"):
        raise Unfit(document.line("start", "test_start", "protocol"), f"a {protocol} test")
    test = document.at("start", "test_start")
    reverse = "reverse" in test and document.number("start", "test_start", "reverse") > 0
    describe(reading, protocol, reverse, len(streams))
    if document.get("start", "test_start", "bidir"):
        raise Unfit(document.line("start", "test_start", "bidir"), "a test in both directions at once")
    _values(reading, document, protocol)


def _values(reading: Reading, document: Document, protocol: str) -> None:
    labels = labels_of(reading)
    moved, seconds, rate = (document.number(*RECEIVED, name) for name in ("bytes", "seconds", "bits_per_second"))

    def line(name: str) -> int:
        return document.line(*RECEIVED, name)

    if moved <= 0 or rate <= 0:
        name = "bytes" if moved <= 0 else "bits_per_second"
        reading.refuse(line(name), THROUGHPUT.name, "nothing arrived, or this side does not know what did")
        return
    if seconds < SHORTEST_S:
        reading.refuse(line("seconds"), THROUGHPUT.name, f"it lasted {seconds:g} s")
        return
    if not math.isclose(rate, moved * 8 / seconds, rel_tol=0.01):
        reading.refuse(line("bits_per_second"), THROUGHPUT.name, "bytes, seconds and rate do not fit")
        return
    reading.elapsed_s = seconds
    reading.values.append(Value(THROUGHPUT, rate, line("bits_per_second"), labels))
    if protocol == "tcp":
        if document.get("end", "sum_sent", "retransmits") is not None:
            path = ("end", "sum_sent", "retransmits")
            reading.values.append(Value(RETRANSMITS, document.number(*path), document.line(*path), labels))
        return
    packets, lost, jitter_ms = (document.number(*RECEIVED, name) for name in ("packets", "lost_packets", "jitter_ms"))
    if packets == 0 or lost > packets:
        reading.refuse(line("packets"), "jitter and loss", f"{lost:g} of {packets:g} packets lost", 2)
        return
    reading.values.append(Value(LOST, lost / packets, line("lost_packets"), labels))
    if jitter_ms > 0:
        reading.values.append(Value(JITTER, jitter_ms / 1000, line("jitter_ms"), labels))
    else:
        reading.refuse(line("jitter_ms"), JITTER.name, "a jitter of 0")
