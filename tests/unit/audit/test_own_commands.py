"""W: what is counted from outside in all environments, or in none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from builders.audit_cases import evidence, failed, only, passed
from vtax.audit import Evidence, own_commands
from vtax.evidence.outside import from_outside
from vtax.model.finding import Outcome
from vtax.model.plan import Step

WANTED = ("memory_peak", "context-switches", "cycles")
EVERYTHING = {"memory_peak": 5e6, "context-switches": 12.0, "cycles": 0.0}


def campaign(host: Mapping[str, float] = EVERYTHING, container: Mapping[str, float] = EVERYTHING) -> Evidence:
    """Two rounds in which a command was to be counted from outside; the other entry asks for nothing."""
    made = evidence(rounds=2)
    step = Step(nodes=("worker1",), argv=("run",), timeout_s=9, outside=WANTED)
    works = tuple(
        work.model_copy(update={"steps": (step,)}) if work.label == "hpcc" else work for work in made.plan.work
    )
    counted = {"host": host, "container": container}
    trials = tuple(
        trial.model_copy(
            update={
                "outside": counted[trial.environment],
                "not_outside": {name: "nobody counts it" for name in WANTED if name not in counted[trial.environment]},
            }
        )
        if trial.label == "hpcc"
        else trial
        for trial in made.trials
    )
    return replace(made, plan=made.plan.model_copy(update={"work": works}), trials=trials)


def names(made: Evidence) -> list[tuple[str, str, float]]:
    return [(one.environment, one.metric, one.value) for one in from_outside(made.plan, made.trials)]


def test_what_all_environments_counted_are_metrics() -> None:
    """A zero is a count as well."""
    made = campaign()
    for environment in ("host", "container"):
        assert [found for found in names(made) if found[0] == environment] == [
            (environment, name, EVERYTHING[name]) for _ in range(2) for name in WANTED
        ]
    assert passed(own_commands.events, made) == (
        "hpcc: context-switches was counted in every run",
        "hpcc: cycles was counted in every run",
    )
    assert passed(own_commands.memory_peak, made) == ("hpcc: memory_peak was counted in every run",)


def test_what_one_environment_cannot_count_is_absent_in_all() -> None:
    made = campaign(container={"memory_peak": 5e6, "context-switches": 9.0})
    assert {metric for _, metric, _ in names(made)} == {"memory_peak", "context-switches"}
    found = only(failed(own_commands.events, made))
    assert "hpcc has no cycles in any environment" in found.message
    assert "container: nobody counts it" in found.message
    assert "host" not in found.message
    made = campaign(host={"context-switches": 1.0, "cycles": 1.0})
    assert "memory_peak" not in {metric for _, metric, _ in names(made)}
    assert "host: nobody counts it" in only(failed(own_commands.memory_peak, made)).message


def test_one_run_without_a_count_is_enough() -> None:
    made = campaign()
    last = max(number for number, trial in enumerate(made.trials) if trial.label == "hpcc")
    changed = made.trials[last].model_copy(update={"outside": {"memory_peak": 5e6, "cycles": 3.0}})
    made = replace(made, trials=(*made.trials[:last], changed, *made.trials[last + 1 :]))
    assert {metric for _, metric, _ in names(made)} == {"memory_peak", "cycles"}
    assert "it was not counted" in only(failed(own_commands.events, made)).message


def test_where_nothing_is_asked_for_the_rows_do_not_apply() -> None:
    for row in (own_commands.events, own_commands.memory_peak):
        assert row.look(evidence()).outcome is Outcome.NOT_APPLICABLE
