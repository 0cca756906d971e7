"""Nodes that exist already, as clusters: cloud instances, machines of other hypervisors, WSL2, boards.

vtax creates none of them. On each it runs its agent, sends the root file system once, and enters that as on the host,
in control groups with the CPUs and the memory of the node's shape. Nodes reach each other by their own network.
"""

from __future__ import annotations

import atexit
import getpass
import hashlib
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Protocol, cast

from pydantic import Field

from vtax.errors import EnvironmentMissing, MachineInUse, MachineLost, VtaxError
from vtax.launchers.base import Launcher
from vtax.machines import sharing
from vtax.machines.agent import REJOIN_S, Agent
from vtax.machines.provider import RemoteProvider
from vtax.machines.spread import SpreadProvider
from vtax.machines.ways import way
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.link import Address
from vtax.model.names import Destination, StudyName
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape
from vtax.model.study import EnvironmentSpec, MachineSpec
from vtax.planning.on_machines import described, refuse_one_machine_twice, refuse_wrong_clock
from vtax.planning.placement import placed
from vtax.providers.base import Cluster, Commands, Leftover, Options, Provider, Site
from vtax.providers.host.provider import Host, HostOptions
from vtax.running.sending import send_image
from vtax.transport import process
from vtax.transport.parallel import each
from vtax.units import format_bytes
from vtax.wording import listed

BACK_S = 180.0  # a node that is lost is waited for so long, once
AGAIN_S = 5.0
LONGEST = 22  # of an environment's name in that of a machine
NEITHER = "a node needs root and a memory controller of control groups there"
Place = Annotated[str, Field(pattern=r"^(/[^\x00-\x1f\x7f]*)?$")]


class ExistingOptions(Options):
    """`nodes` names each node of the study and what one gives to `ssh` to reach it. They find each other by
    `addresses`, or by a network that they have in common. vtax keeps its files in `directory` there; `shared` is a
    directory that all of them see; without one, the master's machine may serve it by NFS. `mpi_transport` as on the
    host."""

    nodes: Mapping[StudyName, Destination] = Field(default_factory=dict)
    addresses: Mapping[StudyName, Address] = Field(default_factory=dict)
    directory: Place = ""
    shared: Place = ""
    mpi_transport: Literal["auto", "tcp"] = "auto"

    @property
    def one_directory(self) -> bool:
        return bool(self.shared)

    @property
    def machines(self) -> Mapping[str, MachineSpec]:
        return {
            node: MachineSpec(
                ssh=to, directory=self.directory, address=self.addresses.get(node, ""), shared=self.shared
            )
            for node, to in self.nodes.items()
        }

    def words(self, node: str) -> tuple[str, ...]:
        return ("ssh", self.nodes.get(node, node), "--")

    def wrong_nodes(self, names: Sequence[str]) -> str:
        if missing := [name for name in names if name not in self.nodes]:
            return f"it names no machine for {listed(missing)}"
        if unknown := [name for name in (*self.nodes, *self.addresses) if name not in names]:
            return f"the study has no node {listed(unknown)}"
        if len(set(self.nodes.values())) < len(self.nodes):
            return "two nodes have the same destination"
        return ""


class NodesOptions(Protocol):
    """Options of an environment whose nodes exist already, however they are reached."""

    mpi_transport: Literal["auto", "tcp"]

    @property
    def one_directory(self) -> bool: ...

    @property
    def machines(self) -> Mapping[str, MachineSpec]: ...

    def words(self, node: str) -> tuple[str, ...]:
        """What stands before the commands of a node, in the plan."""
        ...

    def wrong_nodes(self, names: Sequence[str]) -> str: ...


@dataclass
class Held:
    """The agent of a node, and what this process has done there."""

    agent: Agent
    locked: bool = False
    digest: str = ""  # of the root file system that is there
    lost: bool = False  # it has answered before
    given_up: str = ""  # why it is waited for no more


_held: dict[tuple[str, str], Held] = {}  # environments may use the same machines, which are locked once


class Existing(Provider):
    name = "ssh"
    options: type[Options] = ExistingOptions
    runners = ()
    install_hint = "apt-get install openssh-client"
    capabilities = Capabilities(
        kind=NodeKind.HOST, limits_cpu=True, limits_memory=True, separate_nodes=True, existing=True
    )
    provision_estimate_s = 3.0

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime
        self.spread: SpreadProvider | None = None  # once its nodes were asked
        self.rooms: Mapping[str, HostCapacity] = {}

    def _options(self, spec: EnvironmentSpec) -> NodesOptions:
        return cast(NodesOptions, self.options.model_validate(dict(spec.options)))

    def slowdown(self, options: NodesOptions) -> float:  # noqa: ARG002  # of the protocol
        return 1.0

    def launcher(self, options: NodesOptions) -> Launcher:
        return Host(self.runtime).launcher(_as_host(options)).on_machines_network()

    def commands(
        self,
        spec: EnvironmentSpec,
        shape: ClusterShape,
        shared_path: str,
        kernel: str,
        workload: bool = False,  # noqa: ARG002  # of the protocol: it is refused
    ) -> Commands:
        """What enters each node: that of the host, by its connection."""
        options, host = self._options(spec), Host(self.runtime)

        def on(node: NodeShape) -> Iterator[tuple[str, ...]]:
            own = host.commands(_host_spec(spec, options), ClusterShape(nodes=(node,)), shared_path, kernel)
            return ((*options.words(node.name), *command) for command in own)

        return tuple(command for node in shape.nodes for command in on(node))

    def unavailable(self) -> str:
        return "" if process.installed("ssh") else "ssh is not installed"

    def status_note(self) -> str:
        return "a study names its nodes: `vtax doctor --machines STUDY` looks at them"

    def machine_facts(self) -> Mapping[str, Mapping[str, object]]:
        return self.spread.machine_facts() if self.spread else {}

    def machine_ticks(self) -> Mapping[str, float]:
        return self.spread.machine_ticks() if self.spread else {}

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:  # noqa: ARG002  # each node has its own
        """Log in to each node, and compare what it is with its shape. Raises UsageError for one machine twice."""
        if reason := self.unavailable():
            return [Problem.blocker(reason, self.install_hint)]
        options = self._options(spec)
        if wrong := options.wrong_nodes([node.name for node in shape.nodes]):
            return [Problem.blocker(wrong, "nodes = {NODE = DESTINATION, ...} names each node once")]
        held = self._held(spec, options)
        failed = [one for one in each(_connected, held.values()) if one is not None]
        if failed:
            return [Problem.blocker(str(error).partition("\n")[0], error.remedy) for error in failed]
        agents = {name: one.agent for name, one in held.items()}
        facts, self.rooms = described(agents)
        refuse_one_machine_twice(facts)
        self._join(spec, options, held, shape)
        assert self.spread is not None
        small = [problem for node in shape.nodes for problem in self._too_small(spec, node)]
        return small or self._refused(spec, shape)

    def _join(
        self, spec: EnvironmentSpec, options: NodesOptions, held: Mapping[str, Held], shape: ClusterShape
    ) -> None:
        """Make what creates clusters on these nodes."""
        host = _host_spec(spec, options)
        on = {name: RemoteProvider(one.agent, host) for name, one in held.items()}
        specs = {_machine(spec.name, node.name): options.machines[node.name] for node in shape.nodes}
        agents = {name: one.agent for name, one in held.items()}
        self.spread = SpreadProvider(agents, on, specs, _by_nfs(spec, options))

    def cannot_share(self, spec: EnvironmentSpec, shape: ClusterShape) -> str | None:
        if self.spread is None:
            return f"the machines of {spec.name} could not be asked"
        machines = [_machine(spec.name, node.name) for node in shape.nodes]
        return "; ".join(sharing.lacking(self.spread.agents, machines, machines[:1]))

    def _too_small(self, spec: EnvironmentSpec, node: NodeShape) -> Iterator[Problem]:
        has, name = self.rooms[_machine(spec.name, node.name)], f"{spec.name}: {node.name}"
        if len(has.cpu_ids) < node.cpus:
            what = f"{name} has {len(has.cpu_ids)} CPUs, and the plan wants {node.cpus}"
            yield Problem.blocker(what, f"set cpus = {len(has.cpu_ids)} in [nodes]")
        if has.memory_bytes < node.memory_bytes:
            room, wanted = format_bytes(has.memory_bytes), format_bytes(node.memory_bytes)
            yield Problem.blocker(f"{name} has {room} of memory, and the plan wants {wanted}", "set memory in [nodes]")

    def _refused(self, spec: EnvironmentSpec, shape: ClusterShape) -> list[Problem]:
        """What keeps nodes from being entered as the host is."""
        assert self.spread is not None
        found = [
            Problem.blocker(f"{name}: {NEITHER}", "log in as root (`User root` in ~/.ssh/config)")
            for name, one in self.spread.on.items()
            if not one.capabilities.limits_memory
        ]
        host = _host_spec(spec, self._options(spec))
        return found or list(self.spread.check(host, self._shape(spec, shape), NOTHING))

    def _shape(self, spec: EnvironmentSpec, shape: ClusterShape) -> ClusterShape:
        """The nodes with the CPUs of their machines."""
        return placed(shape, {node.name: _machine(spec.name, node.name) for node in shape.nodes}, self.rooms)

    def _held(self, spec: EnvironmentSpec, options: NodesOptions) -> dict[str, Held]:
        """By machine; one machine has one connection, whatever environments use it."""
        found = {}
        for node, machine in options.machines.items():
            key, name = (machine.words, machine.directory), _machine(spec.name, node)
            if key not in _held:
                _held[key] = Held(Agent(way(name, machine, self.runtime)))
                atexit.register(_held[key].agent.close)
            found[name] = _held[key]
        return found

    def prepare(self, spec: EnvironmentSpec, shape: ClusterShape, image: Image) -> None:  # noqa: ARG002  # of the protocol
        """Lock every node, and send the root file system. Raises MachineInUse or EnvironmentMissing."""
        options = self._options(spec)
        each(partial(_entered, image=image, runtime=self.runtime), self._held(spec, options).values())

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        if self.spread is None:
            raise EnvironmentMissing(f"the nodes of {spec.name} were not asked", remedy="please report this")
        self.prepare(spec, shape, site.image)
        options = self._options(spec)
        self.spread.nfs = _by_nfs(spec, options)
        made = self.spread.create(_host_spec(spec, options), self._shape(spec, shape), shared_path, site)
        return replace(made, environment=spec, capabilities=self.capabilities, notes=(NOT_NEW, *made.notes))

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:  # noqa: ARG002
        raise MachineLost("what vtax makes on nodes that exist ends with the process that made it")

    def destroy(self, campaign: str) -> None:
        if self.spread is not None:
            self.spread.destroy(campaign)

    def leftovers(self) -> Sequence[Leftover]:
        return ()  # each node has its own: `vtax clean --machines`

    def remove_image(self, image: Image) -> None:
        """Each node has its own."""


NOTHING = HostCapacity(cpu_ids=(), memory_bytes=0)  # here: each node has its own
NOT_NEW = "the nodes existed before: vtax did not create them anew for this round"


def _connected(held: Held) -> VtaxError | None:
    try:
        if held.agent.channel is None:
            held.agent.start()
            refuse_wrong_clock(held.agent)
    except EnvironmentMissing as error:
        return error
    return None


def _entered(held: Held, image: Image, runtime: Path) -> None:
    """Connect where that is lost, hold the machine, and send what it lacks."""
    if held.agent.channel is None:
        _back(held)
    if not held.locked:
        owner = f"{getpass.getuser()}@{socket.gethostname()}, {runtime}, process {os.getpid()}"
        try:
            held.agent.ask("lock", owner=owner, wait_s=REJOIN_S if held.lost else 0.0)
        except MachineLost:
            raise
        except EnvironmentMissing as error:
            raise MachineInUse(error.message, detail=error.detail, remedy=error.remedy) from error
        held.locked, held.lost = True, True
    if held.digest != image.digest:
        send_image(held.agent, image)
        held.digest = image.digest


def _back(held: Held) -> None:
    """Connect again. A node that is gone for good is waited for only once."""
    held.locked = False
    deadline = time.monotonic() + (0.0 if held.given_up or not held.lost else BACK_S)
    while (error := _connected(held)) is not None:
        with suppress(VtaxError):
            held.agent.drop()
        if time.monotonic() > deadline:
            held.given_up = error.message
            raise error
        time.sleep(AGAIN_S)
    held.given_up = ""


def _as_host(options: NodesOptions) -> HostOptions:
    return HostOptions(network="host", mpi_transport=options.mpi_transport)


def _host_spec(spec: EnvironmentSpec, options: NodesOptions) -> EnvironmentSpec:
    """The environment as the agents on its nodes know it."""
    return EnvironmentSpec(name=spec.name, provider=Host.name, options=_as_host(options).model_dump(mode="json"))


def _by_nfs(spec: EnvironmentSpec, options: NodesOptions) -> bool:
    """Whether the plan has a directory for nodes of which the study names none."""
    return spec.one_directory and not options.one_directory


def _machine(environment: str, node: str) -> str:
    """The name of a node's machine in records, different from those of other environments."""
    if len(environment) > LONGEST:
        environment = environment[: LONGEST - 6] + hashlib.sha256(environment.encode()).hexdigest()[:6]
    return f"{environment}-{node}"
