"""Levels of looks on disk: the same bits as a simulation, and never a damaged or foreign file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vtax.analysis.analyse import analyse
from vtax.analysis.sequential import group_sequential
from vtax.analysis.sequential.group_sequential import PROBABILITIES, calibration, level_of, quantiles
from vtax.evaluation import calibration_cache
from vtax.evaluation.calibration_cache import tables_of
from vtax.model.study import Study
from vtax.planning.study import at_any_time
from vtax.selftest.objects import plan_of, simulated

LOOKS = (6, 9)
NAME = "6-9.adjusted.json"
DRAWS = 2_000


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration_cache, "DRAWS", DRAWS)


@pytest.fixture
def simulations(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each simulation was adjusted for the order."""
    made: list[bool] = []

    def counted(planned: tuple[int, ...], *, adjusted: bool, draws: int, seed: int) -> np.ndarray:
        made.append(adjusted)
        return quantiles(planned, adjusted=adjusted, draws=draws, seed=seed)

    monkeypatch.setattr(calibration_cache, "quantiles", counted)
    return made


def study(planned: tuple[int, ...] = LOOKS) -> Study:
    return plan_of(1, planned, 1).study


def test_they_are_simulated_once_and_come_back_bit_for_bit(tmp_path: Path, simulations: list[bool]) -> None:
    first, again = tables_of(study(), tmp_path), tables_of(study(), tmp_path)
    assert simulations == [False, True]
    for adjusted in (False, True):
        expected = quantiles(LOOKS, adjusted=adjusted, draws=DRAWS, seed=group_sequential.SEED)
        assert np.array_equal(first[adjusted], expected)
        assert np.array_equal(again[adjusted], expected)
    assert sorted(path.name for path in (tmp_path / "looks").iterdir()) == [NAME, "6-9.plain.json"]


def test_the_analysis_uses_them_and_needs_no_simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(study(), tmp_path)
    monkeypatch.setattr(group_sequential, "quantiles", lambda *_, **__: pytest.fail("simulated again"))
    monkeypatch.setattr(group_sequential, "calibration", lambda *_, **__: pytest.fail("simulated again"))
    found = level_of(study(), adjusted=True, tables=tables)
    assert found.source == group_sequential.SIMULATED
    assert float(found.sequential(np.array(found.a_look))) == pytest.approx(0.05)
    made = simulated(plan_of(1, LOOKS, 1), np.ones((2, 6, 1)))
    judged = analyse(made.measurements, plan=made.plan, findings=(), trials=made.trials, tables=tables)
    assert judged.a_look == level_of(study(), adjusted=False, tables=tables).a_look


def changed(key: str, value: object) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), key: value})


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "",
        lambda text: text[: len(text) // 2],
        lambda _: "[]",
        lambda _: "\x00",
        lambda _: "[" * 100_000,
        changed("looks", [6, 10]),
        changed("adjusted", False),
        changed("draws", 1),
        changed("simulation", 0),
        changed("seed", 1),
        changed("more", 1),
        changed("quantiles", []),
        changed("quantiles", None),
        changed("quantiles", [float("nan")] * PROBABILITIES.size),
        changed("quantiles", ["0.1"] * PROBABILITIES.size),
        changed("quantiles", [0.0] * PROBABILITIES.size),
        changed("quantiles", [0.5, *[0.1] * (PROBABILITIES.size - 1)]),
    ],
)
def test_a_file_that_is_damaged_or_of_something_else_is_made_again(
    tmp_path: Path, simulations: list[bool], damage: Callable[[str], str]
) -> None:
    whole = tables_of(study(), tmp_path)
    path = tmp_path / "looks" / NAME
    sound = path.read_text()
    path.write_text(damage(sound))
    simulations.clear()
    assert np.array_equal(tables_of(study(), tmp_path)[True], whole[True])
    assert simulations == [True]
    assert path.read_text() == sound


def test_what_takes_no_simulation_is_not_kept(tmp_path: Path, simulations: list[bool]) -> None:
    for planned in ((12,), (6, 10, 16), (100, 1000)):
        assert tables_of(study(planned), tmp_path) == {}
    assert tables_of(at_any_time(study((6, 20))), tmp_path) == {}
    assert tables_of(study(), None) == {}
    assert (simulations, list(tmp_path.iterdir())) == ([], [])


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "looks").write_text("no directory")
    assert tables_of(study(), tmp_path)[True].size == PROBABILITIES.size


def test_the_level_is_that_of_the_simulation_in_the_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_sequential, "DRAWS", DRAWS)
    calibration.cache_clear()
    try:
        kept = level_of(study(), adjusted=True, tables=tables_of(study(), tmp_path))
        assert kept.a_look == calibration(LOOKS, adjusted=True).a_look
    finally:
        calibration.cache_clear()
