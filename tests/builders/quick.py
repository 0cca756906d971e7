"""A campaign as the quick study makes it on a machine without KVM: verdicts of all sorts, and emulated machines."""

from __future__ import annotations

import random
from dataclasses import replace

from builders.synthetic import (
    BITRATE,
    BOGO,
    COPY,
    EVENTS,
    HPL,
    IO,
    RTT,
    TRIAD,
    Campaign,
    Entries,
    Series,
    by_pair,
    cell_record,
    iozone,
    measured,
    plan,
    series,
    trial,
)
from vtax.analysis.analyse import analysis_of
from vtax.analysis.prepared import prepare
from vtax.analysis.records import Analysis
from vtax.model.cluster import CellRecord
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.nodes import Scope
from vtax.model.plan import Cell
from vtax.model.study import Selection
from vtax.model.trial import TrialRecord

READY = Metric(name="ssh_ready", unit="s", kind=Kind.COST, primary=True, meaning="until SSH answers")
FIRST = Metric(name="first_process", unit="s", kind=Kind.COST, meaning="until the first line of the first process")
IDLE = Metric(name="idle_memory", unit="byte", kind=Kind.COST, meaning="memory that an idle node takes")

DECIDING: Entries = {
    ("sysbench-cpu", "sysbench-cpu", Scope.NODE): (series(EVENTS, 452.0, container=0.001, vm=-3.1),),
    ("hpl", "hpl", Scope.WORKERS): (series(HPL, 5.5e9, container=-0.004, vm=-4.2),),
    ("stream", "stream", Scope.NODE): (series(TRIAD, 9.0e9, container=0.002, vm=-1.3), series(COPY, 8.4e9)),
    ("sysbench-fileio", "storage", Scope.NODE): (
        series(IO, 4e8, {"operation": "write"}, container=-0.02, vm=-0.9),
        series(IO, 9e8, {"operation": "read"}, container=0.01, vm=-0.7),
    ),
    ("iperf3", "iperf3", Scope.PAIRS): by_pair(BITRATE, 4.2e10, container=-0.12, vm=-2.7)[:2],
    ("ping", "ping", Scope.PAIRS): by_pair(RTT, 4.0e-5, container=0.16, vm=2.2)[:2],
    ("startup", "startup", Scope.NODE): (
        series(READY, 0.11, container=1.3, vm=4.9),
        series(FIRST, 0.05, container=1.2, vm=4.2),
        series(IDLE, 6.2e6, container=0.7, vm=3.4),
    ),
}
EXPLORATORY: Entries = {
    ("hpcc", "hpcc", Scope.WORKERS): (series(HPL, 5.4e9, container=-0.01), series(TRIAD, 8.0e9, container=0.004)),
    ("stress-ng", "stress-ng", Scope.NODE): (series(BOGO, 1348.0, {"stressor": "cpu"}, container=-0.005),),
    ("iozone", "iozone", Scope.NODE): iozone()[:4],
}
LIGHT = ("sysbench-cpu", "hpl", "ping", "startup")  # what emulated machines run, once
NOISE = {"storage": 0.06, "ping": 0.03, "iperf3": 0.012, "startup": 0.02}


def quick(rounds: int = 6, *, noise: float = 0.004, emulated: bool = True, third: str = "") -> Campaign:
    """The campaign; with `third` another environment that costs more."""
    names = ("host", "container", *([third] if third else ()), *(("vm",) if emulated else ()))
    entries = {**DECIDING, **EXPLORATORY}
    exploratory = tuple(label for _, label, _ in EXPLORATORY)
    chosen = plan(names, rounds, entries, margin=0.05, name="quick", exploratory=exploratory)
    dice = random.Random(11)
    trials: list[TrialRecord] = []
    measurements: list[Measurement] = []
    kept = tuple(cell for cell in chosen.cells if cell.environment != "vm" or cell.round == 1)
    for where in kept:
        for (benchmark, label, scope), several in entries.items():
            if where.environment == "vm" and label not in LIGHT:
                continue
            planned = next(one for one in where.trials if one.work == label and not one.warmup)
            record = trial(where, planned, benchmark, scope)
            slower = tuple(_with(item, third) for item in several) if third else several
            measurements += [
                _declared(one, exploratory=(benchmark, label, scope) in EXPLORATORY)
                for one in measured(record, slower, dice, NOISE.get(label, noise))
            ]
            trials.append(record)
    brief = tuple(
        one.model_copy(update={"selection": Selection(rounds=1)}) if one.name == "vm" else one
        for one in chosen.environments
    )
    study = chosen.study.model_copy(update={"environments": brief})
    chosen = chosen.model_copy(update={"cells": kept, "environments": brief, "study": study})
    return Campaign(chosen, tuple(trials), tuple(measurements), tuple(map(_cell, kept)), _findings(names))


def quick_analysis(made: Campaign, findings: tuple[Finding, ...] | None = None) -> Analysis:
    """Its analysis, in which emulated machines have levels and no comparison."""
    emulated = frozenset({"vm"} & {spec.name for spec in made.plan.environments})
    numbers = prepare(made.measurements, plan=made.plan, trials=made.trials, declared={}, emulated=emulated)
    return analysis_of(numbers, made.findings if findings is None else findings)


def _with(item: Series, third: str) -> Series:
    return replace(item, effect={**item.effect, third: item.effect.get("container", 0.0) - 0.1})


def _declared(one: Measurement, *, exploratory: bool) -> Measurement:
    """No metric of an exploratory entry is primary."""
    return one.model_copy(update={"primary": False}) if exploratory else one


def _cell(where: Cell) -> CellRecord:
    record = cell_record(where)
    if where.environment != "vm":
        return record
    facts = tuple(node.model_copy(update={"values": {**node.values, "emulated": True}}) for node in record.facts)
    return record.model_copy(update={"facts": facts})


def _findings(names: tuple[str, ...]) -> tuple[Finding, ...]:
    def warning(id: str, message: str, remedy: str, **about: str) -> Finding:
        return Finding(id=id, severity=Severity.WARNING, message=message, remedy=remedy, **about)

    host = (
        warning("T05", "this host is itself virtual (virtual machine (KVM))", "run the campaign on bare metal"),
        warning("C04", "nodes share CPUs: master and worker1 (CPU 0)", "use fewer or smaller nodes"),
        warning("D07", "the file system of /scratch is overlay in container, ext4 in host", "use the same file system",
                environment="container"),
    )  # fmt: skip
    stolen = tuple(
        warning("C05", f"sysbench-cpu in {name}: 0.4 % of the CPU time stolen", "use a quieter machine",
                environment=name, benchmark="sysbench-cpu")
        for name in names if name != "vm"
    )  # fmt: skip
    return (*host, *stolen)
