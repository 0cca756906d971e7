"""O, N, D, H: memory pressure, clocks, short runs, UDP, shared directories, HPL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.audit_cases import COUNTERS, PARAMS, both, evidence, failed, logged, only, passed, unknown
from vtax.audit import Evidence, clocks, disk, disturbance
from vtax.model.finding import Outcome, Severity
from vtax.model.nodes import Scope
from vtax.tools.hpcc import audit_linpack
from vtax.tools.iperf3 import audit as streams


def test_nothing_disturbed() -> None:
    campaign = evidence()
    checks = (disturbance.memory_pressure, clocks.clock, disturbance.too_short)
    assert [check(campaign) for check in checks] == [(), (), ()]
    assert streams.udp_rate(campaign) == ()
    assert disk.shared_filesystem(campaign) == ()
    assert (audit_linpack.implausible(campaign), audit_linpack.too_small(campaign)) == ((), ())


def test_swapping_is_counted_once_for_nodes_of_one_kernel() -> None:
    campaign = evidence()
    name = "r1-container-hpcc"
    swapped = {**COUNTERS, "swap_in_pages": 7.0}
    counters = {**campaign.counters, name: {"worker1": swapped, "worker2": swapped}}
    finding = only(disturbance.memory_pressure(replace(campaign, counters=counters)))
    assert (finding.severity, finding.environment, finding.benchmark) == (Severity.WARNING, "container", "hpcc")
    assert "7 pages came back from swap" in finding.message


def test_swapping_that_could_have_cost_half_the_margin_blocks() -> None:
    """Half of 2 % of six runs of 91 s is 5.4 s, which is 5,406 pages at a millisecond each."""
    campaign = evidence()
    for pages, severity in ((5400.0, Severity.WARNING), (5500.0, Severity.BLOCKER)):
        swapped = {"worker1": {**COUNTERS, "swap_in_pages": pages}}
        counters = {**campaign.counters, "r1-container-hpcc": swapped}
        assert only(disturbance.memory_pressure(replace(campaign, counters=counters))).severity is severity


def test_without_counters_memory_pressure_is_unknown() -> None:
    found = disturbance.memory_pressure(replace(evidence(), counters={}))
    assert [(one.severity, one.message) for one in found] == [
        (Severity.WARNING, f"{name}: not recorded: swapping and OOM kills") for name in ("host", "container")
    ]


def test_another_clock_source() -> None:
    finding = only(clocks.clock(evidence({"container": {"clock_source": "hpet"}})))
    assert "hpet in container and tsc in host" in finding.message


def test_short_runs() -> None:
    campaign = evidence()
    step = campaign.trials[0].steps[0].model_copy(update={"elapsed_s": 0.25})
    short = campaign.trials[0].model_copy(update={"steps": (step,)})
    found = disturbance.too_short(replace(campaign, trials=(short, *campaign.trials[1:])))
    assert [(one.severity, one.environment) for one in found] == [
        (Severity.INFO, "host"),
        (Severity.WARNING, "container"),  # as start-up is a part of one side of the comparison only
    ]
    assert found[1].message == "1 of 6 runs of hpcc in host took less than 1 s (shortest 0.25 s); not so in container"


def test_short_runs_in_all_environments_are_a_note() -> None:
    campaign = evidence()
    trials = tuple(
        one.model_copy(update={"steps": (one.steps[0].model_copy(update={"elapsed_s": 0.25}),)})
        for one in campaign.trials
    )
    found = disturbance.too_short(replace(campaign, trials=trials))
    assert {one.severity for one in found} == {Severity.INFO}
    assert {one.environment for one in found} == {"host", "container"}


def test_ping_is_short_by_nature() -> None:
    campaign = evidence()
    step = campaign.trials[0].steps[0].model_copy(update={"elapsed_s": 0.25})
    short = campaign.trials[0].model_copy(update={"steps": (step,), "benchmark": "ping", "label": "ping"})
    assert disturbance.too_short.look(replace(campaign, trials=(short,))).outcome is Outcome.UNKNOWN


def test_udp_at_the_requested_rate_is_no_capacity() -> None:
    findings = streams.udp_rate(evidence(values={"iperf3-udp": 2.99e9}))
    assert {finding.environment for finding in findings} == {"host", "container"}
    assert findings[0].severity is Severity.BLOCKER
    assert "2.990 Gbit/s, with 3.000 Gbit/s requested" in findings[0].message


def test_parallel_streams_ask_for_more() -> None:
    params = {**PARAMS, "iperf3-udp": {**PARAMS["iperf3-udp"], "parallel": 2}}
    assert streams.udp_rate(evidence(values={"iperf3-udp": 2.99e9}, params=params)) == ()


def with_shared_scope(campaign: Evidence) -> Evidence:
    changed = [
        work.model_copy(update={"target": work.target.model_copy(update={"scope": Scope.SHARED})})
        for work in campaign.plan.work
    ]
    return replace(campaign, plan=campaign.plan.model_copy(update={"work": tuple(changed)}))


def test_a_shared_directory_that_is_no_network_storage() -> None:
    campaign = evidence({name: {"shared_filesystem": "ext4"} for name in ("host", "container")})
    finding = only(disk.shared_filesystem(campaign))
    assert finding.severity is Severity.INFO
    assert "/shared is ext4 in host, ext4 in container" in finding.message
    assert only(disk.shared_filesystem(with_shared_scope(campaign))).severity is Severity.INFO  # alike in both


def test_shared_directories_that_differ() -> None:
    """A blocker where they are measured, of the figures on them and of the environment that differs."""
    campaign = evidence({"host": {"shared_filesystem": "ext4"}})
    differs, plain = disk.shared_filesystem(with_shared_scope(campaign))
    assert (differs.severity, differs.environment) == (Severity.BLOCKER, "container")
    assert "/shared of master is nfs4 in container, ext4 in host" in differs.message
    assert plain.severity is Severity.INFO  # the baseline's own figures are not of network storage
    assert "/shared is ext4 in host: a directory of this machine" in plain.message
    assert {one.severity for one in disk.shared_filesystem(campaign)} == {Severity.WARNING, Severity.INFO}


def test_shared_directories_of_one_kind_are_compared() -> None:
    campaign = evidence({"host": {"shared_filesystem": "ext4"}, "container": {"shared_filesystem": "overlay"}})
    differs = disk.shared_filesystem(with_shared_scope(campaign))[0]
    assert (differs.severity, differs.environment) == (Severity.WARNING, "container")


def test_shared_directories_that_differ_touch_the_figures_on_them_alone() -> None:
    differs = disk.shared_filesystem(with_shared_scope(evidence({"host": {"shared_filesystem": "ext4"}})))[0]
    pair = ("host", "container")
    assert differs.touches(pair, ("iozone",), "throughput", {"filesystem": "shared", "operation": "write"})
    assert not differs.touches(pair, ("iozone",), "throughput", {"filesystem": "local", "operation": "write"})
    assert not differs.touches(pair, ("sysbench-cpu",), "events_rate", {"node": "worker1"})
    assert not differs.touches(pair, ("hpcc",), "HPL", {})
    assert not differs.touches(("host", "other"), ("iozone",), "throughput", {"filesystem": "shared"})


def test_the_server_of_a_network_file_system_has_the_directory_itself() -> None:
    campaign = with_shared_scope(evidence())
    cells = tuple(
        cell.model_copy(
            update={
                "facts": tuple(
                    node.model_copy(update={"values": {**node.values, "shared_filesystem": "ext4"}})
                    if node.node == "master"
                    else node
                    for node in cell.facts
                )
            }
        )
        for cell in campaign.cells
    )
    assert passed(disk.shared_filesystem, replace(campaign, cells=cells)) == (
        "ext4/nfs4 in host, ext4/nfs4 in container",
    )


@pytest.mark.parametrize(
    ("flops", "severity", "words"),
    [
        (1e12, Severity.BLOCKER, "more than 4 CPUs can do (832.0 Gflop/s)"),
        (9e9, Severity.INFO, "below 5 % of what 4 CPUs should do (192.0 Gflop/s)"),
    ],
)
def test_implausible_hpl(flops: float, severity: Severity, words: str) -> None:
    finding = audit_linpack.implausible(evidence(values={"hpcc": flops}))[0]
    assert finding.severity is severity
    assert words in finding.message


def test_short_hpl() -> None:
    finding = audit_linpack.too_small(evidence(params={**PARAMS, "hpcc": {"N": 3000}}))[0]
    # 2/3 N^3 + 3/2 N^2 = 1.80135e10 operations at 8e10 a second
    assert finding.severity is Severity.INFO  # alike in both environments
    assert "2% of the memory" in finding.message
    tiny = audit_linpack.too_small(evidence(params={**PARAMS, "hpcc": {"N": 300}}))[0]
    assert "less than 1% of the memory" in tiny.message
    assert "about 0.225 s for N = 3000" in finding.message


def test_hpl_larger_than_memory() -> None:
    finding = audit_linpack.too_small(evidence(params={**PARAMS, "hpcc": {"N": 40_000}}))[0]
    assert finding.severity is Severity.BLOCKER
    assert "needs 11.92 GiB, its nodes have 4 GiB" in finding.message


@pytest.mark.parametrize(
    ("flags", "operations"), [({"avx512f"}, (16, 32)), ({"avx", "fma"}, (8, 16)), ({"avx"}, (4, 8)), (set(), (2, 4))]
)
def test_flops_per_cycle(flags: set[str], operations: tuple[int, int]) -> None:
    assert audit_linpack.flops_per_cycle(flags) == operations


def test_a_log_that_reports_killed_workers() -> None:
    text = "stress-ng: debug: [1307] vm: assuming killed by OOM killer, restarting again (instance 0)\n"
    found = failed(disturbance.memory_pressure, logged("stress-ng", both(text), scope=Scope.NODE))
    assert found[0].severity is Severity.BLOCKER
    assert "its output reports 6 workers killed for lack of memory" in found[0].message


def test_pages_of_a_balloon() -> None:
    campaign = evidence()
    counters = {name: {"worker1": {**COUNTERS, "balloon_pages": 9.0}} for name in campaign.counters}
    assert "9 pages went to or from a balloon" not in passed(disturbance.memory_pressure, campaign)[0]
    found = failed(disturbance.memory_pressure, replace(campaign, counters=counters))
    assert "54 pages went to or from a balloon" in found[0].message  # six trials


def test_a_timer_that_is_too_coarse() -> None:
    text = "Your clock granularity/precision appears to be 10000 microseconds.\n"
    found = failed(disturbance.too_short, logged("hpcc", both(text), scope=Scope.WORKERS))
    assert "has steps of 10000 µs" in found[0].message


def test_runs_that_were_not_timed() -> None:
    assert unknown(disturbance.too_short, logged("hpcc", both("x\n"), scope=Scope.WORKERS, elapsed_s=0.0))


def test_hpl_on_unknown_cpus() -> None:
    blind = {name: {"cpu_flags": None} for name in ("host", "container")}
    assert "the instructions of its CPUs" in unknown(audit_linpack.implausible, evidence(blind)).message
    assert unknown(audit_linpack.implausible, replace(evidence(), measurements=()))
    assert unknown(audit_linpack.too_small, replace(evidence(), measurements=()))
