"""C01 to C04: whether every environment really had the CPUs and the memory of the plan, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from vtax.evidence.campaign import Evidence, differences, observed, observed_in, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.evidence.stolen import THROTTLED
from vtax.facts.cpu import cpu_list
from vtax.facts.memory import kernel_keeps
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.cluster import CellRecord
from vtax.model.finding import Severity
from vtax.model.nodes import EVERY_PAIR, NodeShape
from vtax.model.plan import Origin
from vtax.planning.placement import shape_in
from vtax.units import format_bytes

MEMORY_TOLERANCE = 0.01  # limits are rounded to pages
DURING = "during the trials"
TOPOLOGY = {"cores": "cores", "numa_nodes": "NUMA nodes"}


@row(
    "C01",
    Severity.BLOCKER,
    "a limit of CPUs or memory is missing, or wider than planned",
    short="limits not applied",
    why="the environment could use more of the machine than the others",
    remedy="check the provider's CPU and memory options, and `vtax doctor`",
    source="allowed CPUs and control groups of every node; a virtual machine's memory is its limit",
    needs=Needs("the limits of its nodes", node=("cpus_allowed", "memory_limit_bytes"), origin=Origin.RUN),
)
def not_applied(evidence: Evidence) -> Iterator[Result]:
    """C01: a limit of the plan that the node does not have."""
    planned = {cell.id: shape_in(evidence.plan, cell) for cell in evidence.plan.cells}
    usual = evidence.plan.shape
    found: dict[tuple[str, str], Failed | Undecided] = {}
    for environment in evidence.environments:
        able = evidence.capabilities(environment)
        for cell, node, values in with_cells(evidence, environment):
            shapes = {one.name: one for one in planned.get(cell.cell, usual).nodes}
            if able.kind is NodeKind.UNKNOWN:
                missing = f"{environment}: not recorded: whether its nodes have their own kernel"
                found.setdefault((environment, ""), Undecided(missing, environment))
            elif node in shapes:
                for one in node_limits(environment, able, shapes[node], values):
                    found.setdefault((environment, f"{node} {one.message}"), one)
        if allowed := values_of(evidence, environment, "cpus_allowed"):
            yield f"{environment}: " + ", ".join(f"{node} CPUs {shown(values)}" for node, values in allowed.items())
    yield from found.values()


def with_cells(evidence: Evidence, environment: str) -> Iterator[tuple[CellRecord, str, Mapping[str, Any]]]:
    """Cell, node and facts; the CPUs of a node depend on the machine that has it in that cell."""
    cells = (cell for cell in evidence.provisioned if cell.environment == environment)
    return ((cell, node, values) for cell in cells for node, values in observed_in(cell))


def node_limits(
    environment: str, able: Capabilities, shape: NodeShape, values: Mapping[str, Any]
) -> Iterator[Failed | Undecided]:
    """What is wrong with one node's limits."""
    yield from cpu_limits(environment, able, shape, values)
    name, seen = f"{shape.name} in {environment}", memory_of(able, values)
    planned = format_bytes(shape.memory_bytes)
    if seen is None and able.kind is NodeKind.HOST:
        message = f"{name} has no memory limit ({planned} planned): the baseline may use all memory of the machine"
        remedy = "run as root, so that control groups can limit the host too"
        yield Failed(message, environment, severity=Severity.WARNING, remedy=remedy)
    elif seen is None:
        yield Failed(f"{name} has no memory limit, {planned} planned: it could use the whole host", environment)
    elif seen > shape.memory_bytes * (1 + MEMORY_TOLERANCE):
        message = f"{name} has {format_bytes(seen)} of memory, {planned} planned: more than the plan gives it"
        yield Failed(message, environment)


def cpu_limits(
    environment: str, able: Capabilities, shape: NodeShape, values: Mapping[str, Any]
) -> Iterator[Failed | Undecided]:
    """What is wrong with one node's CPUs."""
    name = f"{shape.name} in {environment}"
    allowed, quota = cpu_list(str(values.get("cpus_allowed", ""))), values.get("cpu_quota_cpus")
    if not allowed:
        yield Undecided(f"{name}: not recorded: the CPUs that it may use", environment)
        return
    planned = tuple(range(shape.cpus)) if able.own_kernel else tuple(sorted(shape.cpu_ids))
    if able.away and len(allowed) == shape.cpus:  # which ones, its machine decides
        return
    said = f"{name} may use CPUs {values['cpus_allowed']}, planned are {','.join(map(str, planned))}"
    if set(allowed) == set(planned):
        return
    if quota is not None and quota <= shape.cpus < len(allowed):
        message = f"{said}: a quota of {quota:g} limits it, which moves work between CPUs where a cpuset does not"
        remedy = "compare it with an environment that pins CPUs"
        yield Failed(message, environment, severity=Severity.WARNING, remedy=remedy)
    else:
        yield Failed(f"{said}: it is not limited as planned", environment)


@row(
    "C02",
    Severity.BLOCKER,
    "a CPU quota stopped a node, where others are only pinned",
    short="a CPU quota that stopped nodes",
    why="a quota stops work in the middle of a period, pinned CPUs do not: these are not the same resource",
    remedy="limit CPUs by a cpuset, with a quota that never binds first",
    source="`cpu.stat` of the control groups around every trial; a virtual machine has none inside",
    note="a note where no more than one period in a hundred was affected",
    needs=Needs("whether its nodes have a CPU quota", node=("cpus", "cpu_quota_cpus"), origin=Origin.RUN),
)
def throttled(evidence: Evidence) -> Iterator[Result]:
    """C02: a quota that stopped the node, while another environment is only pinned."""
    for environment in evidence.environments:
        stopped, periods, source = throttling(evidence, environment)
        if periods > 0 and stopped / periods > THROTTLED:
            message = (
                f"{environment} was stopped by its CPU quota in {stopped:.0f} of {periods:.0f} periods "
                f"({stopped / periods:.1%}, {source})"
            )
            declared = evidence.option(environment, "cpu_limit") == "quota"
            severity = None if source == DURING and not declared else Severity.WARNING
            yield Failed(message, environment, severity=severity)
        elif stopped > 0:
            message = f"{environment} was stopped by its CPU quota in {stopped:.0f} of {periods:.0f} periods ({source})"
            yield Failed(message, environment, severity=Severity.INFO)
        elif source == "" and values_of(evidence, environment, "cpu_quota_cpus"):
            yield Undecided(f"{environment} has a CPU quota; not recorded: how often it bound", environment)
        elif source:
            yield f"{environment}: stopped in {stopped:.0f} of {periods:.0f} periods ({source})"
        else:
            yield f"{environment}: no CPU quota"


def throttling(evidence: Evidence, environment: str) -> tuple[float, float, str]:
    """Throttled periods, periods, and where that is known from: counters of trials, or else facts of nodes."""
    trials = {trial.id for trial in evidence.trials if trial.environment == environment}
    counted = [node for trial in trials for node in evidence.counters.get(trial, {}).values() if "cpu_periods" in node]
    source = DURING
    if not counted:
        counted = [dict(values) for _, values in observed(evidence, environment) if "cpu_periods" in values]
        source = "until the trials began"
    stopped = sum(node.get("cpu_throttled_periods", 0) for node in counted)
    return stopped, sum(node["cpu_periods"] for node in counted), source if counted else ""


@row(
    "C03",
    Severity.BLOCKER,
    "CPUs, memory, cores or NUMA nodes of a node differ from the baseline's",
    short="unequal nodes",
    why="then machines of two sizes are compared",
    remedy="give all environments the same shape; the provider's options decide what it is",
    source="allowed CPUs, quota, memory and CPU topology of every node; in logs the CPUs and the memory that "
    "they print",
    needs=(
        Needs("the number of CPUs of its nodes", node=("cpus",), origin=Origin.RUN),
        Needs("CPUs and memory of nodes", node=("cpus", "memory_total_bytes"), compares=True, origin=Origin.IMPORTED),
    ),
)
def unequal(evidence: Evidence) -> Iterator[Result]:
    """C03: CPUs or memory of a node differ from the same node of what its environment is compared with."""
    for environment, base in evidence.pairs:
        ours, theirs = resources(evidence, base), resources(evidence, environment)
        guests = [name for name in (environment, base) if evidence.capabilities(name).own_kernel]
        for node in (node for node in theirs if node in ours):
            if wrong := unlike(theirs[node], ours[node], bool(guests)):
                message = f"{node} in {environment} has {wrong[0]}, in {base} {wrong[1]}"
                yield Failed(message, environment, against=base)
                break
    for fact, name in TOPOLOGY.items():
        for one in differences(evidence, fact):
            message = f"{one.node} in {one.environment} sees {shown(one.theirs)} {name}, in {one.base} "
            remedy = "give the guest the host's topology; pinned virtual CPUs still run where the plan says"
            message += shown(one.reference)
            yield Failed(message, one.environment, "", Severity.WARNING, remedy, against=one.base)
    for environment in evidence.environments:
        if seen := resources(evidence, environment):
            yield f"{environment}: " + ", ".join(f"{node} {described(each)}" for node, each in seen.items())


Resources = tuple[float | None, int | None]  # CPUs, memory in bytes; None where unknown or not limited


def described(seen: Resources) -> str:
    """`2 CPUs, 1 GiB` as far as they are known."""
    cpus, memory = seen
    return ", ".join(
        (
            "unknown CPUs" if cpus is None else f"{cpus:g} CPU{'' if cpus == 1 else 's'}",
            "no memory limit" if memory is None else format_bytes(memory),
        )
    )


def resources(evidence: Evidence, environment: str) -> dict[str, Resources]:
    """Node -> CPUs and memory that it could really use."""
    able = evidence.capabilities(environment)
    return {node: (cpus_of(values), memory_of(able, values)) for node, values in observed(evidence, environment)}


def unlike(theirs: Resources, ours: Resources, guests: bool) -> tuple[str, str] | None:
    """Two descriptions that differ, or None. What a guest's own kernel keeps of its memory is no difference."""
    if None not in (theirs[0], ours[0]) and theirs[0] != ours[0]:
        return f"{theirs[0]:g} CPU{'' if theirs[0] == 1 else 's'}", f"{ours[0]:g}"
    if theirs[1] is not None and ours[1] is not None:
        more = max(theirs[1], ours[1])
        if abs(theirs[1] - ours[1]) > (kernel_keeps(more) if guests else MEMORY_TOLERANCE * more):
            return f"{format_bytes(theirs[1])} of memory", format_bytes(ours[1])
    return None


def cpus_of(values: Mapping[str, Any]) -> float | None:
    """CPUs that a node may use at a time: allowed ones, or the quota if it is smaller."""
    cpus = values.get("cpus")
    return float(min(cpus, values.get("cpu_quota_cpus", cpus))) if isinstance(cpus, int) else None


def memory_of(able: Capabilities, values: Mapping[str, Any]) -> int | None:
    """The memory that a node may use at most, None when nothing limits it. A log knows all that the node sees."""
    found = values.get("memory_total_bytes" if able.own_kernel else "memory_limit_bytes")
    if able.kind is NodeKind.UNKNOWN:
        found = values.get("memory_limit_bytes", values.get("memory_total_bytes"))
    return found if isinstance(found, int) else None


@row(
    "C04",
    Severity.WARNING,
    "nodes share CPUs, or virtual CPUs are not pinned",
    short="CPUs shared or not pinned",
    why="what uses two such nodes at once measures the sharing too, in all environments alike: a caveat on the number "
    "and not on its ratio; virtual CPUs that move share caches by chance, in one environment only",
    remedy="use fewer or smaller nodes, or a machine with more CPUs; leave `pin` on",
    source="CPUs of the plan, and options of the environment",
    needs=Needs("the CPUs of every node", origin=Origin.RUN),
    note="a note about shared CPUs where a benchmark uses two such nodes at once, and no more than that: the plan "
    "gives all environments the same CPUs",
)
def shared_cpus(evidence: Evidence) -> Iterator[Result]:
    """C04: nodes of the plan that share CPUs."""
    pairs = (pair for work in evidence.plan.work for pair in combinations(work.target.nodes, 2))
    together = {frozenset((one.name, two.name)) for one, two in pairs}
    shared = shared_by(evidence.plan.shape.nodes, together)
    for environment in evidence.environments:
        if evidence.option(environment, "pin") is False:
            message = f"the virtual CPUs of {environment} are not pinned to CPUs of the host"
            yield Failed(message, environment, remedy="leave `pin` on")
    if shared:
        message = f"nodes share CPUs: {'; '.join(shared)}. What uses both at once measures the sharing too"
        remedy = "use fewer or smaller nodes, or a machine with more CPUs"
        yield Failed(message, severity=Severity.INFO, remedy=remedy)
    else:
        yield "no two nodes that work together share a CPU"


def shared_by(nodes: Sequence[NodeShape], together: Collection[frozenset[str]]) -> list[str]:
    """Who shares which CPUs, of nodes that work `together`: pairs, or of many nodes how many are on each CPU."""
    pairs = [
        f"{one.name} and {two.name} (CPU {','.join(map(str, sorted(set(one.cpu_ids) & set(two.cpu_ids))))})"
        for one, two in combinations(nodes, 2)
        if set(one.cpu_ids) & set(two.cpu_ids) and frozenset((one.name, two.name)) in together
    ]
    if len(nodes) <= EVERY_PAIR or not pairs:
        return pairs
    on_each = Counter(cpu for node in nodes for cpu in node.cpu_ids)
    return [f"{count} of {len(nodes)} nodes on CPU {cpu}" for cpu, count in sorted(on_each.items()) if count > 1]
