"""Nodes, and where and when work runs on them: shapes that every environment must give, scopes, phases, targets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from vtax.model.names import StudyName
from vtax.model.record import Record, is_empty

MOST_WORKERS = 64
MOST_CPUS = 65_536
EVERY_PAIR = 8  # nodes, of which all pairs are looked at; of more, as many as grow with the nodes and not their square


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
    PROVISIONING = "provisioning"  # the cluster itself, once in every cell: nothing runs on it


class Phase(StrEnum):
    """When in a trial a step runs. Between PREPARE and RUN all services are ready; what is measured is RUN alone."""

    SETUP = "setup"  # once for each work of a cluster, in the first trial that needs it
    PREPARE = "prepare"  # before each run
    RUN = "run"
    CLEANUP = "cleanup"  # after each run, however that ended


class NodeShape(Record):
    """What one node must have in every environment. `cpu_ids` are CPUs of the host, `cpus` of them; `last_cache_bytes`
    is the sum of the last-level caches behind them, None where it is unknown. `machine` is the host's name in the
    study, "" for this machine; in a plan's own shape it is always "", because cells put the nodes on machines."""

    name: StudyName
    role: Role
    cpus: int
    cpu_ids: tuple[int, ...]
    memory_bytes: int
    disk_bytes: int
    last_cache_bytes: int | None = None
    machine: str = Field(default="", exclude_if=is_empty)


class ClusterShape(Record):
    """Master first, then the workers in order."""

    nodes: Annotated[tuple[NodeShape, ...], Field(max_length=1 + MOST_WORKERS)]

    @property
    def workers(self) -> tuple[NodeShape, ...]:
        return tuple(node for node in self.nodes if node.role is Role.WORKER)

    def node(self, name: str) -> NodeShape:
        return next(node for node in self.nodes if node.name == name)

    @property
    def machines(self) -> tuple[str, ...]:
        """Those that its nodes are on, that of the master first."""
        return tuple(dict.fromkeys(node.machine for node in self.nodes))

    def on(self, machine: str) -> ClusterShape:
        """The part of it that is on one machine."""
        return ClusterShape(nodes=tuple(node for node in self.nodes if node.machine == machine))


def target_label(scope: Scope, nodes: Sequence[str]) -> str:
    """What a set of nodes is called in one scope: `worker1`, `worker1.shared`, `master-worker2`, `workers`."""
    if scope in (Scope.WORKERS, Scope.CLUSTER, Scope.PROVISIONING):
        return scope.value
    return f"{nodes[0]}.shared" if scope is Scope.SHARED else "-".join(nodes)


class Target(Record):
    """The nodes of one trial, in the order that matters (client before server), and its directory on each of them."""

    scope: Scope
    nodes: Annotated[tuple[NodeShape, ...], Field(max_length=1 + MOST_WORKERS)]
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


class LastCache(Record):
    """A last-level cache, and the CPUs that share it."""

    cpu_ids: tuple[int, ...]
    size_bytes: int


class HostCapacity(Record):
    """What the plan needs to know of the machine: its CPUs in the order in which they are given away, its memory, its
    last-level caches as far as they are known."""

    cpu_ids: Annotated[tuple[int, ...], Field(max_length=MOST_CPUS)]
    memory_bytes: int
    last_caches: tuple[LastCache, ...] = ()

    def last_cache_bytes(self, cpu_ids: Collection[int]) -> int | None:
        """The sum of the last-level caches behind some CPUs; None unless that of each of them is known."""
        behind = [cache for cache in self.last_caches if set(cache.cpu_ids) & set(cpu_ids)]
        known = {cpu for cache in behind for cpu in cache.cpu_ids}
        return sum(cache.size_bytes for cache in behind) if cpu_ids and known.issuperset(cpu_ids) else None
