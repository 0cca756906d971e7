"""From a study's sizes and the machine's capacity to the shape that every environment must have. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape, Role
from vtax.model.study import Study
from vtax.units import format_bytes

MEMORY_STEP = 256 * 2**20
AUTO_MEMORY_SHARE = 0.6  # of the host's memory, for all nodes together: the host keeps the rest
AUTO_MEMORY_MOST = 4 * 2**30
MASTER = Role.MASTER.value  # the name of the only node in this role
AUTO_DISK = 4 * 2**30
SMALLEST_MEMORY = 256 * 2**20  # less does not hold OpenSSH, Open MPI and a benchmark together


def cluster_shape(study: Study, capacity: HostCapacity, clusters: int = 1) -> tuple[ClusterShape, tuple[Problem, ...]]:
    """The shape, and what is wrong with it: a blocker when the host has less than the study asks for. Automatic sizes
    share the machine's memory between as many clusters as hold it at once.
    """
    names = study.node_names
    sizes = {name: _sizes(name, study, capacity, clusters) for name in names}
    given = dealt({name: sizes[name][0] for name in names}, capacity.cpu_ids)
    nodes = tuple(
        NodeShape(
            name=name,
            role=Role.MASTER if name == MASTER else Role.WORKER,
            cpus=sizes[name][0],
            cpu_ids=given[name],
            memory_bytes=sizes[name][1],
            disk_bytes=sizes[name][2],
            last_cache_bytes=capacity.last_cache_bytes(given[name]),
        )
        for name in names
    )
    return ClusterShape(nodes=nodes), _problems(nodes, capacity, study.share_cpus)


def dealt(wanted: Mapping[str, int], cpu_ids: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """The CPUs of each node on one machine; `wanted` is how many, with the master first.

    Workers get their CPUs first, one after the other, so that they share none as long as the host has enough; the
    master takes what is left, and shares when nothing is left.
    """
    given: dict[str, tuple[int, ...]] = {}
    position = 0
    for name in sorted(wanted, key=lambda name: name == MASTER):
        ids = [cpu_ids[(position + i) % len(cpu_ids)] for i in range(wanted[name])]
        given[name] = tuple(sorted(set(ids)))
        position += wanted[name]
    return given


def _sizes(name: str, study: Study, capacity: HostCapacity, clusters: int) -> tuple[int, int, int]:
    override = study.overrides.get(name, {})
    cpus = override.get("cpus", study.cpus) or _auto_cpus(study.workers, len(capacity.cpu_ids))
    share = capacity.memory_bytes // clusters
    memory = override.get("memory_bytes", study.memory_bytes) or _auto_memory(study.workers, share)
    return cpus, memory, override.get("disk_bytes", study.disk_bytes) or AUTO_DISK


def _auto_cpus(workers: int, available: int) -> int:
    """Equal shares for all nodes; where that is less than one CPU, for the workers alone."""
    return available // (workers + 1) or max(1, available // workers)


def _auto_memory(workers: int, available: int) -> int:
    share = int(available * AUTO_MEMORY_SHARE / (workers + 1))
    return max(MEMORY_STEP, min(AUTO_MEMORY_MOST, share // MEMORY_STEP * MEMORY_STEP))


def _problems(nodes: Sequence[NodeShape], capacity: HostCapacity, share_cpus: bool) -> tuple[Problem, ...]:
    return (*_cpu_problems(nodes, len(capacity.cpu_ids), share_cpus), *_memory_problems(nodes, capacity.memory_bytes))


def _cpu_problems(nodes: Sequence[NodeShape], available: int, share_cpus: bool) -> tuple[Problem, ...]:
    problems = []
    for node in nodes:
        if node.cpus > available:
            problems.append(
                Problem.blocker(
                    f"{node.name} needs {node.cpus} CPUs, but this machine offers {available}",
                    f'set cpus to at most {available}, or to "auto"',
                )
            )
    together = sum(node.cpus for node in nodes if node.role is Role.WORKER)
    if together > available and not problems:
        problems.append(_crowded(nodes, together, available, share_cpus))
    shared = [node.name for node in nodes[1:] if set(node.cpu_ids) & set(nodes[0].cpu_ids)]
    if shared and not problems:
        problems.append(
            Problem.warning(
                f"master shares CPUs with {', '.join(shared)}: this machine offers only {available}",
                "results between master and these nodes include the sharing, equally in every environment",
            )
        )
    return tuple(problems)


def _crowded(nodes: Sequence[NodeShape], together: int, available: int, share_cpus: bool) -> Problem:
    """What workers that need more CPUs than there are come to."""
    if not share_cpus:
        return Problem.blocker(
            f"the workers need {together} CPUs together, but this machine offers {available}",
            "use fewer workers or fewer CPUs: workers that share CPUs disturb each other; `share_cpus = true` in "
            "[nodes] allows it, for studies of how things grow with nodes",
        )
    larger = [node for node in nodes if node.cpus > 1]
    if larger:
        return Problem.blocker(
            f"nodes that share CPUs have one CPU each, and {larger[0].name} has {larger[0].cpus}",
            "set cpus = 1 for all nodes, or leave `share_cpus` out",
        )
    return Problem.warning(
        f"{len(nodes)} nodes share {available} CPU{'s' if available > 1 else ''} (`share_cpus`), with one rank each",
        "what several nodes do at once measures the sharing too, equally in every environment",
    )


def _memory_problems(nodes: Sequence[NodeShape], available: int) -> tuple[Problem, ...]:
    problems = []
    wanted = sum(node.memory_bytes for node in nodes)
    if wanted > available:
        problems.append(
            Problem.blocker(
                f"the nodes need {format_bytes(wanted)} together; this machine has {format_bytes(available)}",
                'reduce memory, or set it to "auto"',
            )
        )
    for node in nodes:
        if node.memory_bytes < SMALLEST_MEMORY:
            problems.append(
                Problem.blocker(
                    f"{node.name} has {format_bytes(node.memory_bytes)} of memory",
                    f"give it at least {format_bytes(SMALLEST_MEMORY)}",
                )
            )
    return tuple(problems)
