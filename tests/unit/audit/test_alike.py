"""Conditions that two environments have alike are caveats; one that only one of them has is a bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from builders.audit_cases import as_imported, evidence
from vtax.analysis.verdict import blocker
from vtax.audit import Evidence, Row, environment, limits, machine, programs
from vtax.evidence.alike import weighed
from vtax.evidence.row import Failed
from vtax.model.finding import Finding, Severity
from vtax.model.plan import Plan

HOST, CONTAINER = ("host", "hpcc"), ("container", "hpcc")
SLOW_HOST, SLOW_CONTAINER = Failed("slow", "host", "hpcc"), Failed("slow too", "container", "hpcc")
UNEQUAL, ALIKE = Severity.BLOCKER, Severity.WARNING


@pytest.mark.parametrize(
    ("checked", "expected"),
    [
        ({HOST: SLOW_HOST, CONTAINER: SLOW_CONTAINER}, [(ALIKE, "host", "slow"), (ALIKE, "container", "slow too")]),
        ({HOST: None, CONTAINER: SLOW_CONTAINER}, [(UNEQUAL, "container", "slow too; not so in host")]),
        (
            {HOST: SLOW_HOST, CONTAINER: None},  # what the host has alone is a bias of every comparison with it
            [(ALIKE, "host", "slow"), (UNEQUAL, "container", "slow; not so in container")],
        ),
        ({CONTAINER: SLOW_CONTAINER}, [(ALIKE, "container", "slow too")]),  # nothing is compared with it
        ({HOST: None, CONTAINER: None}, []),
    ],
)
def test_a_condition_is_weighed_against_the_counterpart(
    checked: Mapping[tuple[str, str], Failed | None], expected: list[tuple[Severity, str, str]]
) -> None:
    found = list(weighed(evidence(), checked, UNEQUAL, ALIKE))
    assert [(one.severity, one.environment, one.message) for one in found] == expected


def test_logs_are_not_compared_in_rounds_so_that_nothing_is_in_an_interval() -> None:
    checked = {HOST: SLOW_HOST, CONTAINER: SLOW_CONTAINER}
    found = weighed(as_imported(evidence()), checked, UNEQUAL, ALIKE)
    assert [one.severity for one in found] == [UNEQUAL, UNEQUAL]


def test_an_entry_that_the_baseline_lacks_is_weighed_against_what_takes_its_place() -> None:
    campaign = evidence()
    specs = (*campaign.plan.environments, campaign.plan.environments[1].model_copy(update={"name": "vm"}))
    work = tuple(
        one.model_copy(update={"environment": name})
        for one in campaign.plan.work
        if one.environment == "container"
        for name in ("container", "vm")
    )
    plan = campaign.plan.model_copy(update={"environments": specs, "work": work})
    checked = {("container", "hpcc"): None, ("vm", "hpcc"): Failed("slow", "vm", "hpcc")}
    (found,) = weighed(replace(campaign, plan=plan), checked, UNEQUAL)
    assert (found.severity, found.message) == (UNEQUAL, "slow; not so in container")


def three(facts: Mapping[str, Mapping[str, Any]], ladder: tuple[str, ...] = ()) -> Evidence:
    """Host, container and vm, of which the host has no iperf3."""
    campaign = evidence(facts)
    container = campaign.plan.environments[1]
    added = evidence({"container": facts.get("vm", {})})

    def also(item: Any) -> Any:
        ids = {"id": item.id.replace("container", "vm")} if hasattr(item, "id") else {}
        ids |= {"trial": item.trial.replace("container", "vm")} if hasattr(item, "trial") else {}
        return item.model_copy(update={"environment": "vm", **ids})

    plan = campaign.plan
    work = (*plan.work, *(also(one) for one in plan.work if one.environment == "container"))
    planned = plan.model_copy(
        update={
            "study": plan.study.model_copy(update={"ladder": ladder}),
            "environments": (*plan.environments, container.model_copy(update={"name": "vm"})),
            "work": tuple(one for one in work if (one.environment, one.label) != ("host", "iperf3-udp")),
        }
    )
    measured = (one for one in campaign.measurements if (one.environment, one.label) != ("host", "iperf3-udp"))
    return replace(
        campaign,
        plan=planned,
        cells=(*campaign.cells, *(also(cell) for cell in added.cells if cell.environment == "container")),
        measurements=(*measured, *(also(one) for one in added.measurements if one.environment == "container")),
    )


OTHER = {"binary_sha256": {"hpcc": "c" * 64, "xhpl": "b" * 64}}
SMALLER = {"memory_limit_bytes": 2**30}
FEWER = {"cpu_flags": ["avx2", "fma", "sse2"]}


@pytest.mark.parametrize(
    ("check", "fact"),
    [(programs.different, OTHER), (limits.unequal, SMALLER), (environment.hidden_flags, FEWER)],
)
def test_what_two_environments_share_and_the_baseline_lacks_blocks_no_comparison_of_the_two(
    check: Row, fact: Mapping[str, Any]
) -> None:
    campaign = three({"container": fact, "vm": fact})
    assert campaign.pairs == (("container", "host"), ("vm", "host"), ("vm", "container"))
    rules_out = {both: blocked(campaign, check(campaign), both) for both in campaign.pairs}
    assert rules_out == {("container", "host"): True, ("vm", "host"): True, ("vm", "container"): False}


@pytest.mark.parametrize(
    ("check", "fact"),
    [(programs.different, OTHER), (limits.unequal, SMALLER), (environment.hidden_flags, FEWER)],
)
def test_what_only_one_of_two_environments_has_blocks_their_comparison(check: Row, fact: Mapping[str, Any]) -> None:
    campaign = three({"container": fact})
    rules_out = {both: blocked(campaign, check(campaign), both) for both in campaign.pairs}
    assert rules_out == {("container", "host"): True, ("vm", "host"): False, ("vm", "container"): True}


def test_steps_of_a_ladder_are_pairs_too() -> None:
    campaign = three({}, ladder=("vm", "container", "host"))
    campaign = replace(campaign, measurements=(), plan=replace_baseline(campaign.plan, "vm"))
    assert campaign.pairs == (("host", "vm"), ("container", "vm"), ("host", "container"))


def replace_baseline(plan: Plan, name: str) -> Plan:
    return plan.model_copy(update={"study": plan.study.model_copy(update={"baseline": name})})


def blocked(campaign: Evidence, findings: Sequence[Finding], both: tuple[str, str]) -> bool:
    level = next(one for one in campaign.numbers.levels.values() if one.label == "hpcc")
    return blocker(findings, both, level, campaign.plan) is not None


def with_host_facts(values: Mapping[tuple[str, int], Mapping[str, Any]]) -> Evidence:
    campaign = evidence()
    cells = tuple(
        cell.model_copy(update={"host_facts": {**cell.host_facts, **values.get((cell.environment, cell.round), {})}})
        for cell in campaign.cells
    )
    return replace(campaign, cells=cells)


def test_c07_a_governor_that_changes_between_rounds_is_a_note() -> None:
    later = {(name, number): {"governor": "powersave"} for name in ("host", "container") for number in (4, 5, 6)}
    (found,) = machine.frequency_policy(with_host_facts(later))
    assert (found.severity, found.environment) == (Severity.INFO, "")
    assert "changed between rounds" in found.message


def test_c07_a_governor_that_differs_within_a_round_is_a_bias() -> None:
    (found,) = machine.frequency_policy(with_host_facts({("container", 4): {"governor": "powersave"}}))
    assert (found.severity, found.environment) == (Severity.WARNING, "container")


def test_c08_a_clock_that_falls_for_all_is_a_note() -> None:
    def falling(*names: str) -> set[tuple[Severity, str]]:
        campaign = evidence()
        trials = tuple(
            one.model_copy(
                update={"host_counters": {"cpu_mhz": 2000.0 if one.environment in names and one.round > 3 else 3000.0}}
            )
            for one in campaign.trials
        )
        return {(one.severity, one.environment) for one in machine.clock_speed(replace(campaign, trials=trials))}

    assert falling("host", "container") == {(Severity.INFO, "host"), (Severity.INFO, "container")}
    assert falling("container") == {(Severity.WARNING, "container")}


def test_c06_the_other_clusters_of_a_round_are_no_strangers() -> None:
    """Where trials alternate, clusters of other environments exist at once, paused."""
    running = {("container", 1): {"running": {"containers": 6, "virtual machines": 0}}}
    campaign = with_host_facts(running)
    specs = tuple(spec.model_copy(update={"provider": "docker"}) for spec in campaign.plan.environments)
    plan = campaign.plan.model_copy(update={"environments": specs})
    (stranger,) = machine.foreign_load(replace(campaign, plan=plan))
    assert stranger.message == "6 containers ran on the machine, 3 of them nodes of container"
    assert stranger.severity is Severity.INFO
    cells = tuple(cell.model_copy(update={"paused": ("host",)}) for cell in campaign.cells)
    assert machine.foreign_load(replace(campaign, plan=plan, cells=cells)) == ()


def test_c06_three_cells_do_not_tell_bias_from_chance() -> None:
    busy = {"cpu_ticks": 100.0, "busy_ticks": 40.0}

    def found(rounds: int) -> set[Severity]:
        campaign = evidence(rounds=rounds)
        cells = tuple(
            cell.model_copy(update={"idle": busy}) if cell.environment == "container" else cell
            for cell in campaign.cells
        )
        return {one.severity for one in machine.foreign_load(replace(campaign, cells=cells))}

    assert found(6) == {Severity.INFO, Severity.BLOCKER}
    assert found(5) == {Severity.INFO}
