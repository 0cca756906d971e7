"""H02, H03: HPL against what the CPUs and the memory of its nodes can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.nodes import NodeShape
from vtax.model.plan import Origin, Work
from vtax.tools.hpcc.audit import PROGRAMS
from vtax.tools.hpcc.linpack import operations
from vtax.units import format_bytes, format_quantity

SHORTEST_S = 60.0
MEMORY_SHARE = 0.25
SMALL_SHARE = 0.01
LEAST_OF_PEAK = 0.05
HPL_METRICS = ("HPL", "HPL_time", "HPL_residual", "residual")
FASTEST_CLOCK_HZ = 6.5e9  # no CPU on sale clocks higher, so a higher rate is a mistake


@dataclass(frozen=True)
class Solved:
    """What HPL reached in one environment under one label: its frozen work and the median rate."""

    environment: str
    label: str
    nodes: tuple[NodeShape, ...]
    order: int | None  # N
    flops: float

    @property
    def time_s(self) -> float | None:
        """How long that takes, by HPL's own count of operations."""
        return None if self.order is None else operations(self.order) / self.flops

    @property
    def cpus(self) -> int:
        return len({cpu for node in self.nodes for cpu in node.cpu_ids}) or sum(node.cpus for node in self.nodes)


def solved(evidence: Evidence) -> Iterator[Solved]:
    """HPL of every environment that has a result."""
    for work in evidence.plan.work:
        rates = [rate for rate in evidence.values(work.environment, work.label, "HPL") if rate > 0]
        if work.benchmark in PROGRAMS and rates:
            yield Solved(work.environment, work.label, work.target.nodes, order_of(work), median(rates))


def order_of(work: Work) -> int | None:
    """N, under the name that HPL gives it."""
    found = work.params.get("N", work.params.get("n"))
    return found if isinstance(found, int) and found > 0 else None


def flops_per_cycle(flags: set[str]) -> tuple[int, int]:
    """The fewest and the most double precision operations that one core with these flags does in a cycle."""
    if "avx512f" in flags:
        return 16, 32
    if "fma" in flags:
        return 8, 16
    return (4, 8) if "avx" in flags else (2, 4)


@row(
    "H02",
    Severity.BLOCKER,
    "HPL above what the CPUs can do, or below a twentieth of it",
    short="implausible HPL",
    why="above it a unit or a clock is wrong; far below it something other than arithmetic decides",
    remedy="check the raw output, the BLAS kernel and the load",
    source="CPU flags and clock of the nodes against HPL's rate",
    note="a rate that is too low is a note where an environment and what it is compared with have it alike",
    benchmarks=PROGRAMS,
    needs=Needs(
        "HPL's rate, and the instructions of its CPUs", node=("cpu_flags",), metrics=("HPL",), origin=Origin.RUN
    ),
)
def implausible(evidence: Evidence) -> Iterator[Result]:
    """H02: HPL above what the CPUs can do at all, or below a twentieth of what they should."""
    several = tuple(solved(evidence))
    low: dict[tuple[str, str], Failed | None] = {}
    for one in several:
        low.setdefault((one.environment, one.label), None)
        every = values_of(evidence, one.environment, "cpu_flags").values()
        fewest, most = flops_per_cycle({flag for values in every for value in values for flag in value})
        ceiling = one.cpus * most * FASTEST_CLOCK_HZ
        clocks = [mhz for values in values_of(evidence, one.environment, "cpu_mhz").values() for mhz in values]
        floor = LEAST_OF_PEAK * one.cpus * fewest * max(clocks, default=0.0) * 1e6
        rate, cpus = format_quantity(one.flops, "flop/s"), f"{one.cpus} CPU{'s' if one.cpus != 1 else ''}"
        if one.flops > ceiling:
            limit = format_quantity(ceiling, "flop/s")
            message = f"HPL in {one.environment} is {rate}, more than {cpus} can do ({limit}): a unit is wrong"
            remedy = "check the raw output and the unit of the result"
            yield Failed(message, one.environment, one.label, remedy=remedy, metrics=HPL_METRICS)
        elif one.flops < floor:
            usual = format_quantity(floor / LEAST_OF_PEAK, "flop/s")
            message = f"HPL in {one.environment} is {rate}, below 5 % of what {cpus} should do ({usual}): something "
            message += "other than arithmetic decides it"
            remedy = "raise N, and check the BLAS kernel and the load"
            slow = Failed(message, one.environment, one.label, Severity.WARNING, remedy, metrics=HPL_METRICS)
            low[one.environment, one.label] = slow
        else:
            yield f"{one.label} in {one.environment}: {rate} on {cpus}, at most {format_quantity(ceiling, 'flop/s')}"
    yield from weighed(evidence, low, Severity.WARNING)
    if not several and evidence.entries(*PROGRAMS):
        yield Undecided("no rate of HPL belongs to work whose nodes are known")


@row(
    "H03",
    Severity.BLOCKER,
    "HPL too short, on less than a quarter of the memory, or on more than there is",
    short="HPL of an unfit size",
    why="start-up and noise weigh more in a short run; a matrix beyond memory measures swapping",
    remedy='choose N so that the matrix fills most of the memory (`n = "auto"`)',
    source="N and the nodes' memory of the plan, and HPL's rate; HPL's own time and N in imported logs, and the memory "
    "where they name it",
    note="a blocker beyond the memory; a short run is a note where an environment and what it is compared with are "
    "short alike, which makes the interval wider",
    benchmarks=PROGRAMS,
    needs=(
        Needs("HPL's rate", metrics=("HPL",), origin=Origin.RUN),
        Needs("HPL's time and size", facts=("systems",), origin=Origin.IMPORTED),
    ),
)
def too_small(evidence: Evidence) -> Iterator[Result]:
    """H03: HPL too short, on too little of the memory, or on more than there is. One finding an entry: the shortest."""
    worst: dict[tuple[str, str], tuple[float, Failed]] = {}
    imported = evidence.plan.origin is Origin.IMPORTED
    known = tuple(logged(evidence) if imported else planned(evidence))
    for environment, label, order, time_s, memory in known:
        # nodes in logs may be containers, each of which sees the memory of their machine: it counts several times
        found = sized(environment, label, order, time_s, memory, least=0.0 if imported else MEMORY_SHARE)
        if found is not None and time_s < worst.get((environment, label), (float("inf"), found))[0]:
            worst[environment, label] = (time_s, found)
    short: dict[tuple[str, str], Failed | None] = {(environment, label): None for environment, label, *_ in known}
    for place, (_, finding) in worst.items():
        if finding.severity is None:
            yield finding
        else:
            short[place] = finding
    yield from weighed(evidence, short, Severity.WARNING)
    for environment, label, order, time_s, _ in known:
        if (environment, label) not in worst:
            yield f"{label} in {environment}: about {time_s:.3g} s for N = {order}"
    if not known and evidence.entries(*PROGRAMS):
        yield Undecided("size, time or memory of HPL are not known")


def planned(evidence: Evidence) -> Iterator[tuple[str, str, int, float, int | None]]:
    """Environment, label, N, seconds, and the bytes of memory of the nodes, of work that vtax planned."""
    for one in solved(evidence):
        if one.order is not None and one.time_s is not None:
            memory = sum(node.memory_bytes for node in one.nodes)
            yield one.environment, one.label, one.order, one.time_s, memory


def logged(evidence: Evidence) -> Iterator[tuple[str, str, int, float, int | None]]:
    """The same of logs: the largest system of every run; the memory where any log of the environment names it."""
    memory: dict[str, int] = {}
    for trial in evidence.trials:
        for facts in evidence.facts((trial,), "memory_bytes", "ranks_on_nodes"):
            memory[trial.environment] = int(facts["memory_bytes"]) * len(facts["ranks_on_nodes"])
    for (environment, label), trials in evidence.entries(*PROGRAMS).items():
        for facts in evidence.facts(trials, "systems"):
            systems: list[dict[str, Any]] = [one for one in facts["systems"] if one["time_s"] > 0]
            if systems:
                largest = max(systems, key=lambda one: int(one["n"]))
                yield environment, label, int(largest["n"]), float(largest["time_s"]), memory.get(environment)


def sized(environment: str, label: str, order: int, time_s: float, memory: int | None, least: float) -> Failed | None:
    """What is wrong with one size of the problem, if anything."""
    matrix = 8 * order**2
    if memory is not None and matrix > memory:
        message = f"HPL in {environment} needs {format_bytes(matrix)}, its nodes have {format_bytes(memory)}"
        return Failed(f"{message}: it is bound by swapping", environment, label, remedy="lower N", metrics=HPL_METRICS)
    if time_s < SHORTEST_S or (memory is not None and matrix < least * memory):
        part = 0.0 if memory is None else matrix / memory
        share = "" if memory is None else f", {'less than 1%' if part < SMALL_SHARE else f'{part:.0%}'} of the memory"
        message = f"HPL in {environment} is short: about {time_s:.3g} s for N = {order}{share}; start-up and noise "
        message += "weigh more than in a full run"
        remedy = f"raise N until it takes {SHORTEST_S:g} s or more"
        return Failed(message, environment, label, Severity.WARNING, remedy, metrics=HPL_METRICS)
    return None
