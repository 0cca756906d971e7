"""What creating, keeping and destroying a cluster took: the raw output of work that runs no command."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from vtax.facts.machine import machine_counters, machine_delta
from vtax.facts.processes import pss_bytes, tree
from vtax.model.nodes import ClusterShape
from vtax.model.plan import Cell, Plan, PlannedTrial
from vtax.model.trial import TrialRecord
from vtax.providers.base import Cluster, Creation
from vtax.running.trial import without_command
from vtax.running.wall import Now
from vtax.running.writing import Writing

FILE = "startup.json"
MEMORY_IS = (
    "PSS on this machine of the process that runs the node (a container's monitor, a hypervisor) and of all below it: "
    "a guest's kernel and page cache are part of it, this machine's own are not"
)


@dataclass(frozen=True)
class Provisioned:
    """A cluster that came up: when its first node was ordered, in Unix time; what is known of each node, in s and
    bytes; what the machine counted meanwhile."""

    started: float
    nodes: Mapping[str, Mapping[str, float]]
    counted: Mapping[str, float]


def counters(shape: ClusterShape) -> dict[str, float]:
    """What the machine has counted so far, on the CPUs of the nodes too."""
    return machine_counters(sorted({cpu for node in shape.nodes for cpu in node.cpu_ids}))


def observe(cluster: Cluster, before: dict[str, float], wall: Now) -> Provisioned:
    """What is known of a new cluster while it is idle; what cannot be seen of a node is absent. `before` are the
    counters of the machine when its creation began."""
    now, ordered = time.monotonic(), [creation.ordered for creation in cluster.creations.values()]
    nodes = {node.name: _noted(cluster.creations.get(node.name)) for node in cluster.nodes}
    counted = machine_delta(before, counters(cluster.shape))
    return Provisioned(wall() - (now - min(ordered, default=now)), nodes, counted)


def _noted(creation: Creation | None) -> dict[str, float]:
    if creation is None:
        return {}
    moments = {"first_process_s": creation.first_process, "ssh_ready_s": creation.ssh_ready}
    noted = {name: moment - creation.ordered for name, moment in moments.items() if moment is not None}
    memory = None if creation.process is None else pss_bytes(tree(creation.process))
    return noted if memory is None else {**noted, "idle_memory_bytes": memory}


def write(
    campaign: Writing, plan: Plan, cell: Cell, trial: PlannedTrial, seen: Provisioned, destroy_s: float
) -> TrialRecord:
    """Record what is known of a cluster that has been destroyed, as the output of a trial."""
    content = {"nodes": seen.nodes, "memory_is": MEMORY_IS, "destroy_s": destroy_s}
    work = plan.work_of(cell.environment, trial.work)
    with campaign.new_trial(trial.id) as place:
        (place / FILE).write_text(json.dumps(content, indent=1) + "\n")
        return without_command(cell, trial, work, FILE, place, plan.sha256, seen.started, seen.counted)
