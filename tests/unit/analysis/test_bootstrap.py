"""The bootstrap of the ratio of means: against scipy, its symmetries, and where it is and is not shown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from vtax.analysis.estimate.bootstrap import TOO_FEW, bootstrapped
from vtax.analysis.estimate.columns import Floats
from vtax.model.metric import Kind
from vtax.selftest.objects import Simulated, plan_of, simulated


def random(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def made(seed: int, rounds: int = 24, iterations: int = 3, noise: float = 0.02) -> list[Floats]:
    return list(np.exp(noise * random(seed).normal(size=(rounds, iterations))))


def test_with_one_iteration_it_is_the_bootstrap_of_rounds_that_scipy_has() -> None:
    mine, theirs = made(1, iterations=1, noise=0.1), made(2, iterations=1, noise=0.1)
    low, high = (float(end) for end in bootstrapped(mine, theirs, Kind.COST, 1))
    found = stats.bootstrap(
        (np.concatenate(mine), np.concatenate(theirs)),
        lambda a, b, axis: np.log(a.sum(axis=axis) / b.sum(axis=axis)),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=20_000,
        rng=random(3),
    ).confidence_interval
    assert low == pytest.approx(found.low, abs=0.006)
    assert high == pytest.approx(found.high, abs=0.006)


def test_iterations_are_drawn_too() -> None:
    """Rounds with one mean each, and iterations that differ: without the second level there would be no width."""
    rounds = [np.array([0.9, 1.0, 1.1])] * 20
    low, high = (float(end) for end in bootstrapped(rounds, rounds, Kind.COST, 1))
    deviation = math.sqrt(2 / 300 / 3 / 20 * 2)  # of 20 means of 3 drawn from variance 2/300, in both
    assert high - low == pytest.approx(2 * 1.96 * deviation, rel=0.1)


@pytest.mark.parametrize("kind", [Kind.COST, Kind.RATE_FIXED_WORK, Kind.RATE_FIXED_TIME, Kind.RATIO])
def test_exchanged_environments_negate_it_exactly(kind: Kind) -> None:
    mine, theirs = made(1), [values[:2] for values in made(2)]  # the other lost one iteration in every cell
    low, high = bootstrapped(mine, theirs, kind, 7)
    other_low, other_high = bootstrapped(theirs, mine, kind, 7)
    assert (float(low), float(high)) == (-float(other_high), -float(other_low))


def test_the_seed_decides_and_units_do_not() -> None:
    mine, theirs = made(1), made(2)
    one, same, other = (bootstrapped(mine, theirs, Kind.COST, seed) for seed in (1, 1, 2))
    assert [float(end) for end in one] == [float(end) for end in same] != [float(end) for end in other]
    scaled = bootstrapped([v * 1024 for v in mine], [v * 1024 for v in theirs], Kind.COST, 1)
    assert [float(end) for end in scaled] == pytest.approx([float(end) for end in one], abs=1e-12)


# --- in a campaign ---


def campaign(n: int, *, rate: bool = False, tail: float = 0.0) -> Simulated:
    dice = random(4)
    values = np.exp(0.01 * dice.normal(size=(2, n, 3)))
    values[1, ::4, 0] *= 1 + tail
    return simulated(plan_of(3, (n,), 3), values, rate=rate)


def test_it_stands_beside_the_ratio_of_means_from_twenty_rounds_on() -> None:
    few, many = campaign(19).comparison, campaign(20).comparison
    assert few.mean_ratio is not None
    assert (few.mean_low, few.mean_high, few.mean_without) == (None, None, TOO_FEW)
    assert None not in (many.mean_low, many.mean_ratio, many.mean_high)
    assert (many.mean_low or 9) < (many.mean_ratio or 0) < (many.mean_high or 0)
    assert many.mean_without == ""


def test_times_and_rates_have_the_same_interval_and_files_may_come_in_any_order() -> None:
    times, rates = campaign(20).comparison, campaign(20, rate=True).comparison
    assert times.mean_ratio == pytest.approx(rates.mean_ratio)
    assert times.mean_low == pytest.approx(rates.mean_low)
    assert times.mean_high == pytest.approx(rates.mean_high)
    shuffled = campaign(20).shuffled(random(5)).analysis
    assert shuffled.model_dump_json() == campaign(20).analysis.model_dump_json()


def test_a_lost_run_is_no_mistake() -> None:
    whole = campaign(21)
    lost = next(t.id for t in whole.trials if t.environment == "other" and t.round == 5)
    found = whole.without(lost).comparison
    assert found.mean_low is not None
    assert found.mean_low != whole.comparison.mean_low


def test_where_typical_and_mean_performance_disagree_the_interval_is_told() -> None:
    found = campaign(20, tail=0.5).comparison
    (message,) = [note.message for note in found.notes if note.id == "ESTIMAND_DIVERGES"]
    assert message.endswith(f"{found.mean_ratio:.4g} [{found.mean_low:.4g}, {found.mean_high:.4g}]")
    few = campaign(12, tail=0.5).comparison
    (message,) = [note.message for note in few.notes if note.id == "ESTIMAND_DIVERGES"]
    assert message.endswith(f"{few.mean_ratio:.4g}")
