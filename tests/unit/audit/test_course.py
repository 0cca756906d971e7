"""R04, R05, R08: drift, two modes, tails and the control arm, in numbers that are made for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from builders.audit_cases import evidence, failed, passed, unknown
from vtax.analysis.analyse import analysis_of
from vtax.audit import Evidence, course
from vtax.model.finding import Outcome, Severity
from vtax.model.measurement import Measurement


def made(rate: Callable[[str, int], float], rounds: int = 12) -> Evidence:
    """HPL of every environment and round as `rate` says; trials are 100 s apart."""
    campaign = evidence(rounds=rounds)
    changed: list[Measurement] = [
        one.model_copy(update={"value": rate(one.environment, one.round)})
        for one in campaign.measurements
        if one.metric == "HPL"
    ]
    return replace(campaign, measurements=tuple(changed))


def noise(seed: int, size: float = 0.005) -> Callable[[], float]:
    random = Random(seed)
    return lambda: 1 + random.uniform(-size, size)


def test_r04_drift_that_both_share() -> None:
    near = noise(1)
    found = failed(course.drift, made(lambda _, number: 8e10 * (1 - 0.02 * number) * near()))
    assert [(one.severity, one.metrics) for one in found] == [(Severity.INFO, ("HPL",))]
    assert "% over the campaign in container and host, removed by comparing within rounds" in found[0].message


def test_r04_a_difference_that_changes() -> None:
    near = noise(2)
    found = failed(course.drift, made(lambda name, number: 8e10 * (1 - 0.02 * number * (name == "container")) * near()))
    assert any("the difference of container changes over the rounds" in one.message for one in found)


def test_r04_without_drift_or_without_rounds() -> None:
    near = noise(3)
    assert passed(course.drift, made(lambda *_: 8e10 * near())) == ("1 primary series were tested",)
    assert "fewer than six rounds" in unknown(course.drift, made(lambda *_: 8e10 * near(), rounds=5)).message


def test_r05_two_modes() -> None:
    near = noise(4)
    campaign = made(lambda name, number: (9e10 if name == "container" and number % 3 else 8e10) * near(), rounds=24)
    (found,) = failed(course.modes, campaign)
    assert (found.severity, found.environment) == (Severity.WARNING, "container")
    assert "has two modes, about 79.93 Gflop/s and 89.94 Gflop/s" in found.message


def test_r05_a_tail() -> None:
    near = noise(5)
    campaign = made(lambda name, number: (4e10 if name == "container" and number in (3, 9) else 8e10) * near())
    assert any("has 2 outliers in 12 runs" in one.message for one in failed(course.modes, campaign))


def test_r05_one_mode_or_too_few_runs_to_tell() -> None:
    near = noise(6)
    assert passed(course.modes, made(lambda *_: 8e10 * near(), rounds=20)) == ("2 primary series have one mode each",)
    assert "too few runs to rule out two modes" in unknown(course.modes, made(lambda *_: 8e10 * near())).message


def with_control(rate: Callable[[str, int], float], rounds: int = 6) -> Evidence:
    """The container is the control arm: the baseline once more."""
    campaign = made(rate, rounds)
    specs = tuple(
        spec.model_copy(update={"control_of": "host"}) if spec.name == "container" else spec
        for spec in campaign.plan.environments
    )
    study = campaign.plan.study.model_copy(update={"environments": specs, "control": True})
    plan = campaign.plan.model_copy(update={"environments": specs, "study": study})
    return replace(campaign, plan=plan)


def test_r08_an_instrument_that_sees_what_is_not_there() -> None:
    near = noise(7)
    (found,) = failed(course.control, with_control(lambda name, _: (8e10 if name == "host" else 7e10) * near()))
    assert (found.severity, found.environment) == (Severity.BLOCKER, "")
    assert "hpcc HPL of the control arm is 0.87" in found.message


def test_r08_says_what_the_analysis_rules_out_from_the_same_numbers() -> None:
    near = noise(7)
    invalid = with_control(lambda name, _: (8e10 if name == "host" else 7e10) * near())
    (found,) = failed(course.control, invalid)
    assert invalid.numbers.control.excluded == found.message
    compared = analysis_of(invalid.numbers, (found,)).comparisons
    assert {(one.ruled_out_by, one.sentence.removesuffix(" (exploratory)")) for one in compared} == {
        (found.id, f"not comparable: {found.message}")
    }


def test_r08_an_instrument_that_does_not() -> None:
    near = noise(8)
    assert "agree with the baseline" in passed(course.control, with_control(lambda *_: 8e10 * near()))[0]
    assert unknown(course.control, with_control(lambda *_: 8e10 * near(), rounds=3))
    assert course.control.look(evidence()).outcome is Outcome.NOT_APPLICABLE
