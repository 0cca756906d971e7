"""On which machines the nodes of a cell are, and with which of their CPUs. Pure.

Every node is as large on one machine as on another: sizes are chosen for the smallest. Only the numbers of its CPUs and
the caches behind them depend on the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from vtax.analysis.order import environment_orders
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape, Target
from vtax.model.plan import Cell, Plan, Work
from vtax.model.study import Study
from vtax.planning.shape import dealt

PLACES = 1  # the number of the random orders of nodes on machines: see `orders_of_rounds`


def common_capacity(capacities: Mapping[str, HostCapacity]) -> HostCapacity:
    """What each of several machines has at least: as many CPUs, with the numbers of one that has no more, and as much
    memory."""
    fewest = min(capacities.values(), key=lambda one: len(one.cpu_ids))
    memory = min(one.memory_bytes for one in capacities.values())
    return fewest.model_copy(update={"memory_bytes": memory})


def room_apart(study: Study, each: HostCapacity) -> HostCapacity:
    """What a cluster finds on machines that have at least `each`: where its nodes are on several, more than on one. The
    CPUs are counted then, not numbered: their numbers are those of the machine of each node in a cell."""
    found = placements(study)
    if not found:
        return each
    most = max(Counter(found[0].values()).values())
    times = len(study.node_names) / most
    cpus = int(len(each.cpu_ids) * times)
    return HostCapacity(cpu_ids=tuple(range(cpus)), memory_bytes=int(each.memory_bytes * times))


def placements(study: Study) -> tuple[Mapping[str, str], ...]:
    """For every round, the machine of each node; () where all nodes of a cluster are on one.

    In every block of as many rounds as there are machines, each node is once on each of them ("spread"). A table of the
    study's own is the same in all rounds.
    """
    if study.alternatives or not study.machines:
        return ()
    if not isinstance(study.place, str):
        return (study.place,) * study.rounds
    machines = tuple(study.machines)
    orders = environment_orders(study.seed, study.rounds, len(machines), PLACES, len(machines))
    return tuple(
        {node: machines[place] for node, place in zip(study.node_names, order, strict=False)} for order in orders
    )


def covering(study: Study) -> list[Mapping[str, str]]:
    """Of the rounds' placements the first ones in which every machine that has nodes has some."""
    seen: set[str] = set()
    found = []
    for one in placements(study):
        if not seen.issuperset(one.values()):
            seen.update(one.values())
            found.append(one)
    return found


def placed(shape: ClusterShape, placement: Mapping[str, str], capacities: Mapping[str, HostCapacity]) -> ClusterShape:
    """The nodes on their machines, with CPUs of these."""
    given: dict[str, tuple[int, ...]] = {}
    for name in set(placement.values()):
        wanted = {node.name: node.cpus for node in shape.nodes if placement[node.name] == name}
        given |= dealt(wanted, capacities[name].cpu_ids)

    def on_machine(node: NodeShape) -> NodeShape:
        machine, cpu_ids = placement[node.name], given[node.name]
        cache = capacities[machine].last_cache_bytes(cpu_ids)
        return node.model_copy(update={"machine": machine, "cpu_ids": cpu_ids, "last_cache_bytes": cache})

    return ClusterShape(nodes=tuple(on_machine(node) for node in shape.nodes))


def shape_in(plan: Plan, cell: Cell) -> ClusterShape:
    """The nodes of a cell: the plan's own, or on the machines of the cell."""
    placement = cell.placement or dict.fromkeys((node.name for node in plan.shape.nodes), cell.machine)
    return placed(plan.shape, placement, plan.capacities) if plan.capacities else plan.shape


def plan_on(plan: Plan, machine: str) -> Plan:
    """What of a plan one machine does: its cells, on its own CPUs. The hash stays that of the whole plan."""
    shape = placed(plan.shape, dict.fromkeys((node.name for node in plan.shape.nodes), machine), plan.capacities)

    def target_on(target: Target) -> Target:
        return target.model_copy(update={"nodes": tuple(shape.node(name) for name in target.names)})

    def work_on(work: Work) -> Work:
        load = work.load and work.load.model_copy(update={"target": target_on(work.load.target)})
        return work.model_copy(update={"target": target_on(work.target), "load": load})

    cells = tuple(cell for cell in plan.cells if cell.machine == machine)
    return plan.model_copy(update={"shape": shape, "work": tuple(map(work_on, plan.work)), "cells": cells})


def common_shape(study: Study, shape: ClusterShape, capacities: Mapping[str, HostCapacity]) -> ClusterShape:
    """The shape from which work is made: the caches behind a node are the largest of those that it has on any machine,
    so that data larger than a cache is so on all of them; unknown when one is."""
    if not capacities:
        return shape
    everywhere: Sequence[Mapping[str, str]] = placements(study) or [
        dict.fromkeys(study.node_names, machine) for machine in study.machines
    ]
    seen = [placed(shape, one, capacities) for one in everywhere]

    def largest(node: NodeShape) -> NodeShape:
        caches = [one.node(node.name).last_cache_bytes for one in seen]
        known = [cache for cache in caches if cache is not None]
        return node.model_copy(update={"last_cache_bytes": max(known) if len(known) == len(caches) else None})

    return shape.model_copy(update={"nodes": tuple(largest(node) for node in shape.nodes)})
