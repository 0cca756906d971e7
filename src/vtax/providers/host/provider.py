"""The bare host: the same root file system entered by chroot, the same CPUs and memory, no virtualization.

There is one machine, so "nodes" are sets of CPUs of it: they share a kernel and a disk. Every command runs in its own
mount and process namespace, made by `vtax-enter` in 3 ms, which ends with it. Nodes share a loopback interface that
nothing else has, or, with `network = "bridge"`, each has a network stack and an SSH server. Root limits memory by
control groups; an ordinary user works in a user namespace, pins CPUs with `taskset`, and has no memory limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from vtax.cluster.keys import make_keys
from vtax.errors import ProvisionError
from vtax.facts.perf import Subject
from vtax.launchers.base import Launcher
from vtax.launchers.mpirun import Mpirun
from vtax.launchers.srun import Srun
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape
from vtax.model.study import EnvironmentSpec
from vtax.providers import cgroup, network, overlay, tunnel
from vtax.providers.base import (
    SCRATCH,
    WORKLOAD,
    Cluster,
    Commands,
    Creation,
    Leftover,
    Node,
    Options,
    Outside,
    Provider,
    Site,
    elsewhere,
)
from vtax.providers.host import entering, joining, own_image, processes, ssh_nodes
from vtax.transport import process
from vtax.transport.local import LocalTransport
from vtax.transport.parallel import each

DEVICES = ("bridge", "veth")  # of a network between nodes
LOOPBACK = "loopback"  # the network namespace of all nodes together, where they have no network


class HostOptions(Options):
    """`mpi_transport` "tcp" makes ranks communicate over TCP, as they must between nodes, to separate its cost.
    `network` "bridge" gives every node its own network stack, and a bridge between them, as containers have; "auto" is
    "bridge" where it can be made, else "none". "host" leaves nodes on several machines, one on each, in these machines'
    own network. `launcher` "srun" has Slurm start the ranks there, with PMIx."""

    mpi_transport: Literal["auto", "tcp"] = "auto"
    network: Literal["none", "bridge", "host", "auto"] = "none"
    launcher: Literal["mpirun", "srun"] = Field(default="mpirun", exclude_if=lambda chosen: chosen == "mpirun")

    @property
    def host_network(self) -> bool:
        return self.network == "host"


class Host(Provider):
    name = "host"
    options = HostOptions
    runners = ()
    in_parts = True
    install_hint = (
        "as root: apt-get install util-linux iproute2 uidmap, and a line for this user in /etc/subuid and /etc/subgid"
    )
    capabilities = Capabilities(kind=NodeKind.HOST, limits_cpu=True, shares_machine=True)
    provision_estimate_s = 1.0

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime
        self.groups = cgroup.find() if os.geteuid() == 0 else None
        self.capabilities = self.capabilities.model_copy(update={"limits_memory": self.groups is not None})

    def capabilities_with(self, options: HostOptions) -> Capabilities:
        return self.capabilities.model_copy(update={"separate_nodes": served(options)})

    def slowdown(self, options: HostOptions) -> float:
        return 1.0

    def launcher(self, options: HostOptions) -> Launcher:
        if options.launcher == "srun":
            return Srun(transport=options.mpi_transport)
        if options.host_network:
            return Mpirun(interface="", transport=options.mpi_transport)
        if bridged(options):
            return Mpirun(interface=network.INTERFACE, transport=options.mpi_transport)
        return Mpirun(interface="lo", one_machine=True, transport=options.mpi_transport)

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str, workload: bool = False
    ) -> Commands:
        own = overlay.PLANNED if workload else None
        image = Image(recipe="", digest="", directory="ROOTFS", archive="", workload=own)
        return self._commands(spec, shape, shared_path, Site("CAMPAIGN", Path("CAMPAIGN"), image, Path("KEYS")))

    def _commands(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Commands:
        """What mounts the study's own image, makes the network and starts the servers, and how a command enters a
        node."""
        wraps = {name: self._wrapper(spec, name, nodes, shared_path, site) for name, nodes in _sets(spec, shape)}
        mounts = own_image.commands(site, self.name, list(wraps), shared_path) if site.image.workload else ()
        made = (*mounts, *(command for part in _networks(spec, shape, site) for command in part))
        first = (shape.workers or shape.nodes)[0]  # a part may have the master alone
        servers = (self._server(spec, first, shared_path, site),) if _served(spec) else ()
        return (*made, *servers, wraps[first.name]("DIRECTORY", ("COMMAND",)))

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        reason = self.unavailable()
        if reason:
            return [Problem.blocker(reason, self.install_hint)]
        if _options(spec).host_network and len(shape.nodes) > 1:
            return [
                Problem.blocker(
                    'network = "host" is for nodes on several machines, one on each',
                    'set network = "bridge", or place = "spread" in [machines]',
                )
            ]
        if _options(spec).launcher == "srun":
            return list(joining.problems(root=os.geteuid() == 0))
        nothing = 'or network = "none", in which no benchmark between nodes runs'
        return list(network.refused('network = "bridge"', nothing, *DEVICES)) if _bridged(spec) else []

    def workload_problems(self, spec: EnvironmentSpec) -> Sequence[Problem]:
        return own_image.problems()

    def unavailable(self) -> str:
        root = os.geteuid() == 0
        for program in ("unshare", "taskset", *(("ip",) if root else ())):
            if not process.installed(program):
                return f"{program} is not installed"
        command = (*(process.as_root_here() or ("unshare",)), "--mount", "--pid", "--net", "--ipc", "--fork", "true")
        probe = process.run(command, timeout_s=10)
        if probe.exit_code == 0:
            return network.impossible() if root else ""
        said = probe.stderr.strip()
        if root:
            return f"namespaces cannot be made (in a container they need the capability SYS_ADMIN): {said}"
        return f"user namespaces do not work for this user: {said}"

    def status_note(self) -> str:
        return "" if os.geteuid() == 0 else "without root it pins CPUs, but cannot limit memory: the audit reports that"

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        entering.verify(site.image)
        for name, nodes in _sets(spec, shape):
            for part in ("scratch", "tmp", "run"):
                (site.directory / name / part).mkdir(parents=True, exist_ok=True)
            self._limit(site.campaign, name, nodes)
        if site.image.workload:
            names = [name for name, _ in _sets(spec, shape)]
            own_image.make(site, site.image.workload, self.name, names, shared_path, processes.holder)
        shared_place(site).mkdir(exist_ok=True)
        for place in (SCRATCH, shared_path, *((WORKLOAD,) if site.image.workload else ())):
            (Path(site.image.directory) / place.lstrip("/")).mkdir(exist_ok=True)
        between, *of_nodes = _networks(spec, shape, site)
        tunnel.connect(between)
        each(network.make, of_nodes)
        creations = self._serve(spec, shape, shared_path, site) if _served(spec) else {}
        return replace(self.connect(spec, shape, shared_path, site), creations=creations)

    def _limit(self, campaign: str, name: str, nodes: Sequence[NodeShape]) -> None:
        """The control groups of a set of nodes, where this user may make any."""
        if not self.groups:
            return
        try:
            cgroup.make(self.groups, campaign, name, _cpus(nodes), sum(node.memory_bytes for node in nodes))
        except OSError as error:
            raise ProvisionError(
                f"the control group of {name} cannot be made: {error}",
                remedy="does another program use these CPUs exclusively? run `vtax clean` after a crash",
            ) from error

    def _serve(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> dict[str, Creation]:
        """Start an SSH server in every node, inside the node's control groups, so that pausing these pauses it."""
        names = tuple(node.name for node in shape.nodes)
        make_keys(site.keys, names)
        port = network.ssh_port(site)

        def start(node: NodeShape) -> Creation:
            ordered = time.monotonic()
            ssh_nodes.write_files(site, shape, node.name, port)
            command = self._server(spec, node, shared_path, site)
            first, serves = ssh_nodes.start_server(command, node.name, site.console(node.name), port)
            return Creation(ordered, first, serves, processes.first_inside(site, node.name))

        return dict(zip(names, each(start, shape.nodes), strict=True))

    def _server(self, spec: EnvironmentSpec, node: NodeShape, shared_path: str, site: Site) -> tuple[str, ...]:
        """What starts a node's SSH server."""
        wrap = self._wrapper(spec, node.name, [node], shared_path, site, keep=tuple(ssh_nodes.CAPABILITIES))
        return ssh_nodes.server(wrap("/", ssh_nodes.FIRST_PROCESS))

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        entering.verify(site.image)
        options = _options(spec)
        places = network.places(site, shape) if _served(spec) else {}
        sets = _sets(spec, shape)
        holder = processes.holder(site) if site.image.workload and os.geteuid() != 0 else None
        wraps = {name: self._wrapper(spec, name, nodes, shared_path, site, holder=holder) for name, nodes in sets}
        transports = {name: LocalTransport(wrap) for name, wrap in wraps.items()}
        shared = {frozenset(node.name for node in nodes): transports[name] for name, nodes in sets if len(nodes) > 1}
        return Cluster(
            environment=spec,
            shape=shape,
            nodes=tuple(
                Node(node.name, places.get(node.name, "127.0.0.1"), node, transports[node.name]) for node in shape.nodes
            ),
            capabilities=self.capabilities_with(options),
            launcher=self.launcher(options),
            shared_path=shared_path,
            commands=self._commands(spec, shape, shared_path, site),
            shared_transports=shared,
            facts=overlay.facts(site, [node.name for node in shape.nodes]),
            pausing=cgroup.GroupPausing(self.groups, site.campaign),
            outside=partial(self._outside, site.campaign, sets),
            joins={name: self._join(site, name) for name, _ in sets} if options.launcher == "srun" else {},
        )

    def _join(self, site: Site, name: str) -> tuple[str, ...]:
        """What has a program of this machine join a node."""
        return joining.words(processes.first_inside(site, name), self._groups(site.campaign, name), name)

    def _groups(self, campaign: str, name: str) -> list[Path]:
        return [tree / f"{cgroup.PREFIX}{campaign}" / name for tree in self.groups.trees] if self.groups else []

    def _outside(
        self, campaign: str, sets: Sequence[tuple[str, Sequence[NodeShape]]], nodes: Sequence[str]
    ) -> tuple[Outside, ...]:
        """The control groups of nodes: the one of all of them together, or that of each."""
        if self.groups is None:
            return ()
        top, together = (
            f"{cgroup.PREFIX}{campaign}",
            {frozenset(one.name for one in each_): name for name, each_ in sets},
        )
        names = [together[frozenset(nodes)]] if frozenset(nodes) in together else nodes
        events, memory = self.groups.events, self.groups.memory
        return tuple(Outside(Subject(events / top / name) if events else None, memory / top / name) for name in names)

    def _wrapper(
        self,
        spec: EnvironmentSpec,
        name: str,
        nodes: Sequence[NodeShape],
        shared_path: str,
        site: Site,
        keep: Sequence[str] = (),
        holder: int | None = None,
    ) -> Callable[[str, Sequence[str]], tuple[str, ...]]:
        return entering.wrapper(
            site.campaign,
            site.image,
            site.directory / name,
            shared_place(site),
            shared_path,
            _cpus(nodes),
            self._groups(site.campaign, name),
            network=_entrance(spec, site.campaign, name),
            node=name if _served(spec) else "",
            keep=keep,
            namespaces=own_image.entered(holder) if site.image.workload and os.geteuid() != 0 else (),
        )

    def destroy(self, campaign: str) -> None:
        for one in processes.of_campaign(campaign, self.runtime):
            one.kill()
        if self.groups:
            cgroup.remove(self.groups, campaign)
        network.remove(campaign)
        overlay.remove(self.runtime, campaign)
        own_image.remove_files(self.runtime, campaign)

    def leftovers(self) -> Sequence[Leftover]:
        groups = cgroup.campaigns(self.groups) if self.groups else ()
        group_of = {name: f"{cgroup.PREFIX}{name}" for name in groups}
        return [
            *(
                Leftover(self.name, "control group", group, name, elsewhere(self.runtime, name, None))
                for name, group in group_of.items()
            ),
            *(
                Leftover(self.name, "process", str(one.pid), one.campaign, one.elsewhere(self.runtime))
                for one in processes.labelled()
            ),
            *network.leftovers(self.name, self.runtime, parts=True),
            *overlay.leftovers(self.name, self.runtime),
        ]

    def remove_image(self, image: Image) -> None:
        """Nothing to remove: this environment runs in the cached tree itself."""


def _options(spec: EnvironmentSpec) -> HostOptions:
    return HostOptions.model_validate(dict(spec.options))


def _bridged(spec: EnvironmentSpec) -> bool:
    return bridged(_options(spec))


def bridged(options: HostOptions) -> bool:
    """Whether nodes have network stacks of their own: as the study says, or where this user can make them."""
    if options.network == "auto":
        return not any(network.refused("", "", *DEVICES))
    return options.network == "bridge"


def shared_place(site: Site) -> Path:
    """What the nodes share: a directory of the cluster, or of the machines, where these share one."""
    return Path(site.link.shared) if site.link and site.link.shared else site.directory / "shared"


def served(options: HostOptions) -> bool:
    """Whether nodes have SSH servers, because there is a network between them."""
    return options.host_network or bridged(options)


def _served(spec: EnvironmentSpec) -> bool:
    return served(_options(spec))


def _cpus(nodes: Sequence[NodeShape]) -> list[int]:
    return sorted({cpu for node in nodes for cpu in node.cpu_ids})


def _sets(spec: EnvironmentSpec, shape: ClusterShape) -> tuple[tuple[str, tuple[NodeShape, ...]], ...]:
    """The sets of nodes that commands use: each alone; without a network also the workers together, and all."""
    alone = tuple((node.name, (node,)) for node in shape.nodes)
    if _served(spec):
        return alone
    workers = (("workers", shape.workers),) if len(shape.workers) > 1 else ()
    return (*alone, *workers, ("cluster", shape.nodes))


def _networks(spec: EnvironmentSpec, shape: ClusterShape, site: Site) -> tuple[Commands, ...]:
    """What makes the network that nodes share, then what makes that of each node. An ordinary user can name no
    namespace: each command then gets a loopback interface for itself."""
    if os.geteuid() != 0 or _options(spec).host_network:
        return ((),)
    label, directory, link = site.campaign, site.directory, site.link
    if not _bridged(spec):
        return (network.namespace(label, directory, LOOPBACK),)
    places, mtu = network.places(site, shape), link.mtu if link else None
    between = tunnel.inside(link, network.name_of(label, network.BRIDGE)) if link else ()
    return (
        (*network.bridge(label, directory, network.BRIDGE), *between),
        *(network.node(label, directory, node.name, places[node.name], mtu) for node in shape.nodes),
    )


def _entrance(spec: EnvironmentSpec, label: str, node: str) -> str:
    """The file of the network namespace in which a node's commands run; "" where it has no name."""
    if os.geteuid() != 0:
        return ""
    if _options(spec).host_network:
        return network.OWN
    return str(network.path_of(label, node if _bridged(spec) else LOOPBACK))
