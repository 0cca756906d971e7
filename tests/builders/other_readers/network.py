"""ping, iperf3's text and nuttcp by plain words."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from builders.other_readers.computing import number, words_of

BINARY = {"Bytes": 1, "KBytes": 2**10, "MBytes": 2**20, "GBytes": 2**30, "TBytes": 2**40}
BITS = {"bits/sec": 1, "Kbits/sec": 1e3, "Mbits/sec": 1e6, "Gbits/sec": 1e9, "Tbits/sec": 1e12}


def ping(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text):
        for word in words:
            parts = [number(part) for part in word.split("/")]
            for name, value in zip(("rtt_min", "rtt_avg", "rtt_max", "rtt_mdev"), parts, strict=False):
                if value is not None and len(parts) > 2:
                    found[name].add(value / 1000)
        if len(words) > 3 and words[1:2] == ["packets"]:
            sent, received = number(words[0]), number(words[3])
            if sent and received is not None:
                found["lost_fraction"].add(1 - received / sent)
    return found


def iperf3(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text.replace("[SUM]", "[ SUM]").replace("(", " (").replace(",", " ")):
        for place, word in enumerate(words[1:], start=1):
            value = number(words[place - 1])
            if value is None:
                continue
            if word in BITS:
                for name in ("throughput", "throughput_sent", "throughput_interval"):
                    found[name].add(float(f"{value}") * BITS[word])
                for again in words[place + 1 : place + 2]:
                    if (count := number(again)) is not None:
                        found["retransmits"].add(count)
                        found["retransmits_interval"].add(count)
            if word in BINARY:
                for name in ("transfer", "transfer_sent", "transfer_interval"):
                    found[name].add(value * BINARY[word])
            if word == "ms":
                for name in ("jitter", "jitter_interval"):
                    found[name].add(value / 1000)
        for word in words:
            lost, _, packets = word.partition("/")
            one, other = number(lost), number(packets)
            if one is not None and other:
                found["lost_fraction"].add(one / other)
                found["lost_fraction_interval"].add(one / other)
    return found


def nuttcp(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    units = {
        "Mbps": ("throughput", 1e6),
        "MB": ("transfer", 2**20),
        "retrans": ("retransmits", 1),
        "msRTT": ("rtt", 1e-3),
    }
    for words in words_of(text):
        for before, word in pairwise(words):
            if word in units and (value := number(before)) is not None:
                name, scale = units[word]
                found[name].add(value * scale)
        for place, word in enumerate(words):
            if word == "drop/pkt" and place > 2:
                lost, packets = number(words[place - 3]), number(words[place - 1])
                if lost is not None and packets:
                    found["lost_fraction"].add(lost / packets)
    return found
