"""Nodes and where work runs on them: shapes that every environment must give, scopes, targets."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from vtax.model.names import StudyName
from vtax.model.record import Record


class Role(StrEnum):
    MASTER = "master"
    WORKER = "worker"


class Scope(StrEnum):
    """Which nodes one trial of a benchmark uses."""

    NODE = "node"  # every node alone, one trial each
    WORKERS = "workers"  # all workers together
    CLUSTER = "cluster"  # master and workers together
    PAIRS = "pairs"  # every ordered pair of nodes (client, server)
    SHARED = "shared"  # every worker alone, on the shared file system


class NodeShape(Record):
    """What one node must have in every environment. `cpu_ids` are CPUs of the host, `cpus` of them."""

    name: StudyName
    role: Role
    cpus: int
    cpu_ids: tuple[int, ...]
    memory_bytes: int
    disk_bytes: int


class ClusterShape(Record):
    """Master first, then the workers in order."""

    nodes: tuple[NodeShape, ...]

    @property
    def workers(self) -> tuple[NodeShape, ...]:
        return tuple(node for node in self.nodes if node.role is Role.WORKER)

    def node(self, name: str) -> NodeShape:
        return next(node for node in self.nodes if node.name == name)


def target_label(scope: Scope, nodes: Sequence[str]) -> str:
    """What a set of nodes is called in one scope: `worker1`, `worker1.shared`, `master-worker2`, `workers`."""
    if scope in (Scope.WORKERS, Scope.CLUSTER):
        return scope.value
    return f"{nodes[0]}.shared" if scope is Scope.SHARED else "-".join(nodes)


class Target(Record):
    """The nodes of one trial, in the order that matters (client before server), and its directory on each of them."""

    scope: Scope
    nodes: tuple[NodeShape, ...]
    directory: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)

    @property
    def label(self) -> str:
        return target_label(self.scope, self.names)

    @property
    def filesystem(self) -> str:
        return "shared" if self.scope is Scope.SHARED else "local"


class HostCapacity(Record):
    """What the plan needs to know of the machine: its CPUs in the order in which they are given away, its memory."""

    cpu_ids: tuple[int, ...]
    memory_bytes: int
