"""How the trials of a round alternate between its cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vtax.analysis.order import trials_in_order
from vtax.model.plan import Cell, PlannedTrial


def cell(environment: str, works: Sequence[str], iterations: int = 4, warmups: int = 0) -> Cell:
    name = f"r001-{environment}"
    trials = [
        PlannedTrial(id=f"{name}/{work}.{suffix}", work=work, iteration=number, warmup=warm)
        for work in works
        for suffix, number, warm in (
            *((f"w{i}", i, True) for i in range(1, warmups + 1)),
            *((f"{i}", i, False) for i in range(1, iterations + 1)),
        )
    ]
    return Cell(id=name, round=1, environment=environment, trials=tuple(trials))


def order(*cells: Cell) -> str:
    """Environment and suffix of every trial, in order."""
    return " ".join(f"{one.environment}{trial.id.rpartition('.')[2]}" for one, trial in trials_in_order(cells))


def test_two_environments_alternate_abba() -> None:
    assert order(cell("A", ["x"]), cell("B", ["x"])) == "A1 B1 B2 A2 A3 B3 B4 A4"


def test_three_and_four_are_mirrored_too() -> None:
    three = [cell(name, ["x"], iterations=2) for name in "ABC"]
    assert order(*three) == "A1 B1 C1 C2 B2 A2"
    four = [cell(name, ["x"], iterations=2) for name in "DBAC"]
    assert order(*four) == "D1 B1 A1 C1 C2 A2 B2 D2"


def test_warm_ups_come_first_environment_by_environment() -> None:
    cells = [cell(name, ["x"], iterations=2, warmups=2) for name in "AB"]
    assert order(*cells) == "Aw1 Aw2 Bw1 Bw2 A1 B1 B2 A2"


def test_one_work_after_the_other_in_the_order_of_the_round() -> None:
    cells = [cell(name, ["y", "x"], iterations=2) for name in "AB"]
    ran = [(one.environment, trial.work) for one, trial in trials_in_order(cells)]
    assert ran == [(name, work) for work in "yx" for name in "ABBA"]


def test_an_environment_that_lacks_a_work_is_passed_over() -> None:
    lacking = [cell("A", ["x", "z"], 2), cell("B", ["x", "y", "z"], 2), cell("C", ["y", "z"], 2)]
    assert [f"{one.environment}{trial.work}" for one, trial in trials_in_order(lacking)] == [
        *("Ax", "Bx", "Bx", "Ax"),
        *("By", "Cy", "Cy", "By"),
        *("Az", "Bz", "Cz", "Cz", "Bz", "Az"),
    ]


def test_one_environment_or_none() -> None:
    assert order(cell("A", ["x"], 2)) == "A1 A2"
    assert order() == ""


def test_a_last_odd_iteration_is_in_the_order_of_the_cells() -> None:
    assert order(cell("A", ["x"], 3), cell("B", ["x"], 3)) == "A1 B1 B2 A2 A3 B3"


@given(data=st.data(), count=st.integers(2, 4), warmups=st.integers(0, 2), pairs=st.integers(1, 3))
def test_every_trial_once_its_own_order_kept_and_every_pair_balanced(
    data: st.DataObject, count: int, warmups: int, pairs: int
) -> None:
    works = ["u", "v", "w"]
    chosen = [data.draw(st.lists(st.sampled_from(works), unique=True).map(sorted)) for _ in range(count)]
    cells = [cell(name, mine, 2 * pairs, warmups) for name, mine in zip("ABCD"[:count], chosen, strict=True)]
    ordered = trials_in_order(cells)
    for one in cells:
        assert [trial for owner, trial in ordered if owner == one] == list(one.trials)
    for work in works:
        places = {
            (owner.environment, trial.iteration): place
            for place, (owner, trial) in enumerate(ordered)
            if trial.work == work and not trial.warmup
        }
        names = sorted({name for name, _ in places})
        for a, b in combinations(names, 2):
            apart = [places[a, number] - places[b, number] for number in range(1, 2 * pairs + 1)]
            assert sum(apart) == pytest.approx(0), "a drift in time takes as much from the one as from the other"
