"""What trials cost the machine, worked out of the counts in their records and of their own results.

Work for a fixed time: per operation, the rate times the planned seconds. Other work that passes by the clock (ping):
per second. All else is the same work in every environment: per run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from vtax.evidence.stolen import TICKS_S
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.machine_cost import (
    CPU_TIME,
    ENERGY,
    MACHINE_METRICS,
    NODE_TIME,
    RUN,
    SECOND,
    UnitOfWork,
    metric_of,
    unit_of_work,
)
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind
from vtax.model.plan import Origin, Plan
from vtax.model.reading import ReadValue, TrialReading
from vtax.model.record import Labels
from vtax.model.trial import Status, TrialRecord
from vtax.providers.recorded import capabilities_of

SHORTEST_S = 0.5  # a kernel counts CPU time in steps of 10 ms
PARTS = frozenset({"rank", "node"})  # labels of what ran together


class Spent(NamedTuple):
    """What the machine spent on some steps of a trial; the energy is None where nothing counts it."""

    seconds: float
    cpu_s: float
    energy_j: float | None


def machine_cost(
    plan: Plan, trials: Iterable[TrialRecord], readings: Mapping[str, TrialReading]
) -> tuple[Measurement, ...]:
    """The metrics about the machine of every trial that gave a result, one of each for every unit of work.

    None of an entry of which a run was too short to be counted in any environment, and none where nodes are elsewhere.
    What the nodes count is left out of an entry where any of its runs lacks it.
    """
    known = capabilities_of(plan)
    if plan.origin is Origin.IMPORTED or not all(one.shares_machine for one in known.values()):
        return ()
    clocked_s = {(item.environment, item.id): item.clocked_s for item in plan.work}
    found: list[Measurement] = []
    left_out: set[tuple[str, str]] = set()  # label and metric
    for trial in trials:
        reading = readings.get(trial.id)
        if trial.status is not Status.OK or reading is None or not trial.step_counters:
            continue
        parts = measured_steps(trial, reading)
        planned_s = clocked_s[trial.environment, trial.work] / max(1, len(parts))
        of_nodes = node_cpu_s(trial, known[trial.environment]) if len(parts) == 1 else None
        for steps, values in parts:
            spent = spent_on(trial, steps)
            if spent is None or spent.seconds < SHORTEST_S:
                left_out |= {(trial.label, name) for name in MACHINE_METRICS}
                continue
            costs = {CPU_TIME: spent.cpu_s, NODE_TIME: of_nodes, ENERGY: spent.energy_j}
            made = _measurements(trial, work_done(planned_s, values, spent.seconds), _labels(values), costs)
            left_out |= {(trial.label, name) for name in costs} - {(trial.label, one.metric) for one in made}
            found += made
    return tuple(one for one in found if (one.label, one.metric) not in left_out)


def too_short(plan: Plan, trials: Iterable[TrialRecord], readings: Mapping[str, TrialReading]) -> frozenset[str]:
    """The entries without a cost because one of their runs was too short to be counted."""
    if plan.origin is Origin.IMPORTED:
        return frozenset()
    known = ((trial, readings.get(trial.id)) for trial in trials if trial.status is Status.OK and trial.step_counters)
    return frozenset(
        trial.label
        for trial, reading in known
        for steps, _ in (measured_steps(trial, reading) if reading is not None else ())
        if (spent := spent_on(trial, steps)) is not None and spent.seconds < SHORTEST_S
    )


def measured_steps(trial: TrialRecord, reading: TrialReading) -> list[tuple[tuple[int, ...], tuple[ReadValue, ...]]]:
    """The steps whose output has the results that decide, and these: each step by itself where it has rates for a
    fixed time (stress-ng runs one stressor after the other), else all together."""
    values = [one for one in reading.values if one.primary] or list(reading.values)
    by_step: dict[int, list[ReadValue]] = {}
    for step in trial.steps:
        files = {step.stdout, step.stderr, *step.outputs.values()}
        if own := [one for one in values if one.file in files]:
            by_step.setdefault(step.step, []).extend(own)
    if not by_step:
        return []
    if all(one.kind is Kind.RATE_FIXED_TIME for one in values):
        return [((number,), tuple(own)) for number, own in by_step.items()]
    return [(tuple(by_step), tuple(one for own in by_step.values() for one in own))]


def spent_on(trial: TrialRecord, steps: Sequence[int]) -> Spent | None:
    """What the machine spent while these steps ran; None where that was not counted."""
    counted = [trial.step_counters.get(step, {}) for step in steps]
    names = {"seconds", "busy_ticks", "steal_ticks", "vtax_cpu_s"}
    if not counted or any(not names <= one.keys() for one in counted):
        return None
    cpu_s = sum((one["busy_ticks"] - one["steal_ticks"]) / TICKS_S - one["vtax_cpu_s"] for one in counted)
    energy = [one["energy_j"] for one in counted if "energy_j" in one]
    return Spent(sum(one["seconds"] for one in counted), cpu_s, sum(energy) if len(energy) == len(counted) else None)


def node_cpu_s(trial: TrialRecord, environment: Capabilities) -> float | None:
    """What the nodes counted as theirs during the trial: guests in their kernels, others in their control groups; None
    where one of them did not."""
    used = [_counted_s(counters, environment.kind) for counters in trial.counters.values()]
    together = environment.kind is NodeKind.HOST and len(used) == 1  # nodes of one machine that are used as one
    known = [one for one in used if one is not None]
    if not known or len(known) < len(used) or not (together or len(used) == len(trial.nodes)):
        return None
    return sum(known)


def _counted_s(counters: Mapping[str, float], kind: NodeKind) -> float | None:
    if kind is NodeKind.VM:
        busy, stolen = counters.get("busy_ticks"), counters.get("steal_ticks")
        return None if busy is None or stolen is None else (busy - stolen) / TICKS_S
    own = counters.get("node_cpu_s")
    return counters.get("group_cpu_s") if own is None and kind is NodeKind.CONTAINER else own


def _labels(values: Sequence[ReadValue]) -> dict[str, str]:
    """The labels that all values have, but for those of what ran together."""
    shared = dict(set.intersection(*(set(one.labels.items()) for one in values)))
    return {name: text for name, text in shared.items() if name not in PARTS}


def _measurements(
    trial: TrialRecord, done: tuple[UnitOfWork, float], labels: Labels, costs: Mapping[str, float | None]
) -> list[Measurement]:
    """The costs by the work that was done; a cost that is not above zero was not seen."""
    unit, amount = done
    return [
        Measurement.of(trial, metric_of(name, unit), cost / amount, labels, "record.json")
        for name, cost in costs.items()
        if cost is not None and cost > 0
    ]


def work_done(planned_s: float, values: Sequence[ReadValue], seconds: float) -> tuple[UnitOfWork, float]:
    """What the cost is of, and how much of it was done in the planned time (0: it is no work for a time), or in the
    seconds that it took, where it ended before."""
    if planned_s == 0:
        return RUN, 1.0
    rates = [one for one in values if one.kind is Kind.RATE_FIXED_TIME]
    units = {unit_of_work(one.unit) for one in rates}
    if len(units) != 1 or units == {SECOND}:
        return SECOND, seconds
    return units.pop(), sum(one.value for one in rates) * min(planned_s, seconds)
