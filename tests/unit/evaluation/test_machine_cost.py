"""What trials cost the machine, per unit of work, from counts and outputs made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builders.small import new_campaign
from fakes.cluster import FakeProvider
from vtax.evidence.machine_cost import machine_cost, measured_steps, node_cpu_s, work_done
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.machine_cost import (
    CPU_TIME,
    ENERGY,
    NODE_TIME,
    RUN,
    SECOND,
    UnitOfWork,
    metric_of,
    unit_in,
    unit_of_work,
)
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction, Kind
from vtax.model.plan import Origin, Plan
from vtax.model.reading import ReadValue, TrialReading
from vtax.model.trial import Status, StepRecord, TrialRecord

COUNTED = {"seconds": 10.0, "cpu_ticks": 2000.0, "busy_ticks": 1250.0, "steal_ticks": 50.0, "vtax_cpu_s": 2.0}


def value(metric: str, number: float, unit: str, kind: Kind, file: str = "1.worker1.stdout", **more: Any) -> ReadValue:
    return ReadValue(metric=metric, value=number, unit=unit, kind=kind, file=file, **{"primary": True, **more})


RATE = value("events_rate", 500.0, "1/s", Kind.RATE_FIXED_TIME)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    providers = {name: FakeProvider(name, tmp_path / "run") for name in ("host", "box")}
    made = new_campaign(tmp_path / "c", providers, rounds=1, iterations=1).plan()
    here = {name: one.model_copy(update={"shares_machine": True}) for name, one in made.capabilities.items()}
    return made.model_copy(update={"capabilities": here})


def clocked(plan: Plan, seconds: float) -> Plan:
    return plan.model_copy(update={"work": tuple(w.model_copy(update={"clocked_s": seconds}) for w in plan.work)})


def trials_of(plan: Plan, **changed: Any) -> list[TrialRecord]:
    """A trial with three steps in every environment: one in the background, one that prepares, one that measures."""

    def step(number: int, background: bool = False) -> StepRecord:
        return StepRecord(
            step=number,
            node="worker1",
            argv=("run",),
            exit_code=0,
            timed_out=False,
            background=background,
            started=0,
            elapsed_s=1,
            stdout=f"{number}.worker1.stdout",
            stderr=f"{number}.worker1.stderr",
        )

    found = []
    for cell in plan.cells:
        for planned in cell.trials:
            work = plan.work_of(cell.environment, planned.work)
            found.append(
                TrialRecord(
                    id=planned.id,
                    environment=cell.environment,
                    round=cell.round,
                    cell=cell.id,
                    work=planned.work,
                    benchmark=work.benchmark,
                    label=work.label,
                    scope=work.target.scope,
                    nodes=work.target.names,
                    iteration=planned.iteration,
                    warmup=planned.warmup,
                    params={},
                    status=Status.OK,
                    started=0,
                    elapsed_s=12,
                    steps=(step(0, background=True), step(1), step(2)),
                    step_counters={1: COUNTED, 2: {**COUNTED, "busy_ticks": 9999.0}},
                ).model_copy(update=changed)
            )
    return found


def costs(plan: Plan, trials: list[TrialRecord], *values: ReadValue) -> dict[str, list[Measurement]]:
    """Environment -> what its trials cost, all with the same output."""
    readings = {trial.id: TrialReading(trial=trial.id, values=values) for trial in trials}
    found: dict[str, list[Measurement]] = {}
    for one in machine_cost(plan, trials, readings):
        found.setdefault(one.environment, []).append(one)
    return found


def test_the_same_work_is_counted_per_run(plan: Plan) -> None:
    plan = clocked(plan, 0.0)
    speed = value("HPL", 1e9, "flop/s", Kind.RATE_FIXED_WORK)
    found = costs(plan, trials_of(plan), speed)
    assert found.keys() == {"host", "box"}
    (one,) = found["box"]
    assert (one.metric, one.unit, one.kind, one.primary) == (CPU_TIME, "s", Kind.COST, False)
    assert one.direction is Direction.LOWER
    assert one.value == pytest.approx((1250 - 50) / 100 - 2)
    assert one.source == f"trials/{one.trial}/record.json"


def test_a_rate_for_a_fixed_time_is_counted_per_operation(plan: Plan) -> None:
    plan = clocked(plan, 8.0)
    (one,) = costs(plan, trials_of(plan), RATE)["host"]
    assert one.unit == "s"
    assert one.value == pytest.approx(10 / (500 * 8))
    (one,) = costs(plan, trials_of(plan), value("throughput", 1e9, "byte/s", Kind.RATE_FIXED_TIME))["host"]
    assert one.unit == "s/byte"
    assert one.value == pytest.approx(10 / (1e9 * 8))


def test_rates_of_one_unit_add_up_and_others_do_not(plan: Plan) -> None:
    plan = clocked(plan, 8.0)
    read, written = (
        value(name, rate, "byte/s", Kind.RATE_FIXED_TIME) for name, rate in (("read", 3e8), ("write", 1e8))
    )
    (one,) = costs(plan, trials_of(plan), read, written)["host"]
    assert one.value == pytest.approx(10 / (4e8 * 8))
    (one,) = costs(plan, trials_of(plan), read, RATE)["host"]
    assert one.unit == "1"
    assert one.value == pytest.approx(1.0)


def test_work_that_ended_before_its_time(plan: Plan) -> None:
    """Memory tests end after a number of bytes too."""
    assert work_done(60.0, [RATE], 10.0) == (UnitOfWork("operation"), 5000.0)
    assert work_done(8.0, [RATE], 10.0) == (UnitOfWork("operation"), 4000.0)


def test_latencies_are_counted_per_second(plan: Plan) -> None:
    plan = clocked(plan, 9.0)
    trials = trials_of(plan, step_counters={1: {**COUNTED, "energy_j": 350.0}})
    cpu, energy = costs(plan, trials, value("rtt_avg", 1e-4, "s", Kind.COST))["host"]
    assert (cpu.metric, cpu.unit) == (CPU_TIME, "1")
    assert cpu.value == pytest.approx(1.0)
    assert (energy.metric, energy.unit) == (ENERGY, "W")
    assert energy.value == pytest.approx(35.0)


def test_steps_with_a_rate_each_are_counted_by_themselves(plan: Plan) -> None:
    plan = clocked(plan, 16.0)
    several = [
        value("rate", 100.0, "1/s", Kind.RATE_FIXED_TIME, labels={"stressor": "cpu", "node": "worker1"}),
        value("rate", 50.0, "1/s", Kind.RATE_FIXED_TIME, "2.worker1.stderr", labels={"stressor": "vm", "rank": "1"}),
    ]
    one, other = costs(plan, trials_of(plan), *several)["host"]
    assert dict(one.labels) == {"target": "worker1", "stressor": "cpu"}
    assert dict(other.labels) == {"target": "worker1", "stressor": "vm"}
    assert one.value == pytest.approx(10 / (100 * 8))
    assert other.value == pytest.approx((99.99 - 0.5 - 2) / (50 * 8))


def test_values_that_do_not_decide_name_no_step(plan: Plan) -> None:
    aside = value("bogo_ops", 3.0, "1", Kind.COUNT, "2.worker1.stdout", primary=False)
    trial = trials_of(plan)[0]
    assert [steps for steps, _ in measured_steps(trial, TrialReading(trial=trial.id, values=(RATE, aside)))] == [(1,)]
    assert measured_steps(trial, TrialReading(trial=trial.id)) == []


@pytest.mark.parametrize(
    "counted",
    [
        pytest.param({}, id="an older version"),
        pytest.param({**COUNTED, "seconds": 0.49}, id="too short"),
        pytest.param({name: v for name, v in COUNTED.items() if name != "steal_ticks"}, id="not counted"),
    ],
)
def test_one_run_without_it_leaves_the_entry_out_everywhere(plan: Plan, counted: Mapping[str, float]) -> None:
    """Else only the slow rounds, or environments, would be left."""
    first, *others = trials_of(plan)
    changed = [first.model_copy(update={"step_counters": {1: counted}}), *others]
    assert costs(plan, changed, RATE) == {}


def test_records_without_counts_have_no_cost(plan: Plan) -> None:
    assert costs(plan, trials_of(plan, step_counters={}), RATE) == {}
    assert costs(plan, trials_of(plan, status=Status.FAILED), RATE) == {}
    assert costs(plan.model_copy(update={"origin": Origin.IMPORTED}), trials_of(plan), RATE) == {}


def test_nodes_that_are_elsewhere_cost_this_machine_nothing(plan: Plan) -> None:
    away = {name: one.model_copy(update={"shares_machine": name == "host"}) for name, one in plan.capabilities.items()}
    assert costs(plan.model_copy(update={"capabilities": away}), trials_of(plan), RATE) == {}


def test_more_of_vtax_than_of_anything_is_no_cost(plan: Plan) -> None:
    assert costs(plan, trials_of(plan, step_counters={1: {**COUNTED, "vtax_cpu_s": 12.0}}), RATE) == {}


@pytest.mark.parametrize(
    ("rate", "unit", "symbol"),
    [
        ("1/s", UnitOfWork("operation"), "s"),
        ("bit/s", UnitOfWork("operation", "bit"), "s/bit"),
        ("update/s", UnitOfWork("operation", "update"), "s/update"),
        ("byte", SECOND, "1"),
        ("1", SECOND, "1"),
        ("/s", SECOND, "1"),
    ],
)
def test_units_of_work(rate: str, unit: UnitOfWork, symbol: str) -> None:
    assert unit_of_work(rate) == unit
    assert metric_of(CPU_TIME, unit).unit == symbol
    assert metric_of(CPU_TIME, RUN).unit == "s"
    assert unit_in(symbol, CPU_TIME).of == unit.of
    assert (unit_in(symbol, CPU_TIME) == SECOND) is (unit == SECOND)


@pytest.mark.parametrize(
    ("kind", "counters", "used_s"),
    [
        (NodeKind.VM, {"worker1": {"busy_ticks": 900.0, "steal_ticks": 100.0, "group_cpu_s": 1.0}}, 8.0),
        (NodeKind.CONTAINER, {"worker1": {"busy_ticks": 900.0, "steal_ticks": 0.0, "group_cpu_s": 6.0}}, 6.0),
        (NodeKind.CONTAINER, {"worker1": {"group_cpu_s": 6.0}, "worker2": {"node_cpu_s": 1.5}}, 7.5),
        (NodeKind.HOST, {"worker1": {"node_cpu_s": 5.0}, "worker2": {"node_cpu_s": 1.0}}, 6.0),
        (NodeKind.HOST, {"worker1": {"node_cpu_s": 5.0}}, 5.0),  # a group for both nodes
        (NodeKind.HOST, {"worker1": {"group_cpu_s": 5.0}}, None),  # that of a login, say
        (NodeKind.CONTAINER, {"worker1": {"group_cpu_s": 5.0}}, None),
        (NodeKind.CONTAINER, {"worker1": {"group_cpu_s": 5.0}, "worker2": {}}, None),
        (NodeKind.HOST, {}, None),
    ],
)
def test_what_nodes_count_as_theirs(
    plan: Plan, kind: NodeKind, counters: Mapping[str, Mapping[str, float]], used_s: float | None
) -> None:
    nodes = ("worker1", "worker2") if len(counters) > 1 or used_s in (5.0, None) else ("worker1",)
    (trial, *_) = trials_of(plan, counters=counters, nodes=nodes)
    assert node_cpu_s(trial, Capabilities(kind=kind)) == used_s


def test_the_cpu_time_of_nodes_is_per_unit_of_work_too(plan: Plan) -> None:
    plan = clocked(plan, 8.0)
    kinds = {name: one.model_copy(update={"kind": NodeKind.CONTAINER}) for name, one in plan.capabilities.items()}
    plan = plan.model_copy(update={"capabilities": kinds})
    trials = trials_of(plan, counters={"worker1": {"group_cpu_s": 6.0}})
    machine, nodes = costs(plan, trials, RATE)["host"]
    assert (machine.metric, nodes.metric, nodes.unit) == (CPU_TIME, NODE_TIME, "s")
    assert nodes.value == pytest.approx(6 / (500 * 8))
    trials[0] = trials[0].model_copy(update={"counters": {}})
    assert {one.metric for several in costs(plan, trials, RATE).values() for one in several} == {CPU_TIME}
