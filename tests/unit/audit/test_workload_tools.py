"""What makes numbers of sockperf, netperf, hackbench, 7-Zip and OpenSSL mean something else, from recorded outputs."""

from __future__ import annotations

from typing import Any

import pytest

from builders.audit_cases import both, evidence, failed, logged, only, passed, recorded, unknown
from vtax.audit import Evidence, Row, servers
from vtax.audit.clocks import elapsed
from vtax.audit.environment import hidden_flags
from vtax.audit.mpi import threads
from vtax.model.finding import Outcome, Severity
from vtax.model.nodes import Scope
from vtax.tools.openssl_speed import audit as openssl
from vtax.tools.sevenzip import audit as sevenzip
from vtax.tools.sockperf import audit as sockperf

PRIMARY = {
    "sockperf": "latency_p50",
    "netperf": "transaction_rate",
    "hackbench": "time",
    "sevenzip": "rating",
    "openssl-speed": "throughput",
}
SOCKPERF = recorded("readers/sockperf", "3.7--trixie-text", "output")
NETPERF = recorded("readers/netperf", "2.7.0-git--trixie-columns-text", "output")
HACKBENCH = recorded("readers/hackbench", "2.6--trixie-text", "output")
SEVENZIP = recorded("readers/sevenzip", "25.01--trixie-text", "output")
OPENSSL = recorded("readers/openssl-speed", "3.5.9--trixie-text", "output")
CLOCKED = ("vtax-run", "--", "openssl", "speed", "-mr", "-elapsed", "-evp", "aes-256-gcm")


def campaign(tool: str, host: str, container: str, **more: Any) -> Evidence:
    params = {"command": [tool], "metrics": [{"reader": tool, "primary": [PRIMARY[tool]]}]}
    return logged(tool, both(host) | {"container": container}, params=params, scope=Scope.NODE, **more)


def test_l01_messages_that_have_no_latency() -> None:
    assert passed(sockperf.lost, campaign("sockperf", SOCKPERF, SOCKPERF))[0] == (
        "sockperf in host: 0 messages dropped, 0 messages duplicated, 0 messages out of order"
    )
    few = SOCKPERF.replace("dropped messages = 0", "dropped messages = 88")  # of 88,573: under one in a thousand
    assert passed(sockperf.lost, campaign("sockperf", SOCKPERF, few))
    many = SOCKPERF.replace("dropped messages = 0", "dropped messages = 89")
    one = only(failed(sockperf.lost, campaign("sockperf", SOCKPERF, many)))
    assert (one.environment, one.severity) == ("container", Severity.WARNING)
    assert "534 messages dropped" in one.message  # of six rounds
    alike = failed(sockperf.lost, campaign("sockperf", many, many))
    assert {one.severity for one in alike} == {Severity.INFO}


def test_l02_a_quantile_of_few_messages() -> None:
    assert (
        "88,573 messages in a run, 89 of them above"
        in passed(sockperf.few_messages, campaign("sockperf", SOCKPERF, SOCKPERF))[0]
    )
    few = SOCKPERF.replace("Total 88573 observations", "Total 9999 observations")
    one = only(failed(sockperf.few_messages, campaign("sockperf", SOCKPERF, few)))
    assert (one.environment, one.metrics) == ("container", ("latency_p99.9",))
    enough = SOCKPERF.replace("Total 88573 observations", "Total 10000 observations")
    assert passed(sockperf.few_messages, campaign("sockperf", SOCKPERF, enough))


def test_o04_the_time_that_sockperf_says_against_the_time_outside() -> None:
    """It says 2.001 s. A command of 1.5 s cannot have taken so long by a right clock."""
    one = failed(elapsed, campaign("sockperf", SOCKPERF, SOCKPERF, elapsed_s=1.5))[0]
    assert "2.00 s by the node's clock, 1.50 s outside" in one.message


def test_b04_whole_microseconds_of_netperf_and_milliseconds_of_hackbench() -> None:
    """p50 is 9 us, so half a microsecond is 5.6 % of it; 0.5 ms of 0.266 s are 0.19 %."""
    found = failed(servers.coarse_times, campaign("netperf", NETPERF, NETPERF))
    assert found[0].message == "netperf in host: its times are right to 5.6 %"
    assert found[0].metrics == ("latency_p50", "latency_p90", "latency_p99", "latency_max")
    slower = NETPERF.replace(",13.51,9,10,16,6,10222,", ",13.51,12,13,16,6,10222,")
    assert "netperf in host: its times are right to 4.2 %" in passed(
        servers.coarse_times, campaign("netperf", slower, slower)
    )
    assert "hackbench in host: its times are right to 0.19 %" in passed(
        servers.coarse_times, campaign("hackbench", HACKBENCH, HACKBENCH)
    )
    short = HACKBENCH.replace("Time: 0.266", "Time: 0.008")
    assert failed(servers.coarse_times, campaign("hackbench", short, short))


def test_z01_threads_without_a_cpu() -> None:
    """It prints a usage of 56 % and 68 % for one thread."""
    alike = failed(sevenzip.waited, campaign("sevenzip", SEVENZIP, SEVENZIP))
    assert alike[0].message == "sevenzip in host: each of its threads had 56 % of a CPU"
    assert {one.severity for one in alike} == {Severity.INFO}
    alone = SEVENZIP.replace("2872    56 ", "2872    99 ").replace("41887    68 ", "41887   100 ")
    one = only(failed(sevenzip.waited, campaign("sevenzip", alone, SEVENZIP)))
    assert (one.environment, one.severity) == ("container", Severity.WARNING)
    assert passed(sevenzip.waited, campaign("sevenzip", alone, alone))
    two = SEVENZIP.replace("Benchmark threads:      1", "Benchmark threads:      2")
    assert "had 28 % of a CPU" in failed(sevenzip.waited, campaign("sevenzip", two, two))[0].message


def test_z02_data_within_a_cache() -> None:
    """6 MB of data; the nodes of the sample have a cache of 256 KiB."""
    assert (
        "6 MiB of data, where the last cache has 0.25 MiB"
        in passed(sevenzip.within_cache, campaign("sevenzip", SEVENZIP, SEVENZIP))[0]
    )
    large = {"container": {"last_cache_bytes": 32 * 2**20}}
    one = only(failed(sevenzip.within_cache, campaign("sevenzip", SEVENZIP, SEVENZIP, facts=large)))
    assert (one.environment, one.severity) == ("container", Severity.WARNING)
    assert unknown(sevenzip.within_cache, campaign("sevenzip", SEVENZIP.replace("RAM usage", "RAM"), "", facts=large))


def test_m05_more_threads_of_7_zip_than_cpus() -> None:
    """Two workers of the sample have two CPUs each."""
    assert "2 threads on 4 CPUs" in passed(threads, campaign("sevenzip", SEVENZIP, SEVENZIP))[0]
    many = SEVENZIP.replace("Benchmark threads:      1", "Benchmark threads:      9")
    assert "18 threads on 4 CPUs" in failed(threads, campaign("sevenzip", many, many))[0].message


def test_e01_rates_by_cpu_time() -> None:
    usual = tuple(word for word in CLOCKED if word != "-elapsed")
    clocked = {"host": CLOCKED, "container": CLOCKED}
    assert passed(openssl.cpu_time, campaign("openssl-speed", OPENSSL, OPENSSL, argv=clocked))
    found = campaign("openssl-speed", OPENSSL, OPENSSL, argv=clocked | {"container": usual})
    one = only(failed(openssl.cpu_time, found))
    assert (one.environment, one.severity) == ("container", Severity.WARNING)
    assert unknown(openssl.cpu_time, campaign("openssl-speed", OPENSSL, OPENSSL))


def test_e02_and_t03_instructions_that_openssl_does_not_use() -> None:
    argv = {"host": CLOCKED, "container": ("vtax-run", "--set", "OPENSSL_ia32cap=~0x2000000", *CLOCKED[1:])}
    one = only(failed(openssl.instructions, campaign("openssl-speed", OPENSSL, OPENSSL, argv=argv)))
    assert (one.environment, one.severity) == ("container", Severity.BLOCKER)
    assert one.message == ("openssl-speed: OPENSSL_ia32cap=~0x2000000 in container, OPENSSL_ia32cap is not set in host")
    assert passed(openssl.instructions, campaign("openssl-speed", OPENSSL, OPENSSL, argv=dict.fromkeys(argv, CLOCKED)))
    flags = ["aes", "avx2", "pclmulqdq", "vaes"]
    hidden = evidence(
        {"container": {"cpu_flags": ["avx2"]}, "host": {"cpu_flags": flags}},
        host_facts={"cpu_flags": flags, "virtualization": [], "is_virtual": False},
    )
    assert "lacks aes, pclmulqdq, vaes" in failed(hidden_flags, hidden)[0].message


@pytest.mark.parametrize(
    "row", [sockperf.lost, sockperf.few_messages, sevenzip.waited, sevenzip.within_cache, openssl.cpu_time]
)
def test_campaigns_without_these_tools_are_left_alone(row: Row) -> None:
    assert row.look(evidence()).outcome is Outcome.NOT_APPLICABLE
