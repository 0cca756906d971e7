"""Diagnostics against scipy and numbers by hand; the false alarms are measured by the self-test."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from vtax.analysis.estimate import diagnostics
from vtax.analysis.estimate.diagnostics import ranks_of, slope_of
from vtax.analysis.estimate.failures import _mcnemar, failing, failure_rates, p_sign, with_censored
from vtax.analysis.estimate.stolen import Ticks, stolen_difference
from vtax.model.nodes import Scope
from vtax.model.trial import Status, TrialRecord

RANDOM = np.random.Generator(np.random.PCG64(3))


def test_ranks_correlate_as_in_scipy() -> None:
    values, times = RANDOM.normal(size=14), np.arange(14.0)
    values[3] = values[7]  # a tie
    rho, p = diagnostics.spearman(values, times)
    theirs = stats.spearmanr(values, times)
    assert (float(rho), float(p)) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert diagnostics.spearman(np.ones(8), np.arange(8.0))[1] == pytest.approx(1.0)


def test_a_drift_of_one_percent_an_hour_is_seen() -> None:
    hours = np.arange(10.0)
    logs = [0.01 * hours + noise for noise in (0.0005 * RANDOM.normal(size=10), 0.0005 * RANDOM.normal(size=10))]
    found = diagnostics.drift(logs, [3600 * hours, 3600 * hours + 600])
    assert found is not None
    assert found.found
    assert found.per_hour == pytest.approx(0.01, rel=0.1)
    assert found.change == pytest.approx(np.expm1(0.01 * (9 + 1 / 6)), rel=0.1)
    assert diagnostics.drift([np.zeros(3)], [np.zeros(3)]) is None


def test_an_effect_that_changes_over_the_rounds_is_seen() -> None:
    rounds = np.arange(12.0)
    assert bool(diagnostics.effect_drifts(0.01 * rounds, rounds)[0])
    steady = np.array([1, -1, 2, -2, -1, 1, -2, 2, 1, -1, 0, 0]) / 100
    drifts, p, rho = diagnostics.effect_drifts(steady, rounds)
    assert not bool(drifts)
    assert p > 0.5
    assert abs(rho) < 2 / math.sqrt(12)


def test_outliers_are_more_than_five_deviations_away() -> None:
    values = np.array([0.0, 1.0, -1.0, 0.5, -0.5, 5.0, 20.0])
    # the median is 0.5, the median absolute deviation 1: the limit is 7.413
    assert diagnostics.outliers(values).tolist() == [False] * 6 + [True]
    assert not diagnostics.outliers(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])).any()  # no spread to compare with
    assert not diagnostics.outliers(np.array([0.0, 1.0, 99.0])).any()
    assert diagnostics.p_outliers(3, 30, 0, 30) == pytest.approx(0.2373, abs=1e-4)


@given(of_mine=st.integers(1, 60), of_theirs=st.integers(1, 60), share=st.floats(0, 1), other=st.floats(0, 1))
def test_fishers_p_is_that_of_scipy(of_mine: int, of_theirs: int, share: float, other: float) -> None:
    mine, theirs = round(share * of_mine), round(other * of_theirs)
    table = np.array([[mine, of_mine - mine], [theirs, of_theirs - theirs]])
    assert diagnostics.p_outliers(mine, of_mine, theirs, of_theirs) == pytest.approx(stats.fisher_exact(table).pvalue)


def test_no_diagnostic_of_a_usual_campaign_loads_all_of_scipys_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes half a second, a sixth of what a report may take."""
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    assert diagnostics.p_outliers(1, 24, 3, 24) > 0
    assert stolen_difference({n: [Ticks(n, 100, 1)] for n in range(6)}, {n: [Ticks(1, 100, 1)] for n in range(6)})


def test_two_modes() -> None:
    two = np.array([0.0] * 14 + [1.0] * 6) + 0.01 * RANDOM.normal(size=20)
    assert float(diagnostics.two_modes(two)) > 0.99
    found = diagnostics.modes(two)
    assert found is not None
    assert found == pytest.approx((0.0, 1.0), abs=0.02)
    assert diagnostics.modes(two[:19]) is None  # too few to say
    assert diagnostics.modes(RANDOM.normal(size=40)) is None


@pytest.mark.parametrize(("n", "critical"), [(20, 0.83), (30, 0.79)])
def test_the_critical_value_of_two_modes_is_the_published_one(n: int, critical: float) -> None:
    assert diagnostics.two_modes_critical(n) == pytest.approx(critical, abs=0.01)


def test_the_best_split_is_found_by_trying_all() -> None:
    values = np.sort(RANDOM.normal(size=9))
    total = ((values - values.mean()) ** 2).sum()
    within = min(values[:i].var() * i + values[i:].var() * (9 - i) for i in range(1, 9))
    assert float(diagnostics.two_modes(values)) == pytest.approx(1 - within / total)


def test_the_first_iteration_tells_of_a_short_warm_up() -> None:
    cold = [np.array([0.05 + 0.001 * i, 0.001 * i, -0.001 * i]) for i in range(6)]
    found = diagnostics.p_warmup(cold)
    assert found is not None
    assert found < diagnostics.ALPHA
    assert diagnostics.p_warmup(cold[:5]) is None
    assert diagnostics.p_warmup([np.array([1.0])] * 9) is None


def test_pitman_and_morgan_by_the_correlation_of_sum_and_difference() -> None:
    mine, theirs = 10 * RANDOM.normal(size=12), RANDOM.normal(size=12)
    expected = stats.pearsonr(mine + theirs, mine - theirs).pvalue
    assert float(diagnostics.p_equal_spread(mine, theirs)) == pytest.approx(expected)
    assert expected < 1e-6


def test_the_spread_has_the_interval_of_a_variance() -> None:
    found = diagnostics.spread(np.array([0.0, 0.01, 0.02]))
    assert found is not None
    assert found.sd == pytest.approx(0.01)
    assert found.low == pytest.approx(0.01 * math.sqrt(2 / stats.chi2.ppf(0.975, 2)))
    assert found.high == pytest.approx(0.01 * math.sqrt(2 / stats.chi2.ppf(0.025, 2)))
    assert diagnostics.spread(np.array([0.0, 0.01])) is None


def record(environment: str, number: int, status: Status) -> TrialRecord:
    return TrialRecord(
        id=f"r{number}-{environment}/tool.worker1.1",
        environment=environment,
        round=number,
        cell=f"r{number}-{environment}",
        work="tool.worker1",
        benchmark="tool",
        label="tool",
        scope=Scope.NODE,
        nodes=("worker1",),
        iteration=1,
        warmup=False,
        params={},
        status=status,
        started=0.0,
        elapsed_s=1.0,
        steps=(),
    )


def test_failures_have_the_interval_of_wilson_and_the_test_of_mcnemar() -> None:
    bad = {("vm", 1), ("vm", 2), ("vm", 3), ("vm", 4), ("host", 4)}
    trials = [
        record(name, number, Status.FAILED if (name, number) in bad else Status.OK)
        for name in ("host", "vm")
        for number in range(1, 13)
    ]
    host, vm = failure_rates(trials, lambda _: "host")
    assert (host.failed, host.trials, host.p_mcnemar) == (1, 12, None)
    assert (vm.low, vm.high) == pytest.approx(proportion_confint(4, 12, method="wilson"))
    assert vm.p_mcnemar == pytest.approx(mcnemar([[1, 3], [0, 8]], exact=True).pvalue)  # three rounds against none
    assert failing((host, vm)) == {("vm", "tool")}, "one in twelve is below a tenth, and there are others"
    assert failing((host,)) == {("host", "tool")}, "all failures in one environment"
    assert _mcnemar({1: True}, {1: True}) is None


def test_timeouts_count_as_slower_without_a_value() -> None:
    values = with_censored(np.array([0.1, 0.2, 0.1]), 5, 0)
    assert (values == -np.inf).sum() == 5
    assert p_sign(values) == pytest.approx(stats.binomtest(3, 8).pvalue)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12))
def test_ranks_and_slopes_are_those_of_scipy(values: list[int]) -> None:
    """Ties included, and in several rows at once."""
    array = np.array([values, values[::-1]], float)
    assert ranks_of(array).tolist() == stats.rankdata(array, axis=-1).tolist()
    times = np.arange(len(values), dtype=float) // 2
    if min(np.ptp(times), np.ptp(array[0])) > 0 and len(values) > 3:
        assert slope_of(array[0], times) == stats.theilslopes(array[0], times).slope
