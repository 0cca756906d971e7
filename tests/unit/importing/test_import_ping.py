"""ping of iputils, BusyBox, BSD and macOS, IPv4 and IPv6, in the forms that their sources print."""

from __future__ import annotations

import pytest

from builders.logs import readings
from vtax.tools.reading import Reading


def log(head: str, counts: str, times: str = "rtt min/avg/max/mdev = 0.041/0.068/0.095/0.027 ms") -> str:
    return f"{head}\n\n--- 10.0.0.1 ping statistics ---\n{counts}\n{times}\n"


def one(text: str) -> Reading:
    (reading,) = readings(text)
    return reading


IPUTILS = "PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data."
BSD = "PING 10.0.0.1 (10.0.0.1): 56 data bytes"
ROUND_TRIP = "round-trip min/avg/max/stddev = 0.041/0.068/0.095/0.027 ms"


@pytest.mark.parametrize(
    ("head", "counts", "times", "lost"),
    [
        (IPUTILS, "3 packets transmitted, 3 received, +1 duplicates, 0% packet loss, time 2031ms", "", 0),
        (IPUTILS, "4 packets transmitted, 2 received, +1 duplicates, +2 errors, 50% packet loss, time 9ms", "", 0.5),
        (IPUTILS, "4 packets transmitted, 3 received, +1 corrupted, 25% packet loss, time 9ms", "", 0.25),
        (
            BSD,
            "4 packets transmitted, 3 packets received, 25.0% packet loss, 1 packets out of wait time",
            ROUND_TRIP,
            0.25,
        ),
        (BSD, "2 packets transmitted, 2 packets received, +1 duplicates, 0.0% packet loss", ROUND_TRIP, 0),
        (BSD, "2 packets transmitted, 2 packets received, 1 duplicates, 0% packet loss", ROUND_TRIP, 0),
    ],
)
def test_what_is_counted_besides_answers(head: str, counts: str, times: str, lost: float) -> None:
    reading = one(log(head, counts, times) if times else log(head, counts))
    found = {value.metric.name: value.value for value in reading.values}
    assert found == {
        "lost_fraction": lost,
        "rtt_min": 0.041 / 1000,
        "rtt_avg": 0.068 / 1000,
        "rtt_max": 0.095 / 1000,
        "rtt_mdev": 0.027 / 1000,
    }


@pytest.mark.parametrize(
    ("head", "server", "size"),
    [
        ("PING fd00::1(fd00::1) 56 data bytes", "fd00::1", 56),
        ("PING fd00::1 (fd00::1) 56 data bytes", "fd00::1", 56),
        ("PING ::1 (::1): 56 data bytes", "::1", 56),
        ("PING fe80::1%eth0 (fe80::1%eth0) 56 data bytes", "fe80::1%eth0", 56),
        ("PING a.example(b.example (fd00::1)) from fd00::2 eth0: 16 data bytes", "a.example", 16),
        ("PING a.example (fd00::1) 8 data bytes", "a.example", 8),
        ("PING6(56=40+8+8 bytes) fd00::2 --> fd00::1", "fd00::1", 8),
    ],
)
def test_ipv6(head: str, server: str, size: int) -> None:
    reading = one(log(head, "3 packets transmitted, 3 received, 0% packet loss, time 2ms"))
    assert len(reading.values) == 5
    assert reading.params["bytes"] == size
    assert {value.labels["server"] for value in reading.values} == {server}


def test_statistics_of_ping6() -> None:
    text = log(
        "PING6(56=40+8+8 bytes) fd00::2 --> fd00::1", "1 packets transmitted, 1 packets received, 0.0% packet loss"
    )
    reading = one(text.replace("ping statistics", "ping6 statistics"))
    assert len(reading.values) == 5
    assert reading.facts["client_address"] == "fd00::2"


def test_decimal_commas_are_refused_for_what_they_are() -> None:
    text = (
        "PING 10.0.0.1 (10.0.0.1) 56(84) Bytes an Daten.\n\n--- 10.0.0.1 ping-Statistiken ---\n"
        "1 Pakete übertragen, 1 empfangen, 0% Paketverlust, Zeit 0ms\n"
        "rtt min/avg/max/mdev = 0,030/0,030/0,030/0,000 ms\n"
    )
    reading = one(text)
    assert [value.metric.name for value in reading.values] == ["lost_fraction"]
    assert reading.refusals[0].reason == "no closing line has times in a known form"
