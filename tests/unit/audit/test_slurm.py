"""R15 and T11: allocations of a campaign, and nodes that are not what Slurm says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.audit_cases import evidence, failed, only, passed, unknown
from vtax.audit import Evidence, slurm
from vtax.model.finding import Outcome
from vtax.model.study import MachineSpec, SlurmSpec

GIVEN = {"job": "7", "node": "c1", "job_cpus": 2, "node_memory_bytes": 4 * 2**30}
SEEN = {"slurm": GIVEN, "slurm_job": {"job": "7", "node": "c1"}, "cpus_usable": [0, 1], "memory_total_bytes": 4 * 2**30}


def campaign(first: dict[str, Any] | None = None, later: dict[str, Any] | None = None) -> Evidence:
    """The campaign without a fault on one node; with other facts in its first round, or after it."""
    base = evidence(rounds=2)
    rounds = {1: {**SEEN, **(first or {})}, 2: {**SEEN, **(later or {})}}
    given = SlurmSpec(name="cluster", time_s=600.0, wait_s=60.0)
    study = base.plan.study.model_copy(update={"machines": {"cluster1": MachineSpec(slurm=given)}})
    cells = tuple(cell.model_copy(update={"machine": "cluster1"}) for cell in base.plan.cells)
    records = tuple(
        one.model_copy(update={"host_facts": {**one.host_facts, **rounds[cell.round]}, "started": float(cell.round)})
        for cell, one in zip(base.plan.cells, base.cells, strict=True)
    )
    return replace(base, plan=base.plan.model_copy(update={"study": study, "cells": cells}), cells=records)


def test_one_allocation_on_a_node_as_slurm_says() -> None:
    assert passed(slurm.allocations, campaign()) == ("job 7 on c1",)
    assert passed(slurm.as_slurm_says, campaign()) == ("cluster1: node c1, 2 CPUs, as Slurm says",)


def test_several_allocations_are_named() -> None:
    later = {"slurm": {**GIVEN, "job": "9", "node": "c2"}, "slurm_job": {"job": "9", "node": "c2"}}
    found = only(failed(slurm.allocations, campaign(later=later)))
    assert found.message == "2 allocations: job 7 on c1; job 9 on c2"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"slurm_job": {"job": "8", "node": "c1"}}, "cluster1: Slurm says job 7, and the node 8"),
        ({"slurm_job": {"job": "7", "node": "c2"}}, "cluster1: Slurm says node c1, and the node c2"),
        ({"cpus_usable": [0, 1, 2]}, "cluster1: Slurm gave 2 CPUs, and 3 can be used"),
        ({"memory_total_bytes": 2**30}, "cluster1: Slurm says that it has 4 GiB, and it has 1 GiB"),
    ],
)
def test_a_node_that_is_not_what_slurm_says(facts: dict[str, Any], expected: str) -> None:
    assert only(failed(slurm.as_slurm_says, campaign(first=facts))).message == expected


def test_what_is_not_recorded_is_undecided() -> None:
    assert unknown(slurm.as_slurm_says, campaign(first={"slurm_job": None}))


def test_rows_do_not_apply_elsewhere() -> None:
    assert {row.look(evidence()).outcome for row in (slurm.allocations, slurm.as_slurm_says)} == {
        Outcome.NOT_APPLICABLE
    }
