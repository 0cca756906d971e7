"""Effects and intervals: small numbers by hand, and what must hold for all numbers."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.measurements import analysed, measurement, rounds
from builders.synthetic import campaign
from vtax.analysis.analyse import analyse
from vtax.analysis.estimate.paired import critical, fit
from vtax.analysis.records import Comparison
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind

values = st.floats(1e-6, 1e6)
pairs = st.lists(st.tuples(values, values), min_size=1, max_size=8)


def only(measurements: list[Measurement], environments: tuple[str, str] = ("host", "container")) -> Comparison:
    (found,) = analysed(measurements, environments=environments).comparisons
    return found


def test_half_the_time_is_twice_the_performance() -> None:
    found = only(rounds([4.0, 8.0], [2.0, 4.0]))
    assert found.effect == pytest.approx(math.log(2))
    assert found.ratio == pytest.approx(2)


def test_half_the_rate_is_half_the_performance() -> None:
    found = only(rounds([4.0, 8.0], [2.0, 4.0], kind=Kind.RATE_FIXED_WORK, unit="byte/s"))
    assert found.ratio == pytest.approx(0.5)


def test_the_ratio_is_the_geometric_mean_of_the_ratios_within_rounds() -> None:
    found = only(rounds([1.0, 10.0, 100.0], [1.0, 20.0, 800.0], kind=Kind.RATIO, unit="1"))
    assert found.ratio == pytest.approx((1 * 2 * 8) ** (1 / 3))


def test_the_interval_is_that_of_student() -> None:
    # differences -ln 2, 0, ln 2: mean 0, standard deviation ln 2, t(2) = 4.30265
    found = only(rounds([2.0, 1.0, 1.0], [1.0, 1.0, 2.0], kind=Kind.RATIO, unit="1"))
    half_width = 4.302652729911275 * math.log(2) / math.sqrt(3)
    assert found.low == pytest.approx(math.exp(-half_width))
    assert found.high == pytest.approx(math.exp(half_width))
    assert critical(5) == pytest.approx(2.570581835636314)


def test_two_rounds_have_no_interval() -> None:
    found = only(rounds([1.0, 1.0], [2.0, 2.1]))
    assert (found.n, found.low, found.high) == (2, None, None)


def test_only_rounds_that_both_have_are_paired() -> None:
    items = [
        measurement(2.0, round=1),
        measurement(2.0, round=3),
        measurement(4.0, round=2, environment="container"),
        measurement(1.0, round=3, environment="container"),
    ]
    found = only(items)
    assert found.n == 1
    assert found.ratio == pytest.approx(2)


def test_an_environment_alone_is_shown_and_not_compared() -> None:
    found = only([measurement(4.0, environment="container")])
    assert (found.n, found.ratio, found.effect) == (0, None, None)
    assert "no round has results for both container and host" in found.sentence


def test_a_proportion_has_a_difference_and_no_ratio() -> None:
    found = only(rounds([0.0, 0.1, 0.2], [0.1, 0.2, 0.3], kind=Kind.PROPORTION, unit="1"))
    assert found.difference == pytest.approx(0.1)
    assert (found.ratio, found.effect, found.low) == (None, None, None)


def test_zeros_of_an_amount_count_and_it_has_a_difference_in_its_unit() -> None:
    values = rounds([0.0, 0.001, 0.002], [0.002, 0.003, 0.004], kind=Kind.AMOUNT, primary=False)
    assert sorted(level.mean for level in analysed(values).levels) == pytest.approx([0.001, 0.003])
    found = only(values)
    assert found.difference == pytest.approx(0.002)
    assert (found.ratio, found.effect) == (None, None)
    assert "difference only: +2 [+2, +2] ms" in found.sentence


def test_a_count_has_a_level_and_no_comparison() -> None:
    analysis = analysed(rounds([0.0, 1.0], [5.0, 6.0], kind=Kind.COUNT, unit="1"))
    assert analysis.comparisons == ()
    assert [level.mean for level in analysis.levels] == [0.5, 5.5]


def test_p_values_of_a_known_case() -> None:
    # mean 1, standard deviation 1, n 4: t = 2 with 3 degrees of freedom, two-sided p = 0.1393
    found = fit(np.array([1 - math.sqrt(1.5), 1.0, 1.0, 1 + math.sqrt(1.5)]), None)
    assert found.sd == pytest.approx(1)
    assert found.p_difference == pytest.approx(0.13932596855884)
    assert found.p_equivalence(1.0) == pytest.approx(1.0)  # the estimate is on the margin
    assert found.p_equivalence(3.0) == pytest.approx(0.0280085, rel=1e-4)  # t = 4


def test_no_spread_is_certain_either_way() -> None:
    same, other = fit(np.zeros(6), None), fit(np.full(6, 0.5), None)
    assert (float(same.p_difference), float(other.p_difference)) == (1.0, 0.0)
    assert (float(same.p_equivalence(0.02)), float(other.p_equivalence(0.02))) == (0.0, 1.0)


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=20)
def test_the_order_of_the_input_changes_no_bit(seed: int) -> None:
    made = campaign(rounds=3)
    shuffled = list(made.measurements), list(made.trials), list(made.findings)
    for part in shuffled:
        random.Random(seed).shuffle(part)
    expected = analyse(made.measurements, plan=made.plan, findings=made.findings, trials=made.trials)
    found = analyse(shuffled[0], plan=made.plan, findings=shuffled[2], trials=shuffled[1])
    assert found.model_dump_json() == expected.model_dump_json()


@given(pairs, st.sampled_from([Kind.COST, Kind.RATE_FIXED_WORK, Kind.RATE_FIXED_TIME, Kind.LATENCY_QUANTILE]))
@settings(deadline=None)
def test_swapping_the_environments_negates_the_effect_exactly(several: list[tuple[float, float]], kind: Kind) -> None:
    mine, theirs = [a for a, _ in several], [b for _, b in several]
    one, other = only(rounds(mine, theirs, kind=kind)), only(rounds(theirs, mine, kind=kind))
    assert one.effect is not None
    assert other.effect == -one.effect
    assert one.sd == other.sd


@given(pairs, st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_the_unit_does_not_matter(several: list[tuple[float, float]], scale: float) -> None:
    mine, theirs = [a for a, _ in several], [b for _, b in several]
    one = only(rounds(mine, theirs))
    other = only(rounds([scale * a for a in mine], [scale * b for b in theirs]))
    assert other.effect == pytest.approx(one.effect, abs=1e-12)


@given(pairs)
@settings(deadline=None)
def test_a_time_and_its_rate_say_the_same(several: list[tuple[float, float]]) -> None:
    mine, theirs = [a for a, _ in several], [b for _, b in several]
    time = only(rounds(mine, theirs))
    rate = only(rounds([1 / a for a in mine], [1 / b for b in theirs], kind=Kind.RATE_FIXED_WORK, unit="1/s"))
    assert rate.effect == pytest.approx(time.effect, abs=1e-12)
    assert rate.verdict == time.verdict


@given(st.lists(values, min_size=1, max_size=3), st.lists(values, min_size=1, max_size=3))
@settings(deadline=None)
def test_a_time_and_its_rate_say_the_same_over_iterations(mine: list[float], theirs: list[float]) -> None:
    def items(kind: Kind) -> list[Measurement]:
        return [
            measurement(v if kind is Kind.COST else 1 / v, environment=name, iteration=i, kind=kind)
            for name, several in (("host", mine), ("container", theirs))
            for i, v in enumerate(several, 1)
        ]

    assert only(items(Kind.RATE_FIXED_WORK)).effect == pytest.approx(only(items(Kind.COST)).effect, abs=1e-12)
