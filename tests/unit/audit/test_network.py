"""N01 to N08: peers, rates, CPUs, interfaces, segments and packets, from logs of iperf3 and ping."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from builders.audit_cases import both, failed, logged, passed, recorded, unknown, value
from vtax.audit import Evidence, network
from vtax.model.finding import Severity
from vtax.tools.iperf3 import audit as streams
from vtax.tools.ping.audit import few_packets

TCP = recorded("iperf3", "3.18--trixie-tcp", "1-worker1.stdout")
UDP = recorded("iperf3", "3.18--trixie-udp", "1-worker1.stdout")
PING = recorded("ping", "iputils-20240905--trixie", "1-worker1.stdout")
TEXT = """\
[  5] local 10.0.0.2 port 46266 connected to 10.0.0.3 port 5201
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  1.00 GBytes   859 Mbits/sec    2             sender
[  5]   0.00-10.00  sec   999 MBytes   838 Mbits/sec                  receiver
"""
ONE = json.dumps(json.loads(TCP) | {"start": json.loads(TCP)["start"] | {"test_start": {"num_streams": 1}}})


def changed(text: str, **replaced: Any) -> str:
    """iperf3's JSON with other values; names are paths joined by two underscores."""
    document = json.loads(text)
    for path, new in replaced.items():
        *parts, last = path.split("__")
        at = document
        for part in parts:
            at = at[part]
        if new is None:
            del at[last]
        else:
            at[last] = new
    return json.dumps(document)


def iperf3(text: str, rate: float = 1e9, **more: Any) -> Evidence:
    values = {name: (value("iperf3", "throughput", rate),) for name in ("host", "container")}
    return logged("iperf3", both(text), values=values, **more)


def ping(text: str) -> Evidence:
    return logged("ping", both(text))


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
def test_n01_a_peer_that_is_the_node_itself(peer: str) -> None:
    connected = [{"socket": 5, "local_host": peer, "local_port": 1, "remote_host": peer, "remote_port": 2}]
    found = failed(network.loopback, iperf3(changed(TCP, start__connected=connected)))
    assert found[0].severity is Severity.BLOCKER
    assert f"sent to {peer}" in found[0].message
    assert failed(network.loopback, iperf3(TEXT.replace("10.0.0.3", "10.0.0.2")))
    assert failed(network.loopback, ping(PING.replace("172.18.0.3", "10.0.0.9")))  # the node's own, by its facts


def test_n01_a_peer_elsewhere() -> None:
    assert "the peer is 10.0.0.3" in passed(network.loopback, iperf3(TEXT))[0]
    assert passed(network.loopback, ping(PING))
    assert "not recorded: the addresses of both ends" in unknown(network.loopback, iperf3("nothing\n")).message


def silent(outside: float, inside: float) -> Evidence:
    """Clients that do not print whom they talked to, and what their nodes sent during the runs."""
    made = iperf3("nothing\n")
    sent = {"network_sent_bytes": outside, "loopback_bytes": inside}
    counters = {
        one.id: {"worker1": sent, "worker2": {"network_sent_bytes": 0.0, "loopback_bytes": 1e9}} for one in made.trials
    }
    return replace(made, counters=counters)


def test_n01_what_the_client_sent_decides_where_no_address_was_printed() -> None:
    assert "sent 1.140 GB to other nodes and 190.0 kB to itself" in passed(network.loopback, silent(1.14e9, 190e3))[0]
    assert "counted nothing" in unknown(network.loopback, silent(0.0, 0.0)).message
    found = failed(network.loopback, silent(2e3, 1e9))
    assert {one.severity for one in found} == {Severity.BLOCKER}
    assert "sent 2.000 kB to other nodes and 1.000 GB to itself, so its peer was the node itself" in found[0].message


def test_n02_one_machine_everywhere_is_a_note() -> None:
    found = failed(network.one_host, iperf3(TCP))
    assert [one.severity for one in found] == [Severity.INFO]
    assert "between nodes on one machine" in found[0].message


def test_n02_one_machine_in_some_environments() -> None:
    (found,) = failed(network.one_host, iperf3(TCP, provider="cloud"))
    assert found.severity is Severity.WARNING
    alone = logged("iperf3", {"container": TCP}, provider="cloud")
    assert "which machine each node ran on" in unknown(network.one_host, alone).message


def test_n03_a_log_that_knows_its_target() -> None:
    asked = json.loads(UDP)["start"]["test_start"]["target_bitrate"]
    (one, _) = failed(streams.udp_rate, iperf3(UDP, rate=0.99 * asked))
    assert (one.severity, one.metrics) == (Severity.BLOCKER, ("throughput",))
    assert passed(streams.udp_rate, iperf3(UDP, rate=0.5 * asked))


def test_n03_a_log_without_a_target() -> None:
    text = "[ ID] Interval  Transfer  Bitrate  Jitter  Lost/Total Datagrams\n"
    assert "1.049 Mbit/s requested" in failed(streams.udp_rate, iperf3(text, rate=1.05e6))[0].message
    assert "was asked for is not known" in unknown(streams.udp_rate, iperf3(text, rate=5e8)).message


def test_n04_a_stream_that_fills_a_core() -> None:
    busy = {"host_total": 97.5, "remote_total": 40.0}
    found = failed(streams.cpu_bound, iperf3(changed(ONE, end__cpu_utilization_percent=busy)))
    assert "98 % of a core on the client, 40 % of a core on the server" in found[0].message
    idle = {"host_total": 20.0, "remote_total": 40.0}
    assert passed(streams.cpu_bound, iperf3(changed(ONE, end__cpu_utilization_percent=idle)))
    assert "only its JSON has it" in unknown(streams.cpu_bound, iperf3(TEXT)).message


def link(**more: Any) -> dict[str, Any]:
    return {"interfaces": [{"name": "eth0", "mtu": 1500, "gso_max_size": 65536, "addresses": [], **more}]}


def test_n05_interfaces_that_are_configured_differently() -> None:
    (found,) = failed(network.interfaces, iperf3(TCP, facts={"container": link(mtu=9000)}))
    assert (found.severity, found.message) == (Severity.WARNING, "MTU is 9000 in container and 1500 in host")
    (found,) = failed(network.interfaces, iperf3(TCP, facts={"container": {"tcp_congestion_control": "bbr"}}))
    assert "congestion control is bbr" in found.message


def test_n05_a_rate_above_that_of_the_wire() -> None:
    physical = {name: link(speed_bits=1_000_000_000) for name in ("host", "container")}
    found = failed(network.interfaces, iperf3(TCP, rate=1.5e9, facts=physical))
    assert {one.severity for one in found} == {Severity.BLOCKER}
    assert "1.500 Gbit/s exceeds the interface's 1.000 Gbit/s" in found[0].message
    assert passed(network.interfaces, iperf3(TCP, rate=0.9e9, facts=physical))
    blind = {name: {"interfaces": None} for name in ("host", "container")}
    assert unknown(network.interfaces, iperf3(TCP, facts=blind))


def test_n06_segments_that_were_sent_again() -> None:
    many = changed(TCP, end__sum_sent__retransmits=500, end__sum_sent__bytes=14_480_000, start__tcp_mss_default=1448)
    found = failed(streams.retransmits, iperf3(many))
    assert "3000 of about 60000 segments were sent again" in found[0].message  # six runs
    few = changed(many, end__sum_sent__retransmits=5)
    assert passed(streams.retransmits, iperf3(few))
    # 2 of 2**30 / 1448 segments
    assert passed(streams.retransmits, iperf3(TEXT))
    assert unknown(streams.retransmits, iperf3("nothing\n"))


def test_n06_slow_start_that_counts() -> None:
    quiet = changed(TCP, start__test_start__omit=0, end__sum_sent__retransmits=0)
    slow = changed(quiet, intervals=every(1.0, 5e8, 1e9, 1e9, 1e9))
    assert "6 of 6 runs count TCP's slow start" in failed(streams.retransmits, iperf3(slow))[0].message
    assert passed(streams.retransmits, iperf3(changed(slow, start__test_start__omit=3)))


def test_n06_does_not_depend_on_how_often_iperf3_reported() -> None:
    """A first tenth of a second at half the rate is a tenth of a run of a second, and a hundredth of one of ten."""
    quiet = changed(TCP, start__test_start__omit=0, end__sum_sent__retransmits=0)
    assert failed(streams.retransmits, iperf3(changed(quiet, intervals=every(0.1, 5e8, *[1e9] * 9))))
    assert passed(streams.retransmits, iperf3(changed(quiet, intervals=every(0.1, 5e8, *[1e9] * 99))))
    assert failed(streams.retransmits, iperf3(changed(quiet, intervals=every(0.1, *[5e8] * 10, *[1e9] * 90))))


def every(interval_s: float, *rates: float) -> list[dict[str, dict[str, float]]]:
    """Intervals of a run, each ending a little late."""
    return [
        {
            "sum": {
                "start": interval_s * (number - 1),
                "end": interval_s * number + 0.003,
                "bits_per_second": rate,
            }
        }
        for number, rate in enumerate(rates, 1)
    ]


def test_n07_a_count_of_the_sender() -> None:
    found = failed(streams.sender_side, iperf3(TEXT.replace("receiver", "")))
    assert (found[0].severity, found[0].metrics) == (Severity.BLOCKER, ("throughput",))
    assert passed(streams.sender_side, iperf3(TEXT))
    assert passed(streams.sender_side, iperf3(TCP))
    assert failed(streams.sender_side, iperf3(changed(TCP, end__sum_received=None)))
    assert unknown(streams.sender_side, iperf3("nothing\n"))


def test_n08_packets_that_are_lost_or_few_or_late() -> None:
    few = failed(few_packets, ping(PING))[0]
    assert "runs have 20 packets, fewer than 100" in few.message
    assert "6 of 600 packets were lost" in failed(few_packets, ping(session("", 99)))[0].message
    times = "\n".join(f"64 bytes from a: icmp_seq={n} ttl=64 time={9.0 if n == 1 else 1.0} ms" for n in range(1, 101))
    assert "the first packet of 6 runs" in failed(few_packets, ping(session(times)))[0].message
    assert passed(few_packets, ping(session("")))
    assert unknown(few_packets, ping("PING a\n"))


def session(answers: str, received: int = 100) -> str:
    """A whole session of ping of 100 packets."""
    loss = f"100 packets transmitted, {received} received, {100 - received}% packet loss, time 9ms\n"
    times = "rtt min/avg/max/mdev = 1.000/1.000/9.000/0.100 ms\n"
    return f"PING a (10.0.0.3) 56(84) bytes of data.\n{answers}\n\n--- a ping statistics ---\n{loss}{times}"
