"""The estimator against statsmodels and scipy, and one campaign against many at once."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from vtax.analysis.estimate.paired import adjustable, critical, exponential, fit, tail
from vtax.analysis.estimate.signed_rank import bound_rank, hodges_lehmann, rank_sum_distribution
from vtax.analysis.sequential.sequential_test import benjamini_hochberg, holm

RANDOM = np.random.Generator(np.random.PCG64(7))
BALANCED = np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0])


@pytest.mark.parametrize("n", [3, 6, 10, 41])
def test_the_plain_estimate_is_that_of_scipy_and_statsmodels(n: int) -> None:
    differences = RANDOM.normal(0.01, 0.02, n)
    found = fit(differences, None)
    test = stats.ttest_1samp(differences, 0)
    assert float(found.theta) == pytest.approx(differences.mean())
    assert float(found.p_difference) == pytest.approx(test.pvalue)
    interval = test.confidence_interval(0.97)
    assert [float(end) for end in found.interval(0.03)] == pytest.approx([interval.low, interval.high])
    assert [float(end) for end in found.interval(0.05)] == pytest.approx(DescrStatsW(differences).tconfint_mean(0.05))


def test_equivalence_is_twice_the_p_of_two_one_sided_tests() -> None:
    differences, delta = RANDOM.normal(0.004, 0.01, 9), 0.02
    p, _, _ = DescrStatsW(differences).ttost_mean(-delta, delta)
    assert float(fit(differences, None).p_equivalence(delta)) == pytest.approx(2 * p)


@pytest.mark.parametrize("first", [BALANCED, np.array([1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])])
def test_the_order_is_adjusted_for_as_by_least_squares(first: np.ndarray) -> None:
    differences = RANDOM.normal(0.01, 0.02, 8) + 0.03 * first
    found, model = fit(differences, first), sm.OLS(differences, np.column_stack((np.ones(8), first))).fit()
    assert found.carry_over is not None
    assert [float(found.theta), float(found.carry_over)] == pytest.approx(model.params.tolist())
    assert float(found.se) == pytest.approx(model.bse[0])
    assert found.df == model.df_resid
    assert float(found.p_difference) == pytest.approx(model.pvalues[0])
    assert [float(end) for end in found.interval(0.05)] == pytest.approx(model.conf_int(0.05)[0].tolist())


@given(st.integers(0, 2**32), st.sampled_from([6, 7, 10, 16]))
@settings(max_examples=30, deadline=None)
def test_many_campaigns_give_the_bits_of_each(seed: int, n: int) -> None:
    random = np.random.Generator(np.random.PCG64(seed))
    several, first = (
        random.normal(size=(5, n)),
        np.where(random.permuted(np.tile(np.arange(n), (5, 1)), axis=1) % 2, 1.0, -1.0),
    )
    for order in (None, first):
        whole = fit(several, order)
        low, high = whole.interval(0.02)
        walsh = hodges_lehmann(several)
        for i in range(5):
            one = fit(several[i], None if order is None else order[i])
            assert (one.theta, one.se, one.p_difference) == (whole.theta[i], whole.se[i], whole.p_difference[i])
            assert one.interval(0.02) == (low[i], high[i])
            assert [float(part) for part in hodges_lehmann(several[i])] == [float(part[i]) for part in walsh]


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=12))
@settings(deadline=None)
def test_swapping_negates_exactly(values: list[float]) -> None:
    differences = np.array(values)
    first = np.where(np.arange(len(values)) % 2, 1.0, -1.0)
    one, other = fit(differences, first), fit(-differences, -first)
    assert (float(other.theta), float(other.se)) == (-float(one.theta), float(one.se))
    assert other.interval(0.05)[0] == -one.interval(0.05)[1]
    assert np.array_equal(fit(-differences, None).theta, -fit(differences, None).theta)


def test_the_critical_value_is_that_of_student() -> None:
    assert critical(5) == pytest.approx(2.570581835636314)
    assert critical(4, 0.0135) == pytest.approx(stats.t.ppf(1 - 0.0135 / 2, 4))
    assert float(tail(np.array(3.0), np.array(1.0), 4)) == pytest.approx(stats.t.sf(3, 4))


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ([1, -1, 1, -1, 1, -1], True),
        ([1, 1, 1, 1, -1, -1], True),
        ([1, 1, 1, 1, 1, -1], False),  # one of six ran in the other order: too rare
        ([1, -1, 1, -1, 1], False),
    ],
)
def test_orders_that_can_be_adjusted_for(first: list[int], expected: bool) -> None:
    assert adjustable(np.array(first, float)) is expected


def test_walsh_averages_by_hand() -> None:
    # of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6; the median is 2.75
    assert float(hodges_lehmann(np.array([1.0, 2.0, 6.0]))[0]) == 2.75
    # six pairs at 95 %: from the smallest to the largest of all, 1/32 outside
    found = hodges_lehmann(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 9.0]))
    assert (float(found[1]), float(found[2])) == (1.0, 9.0)


@pytest.mark.parametrize(("n", "expected"), [(5, 0), (6, 1), (7, 3), (8, 4), (10, 9), (20, 53)])
def test_the_ranks_of_the_bounds_are_those_of_the_tables(n: int, expected: int) -> None:
    assert bound_rank(n, 0.05) == expected  # the tables give the largest rank sum in the tail, one less


def test_the_rank_sum_is_that_of_scipy() -> None:
    for w in (0, 5, 17):
        sample = np.array([*range(1, 9)], float)
        for mask in range(256):
            signs = np.where([(mask >> i) & 1 for i in range(8)], 1.0, -1.0)
            if sample[signs > 0].sum() == w:
                p = stats.wilcoxon(sample * signs, method="exact", alternative="less").pvalue
                assert rank_sum_distribution(8)[: w + 1].sum() == pytest.approx(p)
                break


def test_the_approximation_takes_over_smoothly() -> None:
    exact = int(np.searchsorted(np.cumsum(rank_sum_distribution(201)), 0.025, side="right"))
    assert abs(bound_rank(201, 0.05) - exact) <= 2


def test_censored_differences_leave_bounds_open() -> None:
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.5, -np.inf])
    estimate, low, high = (float(part) for part in hodges_lehmann(values))
    assert (low, high) == (-np.inf, 0.5)
    assert np.isfinite(estimate)
    both = hodges_lehmann(np.array([0.1, 0.2, 0.3, 0.4, np.inf, -np.inf]))
    assert (float(both[1]), float(both[2])) == (-np.inf, np.inf)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(deadline=None, max_examples=25)  # theirs takes a thirtieth of a second
def test_the_corrections_are_those_of_statsmodels(p_values: list[float]) -> None:
    p = np.array(p_values)
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])


def test_corrections_of_many_campaigns_at_once() -> None:
    p = RANDOM.random((4, 7))
    assert np.array_equal(holm(p), np.array([holm(row) for row in p]))
    assert np.array_equal(benjamini_hochberg(p), np.array([benjamini_hochberg(row) for row in p]))


def test_ratios_stay_within_what_a_float_holds() -> None:
    assert 0 < exponential(-1e6) < exponential(1e6) < float("inf")
