"""iperf3's JSON, of a client or a server: one document is one session."""

from __future__ import annotations

import json
import math
from typing import Any

from vtax.model.nodes import Scope
from vtax.tools.commands import command_facts
from vtax.tools.iperf3.benchmark import JITTER, LARGEST, LOST, RETRANSMITS, THROUGHPUT
from vtax.tools.iperf3.log_reader import SHORTEST_S, describe, labels_of
from vtax.tools.reading import Reading, Section, Value

MARK = '"start"'


def read(section: Section) -> Reading:
    """One document. A damaged one is refused as a whole: JSON has no half."""
    reading = Reading("iperf3", facts=command_facts(section.lines), scope=Scope.PAIRS)
    start = next((place for place, line in enumerate(section.lines) if line.text.startswith("{")), 0)
    where = section.lines[start].number
    text = "\n".join(line.text for line in section.lines[start:])
    try:
        document, _ = json.JSONDecoder(object_pairs_hook=_once).raw_decode(text)
        _session(reading, document, where)
    except (ValueError, RecursionError) as error:
        reading.values.clear()
        reading.refuse(where, "all values of this run", f"not one whole JSON document: {str(error)[:100]}", 0)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        reading.values.clear()
        reading.refuse(
            where, "all values of this run", f"not what iperf3 writes: {error} is missing or of another type", 0
        )
    return reading


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no key stands twice with different values (iperf3 writes some of them twice)."""
    found = dict(pairs)
    if any(found[key] != value for key, value in pairs):
        raise ValueError("a key stands twice in an object, with different values")
    return found


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST:
        raise ValueError(f"{value!r} is not a number that iperf3 writes")
    return float(value)


def _session(reading: Reading, document: Any, where: int) -> None:
    start, end, test = document["start"], document["end"], document["start"]["test_start"]
    peers = start["connected"]
    server = "accepted_connection" in start
    reading.facts["side"] = "server" if server else "client"
    reading.facts["iperf3_version"] = str(start.get("version", ""))[:60]
    ours = (peers[0]["local_host"], str(peers[0]["local_port"]))
    theirs = (peers[0]["remote_host"], str(peers[0]["remote_port"]))
    client, host = (theirs, ours) if server else (ours, theirs)
    reading.facts |= {"client_address": client[0], "server_address": host[0]}
    reading.facts["connection"] = " ".join(sorted([":".join(map(str, client)), ":".join(map(str, host))]))
    reading.nodes = (str(client[0])[:200], str(host[0])[:200])
    if "timestamp" in start and isinstance(start["timestamp"].get("timesecs"), int):
        reading.started = float(start["timestamp"]["timesecs"])
    protocol = str(test["protocol"]).lower()
    describe(reading, protocol, bool(test.get("reverse", 0)), len(peers))
    if test.get("target_bitrate"):
        reading.facts["bitrate_asked"] = str(test["target_bitrate"])
    if "error" in document or test.get("bidir", 0) or protocol not in ("tcp", "udp"):
        why = str(document.get("error", "both directions at once, or neither TCP nor UDP"))[:100]
        reading.refuse(where, "all values of this run", why, 0)
        return
    _values(reading, end, where, protocol)


def _values(reading: Reading, end: Any, where: int, protocol: str) -> None:
    received, labels = end["sum_received"], labels_of(reading)
    seconds, moved = _number(received["seconds"]), _number(received["bytes"])
    rate = _number(received["bits_per_second"])
    if moved <= 0 or seconds < SHORTEST_S:
        reading.refuse(where, THROUGHPUT.name, "nothing arrived, or this side does not know what did")
        return
    if not math.isclose(rate, moved * 8 / seconds, rel_tol=0.01):
        reading.refuse(where, THROUGHPUT.name, "bytes, seconds and rate do not fit")
        return
    reading.elapsed_s = seconds
    reading.values.append(Value(THROUGHPUT, rate, where, labels))
    if protocol == "udp":
        packets, lost = _number(received["packets"]), _number(received["lost_packets"])
        if packets and lost <= packets:
            reading.values.append(Value(LOST, lost / packets, where, labels))
        if (jitter := _number(received["jitter_ms"])) > 0:
            reading.values.append(Value(JITTER, jitter / 1000, where, labels))
    elif "retransmits" in end["sum_sent"]:
        reading.values.append(Value(RETRANSMITS, _number(end["sum_sent"]["retransmits"]), where, labels))
