"""A plan in which an environment never shares its machines with the baseline is refused."""

from __future__ import annotations

import pytest

from vtax.errors import UsageError
from vtax.model.plan import Cell
from vtax.planning.confounding import refuse_confounded


def cell(number: int, environment: str, machine: str = "", **placement: str) -> Cell:
    name = f"r{number}-{machine or 'x'}-{environment}"
    return Cell(id=name, round=number, environment=environment, trials=(), machine=machine, placement=placement)


def test_environments_on_the_same_machines_are_not_confounded() -> None:
    here = [cell(number, name) for number in (1, 2) for name in ("host", "vm")]
    each = [cell(number, name, machine) for number in (1, 2) for machine in "ab" for name in ("host", "vm")]
    spread = [cell(number, name, master="a", worker1="b") for number in (1, 2) for name in ("host", "vm")]
    for cells in (here, each, spread):
        refuse_confounded(cells, "host")


def test_rotation_over_the_rounds_is_not_enough_within_them() -> None:
    """Both were on both machines, and never in the same round: time and machine are mixed up."""
    cells = [cell(1, "host", "a"), cell(1, "vm", "b"), cell(2, "host", "b"), cell(2, "vm", "a")]
    with pytest.raises(UsageError, match=r"\"vm\" and the baseline \"host\" are never on the same machines") as raised:
        refuse_confounded(cells, "host")
    assert raised.value.detail == "vm: a and b; host: a and b"
    assert raised.value.remedy


def test_a_cluster_with_its_roles_exchanged_is_on_other_machines() -> None:
    cells = [cell(1, "host", master="a", worker1="b"), cell(1, "vm", master="b", worker1="a")]
    with pytest.raises(UsageError, match="confounded"):
        refuse_confounded(cells, "host")


def test_an_environment_that_is_lost_in_some_rounds_is_compared_in_the_others() -> None:
    cells = [cell(1, "host", "a"), cell(1, "vm", "a"), cell(2, "host", "a"), cell(2, "vm", "b")]
    refuse_confounded(cells, "host")
    refuse_confounded(cells, "nobody")
