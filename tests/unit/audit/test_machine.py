"""C05 to C10, O02 to O04, R03, R06, R09, R10, T06, T08: the machine, its clocks, and the ground that all stand on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from builders.audit_cases import COUNTERS, HOST_FACTS, SEAL, evidence, failed, logged, passed, unknown
from vtax.audit import Evidence, clocks, disturbance, environment, machine, machine_cost, method, stolen
from vtax.model.finding import Outcome, Severity
from vtax.model.machine_cost import MACHINE_METRICS
from vtax.model.nodes import Scope
from vtax.model.trial import Pause


def counting(**counted: float) -> Evidence:
    """Other counters in every trial of the container."""
    campaign = evidence()
    counters = {
        name: {"worker1": {**COUNTERS, **counted} if "container" in name else COUNTERS} for name in campaign.counters
    }
    return replace(campaign, counters=counters)


def machine_counters(values: Mapping[int, Mapping[str, float]]) -> Evidence:
    """Counters of the machine, by the round of the trial."""
    campaign = evidence()
    trials = tuple(one.model_copy(update={"host_counters": dict(values.get(one.round, {}))}) for one in campaign.trials)
    return replace(campaign, trials=trials)


def cells(name: str, **changed: Any) -> Evidence:
    """Other records of the cells of one environment; host facts are added to those that there are."""
    campaign = evidence()
    facts = {**HOST_FACTS, **changed.pop("host_facts", {})}
    made = tuple(
        cell.model_copy(update={**changed, "host_facts": facts}) if cell.environment == name else cell
        for cell in campaign.cells
    )
    return replace(campaign, cells=made)


@pytest.mark.parametrize(("ticks", "severity"), [(99.0, None), (150.0, Severity.WARNING), (700.0, Severity.BLOCKER)])
def test_c05_stolen_time(ticks: float, severity: Severity | None) -> None:
    campaign = counting(steal_ticks=ticks)  # of 20000
    if severity is None:
        assert passed(stolen.steal, campaign)
        return
    found = failed(stolen.steal, campaign)
    assert {(one.severity, one.environment) for one in found} == {(severity, "container")}
    assert f"{ticks / 20_000:.1%} of the CPU time was stolen" in found[0].message


def losing(host: Mapping[str, float], node: Mapping[str, float], provider: str, **option: Any) -> Evidence:
    """What the machine and the container's nodes counted in the trials of that environment."""
    campaign = evidence(provider=provider)
    specs = tuple(
        spec.model_copy(update={"options": option}) if spec.name == "container" else spec
        for spec in campaign.plan.environments
    )
    trials = tuple(
        one.model_copy(update={"host_counters": dict(host) if one.environment == "container" else QUIET})
        for one in campaign.trials
    )
    counters = {
        name: {"worker1": {**COUNTERS, **node} if "container" in name else COUNTERS} for name in campaign.counters
    }
    plan = campaign.plan.model_copy(update={"environments": specs})
    return replace(campaign, plan=plan, trials=trials, counters=counters)


QUIET = {"cpu_ticks": 20_000.0, "steal_ticks": 0.0}
ROBBED = {"cpu_ticks": 20_000.0, "steal_ticks": 1000.0}  # 5 %


def test_c05_a_guest_that_counts_nothing_on_a_machine_that_lost_time() -> None:
    found = failed(stolen.steal, losing(ROBBED, {"steal_ticks": 0.0}, "qemu"))
    assert {(one.severity, one.environment) for one in found} == {(Severity.BLOCKER, "container")}
    assert "5.0% of the CPU time was stolen in container, 0.0% in host" in found[0].message
    assert passed(stolen.steal, losing(QUIET, {"steal_ticks": 0.0}, "qemu"))


def test_c05_what_a_guests_own_emulator_took_is_a_note() -> None:
    found = failed(stolen.steal, losing(QUIET, {"steal_ticks": 1000.0}, "qemu"))
    assert {one.severity for one in found} == {Severity.INFO}
    assert "in 5.0% of their time" in found[0].message
    assert "the emulator, or nodes that share the CPU, took" in found[0].message
    assert passed(stolen.steal, losing(QUIET, {"steal_ticks": 99.0}, "qemu"))


def test_c05_a_guest_on_a_machine_that_counted_nothing_is_unknown() -> None:
    assert unknown(stolen.steal, losing({}, {"steal_ticks": 0.0}, "virtualbox"))


@pytest.mark.parametrize(("host", "node"), [(ROBBED, 0.0), (QUIET, 1000.0)])
def test_c05_nodes_under_the_machines_kernel_lose_the_larger_of_both(host: Mapping[str, float], node: float) -> None:
    assert failed(stolen.steal, losing(host, {"steal_ticks": node}, "docker"))[0].severity is Severity.BLOCKER


def test_c05_what_the_controlling_machine_loses_is_nothing_to_nodes_elsewhere() -> None:
    assert passed(stolen.steal, losing(ROBBED, {"steal_ticks": 0.0}, "cloud"))


def test_c05_is_of_the_cpus_of_the_trial() -> None:
    # Two CPUs of eight lost a tenth of their time; of all eight that is 2.5 %.
    host = {"cpu_ticks": 80_000.0, "steal_ticks": 2000.0, "trial_cpu_ticks": 20_000.0, "trial_steal_ticks": 2000.0}
    assert "10.0% of the CPU time" in failed(stolen.steal, losing(host, {}, "qemu"))[0].message
    elsewhere = {**host, "trial_steal_ticks": 0.0, "steal_ticks": 200.0}
    assert passed(stolen.steal, losing(elsewhere, {}, "qemu"))
    # Nodes that may run anywhere lose what the whole machine does.
    assert "2.5% of the CPU time" in failed(stolen.steal, losing(host, {}, "qemu", pin=False))[0].message
    assert "2.5% of the CPU time" in failed(stolen.steal, losing(host, {}, "docker", cpu_limit="quota"))[0].message


def test_c05_unknown() -> None:
    assert unknown(stolen.steal, replace(evidence(), counters={}))


def test_c06_a_busy_machine_is_noise() -> None:
    campaign = cells("container", idle={"cpu_ticks": 100.0, "busy_ticks": 13.0})
    (found,) = failed(machine.foreign_load, campaign)
    assert (found.severity, found.environment) == (Severity.INFO, "container")
    assert "13% of the machine's CPUs were busy before the trials (median; above 10% in 6 of 6 cells)" in found.message
    assert passed(machine.foreign_load, evidence())
    assert (
        "not recorded: the load before the trials" in unknown(machine.foreign_load, cells("container", idle={})).message
    )


def test_c06_a_machine_that_is_busier_in_one_environment_is_bias() -> None:
    found = failed(machine.foreign_load, cells("container", idle={"cpu_ticks": 100.0, "busy_ticks": 40.0}))
    assert [one.severity for one in found] == [Severity.INFO, Severity.BLOCKER]
    assert "in every cell of container (at least 40% of its CPUs) than in any of host (at most 4%)" in found[1].message


def test_c06_strangers() -> None:
    running = {"containers": 4, "virtual machines": 1}
    found = failed(machine.foreign_load, cells("container", host_facts={"running": running}))
    assert [one.message for one in found] == [
        "4 containers ran on the machine, 3 of them nodes of container",
        "1 virtual machines ran on the machine, 0 of them nodes of container",
    ]
    both = {"running": {"containers": 3, "virtual machines": 0}}
    waiting = cells("host", host_facts=both, paused=("container",))
    assert passed(machine.foreign_load, waiting), "the containers of another environment, which are paused"
    assert "3 containers ran" in failed(machine.foreign_load, cells("host", host_facts=both))[0].message
    own = {"containers": 3, "virtual machines": 0}
    assert passed(machine.foreign_load, cells("container", host_facts={"running": own}))


def test_c07_a_governor_that_changes() -> None:
    (found,) = failed(machine.frequency_policy, cells("container", host_facts={"governor": "powersave"}))
    assert (found.severity, "the frequency governor changed" in found.message) == (Severity.WARNING, True)
    assert "the frequency governor is performance in all 12 cells" in passed(machine.frequency_policy, evidence())
    blind = evidence(host_facts={name: value for name, value in HOST_FACTS.items() if name != "governor"})
    assert unknown(machine.frequency_policy, blind)


def test_c08_a_clock_that_falls() -> None:
    found = failed(machine.clock_speed, machine_counters({1: {"cpu_mhz": 3000.0}, 5: {"cpu_mhz": 2700.0}}))
    assert "fell from 3000 MHz in the first round to 2700 MHz" in found[0].message
    assert passed(machine.clock_speed, machine_counters({1: {"cpu_mhz": 3000.0}, 5: {"cpu_mhz": 2900.0}}))
    hot = failed(machine.clock_speed, machine_counters({2: {"throttle_events": 2.0}}))
    assert "throttled themselves 4 times during host" in hot[0].message  # two trials of the round
    assert unknown(machine.clock_speed, evidence())


def test_c09_kinds_are_reported() -> None:
    (found,) = failed(machine.kinds, evidence({"container": {"cgroup_version": "1"}}))
    assert (found.severity, found.message) == (Severity.INFO, "control groups: 2 in host, 1 in container")
    assert passed(machine.kinds, evidence())
    blind = {name: {"cgroup_version": None} for name in ("host", "container")}
    assert unknown(machine.kinds, evidence(blind))


def test_o02_huge_pages() -> None:
    (found,) = failed(disturbance.huge_pages, evidence({"container": {"thp": "always"}}))
    assert found.message == "transparent_hugepage is always in container, madvise in host"
    assert failed(disturbance.huge_pages, evidence({"container": {"huge_pages": 512}}))
    assert passed(disturbance.huge_pages, evidence())
    assert unknown(disturbance.huge_pages, evidence({"container": {"thp": None}}))


def guest(**counted: float) -> Evidence:
    """Nodes under a kernel of their own, so that their clock is their own as well."""
    campaign = counting(**counted)
    return replace(campaign, cells=evidence({"container": {"boot_id": "other"}}).cells)


def test_o03_the_hosts_own_clock() -> None:
    assert "container runs under the host's kernel and has its clock" in passed(clocks.clock, evidence())


def offsets(first_s: float, last_s: float) -> Evidence:
    """A guest whose clock is off by that much after the first and the last trial of each cell."""
    campaign = guest()
    counters = {
        name: {"worker1": {**counted["worker1"], "clock_offset_s": first_s if "hpcc" in name else last_s}}
        if "container" in name
        else counted
        for name, counted in campaign.counters.items()
    }
    return replace(campaign, counters=counters)


def test_o03_drift_over_a_cell() -> None:
    # Trials end 100 s apart; 0.2 s in it are 2000 ppm, known to 0.04 s or 400 ppm.
    (found,) = failed(clocks.clock, offsets(0.0, 0.2))
    assert found.severity is Severity.BLOCKER
    assert "gains +2000 ± 400 ppm" in found.message
    assert "+300 ± 400 ppm" in passed(clocks.clock, offsets(0.0, 0.03))[-1]


def paused(campaign: Evidence) -> Evidence:
    pause = Pause(lasted_s=300.0, pause_s=0.003, resume_s=0.05, clock_behind_s={"worker1": 300.0})
    return replace(campaign, trials=tuple(one.model_copy(update={"pause": pause}) for one in campaign.trials))


def test_o03_clocks_that_are_set_after_a_pause_are_compared_within_trials_alone() -> None:
    """An offset that changes by 300 s between trials says nothing; one that changes inside them does."""
    assert failed(clocks.clock, offsets(0.0, 300.0))
    assert passed(clocks.clock, paused(offsets(0.0, 300.0)))
    (found,) = failed(clocks.clock, paused(guest(clock_s=91.91, uptime_s=91.91)))
    assert "gains +10000 ±" in found.message


def test_o03_the_doubt_of_many_trials_is_smaller_than_that_of_one() -> None:
    reading = {"clock_s": 1.001, "host_clock_s": 1.0, "clock_doubt_s": 0.01}
    assert clocks.within([reading]) == pytest.approx((0.001, 0.01))
    assert clocks.within([reading] * 16) == pytest.approx((0.001, 2 * 0.01 / 4))


def test_o03_a_drift_is_over_the_time_between_the_readings() -> None:
    """A clock that is 10000 ppm fast, read by the node in the first two of six trials."""
    campaign = guest()
    first, *others = [one for one in campaign.trials if one.environment == "container"]
    trials = [one.model_copy(update={"cell": first.cell}) for one in (first, *others)]
    span = trials[1].started - first.started
    counters = {one.id: {"worker2": COUNTERS} for one in trials}
    counters[trials[0].id]["worker1"] = COUNTERS
    counters[trials[1].id]["worker1"] = {**COUNTERS, "clock_offset_s": 0.01 * span}
    known = replace(campaign, trials=tuple(trials), counters=counters)
    assert "gains +10000 ±" in failed(clocks.clock, only_node(known, "worker1"))[0].message
    assert passed(clocks.clock, only_node(known, "worker2"))


def only_node(campaign: Evidence, node: str) -> Evidence:
    """The same counters without those of other nodes; a trial that has none keeps an empty reading."""
    kept = {name: {node: counted.get(node, {})} for name, counted in campaign.counters.items()}
    return replace(campaign, counters=kept)


def test_o03_clocks_that_cannot_be_distinguished() -> None:
    assert "too short to tell drift from delay" in unknown(clocks.clock, guest(clock_doubt_s=2.0)).message
    assert "not recorded: the clocks" in unknown(clocks.clock, replace(guest(), counters={})).message


def test_o03_a_clock_that_was_set() -> None:
    found = failed(clocks.clock, counting(clock_s=96.0))
    assert (found[0].severity, "clock of container was set by 4.99 s" in found[0].message) == (Severity.BLOCKER, True)


def test_o04_time_inside_and_outside() -> None:
    found = failed(clocks.elapsed, counting(clock_s=80.0))
    assert "80.00 s by the node's clock, 91.00 s outside" in found[0].message
    assert passed(clocks.elapsed, counting(clock_s=91.015))  # within the doubt of reading it


def test_o04_a_difference_that_hides_in_the_doubt_is_unknown() -> None:
    blind = counting(clock_doubt_s=1.0)  # of 91 s
    assert passed(clocks.elapsed, blind)  # the host's own clock has no doubt
    blind = replace(blind, cells=guest().cells)
    said = unknown(clocks.elapsed, blind).message
    assert "hpcc in container: its time inside and outside is known to 1.1% at best" in said
    assert "20 of" not in said
    sharp = replace(counting(clock_doubt_s=0.9), cells=guest().cells)
    assert "6 of 6 times are known to 1% and agree" in passed(clocks.elapsed, sharp)[-1]


def reported_by_the_tool(text: str, elapsed_s: float) -> Evidence:
    """A guest whose tool reports how long it took; the clocks were not read."""
    made = logged(
        "sysbench-cpu",
        {"container": text},
        scope=Scope.NODE,
        elapsed_s=elapsed_s,
        facts={"container": {"boot_id": "other"}},
    )
    return replace(made, counters={})


def test_o04_what_a_tool_says_that_it_took() -> None:
    text = "    total time:                          10.5000s\n"
    slow = reported_by_the_tool(text, 10.2)
    assert "10.50 s by the node's clock, 10.20 s outside" in failed(clocks.elapsed, slow)[0].message
    assert passed(clocks.elapsed, reported_by_the_tool(text, 10.55))
    # A command that takes 0.9 s longer than its tool started and ended, or its clock is slow: unknown.
    assert "known to 7.9% at best" in unknown(clocks.elapsed, reported_by_the_tool(text, 11.4)).message
    assert (
        "not recorded: times inside and outside" in unknown(clocks.elapsed, reported_by_the_tool("x\n", 10.2)).message
    )


def test_t06_addresses_that_are_the_same_in_every_run() -> None:
    (found,) = failed(environment.layout, evidence({"container": {"aslr": "0"}}))
    assert (found.severity, found.environment) == (Severity.INFO, "container")
    assert "randomize_va_space 0" in found.message
    assert passed(environment.layout, evidence())
    assert unknown(environment.layout, evidence({"container": {"aslr": None}}))


def test_t08_a_reboot_between_rounds() -> None:
    campaign = evidence()
    facts = {**HOST_FACTS, "boot_id": "b-2"}
    later = tuple(
        cell.model_copy(update={"started": float(cell.round), "host_facts": facts if cell.round > 3 else HOST_FACTS})
        for cell in campaign.cells
    )
    (found,) = failed(environment.machine_changed, replace(campaign, cells=later))
    assert found.severity is Severity.WARNING
    assert found.message.startswith("the boot was b-1 and, from cell r4-")
    assert passed(environment.machine_changed, campaign)
    assert unknown(environment.machine_changed, evidence(host_facts={}))


def sealed(**changed: Any) -> Evidence:
    return replace(evidence(), seal=SEAL.model_copy(update=changed))


def test_r03_a_plan_that_was_changed() -> None:
    (found,) = failed(method.optional_stopping, sealed(intact=False))
    assert (found.severity, "not the one that was sealed" in found.message) == (Severity.BLOCKER, True)
    assert "sealed before the first run, sha256 555555555555" in passed(method.optional_stopping, evidence())[0]
    assert unknown(method.optional_stopping, sealed(intact=None))
    assert unknown(method.optional_stopping, replace(evidence(), seal=None))


@pytest.mark.parametrize("name", ["campaign.json", "looks.json", "records of trials"])
def test_r03_a_plan_that_was_changed_and_sealed_again(name: str) -> None:
    hashes = ("5" * 64, "e" * 64) if name == "records of trials" else ("e" * 64,)
    (found,) = failed(method.optional_stopping, sealed(named={**SEAL.named, name: hashes}))
    assert found.severity is Severity.BLOCKER
    assert f"{name} ha" in found.message
    assert "sha256 eeeeeeeeeeee of the plan, which is 555555555555" in found.message


@pytest.mark.parametrize("name", ["campaign.json", "records of trials"])
def test_r03_files_that_do_not_name_the_plan_are_of_an_older_version(name: str) -> None:
    found = unknown(method.optional_stopping, sealed(named={**SEAL.named, name: ("",)}))
    assert f"{name} of an older version do not name the plan" in found.message


def test_r03_a_log_of_looks_that_is_not_there() -> None:
    found = unknown(method.optional_stopping, replace(evidence(), looks=None))
    assert "the plan has looks after 6, these rounds are over, and looks.json is missing" in found.message
    assert "does not have them" in unknown(method.optional_stopping, replace(evidence(), looks=())).message
    unfinished = replace(evidence(), looks=None, trials=evidence().trials[:-1])
    assert "no look was due yet, and no log of looks was kept" in passed(method.optional_stopping, unfinished)


def test_r03_rounds_and_looks_that_the_plan_does_not_have() -> None:
    campaign = evidence()
    beyond = campaign.trials[-1].model_copy(update={"id": "r7", "round": 7})
    (found,) = failed(method.optional_stopping, replace(campaign, trials=(*campaign.trials, beyond)))
    assert found.message == "round 7 ran, and the plan has 6 rounds"
    (found,) = failed(method.optional_stopping, replace(campaign, looks=(4, 6)))
    assert found.message == "results were looked at after round 4; the plan has looks after 6"
    assert "looks after 6" in passed(method.optional_stopping, replace(campaign, looks=(6,)))


def with_machines(changed: Mapping[str, Any]) -> Evidence:
    """Guests of which some facts are others from the fourth round on."""
    facts = {"vm_accelerator": "kvm", "vm_network": "tap", "vm_vhost": True}
    campaign = evidence({"container": facts})
    cells = tuple(
        one.model_copy(
            update={
                "facts": tuple(
                    node.model_copy(update={"values": {**node.values, **changed}}) if node.node == "worker2" else node
                    for node in one.facts
                )
            }
        )
        if one.environment == "container" and one.round > 3
        else one
        for one in campaign.cells
    )
    return replace(campaign, cells=cells)


@pytest.mark.parametrize(
    ("changed", "severity", "words"),
    [
        ({"vm_network": "switch"}, Severity.BLOCKER, "vm_network of worker2 in container was tap, switch"),
        ({"vm_accelerator": "tcg"}, Severity.BLOCKER, "vm_accelerator of worker2 in container was kvm, tcg"),
        ({"vm_vhost": False}, Severity.WARNING, "vm_vhost of worker2 in container was True, False"),
        ({"vm_engine": "native"}, None, ""),
    ],
)
def test_t09_machines_that_were_made_differently(
    changed: Mapping[str, Any], severity: Severity | None, words: str
) -> None:
    if severity is None:  # recorded in some cells only: one value is no change
        assert "4 facts of its machines over 6 cells" in passed(environment.machines_changed, with_machines(changed))[0]
        return
    (found,) = failed(environment.machines_changed, with_machines(changed))
    assert (found.severity, found.environment) == (severity, "container")
    assert words in found.message


def test_t09_does_not_apply_without_virtual_machines() -> None:
    assert environment.machines_changed.look(evidence()).outcome is Outcome.NOT_APPLICABLE


def test_r06_environments_with_machines_of_their_own() -> None:
    (found,) = failed(method.confounded, cells("container", host_facts={"hostname": "other"}))
    assert (found.severity, found.environment) == (Severity.BLOCKER, "container")
    assert "container ran on other, CPU, host on box, CPU" in found.message
    assert passed(method.confounded, evidence())
    assert unknown(method.confounded, evidence(provider="cloud"))


def test_r09_counters_in_one_environment_only() -> None:
    campaign = evidence()
    half = {name: counted for name, counted in campaign.counters.items() if "host" in name}
    (found,) = failed(disturbance.collector, replace(campaign, counters=half))
    assert found.message == "counters were read in host, and not in container"
    assert "host: 0.030 s of CPU time around a trial on each node, none during it" in passed(
        disturbance.collector, campaign
    )
    assert unknown(disturbance.collector, replace(campaign, counters={}))


def test_r10_another_root_file_system() -> None:
    (found,) = failed(method.one_source, evidence({"container": {"packages_sha256": "e" * 64}}))
    assert (found.severity, found.environment) == (Severity.BLOCKER, "container")
    assert "the packages of container are eeeeeeeeeeee, of host dddddddddddd" in found.message
    assert passed(method.one_source, evidence())
    assert unknown(method.one_source, evidence({"container": {"packages_sha256": None}}))


def test_a_row_that_saw_nothing_did_not_pass() -> None:
    assert clocks.elapsed.look(replace(evidence(), trials=())).outcome is Outcome.UNKNOWN


def costly(spent: float, idle: float, **cell: Any) -> Evidence:
    """So many CPUs in use during the runs, and while clusters were idle."""
    campaign = evidence()
    counted = {"seconds": 20.0, "busy_ticks": 2000 * spent + 40, "steal_ticks": 40.0, "vtax_cpu_s": 0.0}
    rest = {"seconds": 2.0, "busy_ticks": 200 * idle + 7, "steal_ticks": 7.0, **cell}
    return replace(
        campaign,
        trials=tuple(one.model_copy(update={"step_counters": {0: counted}}) for one in campaign.trials),
        cells=tuple(one.model_copy(update={"idle": rest}) for one in campaign.cells),
    )


def test_c10_the_machine_s_own_background() -> None:
    found = failed(machine_cost.background, costly(1.5, 0.3))
    assert {(one.environment, one.benchmark) for one in found} >= {("host", "hpcc"), ("container", "hpcc")}
    assert "1.50 CPUs in use, 0.30 with an idle cluster (20%)" in found[0].message
    assert {one.severity for one in found} == {Severity.WARNING}
    assert set(found[0].metrics) == MACHINE_METRICS
    assert passed(machine_cost.background, costly(1.5, 0.1))


def test_c10_without_what_it_needs() -> None:
    assert machine_cost.background.look(evidence()).outcome is Outcome.NOT_APPLICABLE
    assert unknown(machine_cost.background, costly(1.5, 0.3, seconds=0.0))
