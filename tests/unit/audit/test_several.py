"""O06, R06, R12, R13 and T08 of campaigns on several machines: clocks, kinds of machines, one lost or replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from builders.audit_cases import HOST_FACTS, evidence, failed, passed, unknown
from vtax.audit import Evidence, environment, limits, machine, method, several
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.finding import Outcome, Severity
from vtax.model.study import MachineSpec
from vtax.model.trial import Status

NAMES = ("a", "b")
FACTS: Mapping[str, Any] = {**HOST_FACTS, "machine_id": "0" * 16, "clock_ahead_s": 0.0, "cpu_mhz": 3000.0}


def campaign(facts: Mapping[str, Mapping[str, Any]] | None = None, rounds: int = 6) -> Evidence:
    """The campaign without a fault, on machines a and b in turn: every round on each, at the same time."""
    base = evidence(rounds=rounds)
    cells, records, trials = [], [], []
    for name in NAMES:
        for cell, record in zip(base.plan.cells, base.cells, strict=True):
            own = tuple(one.model_copy(update={"id": f"{name}-{one.id}"}) for one in cell.trials)
            cells.append(cell.model_copy(update={"id": f"{name}-{cell.id}", "machine": name, "trials": own}))
            known = {**FACTS, "hostname": name, "boot_id": f"boot-{name}", **(facts or {}).get(name, {})}
            changed = {"cell": f"{name}-{record.cell}", "host_facts": known, "started": float(cell.round)}
            records.append(record.model_copy(update=changed))
        for trial in base.trials:
            changed = {"id": f"{name}-{trial.id}", "cell": f"{name}-{trial.cell}", "machine": name}
            trials.append(trial.model_copy(update=changed))
    study = base.plan.study.model_copy(update={"machines": {name: MachineSpec(ssh=name) for name in NAMES}})
    plan = base.plan.model_copy(update={"study": study, "cells": tuple(cells)})
    return replace(base, plan=plan, cells=tuple(records), trials=tuple(trials), measurements=(), readings={})


def from_round(made: Evidence, name: str, number: int, **facts: Any) -> Evidence:
    """Other facts of a machine from a round on."""
    cells = tuple(
        cell.model_copy(update={"host_facts": {**cell.host_facts, **facts}})
        if cell.cell.startswith(f"{name}-") and cell.round >= number
        else cell
        for cell in made.cells
    )
    return replace(made, cells=cells)


def test_o06_clocks_that_are_apart() -> None:
    (found,) = failed(several.clocks_apart, campaign({"b": {"clock_ahead_s": 600.0}}))
    assert (found.severity, found.message) == (Severity.WARNING, "the clock of b is 600.0 s ahead of that of a")
    assert "chronyc" in found.remedy
    # the worst that was seen of each: -0.2 s and +0.3 s
    apart = from_round(campaign({"a": {"clock_ahead_s": -0.2}}), "b", 4, clock_ahead_s=0.3)
    assert passed(several.clocks_apart, apart)
    assert "500 ms" in several.clocks_apart.look(apart).seen[0]


def test_o06_a_clock_that_was_not_read() -> None:
    silent = from_round(campaign(), "b", 1, clock_ahead_s=None)
    cells = tuple(
        cell.model_copy(update={"host_facts": {k: v for k, v in cell.host_facts.items() if v is not None}})
        for cell in silent.cells
    )
    found = unknown(several.clocks_apart, replace(silent, cells=cells))
    assert found.message.startswith("b: not recorded")


def test_rows_about_several_machines_do_not_apply_to_one() -> None:
    for row in (several.clocks_apart, several.unlike, several.lost):
        assert row.look(evidence()).outcome is Outcome.NOT_APPLICABLE


def test_r12_machines_of_another_kind_are_named() -> None:
    other = {"cpu_model": "other CPU", "memory_total_bytes": 32 * 2**30}
    found = failed(several.unlike, campaign({"a": {"memory_total_bytes": 64 * 2**30}, "b": other}))
    assert [one.message for one in found] == ["CPU: CPU on a, other CPU on b", "memory: 64 GiB on a, 32 GiB on b"]
    assert {one.severity for one in found} == {Severity.INFO}
    alike = {"a": {"memory_total_bytes": 1000}, "b": {"memory_total_bytes": 1015}}
    assert passed(several.unlike, campaign(alike))


def test_r13_a_machine_that_was_lost() -> None:
    made = campaign()
    assert passed(several.lost, made)
    trials = tuple(
        trial.model_copy(update={"status": Status.NOT_RUN}) if trial.machine == "b" and trial.round > 2 else trial
        for trial in made.trials
    )
    (found,) = failed(several.lost, replace(made, trials=trials))
    assert found.message == "b has 2 complete rounds of 6, the last is round 2; others have 6"
    assert "--resume" in found.remedy


def test_r01_rounds_are_counted_on_one_machine() -> None:
    """Three rounds on each of two machines are three rounds, not six."""
    assert passed(method.few_rounds, campaign())
    found = failed(method.few_rounds, campaign(rounds=3))
    assert "3 of 3 planned rounds" in found[0].message


def test_r02_machines_work_at_the_same_time() -> None:
    made = campaign()
    assert passed(method.order, made)
    late = {trial.id: trial for trial in made.trials if trial.machine == "b" and trial.round == 1}
    trials = tuple(
        trial.model_copy(update={"started": trial.started + 1e6}) if trial.id in late else trial
        for trial in made.trials
    )
    assert any("ran before cell b-r1-" in one.message for one in failed(method.order, replace(made, trials=trials)))


def test_r06_environments_on_machines_of_their_own() -> None:
    made = campaign()
    assert passed(method.confounded, made)
    apart = tuple(
        cell.model_copy(update={"machine": "a" if cell.environment == "host" else "b"}) for cell in made.plan.cells
    )
    plan = made.plan.model_copy(update={"cells": apart})
    (found,) = failed(method.confounded, replace(made, plan=plan))
    assert (found.severity, found.message) == (Severity.BLOCKER, "container ran on b, host on a")


def test_r06_clusters_that_are_spread() -> None:
    made = campaign()
    ways = ({"worker1": "a", "worker2": "b"}, {"worker1": "b", "worker2": "a"})
    cells = tuple(
        cell.model_copy(update={"machine": "", "placement": ways[cell.round % 2]}) for cell in made.plan.cells
    )
    assert passed(method.confounded, replace(made, plan=made.plan.model_copy(update={"cells": cells})))
    cells = tuple(
        cell.model_copy(update={"machine": "", "placement": ways[cell.environment == "host"]})
        for cell in made.plan.cells
    )
    (found,) = failed(method.confounded, replace(made, plan=made.plan.model_copy(update={"cells": cells})))
    assert found.message == "container ran on a b, host on b a"


def test_t08_a_machine_that_was_replaced_or_rebooted() -> None:
    made = campaign()  # two machines with two boots are no change
    assert passed(environment.machine_changed, made)
    changed = from_round(made, "b", 4, boot_id="boot-new", machine_id="1" * 16, firmware="new 2.0")
    messages = [one.message for one in failed(environment.machine_changed, changed)]
    assert messages[:2] == [
        "b: the boot was boot-b and, from cell b-r4-host on, boot-new",
        f"b: the identity of the machine was {'0' * 16} and, from cell b-r4-host on, {'1' * 16}",
    ]


def test_t08_a_reboot_before_which_every_cell_failed() -> None:
    """Its trials up to then count, and the boot is none of the later ones."""
    changed = from_round(campaign(), "b", 2, boot_id="boot-new")
    cells = tuple(
        cell.model_copy(update={"status": Status.FAILED, "failure": "worker1 no longer answered"})
        if cell.cell.startswith("b-") and cell.round < 2
        else cell
        for cell in changed.cells
    )
    (found,) = failed(environment.machine_changed, replace(changed, cells=cells))
    assert found.message == "b: the boot was boot-b and, from cell b-r2-host on, boot-new"


def test_t08_every_machine_of_a_cluster_that_is_spread() -> None:
    made = campaign()
    cells = tuple(
        cell.model_copy(
            update={"machine_facts": {name: {"boot_id": f"boot-{name}-{cell.round > 3}"[:12]} for name in NAMES}}
        )
        for cell in made.cells
    )
    messages = [one.message for one in failed(environment.machine_changed, replace(made, cells=cells))]
    assert len(messages) == 2
    assert messages[0].startswith("a: the boot was boot-a-False and, from cell")


def test_c07_and_c08_machines_have_policies_and_clocks_of_their_own() -> None:
    made = campaign({"b": {"governor": "powersave"}})
    assert passed(machine.frequency_policy, made)
    speeds = {"a": 3000.0, "b": 2000.0}
    trials = tuple(
        trial.model_copy(update={"host_counters": {"cpu_mhz": speeds[trial.machine]}}) for trial in made.trials
    )
    assert passed(machine.clock_speed, replace(made, trials=trials))
    slower = tuple(
        trial.model_copy(update={"host_counters": {"cpu_mhz": speeds[trial.machine] - 300 * (trial.round == 6)}})
        for trial in made.trials
        if trial.machine == "b"
    )
    found = failed(machine.clock_speed, replace(made, trials=slower))
    assert "fell from 2000 MHz in the first round to 1700 MHz in host on b" in " ".join(one.message for one in found)


def test_r14_nodes_that_vtax_did_not_create() -> None:
    made = evidence()
    assert several.not_new.look(made).outcome is Outcome.NOT_APPLICABLE
    existing = Capabilities(kind=NodeKind.HOST, separate_nodes=True, existing=True)
    plan = made.plan.model_copy(
        update={"capabilities": {"host": Capabilities(kind=NodeKind.HOST), "container": existing}}
    )
    cells = tuple(
        cell.model_copy(
            update={
                "host_facts": {},
                "facts": tuple(
                    one.model_copy(update={"values": {**one.values, "cpus_allowed": "8-9"}}) for one in cell.facts
                ),
                "started": float(cell.round),
                "machine_facts": {
                    f"container-{name}": {"clock_ahead_s": number, "boot_id": f"{name}-{cell.round > 3}"}
                    for number, name in enumerate(NAMES)
                },
            }
        )
        if cell.environment == "container"
        else cell
        for cell in made.cells
    )
    changed = replace(made, plan=plan, cells=cells)
    (found,) = failed(several.not_new, changed)
    assert found.environment == "container"
    assert found.message.startswith(f"container: the same {len(plan.shape.nodes)} nodes in 6 rounds, not created anew")
    (apart,) = failed(method.confounded, changed)
    assert (apart.severity, apart.environment) == (Severity.WARNING, "container")
    assert "that of machine and environment together" in apart.message
    assert passed(limits.not_applied, changed)  # CPUs of another number are those of another machine
    rebooted = [one.message for one in failed(environment.machine_changed, changed)]
    assert any(line.startswith("container-a: the boot was a-False and, from cell") for line in rebooted)
    assert passed(several.clocks_apart, changed)  # one second apart is the limit
