"""Whole campaigns of records, made up: the planner's plan, trials, measurements, `analyse`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from vtax.analysis.analyse import analyse
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.records import Analysis, Comparison
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.nodes import HostCapacity
from vtax.model.plan import Plan
from vtax.model.study import Interleave, MachineSpec, Study
from vtax.model.trial import Status, TrialRecord
from vtax.planning.plan import make_plan
from vtax.planning.study import parse
from vtax.providers import candidates, provider
from vtax.tools import declared_metrics

ENVIRONMENTS = ("base", "other")
TIME = Metric(name="work_time", unit="s", kind=Kind.COST, primary=True)
RATE = Metric(name="work_rate", unit="1/s", kind=Kind.RATE_FIXED_WORK, primary=True)
MACHINE = HostCapacity(cpu_ids=(0, 1, 2, 3), memory_bytes=32 * 2**30)
STARTED = 1.8e9  # Unix time
TICKS = 100  # of every CPU in a second
STUDY = """
name = "simulated"
baseline = "base"
[environments.base]
provider = "container"
[environments.other]
provider = "container"
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
        declared = declared_metrics(self.plan.study.benchmarks)
        return analyse(self.measurements, plan=self.plan, findings=(), trials=self.trials, declared=declared)

    @property
    def comparison(self) -> Comparison:
        """The only one of its analysis."""
        (found,) = self.analysis.comparisons
        return found

    def ended(self, status: Status, which: Callable[[TrialRecord], bool]) -> Simulated:
        """The same campaign, in which these trials ended like that and gave no number."""
        gone = {one.id for one in self.trials if which(one)}
        update = {"status": status, "failure": f"made to end as {status}"}
        trials = tuple(one.model_copy(update=update) if one.id in gone else one for one in self.trials)
        return replace(self, measurements=tuple(m for m in self.measurements if m.trial not in gone), trials=trials)

    def without(self, trial: str) -> Simulated:
        """The same campaign, in which this trial failed."""
        return self.ended(Status.FAILED, lambda one: one.id == trial)

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


def plan_of(
    seed: int,
    looks: tuple[int, ...],
    iterations: int,
    interleave: Interleave = "cell",
    margin: float = 0.02,
    machines: Sequence[str] = (),
) -> Plan:
    """The planner's own plan of two environments and one benchmark; whole clusters in turn on each of `machines`."""
    study = _study()
    entries = tuple(entry.model_copy(update={"iterations": iterations}) for entry in study.benchmarks)
    update = {"seed": seed, "rounds": looks[-1], "looks": looks, "benchmarks": entries, "margin": margin}
    update["machines"] = {name: MachineSpec(ssh=name) for name in machines}
    nowhere = Path("never-created")
    providers = {spec.name: provider(candidates(spec.provider)[0], nowhere) for spec in study.environments}
    capacities = dict.fromkeys(machines, MACHINE)
    made = make_plan(study.model_copy(update=update), MACHINE, providers, capacities=capacities)
    return made.model_copy(update={"interleave": interleave})


def simulated(plan: Plan, values: Floats, *, rate: bool = False, stolen: Floats | None = None) -> Simulated:
    """A campaign with these times, shape (2, rounds, iterations), of which the baseline's come first; with several
    machines in the plan (machines, 2, rounds, iterations), and NaN where a machine was lost.

    `rate`: what was measured is 1 / time. `stolen` is the share of CPU time, in the same shape, that the counters of
    every trial show as stolen from its CPU, in whole ticks as a kernel counts them.
    """
    starts = _starts(plan)
    measurements: list[Measurement] = []
    trials: list[TrialRecord] = []
    machines = tuple(plan.study.machines)
    for cell in plan.cells:
        own = values[machines.index(cell.machine)] if machines else values
        if cell.round > own.shape[1] or np.isnan(own[:, cell.round - 1]).any():
            continue
        place = ENVIRONMENTS.index(cell.environment)
        for planned in cell.trials:
            time_s = float(own[place, cell.round - 1, planned.iteration - 1])
            record = _record(cell.id, cell.round, cell.environment, planned.id, planned.iteration, starts[planned.id])
            record = record.model_copy(update={"machine": cell.machine}) if machines else record
            if stolen is not None:
                record = _counted(record, time_s, float(stolen[place, cell.round - 1, planned.iteration - 1]))
            trials.append(record)
            metric, value = (RATE, 1 / time_s) if rate else (TIME, time_s)
            measurements.append(Measurement.of(record, metric, value, source="stdout"))
    return Simulated(plan, tuple(measurements), tuple(trials))


def _starts(plan: Plan) -> dict[str, int]:
    """Which place each measured trial has in the campaign; where trials alternate, in the mirrored order."""
    order = [
        ((cell.round, planned.iteration, place if planned.iteration % 2 else -place), planned.id)
        for place, cell in enumerate(plan.cells)
        for planned in cell.trials
    ]
    names = [name for _, name in (sorted(order) if plan.interleave == "trial" else order)]
    return {name: place for place, name in enumerate(names)}


def _counted(record: TrialRecord, elapsed_s: float, stolen: float) -> TrialRecord:
    """The trial with what the machine and its node counted meanwhile: on one CPU of four, always busy."""
    ticks = max(1, round(TICKS * elapsed_s))
    lost = round(stolen * ticks)
    mine = {"cpu_ticks": float(ticks), "steal_ticks": float(lost), "busy_ticks": float(ticks)}
    whole = {**mine, "cpu_ticks": float(len(MACHINE.cpu_ids) * ticks)}
    host = {**whole, "trial_cpu_ticks": float(ticks), "trial_steal_ticks": float(lost)}
    return record.model_copy(
        update={"elapsed_s": elapsed_s, "host_counters": host, "counters": {record.nodes[0]: whole}}
    )


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
