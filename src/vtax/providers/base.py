"""Who supplies nodes: the protocol that every provider keeps, and the live cluster that it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from vtax.launchers.mpirun import Mpirun
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape
from vtax.model.record import Record
from vtax.model.study import EnvironmentSpec
from vtax.transport.base import Transport

LABEL = "vtax.campaign"  # on everything that is created; its value is the campaign's id
RUNTIME_LABEL = "vtax.runtime"  # on what has labels: the run-time directory of the vtax that made it
SCRATCH = "/scratch"  # every node's own disk, the directory of trials that use local storage


class Options(Record):
    """Options of an environment, beyond `provider`."""

    def undriven(self, kernel: str) -> str:
        """The option that this `kernel` of [image] has no driver for; "" when it can do all."""
        return ""


class Capabilities(Record):
    """What a provider can enforce, and what its nodes are. The audit and the planner read these, never the name."""

    limits_cpu: bool
    limits_memory: bool
    limits_disk: bool
    own_kernel: bool
    separate_nodes: bool  # every node has a network stack and a file system of its own


@dataclass(frozen=True)
class Site:
    """Where one cluster lives on this machine, and whose it is."""

    campaign: str  # the label
    directory: Path  # keys, configuration and run-time files of this cluster, readable only by its owner
    image: Image
    keys: Path  # the campaign's SSH keys

    def console(self, node: str) -> Path:
        """Where a node with a console of its own has its log, from its first line on."""
        return self.directory / node / "console.log"


@dataclass(frozen=True)
class Node:
    name: str
    address: str
    shape: NodeShape
    transport: Transport


@dataclass(frozen=True)
class Cluster:
    """A live cluster. `commands` is what was run to make it, for the report."""

    environment: EnvironmentSpec
    shape: ClusterShape
    nodes: tuple[Node, ...]
    capabilities: Capabilities
    launcher: Mpirun
    shared_path: str
    commands: tuple[tuple[str, ...], ...] = field(default=())
    notes: tuple[str, ...] = ()  # what the provider has to say of it beside the checks: sentences for the cell's record
    patience: float = 1  # how much longer than at this machine's speed things may take on the nodes
    logs: Mapping[str, Path] = field(default_factory=dict)  # node -> the log of its console, kept with the cell
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # node -> what only its provider knows
    together: Mapping[frozenset[str], Transport] = field(default_factory=dict)  # nodes of one machine, used as one

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def reach(self, name: str, target: Sequence[str]) -> Transport:
        """The transport of a node for a command that uses all of `target`: on one machine that is the nodes' union."""
        return self.together.get(frozenset(target), self.node(name).transport)

    def close(self) -> None:
        for node in self.nodes:
            node.transport.close()


@dataclass(frozen=True)
class Leftover:
    """Something that a run left behind: what `vtax clean` removes, unless it is `elsewhere`: in the care of a vtax with
    another run-time directory, which may be using it."""

    provider: str
    kind: str
    name: str
    campaign: str
    elsewhere: str = ""  # that directory, or UNKNOWN


UNKNOWN = "an unknown directory"


def elsewhere(runtime: Path, campaign: str, place: Path | None) -> str:
    """Whose run-time directory it is when not ours: by a file or directory of the cluster, where one is known, else by
    whether we have a directory for its campaign."""
    if place is None:
        return "" if (runtime / campaign).is_dir() else UNKNOWN
    if place.resolve().is_relative_to(runtime.resolve()):
        return ""
    return str(next((above.parent for above in (place, *place.parents) if above.name == campaign), UNKNOWN))


class Provider(Protocol):
    name: str
    options: type[Options]
    mend: str  # what makes it work where it does not

    @property
    def provision_estimate_s(self) -> float: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def slowdown(self, options: Any) -> float:
        """About how many times as long as on this machine itself work takes on the nodes, for estimates only."""
        ...

    def launcher(self, options: Any) -> Mpirun:
        """How MPI programs start on this provider's clusters. Pure: the plan needs it."""
        ...

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str
    ) -> tuple[tuple[str, ...], ...]:
        """What `create` runs, for the plan, with CAMPAIGN in the place of the id, for nodes with this `kernel` of
        [image]. Makes nothing."""
        ...

    def unavailable(self) -> str:
        """Why nothing can be created here whatever the study says; "" when something can."""
        ...

    def note(self) -> str:
        """How it works here, where that is not the same everywhere; "" when there is nothing to say."""
        ...

    def advice(self) -> str:
        """What makes it work better here than it does; "" when nothing would."""
        ...

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        """Everything that keeps this environment from working here, at once. Changes nothing."""
        ...

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        """A cluster whose nodes answer. Everything it makes carries the label; after a failure nothing is left."""
        ...

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        """The cluster that `create` made earlier at this site, for another process."""
        ...

    def destroy(self, campaign: str) -> None:
        """Remove all that carries the label. Twice is fine; needs nothing but the label."""
        ...

    def leftovers(self) -> Sequence[Leftover]:
        """All that carries any campaign's label, and of what is another vtax's, whose."""
        ...

    def remove_image(self, image: Image) -> None:
        """Forget what was made of a root file system for all clusters; fine when there is nothing."""
        ...
