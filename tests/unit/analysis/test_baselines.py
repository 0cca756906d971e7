"""What a metric is compared with where the baseline cannot have it, and comparisons with any other environment."""

from __future__ import annotations

import pytest

from builders.measurements import measurement
from builders.synthetic import plan as synthetic_plan
from vtax.analysis.analyse import analysis_of
from vtax.analysis.estimate.baselines import substitutes, with_baseline
from vtax.analysis.gates import subjects_of
from vtax.analysis.prepared import Prepared, prepare
from vtax.analysis.records import Analysis, Verdict
from vtax.errors import UsageError
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.nodes import Target, target_label
from vtax.model.plan import Plan
from vtax.model.study import ScoreSpec
from vtax.model.trial import Status, TrialRecord

NAMES = ("host", "container", "vm")
SPEED = {"host": 1.0, "container": 1.0, "vm": 0.8}


def planned(having: tuple[str, ...] = ("container", "vm")) -> Plan:
    """`cpu` in all three environments, `net` in those that are named."""
    made = synthetic_plan(NAMES)
    like = made.work[0]
    work = tuple(
        like.model_copy(update={"id": label, "label": label, "benchmark": label, "environment": name})
        for label, names in (("cpu", NAMES), ("net", having))
        for name in names
    )
    return made.model_copy(update={"work": work})


def target() -> Target:
    return synthetic_plan(NAMES).work[0].target


def values(names: tuple[str, ...] = ("container", "vm"), rounds: int = 6) -> list[Measurement]:
    place = {"target": target_label(target().scope, tuple(node.name for node in target().nodes))}
    return [
        measurement(
            (1 + 0.001 * ((7 * number + len(name)) % 5)) / SPEED[name],
            environment=name,
            round=number,
            benchmark=label,
            metric=f"{label}_time",
            labels=place,
        )
        for label, several in (("cpu", NAMES), ("net", names))
        for name in several
        for number in range(1, rounds + 1)
    ]


def numbers(
    plan: Plan | None = None, items: list[Measurement] | None = None, emulated: frozenset[str] = frozenset()
) -> Prepared:
    return prepare(
        values() if items is None else items, plan=plan or planned(), trials=(), declared={}, emulated=emulated
    )


def baselines(found: Analysis) -> dict[tuple[str, str], str]:
    return {(one.label, one.environment): one.baseline for one in found.comparisons}


def test_a_metric_that_the_baseline_cannot_have_is_compared_with_the_first_environment_that_has_it() -> None:
    found = analysis_of(numbers(), ())
    assert baselines(found) == {("cpu", "container"): "host", ("cpu", "vm"): "host", ("net", "vm"): "container"}
    net = next(one for one in found.comparisons if one.label == "net")
    assert net.verdict is Verdict.SLOWER
    assert net.planned
    assert net.sentence.endswith("(vs container)")
    assert found.family == 3  # corrected with the others
    assert next(one.name for one in subjects_of(found) if one.label == "net").endswith("vs container")


def test_a_blocker_of_the_substitute_rules_its_comparisons_out() -> None:
    block = Finding(id="C05", severity=Severity.BLOCKER, message="m", remedy="", environment="container")
    found = analysis_of(numbers(), [block])
    ruled = {(one.label, one.environment) for one in found.comparisons if one.verdict is Verdict.NOT_COMPARABLE}
    assert ruled == {("cpu", "container"), ("net", "vm")}
    elsewhere = Finding(
        id="C05", severity=Severity.BLOCKER, message="m", remedy="", environment="host", benchmark="net"
    )
    assert not any(one.ruled_out_by for one in analysis_of(numbers(), [elsewhere]).comparisons)


def test_an_environment_alone_with_a_metric_is_compared_with_nothing() -> None:
    found = analysis_of(numbers(planned(having=("vm",)), values(("vm",))), ())
    assert ("net", "vm") not in baselines(found)


def test_an_emulated_environment_takes_no_place_and_is_not_compared() -> None:
    found = analysis_of(numbers(emulated=frozenset({"container"})), ())
    assert baselines(found) == {("cpu", "vm"): "host"}
    assert found.emulated == ("container",)
    assert {level.environment for level in found.levels} == set(NAMES)
    assert substitutes(planned(), {"container"}) == {("net", planned().work[0].target.label): "vm"}


def test_a_metric_that_succeeded_without_a_value_in_the_baseline_has_another_counterpart() -> None:
    """Work that is planned everywhere, of which the baseline never has one metric: no failure, so it cannot have it."""
    plan = planned(having=NAMES)

    def compared(*trials: TrialRecord) -> str:
        found = analysis_of(prepare(values(), plan=plan, trials=trials, declared={}), ())
        return baselines(found)["net", "vm"]

    ran = [trial(label, name, number) for label in ("cpu", "net") for name in NAMES for number in range(1, 7)]
    assert compared(*ran) == "container"
    lost = trial("net", "host", 7).model_copy(update={"status": Status.FAILED})
    assert compared(*ran, lost) == "host"  # it failed there, which is not hidden
    assert compared(*(one for one in ran if (one.label, one.environment) != ("net", "host"))) == "host"


def trial(label: str, environment: str, number: int) -> TrialRecord:
    return TrialRecord(
        id=f"{environment}-{number}-{label}-1",
        environment=environment,
        round=number,
        cell=f"{environment}-{number}",
        work=label,
        benchmark=label,
        label=label,
        scope=target().scope,
        nodes=tuple(node.name for node in target().nodes),
        iteration=1,
        warmup=False,
        params={},
        status=Status.OK,
        started=1.0 + number,
        elapsed_s=1.0,
        steps=(),
    )


def test_another_baseline_shares_the_numbers() -> None:
    planned_numbers = numbers()
    plan = planned().model_copy(update={"study": with_baseline(planned().study, "container")})
    found = analysis_of(planned_numbers.against(plan, frozenset()), ())
    assert baselines(found) == {
        ("cpu", "host"): "container",
        ("cpu", "vm"): "container",
        ("net", "vm"): "container",
    }
    both = {one.environment: one for one in found.comparisons if one.label == "cpu"}
    forth = next(one for one in analysis_of(planned_numbers, ()).comparisons if one.environment == "container")
    assert both["host"].effect == pytest.approx(-(forth.effect or 0.0))


def test_an_unknown_baseline_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="no environment 'contaner'") as refused:
        with_baseline(planned().study, "contaner")
    assert 'did you mean "container"?' in refused.value.remedy


def test_a_score_names_what_its_metrics_are_compared_with() -> None:
    def scored(**weights: float) -> Analysis:
        plan = planned()
        score = ScoreSpec(name="all", weights={name.replace("_", ".", 1): w for name, w in weights.items()})
        study = plan.study.model_copy(update={"scores": (score,)})
        return analysis_of(numbers(plan.model_copy(update={"study": study})), ())

    (net,) = (one for one in scored(net_net_time=1.0).scores if one.environment == "vm")
    assert (net.baseline, net.sentence.endswith("(exploratory)")) == ("container", True)
    assert "(vs container)" in net.sentence
    (mixed,) = (one for one in scored(net_net_time=1.0, cpu_cpu_time=1.0).scores if one.environment == "vm")
    assert mixed.verdict is Verdict.NOT_COMPARABLE
    assert "compared with different environments" in mixed.sentence
