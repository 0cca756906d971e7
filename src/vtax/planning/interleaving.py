"""Whether the trials of a round can alternate between environments on this machine, and the nodes' shape then. Pure.

All clusters of a round then exist at once, all but one paused. A paused virtual machine keeps its memory; the processes
of a benchmark are gone between trials, so nodes that share this machine's kernel keep next to nothing: of their
clusters only one has to fit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from vtax.model.capabilities import Capabilities
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.study import Interleave, Study
from vtax.planning.shape import cluster_shape
from vtax.units import format_bytes
from vtax.wording import listed

IDLE_NODE = 64 * 2**20  # of memory that a node without its own kernel keeps while it is paused
MOST = 0.9  # of the machine's memory: the rest is for the machine itself and vtax


@dataclass(frozen=True)
class Arrangement:
    """What alternates in a round, the nodes of every environment, and why that is not what the study asks for."""

    interleave: Interleave
    shape: ClusterShape
    problems: tuple[Problem, ...]
    refused: str = ""


def arranged(
    study: Study, capacity: HostCapacity, capabilities: Mapping[str, Capabilities], brief: Collection[str] = ()
) -> Arrangement:
    """The arrangement of a round of the environments in `capabilities` (by name), some of which are `brief`: not in all
    rounds, but in the first one together with all others.

    Automatic sizes share the machine's memory between the clusters that hold it at once. Where the memory of all does
    not fit, or two hypervisors exclude each other, environments are measured one after the other.
    """
    if study.interleave == "cell" or len(capabilities) < 2:
        return Arrangement("cell", *cluster_shape(study, capacity))
    holding = sum(one.own_kernel for one in capabilities.values())
    shape, problems = cluster_shape(study, capacity, holding + (holding < len(capabilities)))
    room, needed = MOST * capacity.memory_bytes, _needed(shape, capabilities)
    refused = _excluded(capabilities)
    if not refused and needed > room:
        each = format_bytes(sum(node.memory_bytes for node in shape.nodes))
        refused = (
            f"{len(capabilities)} clusters with {each} each need {format_bytes(needed)} of memory at once, and this "
            f"machine has {format_bytes(capacity.memory_bytes)}, {MOST:.0%} of it for nodes"
        )
        always = {name: one for name, one in capabilities.items() if name not in brief}
        if 1 < len(always) < len(capabilities) and _needed(shape, always) <= room:
            refused += f"; without {listed(list(brief))} (in fewer rounds), the others would alternate"
    if not refused:
        return Arrangement("trial", shape, problems)
    sentence = f"trials do not alternate between environments, which are measured one after the other: {refused}"
    return Arrangement("cell", *cluster_shape(study, capacity), refused=sentence)


def _needed(shape: ClusterShape, capabilities: Mapping[str, Capabilities]) -> int:
    """The memory of the clusters of these environments when all exist and one runs."""
    memory, holding = (
        sum(node.memory_bytes for node in shape.nodes),
        sum(one.own_kernel for one in capabilities.values()),
    )
    sharing = len(capabilities) - holding
    return memory * holding + (memory + (sharing - 1) * len(shape.nodes) * IDLE_NODE if sharing else 0)


def _excluded(capabilities: Mapping[str, Capabilities]) -> str:
    """Which environments cannot exist at the same time; "" when all can."""
    machines = [name for name, one in capabilities.items() if one.own_kernel]
    sole = [name for name in machines if capabilities[name].sole_hypervisor]
    others = [name for name in machines if name not in sole]
    if not sole or not others:
        return ""
    return f"machines of {', '.join(sole)} and {', '.join(others)} cannot exist at the same time"
