"""C01 to C04: whether every environment really had the CPUs and the memory of the plan, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from vtax.evidence.campaign import (
    Evidence,
    blocker,
    differences,
    observed,
    shown,
    unknown,
    unobserved,
    values_of,
    warning,
)
from vtax.evidence.row import row
from vtax.facts.cpu import cpu_list
from vtax.facts.memory import kernel_keeps
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.finding import Finding, Severity
from vtax.model.nodes import NodeShape
from vtax.units import format_bytes

MEMORY_TOLERANCE = 0.01  # limits are rounded to pages
DURING = "during the trials"
THROTTLED = 0.01  # of all periods
TOPOLOGY = {"cores": "cores", "numa_nodes": "NUMA nodes"}


@row(
    "C01",
    Severity.BLOCKER,
    "a limit of CPUs or memory is not there, or wider than planned",
    why="the environment could use more of the machine than the others",
    remedy="check the provider's options, and `vtax doctor`",
    source="allowed CPUs and control groups of every node; a virtual machine's memory is its limit; imported logs do "
    "not "
    "tell",
)
def not_applied(evidence: Evidence) -> Iterator[Finding | str]:
    """C01: a limit of the plan that the node does not have."""
    shapes = {node.name: node for node in evidence.plan.shape.nodes}
    found: dict[tuple[str, str], Finding] = {}
    for environment in evidence.environments:
        able = evidence.capabilities(environment)
        for node, values in observed(evidence, environment):
            if able.kind is NodeKind.UNKNOWN:
                missing = "whether its nodes have their own kernel is not recorded"
                found.setdefault((environment, ""), unknown("C01", missing, environment))
            elif node in shapes:
                for finding in node_limits(environment, able, shapes[node], values):
                    found.setdefault((environment, f"{node} {finding.message}"), finding)
        told = values_of(evidence, environment, "cpus_allowed")
        if told:
            yield f"{environment}: " + ", ".join(f"{node} CPUs {shown(values)}" for node, values in told.items())
        elif not any(where == environment for where, _ in found):
            yield unknown("C01", "no node told its limits", environment)
    yield from found.values()


def node_limits(environment: str, able: Capabilities, shape: NodeShape, values: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with one node's limits."""
    yield from cpu_limits(environment, able, shape, values)
    name, seen = f"{shape.name} in {environment}", memory_of(able, values)
    planned = format_bytes(shape.memory_bytes)
    if seen is None and able.kind is NodeKind.HOST:
        message = f"{name} has no memory limit ({planned} planned): the baseline may use all memory of the machine"
        yield warning("C01", message, "run as root, so that control groups can limit the host too", environment)
    elif seen is None:
        message = f"{name} has no memory limit, {planned} planned: it could use the whole host"
        yield blocker("C01", message, "check the provider's memory option, and `vtax doctor`", environment)
    elif seen > shape.memory_bytes * (1 + MEMORY_TOLERANCE):
        message = f"{name} has {format_bytes(seen)} of memory, {planned} planned: more than the plan gives it"
        yield blocker("C01", message, "check the provider's memory option, and `vtax doctor`", environment)


def cpu_limits(environment: str, able: Capabilities, shape: NodeShape, values: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with one node's CPUs."""
    name = f"{shape.name} in {environment}"
    allowed, quota = cpu_list(str(values.get("cpus_allowed", ""))), values.get("cpu_quota_cpus")
    if not allowed:
        yield unknown("C01", f"the CPUs that {shape.name} may use are not known", environment)
        return
    planned = tuple(range(shape.cpus)) if able.own_kernel else tuple(sorted(shape.cpu_ids))
    said = f"{name} may use CPUs {values['cpus_allowed']}, planned are {','.join(map(str, planned))}"
    if set(allowed) == set(planned):
        return
    if quota is not None and quota <= shape.cpus < len(allowed):
        message = f"{said}: a quota of {quota:g} limits it, which moves work between CPUs where a cpuset does not"
        yield warning("C01", message, "compare it with an environment that pins CPUs", environment)
    else:
        message = f"{said}: it is not limited as planned"
        yield blocker("C01", message, "check the provider's CPU options, and `vtax doctor`", environment)


@row(
    "C02",
    Severity.BLOCKER,
    "a CPU quota stopped a node, where others are only pinned",
    why="a quota stops work in the middle of a period, pinned CPUs do not: these are not the same resource",
    remedy="limit CPUs by a cpuset, with a quota that never binds first",
    source="`cpu.stat` of the control groups around every trial; a virtual machine has none inside; imported logs do "
    "not "
    "tell",
)
def throttled(evidence: Evidence) -> Iterator[Finding | str]:
    """C02: a quota that stopped the node, while another environment is only pinned."""
    for environment in evidence.environments:
        stopped, periods, source = throttling(evidence, environment)
        if periods > 0 and stopped / periods > THROTTLED:
            message = (
                f"{environment} was stopped by its CPU quota in {stopped:.0f} of {periods:.0f} periods "
                f"({stopped / periods:.1%}, {source}): a quota and pinned CPUs are not the same resource"
            )
            remedy = "limit CPUs by a cpuset, with a quota that never binds first"
            declared = evidence.option(environment, "cpu_limit") == "quota"
            said = blocker if source == DURING and not declared else warning
            yield said("C02", message, remedy, environment)
        elif source == "" and values_of(evidence, environment, "cpu_quota_cpus"):
            yield unknown("C02", "there is a CPU quota, but nothing counted how often it bound", environment)
        elif source:
            yield f"{environment}: stopped in {stopped:.0f} of {periods:.0f} periods ({source})"
        elif values_of(evidence, environment, "cpus"):
            yield f"{environment}: no CPU quota"
        else:
            yield unknown("C02", "whether there is a CPU quota is not known", environment)


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
    why="then two sizes of machine are compared",
    remedy="give all environments the same shape; the provider's options decide what it is",
    source="allowed CPUs, quota, memory and CPU topology of every node; imported logs do not tell",
)
def unequal(evidence: Evidence) -> Iterator[Finding | str]:
    """C03: CPUs or memory of a node differ from the same node of the reference."""
    for environment in evidence.compared:
        ours, theirs = resources(evidence, evidence.reference), resources(evidence, environment)
        for node in (node for node in theirs if node in ours):
            guests = [name for name in (environment, evidence.reference) if evidence.capabilities(name).own_kernel]
            if wrong := unlike(theirs[node], ours[node], bool(guests)):
                message = f"{node} in {environment} has {wrong[0]}, in {evidence.reference} {wrong[1]}"
                remedy = "give all environments the same shape; the provider's options decide what it is"
                yield blocker("C03", f"{message}: unequal machines", remedy, environment)
                break
        for fact, name in TOPOLOGY.items():
            for one in (one for one in differences(evidence, fact) if one.environment == environment):
                message = f"{one.node} in {environment} sees {shown(one.theirs)} {name}, in {evidence.reference} "
                remedy = "give the guest the host's topology; pinned virtual CPUs still run where the plan says"
                yield warning("C03", f"{message}{shown(one.reference)}", remedy, environment)
    for environment in unobserved(evidence, "cpus"):
        yield unknown("C03", "how many CPUs its nodes had is not known", environment)
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
    if "cpus" not in values:
        return None
    return float(min(values["cpus"], values.get("cpu_quota_cpus", values["cpus"])))


def memory_of(able: Capabilities, values: Mapping[str, Any]) -> int | None:
    """The memory that a node may use at most, None when nothing limits it."""
    found = values.get("memory_total_bytes" if able.own_kernel else "memory_limit_bytes")
    return None if found is None else int(found)


@row(
    "C04",
    Severity.WARNING,
    "nodes share CPUs, or virtual CPUs are not pinned",
    why="what uses two such nodes at once measures the sharing too; virtual CPUs that move share caches by chance",
    remedy="fewer or smaller nodes, or a machine with more CPUs; leave `pin` on",
    source="CPUs of the plan, and options of the environment; imported logs do not tell",
)
def shared_cpus(evidence: Evidence) -> Iterator[Finding | str]:
    """C04: nodes of the plan that share CPUs."""
    shared = [
        f"{one.name} and {two.name} (CPU {','.join(map(str, sorted(set(one.cpu_ids) & set(two.cpu_ids))))})"
        for one, two in combinations(evidence.plan.shape.nodes, 2)
        if set(one.cpu_ids) & set(two.cpu_ids)
    ]
    for environment in evidence.environments:
        if evidence.option(environment, "pin") is False:
            message = f"the virtual CPUs of {environment} are not pinned to CPUs of the host"
            yield warning("C04", message, "leave `pin` on", environment)
    if not shared:
        yield "no two nodes of the plan share a CPU"
        return
    message = f"nodes share CPUs: {'; '.join(shared)}. What uses both at once measures the sharing too"
    yield warning("C04", message, "fewer or smaller nodes, or a machine with more CPUs")
