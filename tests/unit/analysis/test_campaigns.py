"""Whole campaigns from plan to verdict: looks, order, control arm, failures, notes, advice."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from builders.measurements import analysed, levels, measurement, only, rounds, simulated_rounds
from vtax.analysis.analyse import analyse
from vtax.analysis.estimate.columns import columns
from vtax.analysis.records import Analysis, Verdict, settled
from vtax.errors import ParseError
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import Status
from vtax.selftest.objects import plan_of, simulated

LOOKS = (6, 10, 16)
RANDOM = np.random.Generator(np.random.PCG64(5))


# --- looks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "look"), [(5, None), (6, 6), (9, 6), (10, 10), (16, 16)])
def test_the_rounds_that_are_over_decide_the_look(n: int, look: int | None) -> None:
    found = simulated_rounds(n=n).analysis
    assert (found.look, found.looks, found.rounds_complete) == (look, LOOKS, n)


def test_every_look_has_the_same_wider_interval() -> None:
    several, one = only(simulated_rounds(n=6).analysis), only(simulated_rounds(n=6, looks=(6,)).analysis)
    assert several.a_look == pytest.approx(0.0208, abs=0.0003)
    assert one.a_look == 0.05
    assert several.effect == one.effect
    assert several.low is not None
    assert one.low is not None
    assert several.low < one.low


def test_a_campaign_ends_when_its_verdict_is_there() -> None:
    assert settled(simulated_rounds(0.10).analysis)
    assert not settled(simulated_rounds(0.0, noise=0.05).analysis)
    assert not settled(simulated_rounds(0.10, n=5).analysis)
    assert settled(simulated_rounds(0.0, noise=0.002).analysis)


def test_the_smallest_p_of_the_looks_counts() -> None:
    whole = only(simulated_rounds(0.02, 0.03, n=16).analysis)
    assert whole.p_value is not None
    assert whole.p_sequential is not None
    assert whole.p_sequential > whole.p_value


def test_the_order_in_a_round_is_adjusted_for_and_told() -> None:
    values = np.exp(0.001 * RANDOM.normal(size=(2, 10, 1)))
    plan = plan_of(3, LOOKS, 1)
    for number in range(1, 11):
        second = [cell.environment for cell in plan.cells if cell.round == number][1]
        values[("base", "other").index(second), number - 1] *= 1.04
    found = only(simulated(plan, values).analysis)
    assert found.order_adjusted
    assert found.carry_over == pytest.approx(math.log(1.04), abs=0.002)
    assert found.effect == pytest.approx(0.0, abs=0.002)
    plain = plan.model_copy(update={"study": plan.study.model_copy(update={"order_adjust": False})})
    other = only(simulated(plain, values).analysis)
    assert (other.order_adjusted, other.carry_over) == (False, None)
    assert other.low is not None
    assert found.low is not None
    assert other.low < found.low  # what carries over is noise to it


# --- what the data may be ------------------------------------------------------------------------------------------


def test_unequal_rounds_drop_pairs_and_count_them() -> None:
    whole = simulated_rounds(0.10, n=10)
    lost = [t.id for t in whole.trials if t.environment == "other" and t.round in (2, 7)]
    found = whole.without(lost[0]).without(lost[1]).analysis
    assert (only(found).n, only(found).dropped) == (8, 2)
    assert [failure.round for failure in found.failures] == [2, 7]
    (rate,) = found.failure_rates
    assert (rate.environment, rate.failed, rate.trials) == ("other", 2, 10)
    assert rate.p_mcnemar == 0.5  # two rounds in which only one of both failed
    assert "among successful runs" in only(found).remark  # a fifth of them


def test_one_boot_with_many_iterations_has_no_interval_and_no_verdict() -> None:
    found = only(simulated_rounds(0.5, n=1, looks=(1,), iterations=30).analysis)
    assert (found.low, found.high, found.p_value, found.verdict) == (None, None, None, Verdict.DATA_ONLY)


def test_scaling_changes_nothing_but_the_levels() -> None:
    one = simulated_rounds(0.01, n=10)
    scaled = replace(one, measurements=tuple(m.model_copy(update={"value": 1024 * m.value}) for m in one.measurements))
    first, second = one.analysis, scaled.analysis
    assert only(first).effect == pytest.approx(only(second).effect, abs=1e-12)
    assert (only(first).verdict, only(first).sentence) == (only(second).verdict, only(second).sentence)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_numbers_that_cannot_be_are_refused_with_their_file(value: float) -> None:
    bad = measurement(1.0, source="trials/x/stdout").model_copy(update={"value": value})
    with pytest.raises(ParseError, match="trials/x/stdout"):
        analysed([measurement(1.0, round=2), bad])


def test_ranks_are_no_samples_and_nodes_that_work_together_are_not_either() -> None:
    def of(value: float, kind: Kind, metric: str = "m", **labels: str) -> Measurement:
        return measurement(value, kind=kind, metric=metric, labels=labels)

    ranks = [of(value, Kind.COST, target="worker1", rank=str(i)) for i, value in enumerate((2.0, 5.0, 3.0))]
    (level,) = levels(ranks).values()
    assert (level.n, level.mean, level.labels) == (1, 5.0, {"target": "worker1"})  # the last one to finish
    nodes = [of(value, Kind.RATE_FIXED_TIME, target="workers", node=f"worker{value:g}") for value in (2.0, 5.0)]
    (level,) = levels(nodes).values()
    assert level.mean == 7.0  # throughputs add up
    star = [of(value, Kind.RATE_FIXED_WORK, "StarDGEMM", target="workers", rank=f"{value:g}") for value in (2.0, 4.0)]
    (level,) = levels(star).values()
    assert level.mean == 3.0  # of one process
    apart = [of(value, Kind.COST, target=f"worker{value:g}", node=f"worker{value:g}") for value in (2.0, 5.0)]
    assert len(levels(apart)) == 2  # each node alone is a series of its own


def test_columns_keep_no_order_of_their_input() -> None:
    items = rounds([1.0, 2.0], [3.0, 4.0])
    one, other = columns(items), columns(items[::-1])
    assert one.groups == other.groups
    assert one.value.tolist() == other.value.tolist()


# --- control arm ---------------------------------------------------------------------------------------------------


def with_control(shift: float) -> Analysis:
    """A campaign whose other environment is the control arm, and a third one that is 20 % slower."""
    whole = simulated_rounds(shift, n=16)
    specs = tuple(
        spec.model_copy(update={"name": "control", "control_of": "base"}) if spec.name == "other" else spec
        for spec in whole.plan.study.environments
    )
    third = EnvironmentSpec(name="third", provider="docker")
    study = whole.plan.study.model_copy(update={"environments": (*specs, third), "control": True})
    plan = whole.plan.model_copy(update={"study": study, "environments": study.environments})
    items = [
        m.model_copy(update={"environment": "control", "trial": m.trial.replace("other", "control")})
        if m.environment == "other"
        else m
        for m in whole.measurements
    ]
    slower = [
        m.model_copy(update={"environment": "third", "value": 1.2 * m.value, "trial": m.trial.replace("base", "third")})
        for m in items
        if m.environment == "base"
    ]
    return analyse([*items, *slower], plan=plan, findings=(), trials=whole.trials)


def test_the_control_arm_gives_the_resolution_and_is_no_claim() -> None:
    found = with_control(0.0)
    assert (found.control, found.family) == ("control", 1)
    by_name = {one.environment: one for one in found.comparisons}
    assert by_name["control"].control
    assert by_name["third"].verdict is Verdict.SLOWER
    assert found.resolution is not None
    assert found.resolution == pytest.approx(0.0045, abs=0.002)  # 0.5 % noise, 16 rounds
    assert settled(found)


def test_a_control_arm_that_differs_makes_the_campaign_invalid() -> None:
    found = {one.environment: one for one in with_control(0.05).comparisons}
    assert found["third"].verdict is Verdict.NOT_COMPARABLE
    assert found["third"].sentence.startswith("not comparable: sysbench-cpu work_time of the control arm is 0.9")
    assert found["control"].verdict is Verdict.SLOWER


# --- notes and advice ----------------------------------------------------------------------------------------------


def noted(analysis: Analysis) -> set[str]:
    return {note.id for note in only(analysis).notes}


def test_a_quiet_campaign_has_no_notes() -> None:
    assert noted(simulated_rounds(0.1, n=10, iterations=3).analysis) <= {"EFFECT_DRIFTS"}


def test_outliers_are_kept_and_told_with_what_they_do_to_the_interval() -> None:
    values = np.exp(0.005 * RANDOM.normal(size=(2, 10, 3)))
    values[1, 4, 2] *= 1.5
    found = only(simulated(plan_of(3, LOOKS, 3), values).analysis)
    (message,) = [note.message for note in found.notes if note.id == "OUTLIERS"]
    assert message.startswith("1 of 30 runs in other and 0 of 30 in the baseline are outliers (kept in the analysis)")
    assert "80 to 86 %" in message
    levels_found = simulated(plan_of(3, LOOKS, 3), values).analysis.levels
    assert [(level.environment, level.outliers, level.runs) for level in levels_found] == [
        ("base", 0, 30),
        ("other", 1, 30),
    ]
    assert found.mean_ratio is not None
    assert found.ratio is not None
    assert found.mean_ratio < found.ratio  # the median of the cell does not see it, the mean does


def test_typical_and_mean_performance_may_disagree() -> None:
    values = np.exp(0.001 * RANDOM.normal(size=(2, 10, 3)))
    values[1, :, 2] *= 1.1  # one of three iterations is always slow
    assert "ESTIMAND_DIVERGES" in noted(simulated(plan_of(3, LOOKS, 3), values).analysis)


def test_a_short_warm_up_is_told() -> None:
    values = np.exp(0.001 * RANDOM.normal(size=(2, 10, 3)))
    values[1, :, 0] *= 1.05
    messages = [
        n.message for n in only(simulated(plan_of(3, LOOKS, 3), values).analysis).notes if n.id == "WARMUP_SHORT"
    ]
    assert messages == ["in other the first measured iteration differs from the later ones: one more warm-up"]


def test_a_drift_is_told_and_removed() -> None:
    drift = np.exp(0.002 * np.arange(16))[None, :, None]
    values = np.exp(0.001 * RANDOM.normal(size=(2, 16, 1))) * drift
    found = simulated(plan_of(3, LOOKS, 1), values).analysis
    assert "DRIFT" in noted(found)
    assert only(found).effect == pytest.approx(0.0, abs=0.002)


def test_an_environment_that_varies_more_is_less_predictable() -> None:
    values = np.exp(np.stack((0.001 * RANDOM.normal(size=(16, 1)), 0.03 * RANDOM.normal(size=(16, 1)))))
    found = simulated(plan_of(3, LOOKS, 1), values).analysis
    (message,) = [note.message for note in only(found).notes if note.id == "PREDICTABILITY"]
    assert message.startswith("less predictable than the baseline")
    (level,) = [one for one in found.levels if one.environment == "other"]
    assert level.cv is not None
    assert level.cv_low is not None
    assert level.cv_high is not None
    assert level.cv_low < 0.03 < level.cv_high


def test_one_outlier_among_six_weakens_the_verdict() -> None:
    """The t interval of these differences excludes zero, but one of the six lies on the other side."""
    differences = np.array([0.050, 0.052, 0.048, 0.051, 0.049, -0.0005])
    items = rounds([1.0] * 6, np.exp(-differences).tolist())
    found = analysed(items).comparisons[0]
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "ROBUSTNESS" in {note.id for note in found.notes}
    assert found.companion is not None
    assert found.companion.low is not None
    assert found.companion.low < 1
    assert found.low is not None
    assert found.low > 1


def test_timeouts_bound_the_effect_and_get_no_value() -> None:
    whole = simulated_rounds(0.10, n=10)
    slow = {t.id for t in whole.trials if t.environment == "other" and t.round in (3, 4, 5)}
    trials = tuple(
        t.model_copy(update={"status": Status.TIMED_OUT, "failure": "time limit"}) if t.id in slow else t
        for t in whole.trials
    )
    kept = tuple(m for m in whole.measurements if m.trial not in slow)
    found = only(replace(whole, trials=trials, measurements=kept).analysis)
    (message,) = [note.message for note in found.notes if note.id == "TIMEOUTS"]
    assert found.n == 7
    assert message.startswith("3 rounds of other and 0 of the baseline hit their time limit")
    assert "sign test p 0.002" in message  # ten of ten: 2 / 1024
    assert "the ratio is at most" in message


def test_inconclusive_says_how_many_rounds_and_how_long() -> None:
    found = only(simulated_rounds(0.0, noise=0.015, n=6).analysis)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.more_rounds is not None
    assert found.more_rounds[0] in (4, 10)
    assert found.remark.startswith(f"need about {found.more_rounds[0]} ")
    assert "more rounds (about " in found.remark  # two cells of a minute in every round
    assert "min" in found.remark


def test_noise_that_no_plan_can_beat_names_its_correlate() -> None:
    whole = simulated_rounds(0.0, noise=0.5, n=10)
    values = {m.trial: m.value for m in whole.measurements}
    trials = tuple(
        t.model_copy(update={"counters": {"worker1": {"steal_ticks": 100 * values[t.id], "load1": 1.0}}})
        for t in whole.trials
    )
    found = only(replace(whole, trials=trials).analysis)
    assert found.remark == "not reachable within 16 rounds with this noise; fix steal_ticks first"
    assert "no recorded counter explains it" in only(whole.analysis).remark


def test_how_long_a_run_takes_is_not_what_to_fix() -> None:
    """Its clock goes with its result by nature."""
    whole = simulated_rounds(0.0, noise=0.5, n=10)
    values = {m.trial: m.value for m in whole.measurements}
    trials = tuple(
        t.model_copy(update={"counters": {"worker1": {"host_clock_s": values[t.id], "busy_ticks": 100 * values[t.id]}}})
        for t in whole.trials
    )
    assert only(replace(whole, trials=trials).analysis).remark.endswith("no recorded counter explains it")


def test_the_host_is_one_boot() -> None:
    found = analysed(rounds([1.0] * 6, [1.1, 1.11, 1.09, 1.1, 1.105, 1.095]))
    assert found.one_boot == ("host",)
    assert only(found).sentence.endswith(", for this one boot")


def test_iterations_are_advised_for_the_next_campaign() -> None:
    random = np.random.Generator(np.random.PCG64(4))
    cells = 0.004 * random.normal(size=(2, 16, 1))
    values = np.exp(cells + 0.02 * random.normal(size=(2, 16, 3)))
    found = simulated(plan_of(3, LOOKS, 3), values).analysis
    assert any(text.startswith("sysbench-cpu: ") and "(now 3)" in text for text in found.advice)
