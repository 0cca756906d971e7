"""Whole campaigns of records, made up: the planner's plan, trials, measurements, `analyse` (METHOD 2.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from vtax.analysis.analyse import analyse
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.records import Analysis
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction, Kind
from vtax.model.nodes import HostCapacity
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.model.trial import Status, TrialRecord
from vtax.planning.plan import make_plan
from vtax.planning.study import parse
from vtax.providers import provider
from vtax.tools import declared_metrics

ENVIRONMENTS = ("base", "other")
MACHINE = HostCapacity(cpu_ids=(0, 1, 2, 3), memory_bytes=32 * 2**30)
STARTED = 1.8e9  # Unix time
STUDY = """
name = "simulated"
baseline = "base"
[environments.base]
provider = "docker"
[environments.other]
provider = "docker"
[nodes]
cpus = 1
memory = "1 GiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
"""


@dataclass(frozen=True)
class Simulated:
    """A campaign that never ran. Its `analysis` is computed as that of any other."""

    plan: Plan
    measurements: tuple[Measurement, ...]
    trials: tuple[TrialRecord, ...]

    @property
    def analysis(self) -> Analysis:
        return analyse(self.measurements, plan=self.plan, findings=(), trials=self.trials, declared=declared_metrics())

    def without(self, trial: str) -> Simulated:
        """The same campaign, in which this trial failed."""
        failed = tuple(
            one.model_copy(update={"status": Status.FAILED, "failure": "made to fail"}) if one.id == trial else one
            for one in self.trials
        )
        return replace(self, measurements=tuple(m for m in self.measurements if m.trial != trial), trials=failed)

    def shuffled(self, random: np.random.Generator) -> Simulated:
        """The same files, read in another order."""
        order, records = random.permutation(len(self.measurements)), random.permutation(len(self.trials))
        return replace(
            self,
            measurements=tuple(self.measurements[i] for i in order),
            trials=tuple(self.trials[i] for i in records),
        )


@cache
def _study() -> Study:
    return parse(STUDY, "(self-test)")


def plan_of(seed: int, looks: tuple[int, ...], iterations: int) -> Plan:
    """The planner's own plan of two environments and one benchmark."""
    study = _study()
    entries = tuple(entry.model_copy(update={"iterations": iterations}) for entry in study.benchmarks)
    update = {"seed": seed, "rounds": looks[-1], "looks": looks, "benchmarks": entries}
    nowhere = Path("never-created")
    providers = {name: provider("docker", nowhere) for name in ENVIRONMENTS}
    return make_plan(study.model_copy(update=update), MACHINE, providers)


def simulated(plan: Plan, values: Floats, *, rate: bool = False) -> Simulated:
    """A campaign with these times, shape (2, rounds, iterations), of which the baseline's come first.

    `rate`: what was measured is 1 / time.
    """
    measurements: list[Measurement] = []
    trials: list[TrialRecord] = []
    for cell in plan.cells:
        if cell.round > values.shape[1]:
            continue
        place = ENVIRONMENTS.index(cell.environment)
        for planned in cell.trials:
            time_s = float(values[place, cell.round - 1, planned.iteration - 1])
            record = _record(cell.id, cell.round, cell.environment, planned.id, planned.iteration, len(trials))
            trials.append(record)
            measurements.append(_measurement(record, time_s, rate))
    return Simulated(plan, tuple(measurements), tuple(trials))


def _record(cell: str, number: int, environment: str, trial: str, iteration: int, place: int) -> TrialRecord:
    work = trial.partition("/")[2].rpartition(".")[0]
    return TrialRecord(
        id=trial,
        environment=environment,
        round=number,
        cell=cell,
        work=work,
        benchmark="sysbench-cpu",
        label="sysbench-cpu",
        scope=_study().benchmarks[0].scopes[0],
        nodes=("worker1",),
        iteration=iteration,
        warmup=False,
        params={},
        status=Status.OK,
        started=STARTED + 60.0 * place,
        elapsed_s=10.0,
        steps=(),
    )


def _measurement(record: TrialRecord, time_s: float, rate: bool) -> Measurement:
    return Measurement(
        environment=record.environment,
        round=record.round,
        cell=record.cell,
        trial=record.id,
        iteration=record.iteration,
        warmup=False,
        benchmark=record.benchmark,
        label=record.label,
        metric="work_rate" if rate else "work_time",
        value=1 / time_s if rate else time_s,
        unit="1/s" if rate else "s",
        kind=Kind.RATE_FIXED_WORK if rate else Kind.COST,
        direction=Direction.HIGHER if rate else Direction.LOWER,
        primary=True,
        labels={"target": "worker1"},
        source=f"trials/{record.id}/stdout",
    )
