"""iperf3: JSON, or text with the closing lines of each session, of the client or of the server.

Only what the receiver counted is throughput; what the sender put into its buffers is not. In text, units change from
line to line and are next to every number; the amount and the time of the same line must give the same rate. In JSON it
is `end.sum_received`: `end.sum` of a UDP run mixes the sender's bytes with the receiver's jitter and loss, and every
`lost_percent` divides by the sender's packets, of another moment, so neither is read. 3.12 and 3.18 agree in this.

Facts: `side` ("client" or "server"), `client_address`, `server_address`, `connection` (both ends with their ports),
`protocol`, `reverse`, `streams`, `bitrate_asked`, `requested_bit_s` (of all streams), `counted_by` (the sides whose
totals are there), `segments_resent`, `sent_bytes`, `iperf3_version`; of JSON alone `omit_s`, `mss_bytes`,
`cpu_client_percent` and `cpu_server_percent` (of a core). Series of JSON: `throughput`.
"""

from __future__ import annotations

import re

from vtax.model.nodes import Scope
from vtax.tools.commands import command_facts
from vtax.tools.documents import Document
from vtax.tools.iperf3 import details
from vtax.tools.iperf3.json_reader import read_document
from vtax.tools.iperf3.lines import END, UDP, Total, total_of
from vtax.tools.iperf3.metrics import JITTER, LOST, RETRANSMITS, THROUGHPUT
from vtax.tools.iperf3.session import connected, describe, labels_of
from vtax.tools.reading import Line, Reading, Section, Value

CONNECT = re.compile(r"^Connecting to host (\S{1,200}), port (\d{1,5})$")
ACCEPTED = re.compile(r"^Accepted connection from (\S{1,200}), port (\d{1,5})$")
REVERSE = re.compile(r"^Reverse mode, remote host \S{1,200} is sending$")
PEERS = re.compile(
    r"^\[ {0,3}\d{1,6}\](?:\[[RT]X-[CS]\])? local (\S{1,200}) port (\d{1,5}) connected to (\S{1,200}) port (\d{1,5})$"
)
OLD_UDP = re.compile(
    r"^\[ {0,3}(\d{1,6}|SUM)\] {1,4}0\.00-.{1,120}bits/sec {1,4}(\d{1,9}\.\d{3}) ms"
    r" {1,4}(\d{1,12})/(\d{1,12}) \(.{1,20}\) *$"
)
SENT = re.compile(r"^\[ {0,3}(?:\d{1,6}|SUM)\] Sent \d{1,12} datagrams$")  # the client's last word before 3.2
ERROR = re.compile(r"^iperf3?: (?:error|interrupt|the (?:client|server) has )")
SAID = re.compile(r'^\{ ?"event": ?"error", ?"data": ?"(.{1,400}?)"')
VERSION = re.compile(r"^iperf (\d{1,2}\.\d{1,3}(?:\.\d{1,3})?\+?)")
IPERF2 = re.compile(r"^(?:Client connecting to|Server listening on (?:TCP|UDP) port)")


def read_log(section: Section) -> Reading:
    """A session in a log of others: what `read` takes, and as details everything else that iperf3 printed."""
    reading, document = _session(section)
    if not any(value.metric is THROUGHPUT for value in reading.values):
        return reading
    if document is not None:
        reading.values += details.in_document(reading, document)
    else:
        reading.values += details.in_text(reading, section.lines)
    return reading


def read_error(section: Section) -> Reading:
    """What iperf3 printed instead of a session."""
    reading = Reading("iperf3", facts=command_facts(section.lines), scope=Scope.PAIRS)
    error = next((line for line in section.lines if ERROR.match(line.text) or SAID.match(line.text)), None)
    said = SAID.match(error.text) if error else None
    reading.no_test = f"iperf3 says: {said[1]}"[:200] if said else error.text[:200] if error else "no error of iperf3"
    reading.refuse(error.number if error else 0, "all values of this run", reading.no_test, 0)
    return reading


def read(section: Section) -> Reading:
    """One session of a client, or what a server says of one."""
    return _session(section)[0]


def _session(section: Section) -> tuple[Reading, Document | None]:
    """A session, and its document where it was printed as JSON."""
    lines = section.lines
    reading, document = Reading("iperf3", facts=command_facts(lines), scope=Scope.PAIRS), None
    if any(line.text.startswith("{") for line in lines):
        document = read_document(reading, section)
    elif any(IPERF2.match(line.text) for line in lines):
        reading.refuse(section.first, "all values of this run", "this is iperf 2, which vtax does not read", 0)
    else:
        _read_text(reading, section)
    return reading, document


def _read_text(reading: Reading, section: Section) -> None:
    lines = section.lines
    connects = [match for line in lines if (match := CONNECT.match(line.text))]
    accepted = [match for line in lines if (match := ACCEPTED.match(line.text))]
    peers = [match for line in lines if (match := PEERS.match(line.text))]
    totals = [total_of(line, found) for line in lines if (found := END.match(line.text))]
    udp = any(" Datagrams" in line.text for line in lines) or any(UDP.match(total.extra) for total in totals)
    _facts(reading, lines, totals, peers, bool(accepted) and not connects)
    if udp or totals:
        reading.facts["protocol"] = "udp" if udp else "tcp"
    if not peers or len(connects) + len(accepted) != 1:
        reading.refuse(
            section.first, "all values of this run", "no connection was made, or its addresses are missing", 0
        )
        return
    if any("[TX-" in line.text or "[RX-" in line.text for line in lines):
        reading.refuse(section.first, "all values of this run", "both directions at once (--bidir)", 0)
        return
    reverse = any(REVERSE.match(line.text) for line in lines)
    if not connects and not udp and not any(total.side == "receiver" for total in totals):
        reverse = any(total.side == "sender" for total in totals)
    describe(reading, "udp" if udp else "tcp", reverse, len(peers))
    if error := next((line for line in _unfinished(lines) if ERROR.match(line.text)), None):
        reading.refuse(error.number, "all values of this run", error.text, 0)
        return
    _close(reading, section, totals, udp, len(peers))


def _unfinished(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines but for those behind the end of a session: a server that is stopped later has served it whole."""
    done = [place for place, line in enumerate(lines) if line.text.startswith(("iperf Done.", "Server listening on"))]
    ended = [place for place in done if any(END.match(line.text) for line in lines[:place])]
    return lines[: ended[0]] if ended else lines


def _facts(
    reading: Reading, lines: tuple[Line, ...], totals: list[Total], peers: list[re.Match[str]], server: bool
) -> None:
    """What the session says besides its values, each where it is there."""
    reading.facts["side"] = "server" if server else "client"
    if peers:
        connected(reading, (peers[0][1], peers[0][2]), (peers[0][3], peers[0][4]))
    if version := next((match[1] for line in lines if (match := VERSION.match(line.text))), ""):
        reading.facts["iperf3_version"] = version
    if totals:
        reading.facts["counted_by"] = list(dict.fromkeys(total.side for total in totals))
    several = any(total.stream == "SUM" for total in totals)
    for total in totals:
        if total.side == "sender" and total.extra.isdecimal() and several == (total.stream == "SUM"):
            reading.facts |= {"segments_resent": int(total.extra), "sent_bytes": total.moved}


def _close(reading: Reading, section: Section, totals: list[Total], udp: bool, streams: int) -> None:
    """Values from the closing lines: those of the sum when there are several streams."""
    wanted = "SUM" if streams > 1 else None
    mine = [total for total in totals if (total.stream == "SUM") == (wanted == "SUM")]
    received = [total for total in mine if total.side == "receiver"]
    sent = [total for total in mine if total.side == "sender"]
    labels = labels_of(reading)
    if not received:
        old = [(line, found) for line in section.lines if (found := OLD_UDP.match(line.text))]
        sent_all = max((line.number for line in section.lines if SENT.match(line.text)), default=0)
        old = [pair for pair in old if (pair[1][1] == "SUM") == (wanted == "SUM") and pair[0].number < sent_all][-1:]
        if sent:
            reading.refuse(sent[0].line, THROUGHPUT.name, "only the sender's figure is there, not what arrived")
            if len(sent) == 1 and sent[0].extra.isdecimal() and sent[0].fits and not udp:
                reading.values.append(Value(RETRANSMITS, float(sent[0].extra), sent[0].line, labels))
        elif old and udp:
            reading.refuse(
                old[-1][0].number, THROUGHPUT.name, "this version prints the sender's rate, not what arrived"
            )
            _loss(reading, old[-1][0].number, old[-1][1].group(2, 3, 4), labels)
        else:
            reading.refuse(section.last, "all values of this run", "it has no closing line: interrupted, or cut off", 0)
        return
    if len(received) > 1 or len(sent) > 1:
        reading.refuse(received[0].line, "all values of this run", "closing lines stand there twice", 0)
        return
    total = received[0]
    if total.moved > 0 and sent and sent[0].moved == 0:
        why = "the sender's total is 0, so the two sides did not exchange their results: interrupted"
        reading.refuse(sent[0].line, "all values of this run", why, 0)
        return
    if not total.fits or total.rate <= 0:
        reading.refuse(total.line, THROUGHPUT.name, "amount, time and rate of the line do not fit, or nothing arrived")
        return
    reading.elapsed_s = total.seconds
    reading.values.append(Value(THROUGHPUT, total.rate, total.line, labels))
    if udp:
        if found := UDP.match(total.extra):
            _loss(reading, total.line, found.groups(), labels)
        else:
            reading.refuse(total.line, "jitter and loss", "they are not in the receiver's line", 2)
    elif sent and sent[0].extra.isdecimal():
        if sent[0].fits:
            reading.values.append(Value(RETRANSMITS, float(sent[0].extra), sent[0].line, labels))
        else:
            reading.refuse(sent[0].line, RETRANSMITS.name, "amount, time and rate of the line do not fit")


def _loss(reading: Reading, line: int, groups: tuple[str, ...], labels: dict[str, str]) -> None:
    jitter_ms, lost, packets = float(groups[0]), int(groups[1]), int(groups[2])
    if packets == 0 or not 0 <= lost <= packets:
        reading.refuse(line, "jitter and loss", f"{lost} of {packets} packets lost", 2)
        return
    reading.values.append(Value(LOST, lost / packets, line, labels))
    if jitter_ms > 0:
        reading.values.append(Value(JITTER, jitter_ms / 1000, line, labels))
