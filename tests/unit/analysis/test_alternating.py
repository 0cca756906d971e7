"""Trials that alternate within a round: the median of paired differences, by hand, and in all that derives from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from builders.measurements import measurement, only, simulated_rounds
from builders.synthetic import plan as synthetic_plan
from vtax.analysis.analyse import analyse, analysis_of
from vtax.analysis.campaigns.comparison import compare_campaigns
from vtax.analysis.campaigns.setup_differences import Recorded
from vtax.analysis.estimate.bootstrap import LATE, bootstrapped
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.differences import median_of_pairs
from vtax.analysis.estimate.paired import fit
from vtax.analysis.prepared import prepare
from vtax.analysis.records import Analysis, Comparison
from vtax.analysis.sequential.group_sequential import calibration
from vtax.audit.course import drift
from vtax.evidence.campaign import Evidence
from vtax.model.metric import Kind
from vtax.model.plan import Plan
from vtax.model.study import ScoreSpec
from vtax.model.trial import Status, TrialRecord
from vtax.selftest.objects import Simulated, plan_of, simulated

LOOKS = (6, 10)
ROUND = ((1.0, 2.0, 4.0, 8.0), (1.1, 2.6, 4.4, 5.6))  # paired ratios 1.1, 1.3, 1.1, 0.7


def made(rounds: int = 6, noise: float = 0.001, iterations: int = 4, looks: tuple[int, ...] = LOOKS) -> Simulated:
    return simulated_rounds(noise=noise, n=rounds, looks=looks, iterations=iterations, interleave="trial")


def of_rounds(values: Sequence[tuple[Sequence[float], Sequence[float]]], looks: tuple[int, ...] = LOOKS) -> Simulated:
    """A campaign from (baseline, other) of each round, one number an iteration."""
    times = np.array(values).transpose(1, 0, 2)
    return simulated(plan_of(3, looks, times.shape[-1], "trial"), times)


def which(environment: str, round_: int, *iterations: int) -> Callable[[TrialRecord], bool]:
    return lambda one: (one.environment, one.round) == (environment, round_) and one.iteration in iterations


def pairs(found: Comparison) -> list[int]:
    return [one.pairs for one in found.by_round]


# --- a round ---------------------------------------------------------------------------------------------------------


def test_a_round_has_the_median_of_its_paired_differences() -> None:
    analysis = of_rounds([ROUND] * 3).analysis
    found = only(analysis)
    assert found.effect == pytest.approx(-math.log(1.1)), "costs: longer is worse"
    assert (found.interleave, pairs(found), [one.round for one in found.by_round]) == ("trial", [4, 4, 4], [1, 2, 3])
    assert found.by_round[0].difference == pytest.approx(-math.log(1.1))
    shown = {level.environment: level.cells[0].value for level in analysis.levels}
    assert shown == {"base": 3.0, "other": 3.5}, "levels are those of cells"


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two_and_changes_its_sign_exactly() -> None:
    assert float(median_of_pairs([0.1, 0.4, 0.2, 9.0])) == pytest.approx(0.3)
    several = np.random.Generator(np.random.PCG64(1)).normal(size=(50, 4))
    assert (median_of_pairs(-several) == -median_of_pairs(several)).all()
    assert median_of_pairs(several) == pytest.approx(np.median(several, axis=-1))


def test_whole_cells_are_compared_as_before() -> None:
    found = only(simulated(plan_of(3, LOOKS, 4), np.array([ROUND] * 3).transpose(1, 0, 2)).analysis)
    assert found.effect == pytest.approx(-math.log(3.5 / 3.0))
    assert (found.interleave, found.by_round) == ("cell", ())


def test_unless_all_rounds_alternated_whole_cells_are_compared() -> None:
    """Of cells that ran one after the other, iterations of one number are no pairs, and what is carried over stays."""
    alternating, whole = made(noise=0.01), simulated_rounds(noise=0.01, n=6, looks=LOOKS, iterations=4)
    numbers = prepare(
        alternating.measurements, plan=alternating.plan, trials=alternating.trials, declared={}, alternated=False
    )
    found, same = only(analysis_of(numbers, ())), only(whole.analysis)
    assert found == same.model_copy(update={"interleave": "cell"})
    assert (found.interleave, found.by_round, found.order_adjusted) == ("cell", (), True)
    assert only(alternating.analysis).interleave == "trial"


def test_proportions_have_the_difference_of_their_cells() -> None:
    plan = synthetic_plan(("host", "container")).model_copy(update={"interleave": "trial"})
    numbers = [
        measurement(value, environment=name, round=round_, iteration=i, kind=Kind.PROPORTION, metric="lost", unit="1")
        for name, values in (("host", (0.1, 0.2)), ("container", (0.2, 0.5)))
        for round_ in (1, 2, 3)
        for i, value in enumerate(values, 1)
    ]
    found = only(analyse(numbers, plan=plan, findings=(), trials=()))
    assert found.difference == pytest.approx(0.2)
    assert found.interleave == "cell"


# --- what is missing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("environment", ["base", "other"])
def test_without_one_iteration_its_couple_is_left_out(environment: str) -> None:
    campaign = of_rounds([ROUND] * 3)
    less = only(campaign.ended(Status.FAILED, which(environment, 2, 2)).analysis)
    assert pairs(less) == [4, 2, 4]
    assert less.by_round[1].difference == pytest.approx(-(math.log(1.1) + math.log(0.7)) / 2), "of 3 and 4 alone"
    assert less.dropped == 0


def test_a_round_without_a_whole_couple_is_dropped_and_counted() -> None:
    less = only(made().ended(Status.FAILED, which("base", 2, 1, 3)).analysis)
    assert [one.round for one in less.by_round] == [1, 3, 4, 5, 6]
    assert (less.n, less.dropped) == (5, 1)


def test_an_iteration_without_an_end_is_slower_than_all_others() -> None:
    campaign = of_rounds([ROUND] * 6)
    late = only(campaign.ended(Status.TIMED_OUT, which("other", 2, 4)).analysis)
    assert pairs(late) == [4] * 6
    assert late.by_round[1].difference == pytest.approx(-(math.log(1.1) + math.log(1.3)) / 2)
    assert (late.timeouts, late.mean_ratio, late.mean_without) == (None, None, LATE)


@pytest.mark.parametrize(("environment", "counts"), [("other", (1, 0)), ("base", (0, 1))])
def test_a_round_whose_median_has_no_end_is_counted_as_slower_without_bound(
    environment: str, counts: tuple[int, int]
) -> None:
    late = only(made().ended(Status.TIMED_OUT, which(environment, 2, 1, 2)).analysis)
    assert [one.round for one in late.by_round] == [1, 3, 4, 5, 6]
    assert late.timeouts is not None
    assert (late.timeouts.environment, late.timeouts.baseline) == counts
    assert "excluding 1 round in which" in late.remark


def test_nothing_is_known_of_a_pair_in_which_both_have_no_end() -> None:
    campaign = made().ended(Status.TIMED_OUT, lambda one: (one.round, one.iteration) == (2, 1))
    assert pairs(only(campaign.analysis)) == [4, 2, 4, 4, 4, 4]


# --- the order -------------------------------------------------------------------------------------------------------


def test_a_steady_drift_and_a_carry_over_cancel_in_every_round() -> None:
    campaign = made(noise=0.0)
    started = {one.id: one.started for one in campaign.trials}
    first = min(started.values())
    second = {one.id for one in campaign.trials if round((one.started - first) / 60) % 2}
    slower = tuple(
        one.model_copy(
            update={
                "value": math.exp((started[one.trial] - first) / 60 * 0.001 + (0.02 if one.trial in second else 0.0))
            }
        )
        for one in campaign.measurements
    )
    found = only(replace(campaign, measurements=slower).analysis)
    assert [one.difference for one in found.by_round] == pytest.approx([0.0] * 6, abs=1e-12)


def test_a_mirrored_order_is_not_adjusted_for_and_has_no_carry_over() -> None:
    campaign = made()
    found = only(campaign.analysis)
    differences = np.array([one.difference for one in found.by_round])
    low, high = calibration(LOOKS, adjusted=False).interval(fit(differences, None))
    assert (found.order_adjusted, found.carry_over) == (False, None)
    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert not campaign.analysis.order_adjusted


def test_an_entry_with_one_iteration_is_adjusted_for_the_order() -> None:
    found = only(made(iterations=1).analysis)
    assert (found.interleave, pairs(found)) == ("trial", [1] * 6)
    assert found.order_adjusted
    assert found.carry_over is not None
    assert found.a_look == calibration(LOOKS, adjusted=True).a_look


def test_the_randomisation_test_exchanges_names_block_by_block() -> None:
    campaign = made(rounds=12, noise=0.01, looks=(6, 12))
    found = only(campaign.analysis)
    blocks = np.array([one.difference for one in found.by_round]).reshape(-1, 2).sum(axis=1)
    sums = np.array(
        [abs(sum(s * b for s, b in zip(signs, blocks, strict=True))) for signs in product((1, -1), repeat=6)]
    )
    assert found.randomisation is not None
    assert found.randomisation.orders == 64
    assert found.randomisation.p == pytest.approx((sums >= abs(blocks.sum()) * (1 - 1e-9)).mean())


# --- what derives from it --------------------------------------------------------------------------------------------


def test_typical_and_mean_ratio_are_of_the_same_pairs() -> None:
    campaign = of_rounds([ROUND] * 6).ended(Status.FAILED, which("other", 2, 2))
    found = only(campaign.analysis)
    base, other = np.array(ROUND).mean(axis=1)
    rest = np.array(ROUND)[:, 2:].mean(axis=1)
    assert found.mean_ratio == pytest.approx((5 * base + rest[0]) / (5 * other + rest[1]))
    assert "ESTIMAND_DIVERGES" in {note.id for note in found.notes}


def test_paired_iterations_are_drawn_together() -> None:
    """What both have in common within a round does not make the interval of their ratio wider."""
    mine = list(np.exp(np.random.Generator(np.random.PCG64(1)).normal(size=(20, 4))))
    theirs = [2 * one for one in mine]
    low, high = bootstrapped(mine, theirs, Kind.COST, 1, paired=True)
    assert (float(low), float(high)) == pytest.approx((-math.log(2), -math.log(2)))
    apart = bootstrapped(mine, theirs, Kind.COST, 1)
    assert float(apart[1] - apart[0]) > 0.1


def laddered(values: Mapping[str, Floats]) -> Analysis:
    """A ladder over these environments, values of shape (rounds, iterations)."""
    plan: Plan = synthetic_plan(tuple(values))
    spec = plan.study.benchmarks[0].model_copy(update={"name": "tool", "label": "tool", "iterations": 4})
    study = plan.study.model_copy(update={"ladder": tuple(values), "benchmarks": (spec,)})
    numbers = [
        measurement(float(value), environment=name, round=r, iteration=i)
        for name, several in values.items()
        for r, row in enumerate(several, 1)
        for i, value in enumerate(row, 1)
    ]
    alternating = plan.model_copy(update={"study": study, "interleave": "trial"})
    return analyse(numbers, plan=alternating, findings=(), trials=())


def test_steps_of_a_ladder_are_the_comparisons_of_their_pairs() -> None:
    random = np.random.Generator(np.random.PCG64(4))
    values = {name: np.exp(0.05 * random.normal(size=(3, 4))) for name in ("host", "tcp", "box")}
    analysis = laddered(values)
    (ladder,) = analysis.ladder
    apart = np.median(np.log(values["tcp"]) - np.log(values["box"]), axis=1)
    assert ladder.rungs[1].effect == pytest.approx(apart.mean())
    whole = next(one for one in analysis.comparisons if one.environment == "box")
    assert ladder.total.effect == whole.effect


def test_a_score_of_alternating_trials_is_not_adjusted_for_the_order() -> None:
    campaign = made()
    study = campaign.plan.study.model_copy(
        update={"scores": (ScoreSpec(name="all", weights={"sysbench-cpu.work_time": 1.0}),)}
    )
    analysis = replace(campaign, plan=campaign.plan.model_copy(update={"study": study})).analysis
    (score,), found = analysis.scores, only(analysis)
    assert (score.effect, score.low, score.high) == (found.effect, found.low, found.high)


def test_the_best_number_of_iterations_is_even_and_of_pairs() -> None:
    random = np.random.Generator(np.random.PCG64(5))
    shared = np.exp(0.3 * random.normal(size=(10, 4)))  # adjacent trials vary together, and hardly apart
    noise, boot = np.exp(0.02 * random.normal(size=(2, 10, 4))), np.exp(0.02 * random.normal(size=(2, 10, 1)))
    advice = simulated(plan_of(3, LOOKS, 4, "trial"), shared * noise * boot).analysis.advice
    (said,) = [line for line in advice if "iterations per cell" in line]
    # 60 s between rounds and 2 x 10 s for a pair: sqrt(60 / 20 x 1), about
    assert said.startswith("sysbench-cpu: 2 iterations")


def test_the_tax_of_two_campaigns_is_that_of_their_pairs() -> None:
    several = [
        simulated_rounds(effect, 0.02, iterations=4, seed=seed, looks=LOOKS, interleave="trial")
        for effect, seed in ((0.1, 1), (0.3, 2))
    ]
    about = {"created": "2026-01-01", "image": {"digest": "d", "versions": {}}}
    sides = [Recorded("dir", one.plan, about, (), one.analysis) for one in several]
    compared = compare_campaigns(sides[0], sides[1])
    found = next(one for one in compared.changes if one.environment == "other")
    means = [np.mean([each.difference for each in only(one.analysis).by_round]) for one in several]
    assert found.tax is not None
    assert found.tax.ratio == pytest.approx(math.exp(means[1] - means[0]))
    by_cells = replace(sides[1], plan=sides[1].plan.model_copy(update={"interleave": "cell"}))
    said = {one.what for one in compare_campaigns(sides[0], by_cells).unlike}
    assert "what alternates in a round" in said


def test_an_effect_that_drifts_is_seen_in_the_pairs() -> None:
    campaign = made(rounds=10, noise=0.0001)
    number = {one.id: one.round for one in campaign.trials}
    rising = tuple(
        one.model_copy(update={"value": one.value * math.exp(0.01 * number[one.trial])})
        if one.environment == "other"
        else one
        for one in campaign.measurements
    )
    changed = replace(campaign, measurements=rising)
    assert "EFFECT_DRIFTS" in {note.id for note in only(changed.analysis).notes}
    evidence = Evidence(
        plan=changed.plan, trials=changed.trials, measurements=changed.measurements, compared_with="base"
    )
    assert any("changes over the rounds" in finding.message for finding in drift(evidence))
