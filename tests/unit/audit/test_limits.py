"""C: limits that are not there, that bind, that differ; nodes that share CPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.audit_cases import COUNTERS, GIB, SHAPE, evidence, failed, only, passed, unknown
from vtax.audit import limits
from vtax.model.cluster import NodeFacts
from vtax.model.finding import Severity
from vtax.model.nodes import ClusterShape
from vtax.running.verify import memory_differs


def test_limits_as_planned() -> None:
    campaign = evidence()
    assert limits.not_applied(campaign) == ()
    assert limits.throttled(campaign) == ()
    assert limits.unequal(campaign) == ()
    assert limits.shared_cpus(campaign) == ()


def test_a_container_without_a_memory_limit() -> None:
    findings = limits.not_applied(evidence({"container": {"memory_limit_bytes": None}}))
    assert {finding.severity for finding in findings} == {Severity.BLOCKER}
    assert findings[0].message.startswith("master in container has no memory limit, 2 GiB planned")


def test_the_host_without_a_memory_limit_is_only_a_warning() -> None:
    campaign = evidence({"host": {"memory_limit_bytes": None}})
    findings = limits.not_applied(campaign)
    assert {finding.severity for finding in findings} == {Severity.WARNING}
    assert "may use all memory" in findings[0].message
    assert limits.unequal(campaign) == ()


def test_a_limit_above_the_plan() -> None:
    findings = limits.not_applied(evidence({"container": {"memory_limit_bytes": 4 * GIB}}))
    assert "has 4 GiB of memory, 2 GiB planned" in findings[0].message


@pytest.mark.parametrize(
    ("facts", "severity", "words"),
    [
        ({"cpus_allowed": "0-7", "cpus": 8}, Severity.BLOCKER, "may use CPUs 0-7, planned are 0,1"),
        ({"cpus_allowed": "0-7", "cpus": 8, "cpu_quota_cpus": 2.0}, Severity.WARNING, "a quota of 2 limits it"),
        ({"cpus_allowed": "0-7", "cpus": 8, "cpu_quota_cpus": 4.0}, Severity.BLOCKER, "not limited as planned"),
        ({"cpus_allowed": None}, Severity.WARNING, "master in container: not recorded: the CPUs that it may use"),
    ],
)
def test_cpus_that_are_not_those_of_the_plan(facts: dict[str, object], severity: Severity, words: str) -> None:
    finding = limits.not_applied(evidence({"container": facts}))[0]
    assert finding.severity is severity
    assert words in finding.message


def test_a_guest_counts_its_cpus_from_zero_and_its_memory_is_its_limit() -> None:
    guest = {"cpus_allowed": "0-1", "memory_limit_bytes": None, "memory_total_bytes": int(1.9 * GIB)}
    campaign = evidence({"container": guest}, provider="qemu")
    assert limits.not_applied(campaign) == ()
    assert limits.unequal(campaign) == ()


MIB = 2**20


@pytest.mark.parametrize(
    ("planned", "kept", "good"),
    [
        # 1/64 of the memory, 96 MiB, and from 2.5 GiB on 64 MiB more
        (256 * MIB, 100 * MIB, True),
        (256 * MIB, 101 * MIB, False),
        (GIB, 112 * MIB, True),
        (GIB, 113 * MIB, False),
        (5 * GIB // 2 - MIB, 140 * MIB, False),
        (256 * MIB, 43 * MIB, True),  # as seen under QEMU
        (3 * GIB, 157 * MIB + MIB // 2, True),  # likewise
        (4 * GIB, 173 * MIB + MIB // 2, True),
        (3 * GIB, 188 * MIB, True),  # of the generic kernel started by EFI firmware
        (3 * GIB, 208 * MIB, True),
        (3 * GIB, 209 * MIB, False),
    ],
)
def test_what_a_guests_kernel_keeps_is_no_other_machine(planned: int, kept: int, good: bool) -> None:
    """The rule before the first trial (verify) and the rule of the audit are one."""
    facts: dict[str, dict[str, object]] = {
        "host": {"memory_limit_bytes": planned},
        "container": {"cpus_allowed": "0-1", "memory_limit_bytes": None, "memory_total_bytes": planned - kept},
    }
    assert (limits.unequal(evidence(facts, provider="qemu")) == ()) is good
    shape = SHAPE.nodes[0].model_copy(update={"memory_bytes": planned})
    guest = NodeFacts(node="master", values={"memory_total_bytes": planned - kept})
    assert (memory_differs(shape, guest, own_kernel=True) == []) is good


def test_throttling_during_the_trials_is_a_blocker() -> None:
    campaign = evidence()
    stopped = {**COUNTERS, "cpu_throttled_periods": 20.0}
    counters = {name: {"worker1": stopped if "container" in name else COUNTERS} for name in campaign.counters}
    finding = only(limits.throttled(replace(campaign, counters=counters)))
    assert (finding.severity, finding.environment) == (Severity.BLOCKER, "container")
    assert "240 of 12000 periods (2.0%, during the trials)" in finding.message


def test_a_few_stopped_periods_are_a_note() -> None:
    """3 of 1000 periods in each of 12 trials are 0.3 %."""
    campaign = evidence()
    stopped = {**COUNTERS, "cpu_throttled_periods": 3.0}
    counters = {name: {"worker1": stopped if "container" in name else COUNTERS} for name in campaign.counters}
    finding = only(limits.throttled(replace(campaign, counters=counters)))
    assert (finding.severity, finding.environment) == (Severity.INFO, "container")
    assert "36 of 12000 periods (during the trials)" in finding.message


def test_throttling_that_only_facts_tell_of_is_a_warning() -> None:
    facts = {"cpu_periods": 10, "cpu_throttled_periods": 5}
    finding = only(limits.throttled(replace(evidence({"container": facts}), counters={})))
    assert finding.severity is Severity.WARNING
    assert "until the trials began" in finding.message


def test_a_quota_that_nothing_counted_is_unknown() -> None:
    finding = only(limits.throttled(replace(evidence({"container": {"cpu_quota_cpus": 2.0}}), counters={})))
    assert "not recorded: how often it bound" in finding.message


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"cpus": 1}, "master in container has 1 CPU, in host 2"),
        ({"cpu_quota_cpus": 1.5}, "has 1.5 CPUs, in host 2"),
        ({"memory_limit_bytes": GIB}, "has 1 GiB of memory, in host 2 GiB"),
    ],
)
def test_unequal_nodes(facts: dict[str, object], words: str) -> None:
    finding = only(limits.unequal(evidence({"container": facts})))
    assert finding.severity is Severity.BLOCKER
    assert words in finding.message


def test_nodes_that_share_cpus_are_named() -> None:
    master, one, two = SHAPE.nodes
    shape = ClusterShape(nodes=(master, one, two.model_copy(update={"cpu_ids": (3, 4)})))
    finding = only(limits.shared_cpus(evidence(shape=shape)))
    assert finding.severity is Severity.INFO  # the plan gives all environments the same CPUs
    assert "worker1 and worker2 (CPU 3)" in finding.message
    idle = ClusterShape(nodes=(master.model_copy(update={"cpu_ids": (1, 2)}), one, two))
    assert passed(limits.shared_cpus, evidence(shape=idle))  # no benchmark uses the master


def test_another_topology_is_a_warning() -> None:
    host, guest = {"cores": 1, "numa_nodes": 1}, {"cores": 2, "numa_nodes": 1}
    (finding,) = failed(limits.unequal, evidence({"host": host, "container": guest}))
    assert (finding.severity, finding.message) == (
        Severity.WARNING,
        "master in container sees 2 cores, in host 1",
    )


def test_limits_that_are_not_recorded_are_unknown() -> None:
    blind = {name: {"cpus": None, "cpus_allowed": None} for name in ("host", "container")}
    assert "not recorded: the CPUs that it may use" in unknown(limits.not_applied, evidence(blind)).message
    assert unknown(limits.unequal, evidence(blind))
    assert unknown(limits.throttled, replace(evidence(blind), counters={}))


def test_virtual_cpus_that_are_not_pinned() -> None:
    campaign = evidence(provider="qemu")
    specs = tuple(
        spec.model_copy(update={"options": {"pin": False}}) if spec.name == "container" else spec
        for spec in campaign.plan.environments
    )
    plan = campaign.plan.model_copy(update={"environments": specs})
    (finding,) = failed(limits.shared_cpus, replace(campaign, plan=plan))
    assert finding.severity is Severity.WARNING
    assert "the virtual CPUs of container are not pinned" in finding.message
    assert passed(limits.shared_cpus, campaign) == ("no two nodes that work together share a CPU",)
