"""Facts of imported runs, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vtax.evidence.campaign import Evidence
from vtax.model.trial import TrialRecord


def runs(evidence: Evidence, *benchmarks: str) -> Iterator[tuple[TrialRecord, dict[str, Any]]]:
    """The imported runs of these benchmarks (none: of all) with their facts, refused ones too."""
    for trial in evidence.trials:
        if trial.imported is not None and (not benchmarks or trial.benchmark in benchmarks):
            yield trial, dict(trial.imported.facts)


def where(trial: TrialRecord) -> str:
    """How a finding names a run: its file, and the line in it when it is not the first."""
    if trial.imported is None:
        return trial.id
    line = trial.imported.first_line
    return trial.imported.file if line == 1 else f"{trial.imported.file} line {line}"


def told(evidence: Evidence, fact: str, *benchmarks: str) -> dict[str, list[str]]:
    """Environment -> the different values of a fact, as text, in order; one that nobody told is absent."""
    found: dict[str, list[str]] = {}
    for trial, facts in runs(evidence, *benchmarks):
        if fact in facts and (text := str(facts[fact])) not in found.setdefault(trial.environment, []):
            found[trial.environment].append(text)
    return found


def against_reference(found: dict[str, list[str]], reference: str) -> Iterator[tuple[str, str, str]]:
    """Environment, its values and those of the reference, where they differ."""
    if reference not in found:
        return
    for environment, values in found.items():
        if environment != reference and set(values) != set(found[reference]):
            yield environment, ", ".join(values[:4]), ", ".join(found[reference][:4])


def values(evidence: Evidence, environment: str, benchmark: str, metric: str) -> list[float]:
    """Every value of a metric in an environment."""
    return [
        one.value
        for one in evidence.measurements
        if (one.environment, one.benchmark, one.metric) == (environment, benchmark, metric)
    ]


def environments(evidence: Evidence) -> tuple[str, ...]:
    return tuple(spec.name for spec in evidence.plan.environments)
