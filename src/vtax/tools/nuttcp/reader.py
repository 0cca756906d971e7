"""nuttcp: the closing line of a test. Each is a run; amount and time must give its rate. nuttcp's MB are 2^20 bytes.

Facts: `protocol`, `cpu_sender_percent` and `cpu_receiver_percent` (of a core).
"""

from __future__ import annotations

import re

from vtax.model.nodes import Scope
from vtax.tools.commands import command_facts
from vtax.tools.nuttcp.metrics import LOST, RETRANSMITS, RTT, THROUGHPUT, TRANSFER
from vtax.tools.reading import Line, Reading, Section, Value

AMOUNT = r"^ {0,12}(\d{1,9}\.\d{4}) MB / {1,4}(\d{1,7}\.\d{2}) sec = {1,6}(\d{1,9}\.\d{4}) Mbps"
INTERVAL = re.compile(AMOUNT + r"(?: {1,6}\d{1,9} retrans(?: {1,6}\d{1,9} KB-cwnd)?)?$")
TCP = re.compile(
    AMOUNT + r" (\d{1,4}) %TX (\d{1,4}) %RX(?: (\d{1,9}) retrans)?(?: \d{1,9} KB-cwnd)?(?: (\d{1,6}\.\d{2}) msRTT)?$"
)
UDP = re.compile(AMOUNT + r" (\d{1,4}) %TX (\d{1,4}) %RX (\d{1,12}) / (\d{1,12}) drop/pkt (\d{1,3}\.\d{2,5}) %loss$")
MIB = 2**20
SHORTEST_S = 0.1
EVERYTHING = "all values of this run"


def starts(line: str) -> bool:
    return " MB / " in line and "%TX" in line and (TCP.match(line) or UDP.match(line)) is not None


def read(section: Section) -> Reading:
    """One test."""
    lines = section.lines
    reading = Reading("nuttcp", facts=command_facts(lines), scope=Scope.PAIRS)
    tests = [(line, match) for line in lines if (match := TCP.match(line.text) or UDP.match(line.text))]
    if len(tests) != 1:
        reading.refuse(section.end, EVERYTHING, f"it has {len(tests)} lines of results, instead of one", 0)
        return reading
    line, found = tests[0]
    udp = found.re is UDP
    reading.params["protocol"] = reading.facts["protocol"] = "udp" if udp else "tcp"
    reading.facts |= {"cpu_sender_percent": int(found[4]), "cpu_receiver_percent": int(found[5])}
    moved, seconds, rate = float(found[1]), float(found[2]), float(found[3])
    low, high = (rate - 6e-5) * (seconds - 5.1e-3), (rate + 6e-5) * (seconds + 5.1e-3)
    megabits = moved * 8 * MIB / 1e6
    if seconds < SHORTEST_S or rate <= 0 or not low <= megabits <= high:
        reading.refuse(line.number, EVERYTHING, "amount, time and rate of the line do not fit, or nothing arrived", 2)
        return reading
    if udp and not _loss(reading, line, found):
        return reading
    reading.ended, reading.elapsed_s = True, seconds
    reading.values.insert(0, Value(THROUGHPUT, rate * 1e6, line.number))
    reading.values.append(Value(TRANSFER, moved * MIB, line.number))
    if not udp and found[6]:
        reading.values.append(Value(RETRANSMITS, float(found[6]), line.number))
    if not udp and found[7] and float(found[7]) > 0:
        reading.values.append(Value(RTT, float(found[7]) / 1000, line.number))
    return reading


def _loss(reading: Reading, line: Line, found: re.Match[str]) -> bool:
    """The share of lost packets; False where the line contradicts itself."""
    lost, packets, percent = int(found[6]), int(found[7]), float(found[8])
    digits = len(found[8].partition(".")[2])
    if packets == 0 or lost > packets or abs(100 * lost / packets - percent) > 0.51 * 10.0**-digits:
        reading.refuse(line.number, EVERYTHING, f"{lost} of {packets} packets are not {percent:g} %", 3)
        return False
    reading.values.append(Value(LOST, lost / packets, line.number))
    return True
