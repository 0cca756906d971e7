"""C11, R16 and T12: pods of a Kubernetes cluster, and machines that are not what its scheduler says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.audit_cases import evidence, failed, only, passed
from vtax.audit import Evidence, kubernetes
from vtax.model.trial import Status

POD = {"machine": "n1", "planned": "n1", "qos": "Guaranteed", "cpu_limit": "cpuset", "restarts": 0}
TOLD = {"node": "n1", "cpus": "2", "memory": f"{4 * 2**20}Ki", "boot_id": "b", "kernel": "6.1"}
SEEN = {"boot_id": "b", "kernel": "6.1", "cpus_usable": [0, 1], "memory_total_bytes": 4 * 2**30, "kubernetes": TOLD}


def campaign(pod: dict[str, Any] | None = None, seen: dict[str, Any] | None = None) -> Evidence:
    """The campaign without a fault, whose first environment has pods: other facts of all pods, and of their machine."""
    base = evidence(rounds=1)
    name = base.environments[0]
    cells = tuple(
        one.model_copy(
            update={
                "facts": tuple(
                    facts.model_copy(update={"values": {**facts.values, "pod": {**POD, **(pod or {})}}})
                    for facts in one.facts
                ),
                "machine_facts": {"n1": {**SEEN, **(seen or {})}},
            }
        )
        if one.environment == name
        else one
        for one in base.cells
    )
    return replace(base, cells=cells)


def test_pods_as_they_should_be() -> None:
    found = campaign()
    nodes = len(found.plan.shape.nodes)
    name = found.environments[0]
    assert passed(kubernetes.guaranteed, found) == (f"{name}: {nodes} pods, Guaranteed, with exclusive CPUs",)
    expected = f"{name}: all pods of 1 cluster where the study has them, none lost"
    assert passed(kubernetes.as_planned, found) == (expected,)
    assert passed(kubernetes.as_scheduled, found) == ("n1: machine n1, kernel 6.1, 2 CPUs",)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"qos": "Burstable", "cpu_limit": "quota"}, "of class Burstable and limited by quota, without exclusive CPUs"),
        ({"cpu_limit": "quota"}, "limited by quota, without exclusive CPUs"),
    ],
)
def test_pods_without_cpus_of_their_own(pod: dict[str, Any], expected: str) -> None:
    found = campaign(pod)
    message = only(failed(kubernetes.guaranteed, found)).message
    assert message == f"the pods of {found.environments[0]} are {expected}"


def test_a_pod_elsewhere_and_one_that_was_restarted() -> None:
    messages = [one.message for one in failed(kubernetes.as_planned, campaign({"machine": "n2", "restarts": 1}))]
    assert any("was on n2, planned is n1" in one for one in messages)
    assert any("the container of" in one and "was restarted" in one for one in messages)


def test_two_pods_on_one_machine_that_were_planned_on_two() -> None:
    base = campaign()
    first = next(one for one in base.cells if one.environment == base.environments[0])
    facts = tuple(
        one.model_copy(update={"values": {**one.values, "pod": {**POD, "planned": f"n{number}"}}})
        for number, one in enumerate(first.facts, start=1)
    )
    found = replace(base, cells=(first.model_copy(update={"facts": facts}), *base.cells[1:]))
    messages = [one.message for one in failed(kubernetes.as_planned, found)]
    assert any(f"pods were on 1 machine, planned are {len(facts)}" in one for one in messages)


def test_trials_that_ended_from_outside() -> None:
    base = campaign()
    name = base.environments[0]
    first = next(one for one in base.trials if one.environment == name)
    why = "pod worker1 was deleted, during this trial"
    ended = first.model_copy(update={"status": Status.FAILED, "failure": why})
    found = replace(base, trials=tuple(ended if one is first else one for one in base.trials))
    message = only(failed(kubernetes.as_planned, found)).message
    assert message == f"{name}: 1 trial ended from outside, such as: {why}"


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"boot_id": "c"}, "n1: the API says boot b, and the machine c"),
        ({"kernel": "6.2"}, "n1: the API says kernel 6.1, and the machine 6.2"),
        ({"cpus_usable": [0]}, "n1: the API says 2 CPUs, and the machine has 1"),
        ({"memory_total_bytes": 2 * 2**30}, "n1: the API says 4 GiB of memory, and the machine has 2 GiB"),
    ],
)
def test_a_machine_unlike_the_schedulers_word(seen: dict[str, Any], expected: str) -> None:
    assert only(failed(kubernetes.as_scheduled, campaign(seen=seen))).message == expected


def test_a_campaign_without_pods_has_no_such_rows() -> None:
    assert kubernetes.with_pods(evidence(rounds=1)) == "no node is a pod"
    assert kubernetes.with_machines(evidence(rounds=1)) == "no machine is one of a Kubernetes cluster"
