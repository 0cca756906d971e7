"""W02: outputs that are to be the same: what counts as the same, and what the audit says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import pytest
from pydantic import ValidationError

from builders.audit_cases import evidence
from vtax.evidence.row import Failed
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
