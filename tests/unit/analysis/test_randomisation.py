"""The randomisation test: against enumeration by hand, the planner's own draws, and scipy."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from builders.measurements import simulated_rounds
from vtax.analysis.estimate.paired import fit
from vtax.analysis.estimate.randomisation import DRAWS, EXACT_TO, p_randomised
from vtax.analysis.order import block_rounds, environment_orders
from vtax.selftest.objects import plan_of, simulated

PAIRS = np.arange(12) // 2
campaign = partial(simulated_rounds, noise=0.01, looks=(40,))


def random(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def leads(environments: int, rounds: int, seed: int, one: int, other: int) -> tuple[int, ...]:
    """+1 where `one` runs before `other`, by the planner."""
    orders = environment_orders(seed, rounds, environments)
    return tuple(1 if order.index(one) < order.index(other) else -1 for order in orders)


@pytest.mark.parametrize("environments", [2, 3, 4])
def test_a_block_with_exchanged_names_is_an_order_that_the_planner_draws(environments: int) -> None:
    size = block_rounds(environments)
    drawn = {leads(environments, size, seed, 0, 1) for seed in range(1_000)}
    assert {tuple(-lead for lead in order) for order in drawn} == drawn


def test_of_two_environments_nothing_else_is_drawn() -> None:
    drawn = {leads(2, 6, seed, 0, 1) for seed in range(100)}
    assert drawn == {sum(((s, -s) for s in signs), ()) for signs in itertools.product((1, -1), repeat=3)}


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=20, deadline=None)
def test_it_is_the_share_of_orders_whose_estimate_is_as_large(seed: int, adjusted: bool) -> None:
    dice = random(seed)
    keep = np.sort(dice.choice(12, 11, replace=False))  # a round is missing, so that orders are not balanced
    differences = dice.normal(0.01, 0.02, 12)[keep]
    first = np.array(leads(2, 12, seed, 1, 0), float)[keep]
    blocks = PAIRS[keep]
    found = []
    for signs in itertools.product((1.0, -1.0), repeat=6):
        chosen = np.array(signs)[blocks]
        found.append(abs(float(fit(differences * chosen, first * chosen if adjusted else None).theta)))
    expected = np.mean(np.array(found) >= found[0] * (1 - 1e-9))
    assert float(p_randomised(differences, first if adjusted else None, blocks, 1)) == pytest.approx(expected)


def test_scipy_says_the_same_of_sums_of_blocks() -> None:
    differences = random(1).normal(0.004, 0.01, 12)
    sums = differences.reshape(6, 2).sum(axis=1)
    theirs = stats.permutation_test(
        (sums, np.zeros(6)),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        n_resamples=1_000,
    )
    assert float(p_randomised(differences, None, PAIRS, 1)) == pytest.approx(theirs.pvalue)


def test_a_clear_difference_has_the_smallest_p() -> None:
    assert float(p_randomised(random(1).normal(0.1, 0.01, 12), None, PAIRS, 1)) == 2 / 2**6


def test_many_blocks_are_drawn_at_random_and_repeatably() -> None:
    n = 4 * EXACT_TO
    differences, blocks = random(3).normal(0.003, 0.01, n), np.arange(n) // 2
    one, same, other = (float(p_randomised(differences, None, blocks, seed)) for seed in (1, 1, 2))
    exact = float(stats.ttest_1samp(differences.reshape(-1, 2).sum(axis=1), 0).pvalue)
    assert one == same != other
    assert one == pytest.approx(exact, abs=0.03)
    assert float(p_randomised(differences + 1, None, blocks, 1)) == pytest.approx(1 / (DRAWS + 1))


def test_many_campaigns_at_once_are_as_each_alone() -> None:
    differences, first = random(4).normal(0.005, 0.01, (5, 12)), np.tile((1.0, -1.0, -1.0, 1.0), (5, 3))
    whole = p_randomised(differences, first, PAIRS, 1)
    assert whole.tolist() == [float(p_randomised(d, x, PAIRS, 1)) for d, x in zip(differences, first, strict=True)]


# --- in a campaign ---------------------------------------------------------------------------------------------------


def test_it_is_there_from_twelve_rounds_on() -> None:
    assert campaign(0.1, n=11).comparison.randomisation is None
    found = campaign(0.1, n=12).comparison.randomisation
    assert found is not None
    assert (found.p, found.orders, found.exact, found.smallest) == (2 / 64, 64, True, 2 / 64)
    many = campaign(0.1, n=40).comparison.randomisation
    assert many is not None
    assert (many.orders, many.exact) == (DRAWS, False)


def test_the_order_of_files_and_swapped_environments_change_nothing() -> None:
    made = campaign(0.003, n=40)
    assert made.shuffled(random(9)).analysis.model_dump_json() == made.analysis.model_dump_json()
    rates = simulated(made.plan, np.exp(0.01 * random(2).normal(size=(2, 40, 1))), rate=True)
    times = simulated(made.plan, np.exp(0.01 * random(2).normal(size=(2, 40, 1))))
    assert rates.comparison.randomisation == times.comparison.randomisation
    differences, blocks = random(5).normal(0.003, 0.01, 40), np.arange(40) // 2
    assert p_randomised(differences, None, blocks, 3) == p_randomised(-differences, None, blocks, 3)


# every pair of rounds agrees in sign but for the last: the t interval is sure, 4 of 64 orders are as extreme
ONE_BLOCK_AGAINST = (-2.19, -2.52, -1.71, -2.14, -2.17, -2.81, -2.1, -2.38, -1.85, -1.62, -0.12, 0.13)


def told(differences: tuple[float, ...]) -> list[str]:
    plan = plan_of(3, (len(differences),), 1)
    values = np.ones((2, len(differences), 1))
    values[1, :, 0] = np.exp(-np.array(differences) / 100)
    return [note.message for note in simulated(plan, values).comparison.notes if note.id == "RANDOMISATION"]


def test_a_disagreement_is_told_and_agreement_is_not() -> None:
    assert told(ONE_BLOCK_AGAINST) == [
        "the interval excludes 1, and the randomisation test over 64 orders that the plan could have drawn does not "
        "confirm it (p 0.062)"
    ]
    assert told((*ONE_BLOCK_AGAINST[:10], -2.0, -2.1)) == []
    assert told(tuple(random(2).normal(0, 1, 12))) == []
