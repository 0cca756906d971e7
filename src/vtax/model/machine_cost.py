"""The metrics that every tool has: what the whole machine, and the nodes themselves, spent on a unit of work."""

from __future__ import annotations

from typing import NamedTuple

from vtax.model.metric import Kind, Metric

CPU_TIME, ENERGY, NODE_TIME = "machine_cpu_time", "machine_energy", "node_cpu_time"
MACHINE_METRICS = frozenset({CPU_TIME, ENERGY, NODE_TIME})
BASE = {
    CPU_TIME: ("s", "1"),
    ENERGY: ("J", "W"),
    NODE_TIME: ("s", "1"),
}  # of a metric: its unit, and that of so much each second
MEANINGS = {
    CPU_TIME: "CPU time of the whole machine while the measured command ran, vtax's own left out, per unit of work",
    NODE_TIME: "CPU time that control groups of the nodes, or guests, counted in the trial, per unit of work",
    ENERGY: "energy of all processors and their memory (RAPL) while the measured command ran, per unit of work",
}


class UnitOfWork(NamedTuple):
    """What the cost is of: a run, an operation (of a rate for a fixed time), or a second.

    `of` is the operation in the unit of the rate, "" where that is one operation: `byte` of a rate in byte/s.
    """

    per: str
    of: str = ""


RUN, SECOND = UnitOfWork("run"), UnitOfWork("second")


def metric_of(name: str, unit: UnitOfWork) -> Metric:
    """A metric about the machine, in the unit that it has for this unit of work."""
    whole, each_second = BASE[name]
    symbol = each_second if unit == SECOND else f"{whole}/{unit.of}" if unit.of else whole
    return Metric(name=name, unit=symbol, kind=Kind.COST, meaning=MEANINGS[name])


def unit_of_work(rate: str) -> UnitOfWork:
    """That of a rate for a fixed time, from its unit: byte/s is about bytes."""
    what, _, each = rate.rpartition("/")
    if each != "s" or not what:
        return SECOND
    return UnitOfWork("operation", "" if what == "1" else what)


def unit_in(unit: str, metric: str) -> UnitOfWork:
    """The unit of work that the unit of a measured value shows. A run and an operation share theirs."""
    _, each_second = BASE[metric]
    of = unit.partition("/")[2]
    return SECOND if unit == each_second else UnitOfWork("operation", of) if of else RUN
