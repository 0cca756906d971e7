"""Anytime-valid intervals: against an integral by scipy, the published cost, and from study to report."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from builders.measurements import only
from builders.pages import report_input
from builders.synthetic import campaign
from vtax.analysis.estimate.paired import fit
from vtax.analysis.records import Analysis, Verdict, settled
from vtax.analysis.sequential.anytime import ANYTIME, Anytime, p_away, wider
from vtax.analysis.sequential.group_sequential import USUAL, calibration, level_of
from vtax.cli.analyse import lines_of
from vtax.errors import UsageError
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.planning.overrides import Overrides
from vtax.planning.study import at_any_time, every_round
from vtax.report.document.compose import document_of
from vtax.selftest.objects import Simulated, plan_of, simulated

LEVEL = Anytime(every_round(60))
FIRST = np.array((1.0, -1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0))


def random(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize(("n", "t"), [(6, 1.0), (6, 5.0), (10, 3.9), (40, 3.5)])
def test_p_is_the_reciprocal_of_a_ratio_of_likelihoods_that_scipy_integrates(n: int, t: float) -> None:
    def weighted(effect: float) -> float:
        return float(stats.nct.pdf(t, n - 1, effect * math.sqrt(n)) * stats.norm.pdf(effect))

    ratio = integrate.quad(weighted, -8, 8, limit=200)[0] / stats.t.pdf(t, n - 1)
    made = fit(random(1).normal(size=n), None)
    found = float(p_away(np.array(t * float(made.se)), made))
    assert found == pytest.approx(min(1.0, 1 / ratio), rel=1e-4)


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=50, deadline=None)
def test_the_interval_holds_what_p_does_not_exclude(seed: int, adjusted: bool) -> None:
    made = fit(random(seed).normal(0.01, 0.02, 8), FIRST if adjusted else None)
    low, high = (float(end) for end in LEVEL.interval(made))
    for end in (low, high):
        assert float(p_away(np.abs(made.theta - end), made)) == pytest.approx(0.05)
    assert float(LEVEL.p_difference(made)) == pytest.approx(float(p_away(np.abs(made.theta), made)))
    assert (float(LEVEL.p_difference(made)) <= 0.05) == (low > 0 or high < 0)
    delta = 0.03
    assert (float(LEVEL.p_within(made, delta)) <= 0.05) == (-delta <= low and high <= delta)


def test_exchanged_environments_negate_the_interval_exactly() -> None:
    differences = random(3).normal(0.01, 0.02, 8)
    one, other = (LEVEL.interval(fit(s * differences, s * FIRST)) for s in (1, -1))
    assert (float(one[0]), float(one[1])) == (-float(other[1]), -float(other[0]))


@pytest.mark.parametrize(
    ("n", "least", "most"), [(6, 0.40, 0.42), (10, 0.22, 0.28), (24, 0.22, 0.28), (60, 0.22, 0.28)]
)
def test_it_costs_what_the_method_says(n: int, least: float, most: float) -> None:
    assert least < wider(n, 1, calibration(USUAL, adjusted=False).critical(n)) < most


def test_few_rounds_exclude_nothing_and_equal_rounds_stay_uncertain() -> None:
    low, high = LEVEL.interval(fit(np.array([0.1, 0.2, 0.3]), None))
    assert (float(low), float(high)) == (-math.inf, math.inf)
    equal = fit(np.full(6, 0.1), None)  # the same number six times: (1 + n)^(-5/2)
    assert float(LEVEL.p_difference(equal)) == pytest.approx(7**-2.5)
    assert float(LEVEL.p_difference(fit(np.zeros(6), None))) == 1.0


# --- from study to report ---


def plan(rounds: int = 20) -> Plan:
    made = plan_of(3, (rounds,), 1)
    return made.model_copy(update={"study": at_any_time(made.study)})


def made(n: int, effect: float = 0.0, noise: float = 0.005) -> Simulated:
    values = np.exp(noise * random(2).normal(size=(2, n, 1)))
    values[1] *= math.exp(effect)
    return simulated(plan(), values)


def test_every_round_from_six_on_is_a_look() -> None:
    study = plan().study
    assert (study.looks, study.rounds) == (tuple(range(6, 21)), 20)
    assert level_of(study, adjusted=True, tables={}).source == ANYTIME
    found = made(11, 0.10).analysis
    assert (found.look, found.a_look, found.a_look_source) == (11, 0.05, ANYTIME)
    assert settled(found)


def test_the_verdict_is_by_the_wider_interval_and_the_smallest_p_so_far() -> None:
    wide = only(made(8, 0.10).analysis)
    values = simulated(
        plan_of(3, USUAL, 1), np.exp(0.005 * random(2).normal(size=(2, 8, 1))) * [[[1]], [[math.exp(0.1)]]]
    )
    narrow = only(values.analysis)
    assert wide.effect == narrow.effect
    assert None not in (wide.low, narrow.low, wide.p_sequential)
    assert (wide.low or 0) < (narrow.low or 0)
    assert wide.verdict is Verdict.SLOWER
    assert (wide.p_value or 0) >= (wide.p_sequential or 1)
    assert only(made(20, 0.02, 0.03).analysis).p_sequential == min(
        only(made_until(n)).p_value or 1 for n in range(6, 21)
    )


def made_until(n: int) -> Analysis:
    whole = made(20, 0.02, 0.03)
    trials = tuple(one for one in whole.trials if one.round <= n)
    return Simulated(whole.plan, tuple(m for m in whole.measurements if m.round <= n), trials).analysis


def test_pilots_have_no_interval_where_nothing_is_excluded() -> None:
    found = only(made(3, 0.10).analysis)
    assert (found.low, found.high, found.verdict) == (None, None, Verdict.PILOT)
    assert only(made(5, 0.10).analysis).low is not None


def test_the_cost_is_told() -> None:
    found = made(10, 0.10).analysis
    assert found.anytime_wider == pytest.approx(0.228, abs=0.005)
    text = "\n".join(lines_of(found))
    assert "interim analyses are planned after every round from 6 to 20; the last one so far was after 10" in text
    assert (
        "intervals are valid after any of these rounds, and therefore 23 % wider than with six planned analyses" in text
    )
    assert simulated(plan_of(3, (6, 10), 1), np.ones((2, 6, 1))).analysis.anytime_wider is None


def test_the_report_says_what_the_brackets_hold_and_what_they_cost() -> None:
    whole = campaign(rounds=8, failing=False)
    plan = whole.plan.model_copy(update={"study": at_any_time(whole.plan.study)})
    page = document_of(report_input(replace(whole, plan=plan)))
    assert (
        "Brackets hold its anytime-valid interval over rounds: wider than a 95\xa0% t interval, here 2" in page.reading
    )
    assert "than intervals with six planned interim analyses" in page.reading
    looks = next(row.cells[1].text for row in page.plan.rows if row.cells[0].text == "interim analyses")
    assert looks == "planned after every round from 6 to 8; the last one reached: 8"
    assert "anytime" not in document_of(report_input(whole)).reading


def test_the_command_line_asks_for_it() -> None:
    study: Study = plan_of(3, (6, 10, 16), 1).study
    assert Overrides(anytime=True).of(study).looks == tuple(range(6, 17))
    assert Overrides(rounds=9, anytime=True).of(study).looks == (6, 7, 8, 9)
    assert Overrides(rounds=9).of(at_any_time(study)).anytime is False
    assert Overrides(anytime=True).given() == {"--anytime": True}
    with pytest.raises(UsageError, match="6 rounds are planned"):
        Overrides(rounds=6, anytime=True).of(study)
