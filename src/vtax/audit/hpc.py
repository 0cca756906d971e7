"""H02, H03: whether HPL was large enough to tell, and is not better than the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from vtax.evidence.campaign import Evidence, blocker, unknown, values_of, warning
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity
from vtax.model.nodes import NodeShape
from vtax.model.plan import Work
from vtax.units import format_bytes, format_quantity

BLAS_BENCHMARKS = ("hpcc", "hpl")
SHORTEST_S = 60.0
MEMORY_SHARE = 0.25
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
        return None if self.order is None else (2 / 3 * self.order**3 + 3 / 2 * self.order**2) / self.flops

    @property
    def cpus(self) -> int:
        return len({cpu for node in self.nodes for cpu in node.cpu_ids}) or sum(node.cpus for node in self.nodes)


def solved(evidence: Evidence) -> Iterator[Solved]:
    """HPL of every environment that has a result."""
    for work in evidence.plan.work:
        if work.benchmark not in BLAS_BENCHMARKS:
            continue
        rates = [rate for rate in evidence.values(work.environment, work.label, "HPL") if rate > 0]
        if rates:
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
    why="above it a unit or a clock is wrong; far below it something else than arithmetic decides",
    remedy="look at the raw output, the BLAS kernel and the load",
    source="CPU flags and clock of the nodes against HPL's rate; of imported logs only where the CPU is known",
    benchmarks=BLAS_BENCHMARKS,
)
def implausible(evidence: Evidence) -> Iterator[Finding | str]:
    """H02: HPL above what the CPUs can do at all, or below a twentieth of what they should."""
    told = False
    for one in solved(evidence):
        every = values_of(evidence, one.environment, "cpu_flags").values()
        flags = {flag for values in every for value in values for flag in value}
        told = True
        if not flags:
            yield unknown("H02", "the instructions of its CPUs are not known", one.environment, one.label)
            continue
        fewest, most = flops_per_cycle(flags)
        ceiling = one.cpus * most * FASTEST_CLOCK_HZ
        clocks = [mhz for values in values_of(evidence, one.environment, "cpu_mhz").values() for mhz in values]
        floor = LEAST_OF_PEAK * one.cpus * fewest * max(clocks, default=0.0) * 1e6
        rate, cpus = format_quantity(one.flops, "flop/s"), f"{one.cpus} CPU{'s' if one.cpus != 1 else ''}"
        where = (one.environment, one.label)
        if one.flops > ceiling:
            limit = format_quantity(ceiling, "flop/s")
            message = f"HPL in {one.environment} is {rate}, more than {cpus} can do ({limit}): a unit is wrong"
            remedy = "look at the raw output, and at the unit of the result"
            yield blocker("H02", message, remedy, *where, metrics=HPL_METRICS)
        elif one.flops < floor:
            usual = format_quantity(floor / LEAST_OF_PEAK, "flop/s")
            message = (
                f"HPL in {one.environment} is {rate}, below 5 % of what {cpus} should do ({usual}): something else"
            )
            message += " than arithmetic decides it"
            remedy = "raise N, and look at the BLAS kernel and at the load"
            yield warning("H02", message, remedy, *where, metrics=HPL_METRICS)
        else:
            yield f"{one.label} in {one.environment}: {rate} on {cpus}, at most {format_quantity(ceiling, 'flop/s')}"
    if not told and evidence.entries(*BLAS_BENCHMARKS):
        yield unknown("H02", "no rate of HPL belongs to work whose nodes are known")


@row(
    "H03",
    Severity.BLOCKER,
    "HPL too short, on less than a quarter of the memory, or on more than there is",
    why="start-up and noise weigh more in a short run; a matrix beyond memory measures swapping",
    remedy='choose N so that the matrix fills most of the memory (`n = "auto"`)',
    source="N and the nodes' memory of the plan, and HPL's rate; of imported logs only where the memory is known",
    benchmarks=BLAS_BENCHMARKS,
)
def too_small(evidence: Evidence) -> Iterator[Finding | str]:
    """H03: HPL too short, on too little of the memory, or on more than there is. One finding an entry: the shortest."""
    told = False
    worst: dict[tuple[str, str], tuple[float, Finding]] = {}
    for one in solved(evidence):
        if one.order is None or one.time_s is None:
            continue
        where, told = (one.environment, one.label), True
        found = sized(one.environment, one.label, one.order, one.time_s, sum(node.memory_bytes for node in one.nodes))
        if found is not None and one.time_s < worst.get(where, (float("inf"), found))[0]:
            worst[where] = (one.time_s, found)
    yield from (finding for _, finding in worst.values())
    if not told and evidence.entries(*BLAS_BENCHMARKS):
        yield unknown("H03", "size, time or memory of HPL are not known")


def sized(environment: str, label: str, order: int, time_s: float, memory: int) -> Finding | None:
    """What is wrong with one size of the problem, if anything."""
    matrix = 8 * order**2
    if matrix > memory:
        message = f"HPL in {environment} needs {format_bytes(matrix)}, its nodes have {format_bytes(memory)}"
        return blocker("H03", f"{message}: swap decides", "lower N", environment, label, metrics=HPL_METRICS)
    if time_s < SHORTEST_S or matrix < MEMORY_SHARE * memory:
        message = (
            f"HPL in {environment} is short: about {time_s:.3g} s for N = {order}, "
            f"{matrix / memory:.0%} of the memory; start-up and noise weigh more than in a full run"
        )
        remedy = f"raise N until it takes {SHORTEST_S:g} s or more"
        return warning("H03", message, remedy, environment, label, metrics=HPL_METRICS)
    return None
