"""The protocol that every provider implements, and the live cluster that it returns.

Planner, audit and analysis read a provider's `capabilities`, never its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from vtax.facts.perf import Subject
from vtax.launchers.base import Launcher
from vtax.model.capabilities import Capabilities
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.link import Link
from vtax.model.names import is_campaign_id
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape
from vtax.model.record import Record
from vtax.model.study import EnvironmentSpec, MachineSpec
from vtax.transport.base import Transport

LABEL = "vtax.campaign"  # on everything that is created; its value is the campaign's id
RUNTIME_LABEL = "vtax.runtime"  # on what has labels: the run-time directory of the vtax that made it
Commands = tuple[tuple[str, ...], ...]
SCRATCH = "/scratch"  # every node's own disk, the directory of trials that use local storage
WORKLOAD = "/workload"  # the study's own image, on every node where it has one


class Options(Record):
    """Options of an environment, beyond those of every provider. `emulation`: whether its nodes may be emulated."""

    emulation: ClassVar[bool] = False

    def missing_driver(self, kernel: str) -> str:
        """The option for which this `kernel` of [image] has no driver; "" when it has all drivers."""
        return ""

    @property
    def host_network(self) -> bool:
        """Whether all nodes use the network stack of the machine itself."""
        return False

    @property
    def one_directory(self) -> bool:
        """Whether all nodes of a cluster see one shared directory."""
        return True

    @property
    def machines(self) -> Mapping[str, MachineSpec]:
        """Node -> the machine that it is, where nodes are machines that exist already."""
        return {}

    def wrong_nodes(self, names: Sequence[str]) -> str:  # where nodes are made, all names are right
        """What is wrong for a study whose nodes have these names; "" when nothing is."""
        return ""


@dataclass(frozen=True)
class Site:
    """Where the files of one cluster are on this machine, and which campaign it belongs to.

    With a `link` the cluster has nodes on other machines too, and what is created here is a part of it, with the nodes
    of the shape. `keys` then has the public keys of all nodes.
    """

    campaign: str  # the label
    directory: Path  # keys, configuration and run-time files of this cluster, readable only by its owner
    image: Image
    keys: Path  # the cluster's SSH keys
    paused: bool = False  # whether the cluster is paused between its trials, for minutes
    link: Link | None = None  # the network to the nodes on other machines, where there are any

    def console(self, node: str) -> Path:
        """The log of a node's console, where nodes have one."""
        return self.directory / node / "console.log"


@dataclass(frozen=True)
class Node:
    name: str
    address: str
    shape: NodeShape
    transport: Transport


class Pausing(Protocol):
    """What pauses the nodes of a cluster and lets them continue. Both may be called twice."""

    reason: str  # why the nodes are not paused in the usual, faster way; "" where they are

    def pause(self) -> str:
        """Stop all nodes where they are. Returns with what. Raises PauseError or CommandError."""
        ...

    def resume(self) -> None:
        """Let all nodes continue. Raises PauseError or CommandError."""
        ...


@dataclass(frozen=True)
class Creation:
    """When a node was ordered, and when it was first heard of: on this machine's monotonic clock, in s. None: that
    cannot be observed."""

    ordered: float
    first_process: float | None = None  # the first line that its first process prints
    ssh_ready: float | None = None  # the first answer of its SSH server
    process: int | None = None  # of this machine: with all its descendants it is the node


class Outside(NamedTuple):
    """Where this machine sees a node: what its events are counted of, and the control group of its memory."""

    subject: Subject | None = None
    memory: Path | None = None


@dataclass(frozen=True)
class Cluster:
    """A live cluster. `commands` are the command lines that created it, for the report."""

    environment: EnvironmentSpec
    shape: ClusterShape
    nodes: tuple[Node, ...]
    capabilities: Capabilities
    launcher: Launcher
    shared_path: str
    commands: tuple[tuple[str, ...], ...] = field(default=())
    notes: tuple[str, ...] = ()  # sentences of the provider for the cell's record, in addition to the checks
    timeout_factor: float = 1  # by which time limits are longer than at this machine's own speed
    logs: Mapping[str, Path] = field(default_factory=dict)  # node -> the log of its console, kept with the cell
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # node -> what only its provider can observe
    shared_transports: Mapping[frozenset[str], Transport] = field(default_factory=dict)  # of nodes on one machine
    pausing: Pausing | None = None  # None: this provider cannot pause its clusters
    outside: Callable[[Sequence[str]], tuple[Outside, ...]] | None = (
        None  # of nodes; None: they are not on this machine
    )
    joins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # node -> what joins it, for ranks from outside
    creations: Mapping[str, Creation] = field(default_factory=dict)  # of nodes, where this process created them
    link: Link | None = None  # the network between the machines of its nodes, where these are several
    hostnames: Mapping[str, str] = field(default_factory=dict)  # what nodes call themselves -> node, where that differs

    @property
    def one_directory(self) -> bool:
        """Whether all nodes see one shared directory: those on several machines only where these share one."""
        return bool(self.link.shared) if self.link else self.environment.one_directory

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def reach(self, name: str, target: Sequence[str]) -> Transport:
        """The transport of a node for a command that uses all of `target`: on one machine, one with all their CPUs."""
        return self.shared_transports.get(frozenset(target), self.node(name).transport)

    def close(self) -> None:
        for node in self.nodes:
            node.transport.close()


@dataclass(frozen=True)
class Leftover:
    """Something that a run left behind: what `vtax clean` removes, unless it is owned by a vtax instance with another
    run-time directory (`elsewhere`), which may be using it."""

    provider: str
    kind: str
    name: str
    campaign: str  # the label
    elsewhere: str = ""  # that directory, or UNKNOWN
    origin: str = ""  # environment and directory of the campaign that made it, as far as that is known


UNKNOWN = "an unknown directory"


def elsewhere(runtime: Path, campaign: str, place: Path | None) -> str:
    """The run-time directory of the owner, "" for `runtime` itself: by a file or directory of the cluster where one is
    known, else by whether `runtime` has a directory for its campaign. What does not have a label that vtax gives is
    never `runtime`'s own: such labels are put on anything by anybody, and this one would become a path."""
    if not is_campaign_id(campaign):
        return UNKNOWN
    if place is None:
        return "" if (runtime / campaign).is_dir() else UNKNOWN
    if place.resolve().is_relative_to(runtime.resolve()):
        return ""
    return str(next((above.parent for above in (place, *place.parents) if above.name == campaign), UNKNOWN))


class Provider(Protocol):
    """Providers may inherit from it, for the methods with a default."""

    name: str
    options: type[Options]
    capabilities: Capabilities
    runners: ClassVar[
        tuple[str, ...]
    ]  # programs of which one process runs one node; () where nodes have no such process
    install_hint: str  # how to make it work where it does not
    in_parts: ClassVar[bool] = False  # whether it can make a part of a cluster whose other nodes are elsewhere

    @property
    def provision_estimate_s(self) -> float: ...

    def capabilities_with(self, options: Any) -> Capabilities:
        """The capabilities of an environment with these options."""
        return self.capabilities

    def slowdown(self, options: Any) -> float:
        """About how many times as long as on this machine itself work takes on the nodes, for estimates only."""
        ...

    def emulates(self, options: Any) -> bool:
        """Whether the nodes are emulated in software on this machine, so that they are not compared."""
        return False

    def launcher(self, options: Any) -> Launcher:
        """How MPI programs start on this provider's clusters. Pure: the plan needs it."""
        ...

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str, workload: bool = False
    ) -> Commands:
        """What `create` runs, for the plan, with CAMPAIGN in place of the id, for nodes with this `kernel` of [image],
        and with the study's own image where it has one (`workload`). Creates nothing."""
        ...

    def unavailable(self) -> str:
        """Why no cluster can be created here, whatever the study says; "" when one can."""
        ...

    def machine_facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Machine -> its facts, of a provider whose clusters are on several; nothing of all others."""
        return {}

    def lost(self) -> str:
        """Which of several machines were lost, for a provider whose clusters are on several; "" when none was."""
        return ""

    def cannot_share(self, spec: EnvironmentSpec, shape: ClusterShape) -> str | None:
        """Why the master's machine cannot serve a directory to those of the other nodes, for a provider whose nodes
        exist already; "" where it can, and None of all others. Changes nothing."""
        return None

    def machine_ticks(self) -> Mapping[str, float]:
        """What the CPUs of the machines have counted so far, added, of a provider whose clusters are on several."""
        return {}

    def status_note(self) -> str:
        """Machine-specific status, if any, for `vtax doctor`."""
        return ""

    def improvement_hint(self) -> str:
        """What would make it work better here; "" when nothing would."""
        return ""

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        """Everything that keeps this environment from working here, at once. Changes nothing."""
        ...

    def prepare(self, spec: EnvironmentSpec, shape: ClusterShape, image: Image) -> None:
        """Make of the root file system what all clusters of this environment start from, where it is not there: an
        engine's image, a disk. `create` does it too; done before, it is done for several environments at once."""
        return

    def workload_problems(self, spec: EnvironmentSpec) -> Sequence[Problem]:
        """Everything that keeps nodes of this environment from having the study's own image at WORKLOAD. Changes
        nothing."""
        return [
            Problem.blocker(
                f"nodes of provider {self.name!r} cannot have an image of the study's own",
                "use another provider for this environment, or leave [image.workload] out",
            )
        ]

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        """A cluster whose nodes answer, and have the workload of the site's image at WORKLOAD. Everything it creates
        carries the label; after a failure the caller destroys what is there by then."""
        ...

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        """The cluster that `create` made earlier at this site, for another process."""
        ...

    def destroy(self, campaign: str) -> None:
        """Remove everything that carries the label. May be called twice; needs nothing but the label."""
        ...

    def leftovers(self) -> Sequence[Leftover]:
        """Everything that carries any campaign's label, with the owner of what another vtax instance made."""
        ...

    def stray_images(self) -> Sequence[str]:
        """Images in the provider's own store that vtax imported and that nothing names or uses any more, because the
        import was killed or repeated."""
        return ()

    def remove_stray_image(self, name: str) -> None:
        """Remove one of them, unless it is in use or gone."""
        return

    def remove_image(self, image: Image) -> None:
        """Remove what was made of a root file system for all clusters; fine when there is nothing."""
        ...


@runtime_checkable
class Publishes(Protocol):
    """A provider that puts root file systems where machines fetch them, such as a registry."""

    def published(self, spec: EnvironmentSpec, cached: Sequence[Image]) -> Sequence[str]:
        """The names there of those that are cached here. Raises ImageError where that cannot be asked."""
        ...

    def withdraw(self, name: str) -> None:
        """Remove one of them from there. Raises ImageError."""
        ...


@runtime_checkable
class WritesCompose(Protocol):
    """A provider whose clusters can also be described by a Compose file."""

    def compose_file(
        self, name: str, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, image: Image | None
    ) -> str:
        """The Compose file of study `name`; `image` is None when it is not built yet. Raises UsageError for options
        that such a file cannot express."""
        ...
