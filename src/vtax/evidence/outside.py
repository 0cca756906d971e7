"""What this machine counted of nodes from outside, as metrics: only where it did so in every environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vtax.model.measurement import Measurement
from vtax.model.outside import metric_of
from vtax.model.plan import Plan, Work
from vtax.model.trial import Status, TrialRecord


def wanted_of(work: Work) -> tuple[str, ...]:
    """What is to be counted of a work."""
    return tuple(dict.fromkeys(name for step in work.steps for name in step.outside))


def asked(plan: Plan, trials: Iterable[TrialRecord]) -> Iterator[tuple[TrialRecord, str]]:
    """Every run that counts, with each thing that was to be counted of it."""
    for trial in trials:
        if trial.status is Status.OK and trial.imported is None:
            for name in wanted_of(plan.work_of(trial.environment, trial.work)):
                yield trial, name


def from_outside(plan: Plan, trials: Iterable[TrialRecord]) -> tuple[Measurement, ...]:
    """The counts of every run; none of an entry of which any run lacks that count, in whatever environment."""
    every = list(asked(plan, trials))
    lacking = {(trial.label, name) for trial, name in every if name not in trial.outside}
    return tuple(
        Measurement.of(trial, metric_of(name), trial.outside[name], {}, "record.json")
        for trial, name in every
        if (trial.label, name) not in lacking
    )
