"""W01, W02: programs that were left running; outputs that are to be the same, and what counts as the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import pytest
from pydantic import ValidationError

from builders.audit_cases import evidence
from vtax.evidence.row import Failed
from vtax.model.finding import Outcome
from vtax.model.reading import ReadOutput, TrialReading
from vtax.tools.command import audit
from vtax.tools.command.benchmark import digest
from vtax.tools.command.params import CommandParams


def params(**run: object) -> CommandParams:
    return CommandParams.model_validate({"run": {"command": ["work"], "same_output": True, **run}})


def test_what_is_volatile_does_not_count() -> None:
    text = "sum 42\ntook 0.31 s\nend\n"
    assert digest(params(), text) == hashlib.sha256(text.encode()).hexdigest()
    timed = params(volatile=r"took [0-9.]+ s")
    assert digest(timed, text) == hashlib.sha256(b"sum 42\n\nend\n").hexdigest()
    assert digest(timed, text) == digest(timed, "sum 42\ntook 7 s\nend\n")
    assert digest(timed, text) != digest(timed, "sum 43\ntook 0.31 s\nend\n")


def test_volatile_parts_are_those_of_an_output_that_is_the_same() -> None:
    with pytest.raises(ValidationError, match="it needs same_output = true"):
        params(same_output=False, volatile="x")


def said(outputs: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What the row says of the entry hpcc, of which each round printed this."""
    made = evidence(rounds=2)
    readings = {
        trial.id: TrialReading(
            trial=trial.id,
            outputs=(ReadOutput(file="o", facts={"output_sha256": outputs[trial.environment][trial.round - 1]}),),
        )
        for trial in made.trials
        if trial.label == "hpcc"
    }
    found = audit.same_output.check(replace(made, readings=readings))
    return [f"failed: {one.message}" if isinstance(one, Failed) else one for one in found]


def test_the_same_everywhere() -> None:
    assert said({"host": ("a", "a"), "container": ("a", "a")}) == [
        "hpcc in host: the same output in all runs",
        "hpcc in container: the same output in all runs",
    ]


def test_another_output_in_one_environment() -> None:
    assert said({"host": ("a", "a"), "container": ("b", "b")}) == [
        "hpcc in host: the same output in all runs",
        "failed: hpcc printed something else in container than in host",
    ]


def test_an_output_that_differs_from_run_to_run() -> None:
    assert said({"host": ("a", "b"), "container": ("a", "a")}) == [
        "failed: hpcc printed 2 different outputs in host alone"
    ]


def test_without_it_the_row_does_not_apply() -> None:
    assert audit.digests(evidence()) == {}


def test_programs_that_were_left_running_are_named() -> None:
    made = evidence(rounds=2)
    assert len(list(audit.left_running.check(made))) == 4
    trials = tuple(
        trial.model_copy(update={"steps": tuple(step.model_copy(update={"left": ("sleep",)}) for step in trial.steps)})
        if (trial.label, trial.environment, trial.round) == ("hpcc", "container", 2)
        else trial
        for trial in made.trials
    )
    found = [one for one in audit.left_running.check(replace(made, trials=trials)) if isinstance(one, Failed)]
    assert [(one.environment, one.entry, one.message) for one in found] == [
        ("container", "hpcc", "hpcc in container: sleep, in 1 of 2 runs")
    ]


def test_both_rows_are_about_own_commands_alone() -> None:
    for row in (audit.left_running, audit.same_output):
        assert row.look(evidence()).outcome is Outcome.NOT_APPLICABLE
