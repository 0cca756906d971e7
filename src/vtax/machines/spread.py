"""Clusters with nodes on several machines: each part made by the agent of its machine, joined to one cluster here."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vtax.cluster.keys import USER, make_keys
from vtax.errors import MachineLost, PauseError, ProvisionError, VtaxError
from vtax.facts.uplink import uplinks
from vtax.launchers.base import Launcher
from vtax.machines import sharing
from vtax.machines.agent import Agent, understood
from vtax.machines.nfs import RUN
from vtax.machines.part import MadePart, PartOrder
from vtax.machines.provider import RemoteProvider
from vtax.model.capabilities import Capabilities
from vtax.model.cluster import Image
from vtax.model.facts import of_their_kinds
from vtax.model.finding import Problem
from vtax.model.link import Interface, Link
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.study import EnvironmentSpec, MachineSpec
from vtax.providers import parts
from vtax.providers.base import Cluster, Commands, Leftover, Node, Provider, Site
from vtax.transport.parallel import each
from vtax.transport.through import ThroughTransport

NETWORK = 'set network = "bridge", or "host" with one node on each machine'


class SpreadProvider(Provider):
    """The provider of one environment on several machines at once; `on` is its provider on each of them. With `nfs`,
    the master's machine serves a directory to the others."""

    runners = ()

    def __init__(
        self,
        agents: Mapping[str, Agent],
        on: Mapping[str, RemoteProvider],
        machines: Mapping[str, MachineSpec],
        nfs: bool = False,
    ) -> None:
        self.agents, self.on, self.machines, self.nfs = agents, on, machines, nfs
        self.serving: dict[str, str] = {}  # label -> the machine that serves the cluster's directory
        self.first = next(iter(on.values()))
        self.name, self.options = self.first.name, self.first.options
        self.capabilities = _apart(self.first.capabilities)
        self.install_hint = self.first.install_hint

    @property
    def provision_estimate_s(self) -> float:
        return self.first.provision_estimate_s

    def capabilities_with(self, options: Any) -> Capabilities:
        return _apart(self.first.capabilities_with(options))

    def slowdown(self, options: Any) -> float:
        return self.first.slowdown(options)

    def emulates(self, options: Any) -> bool:
        return self.first.emulates(options)

    def launcher(self, options: Any) -> Launcher:
        made = self.first.launcher(options)
        return made.on_machines_network() if options.host_network else made

    def machine_facts(self) -> Mapping[str, Mapping[str, Any]]:
        """What each machine says of itself now; nothing of one that does not answer."""

        def asked(name: str) -> Mapping[str, Any]:
            agent = self.agents[name]
            with suppress(MachineLost), understood(agent):
                said = of_their_kinds(dict(agent.ask("facts").content["facts"]))
                return {**said, "clock_ahead_s": agent.offset_s, **agent.machine.facts()}
            return {}

        found = dict(zip(self.agents, each(asked, self.agents), strict=True))
        return {name: facts for name, facts in found.items() if facts}

    def machine_ticks(self) -> Mapping[str, float]:
        """Of all machines, or nothing where one does not answer."""

        def asked(agent: Agent) -> Mapping[str, float]:
            with understood(agent):
                return {str(name): float(one) for name, one in agent.ask("ticks").content.items()}

        with suppress(MachineLost):
            found = each(asked, self.agents.values())
            return {name: sum(one[name] for one in found) for name in found[0] if all(name in one for one in found)}
        return {}

    def commands(
        self,
        spec: EnvironmentSpec,  # noqa: ARG002  # of the protocol
        shape: ClusterShape,  # noqa: ARG002
        shared_path: str,  # noqa: ARG002
        kernel: str,  # noqa: ARG002
        workload: bool = False,  # noqa: ARG002
    ) -> Commands:
        """Of every machine, as they were when the nodes had been placed."""
        return tuple(("ssh", name, *line) for name, one in self.on.items() for line in one.planned)

    def unavailable(self) -> str:
        return ""  # `check` says it

    def check(
        self,
        spec: EnvironmentSpec,
        shape: ClusterShape,
        capacity: HostCapacity,  # noqa: ARG002  # each machine has its own
    ) -> Sequence[Problem]:
        """For nodes that are on their machines already."""

        def on(name: str) -> Sequence[Problem]:
            return self.on[name].check(spec, shape.on(name), HostCapacity(cpu_ids=(), memory_bytes=0))

        return [
            *self._unfit(spec, shape),
            *(problem for several in each(on, shape.machines) for problem in several),
            *self._unshared(shape),
            *(sharing.problems(self.agents, shape) if self.nfs else ()),
        ]

    def _unshared(self, shape: ClusterShape) -> Iterator[Problem]:
        """Why the directories that the study says are one are not: what one machine writes there, all others read."""
        places = {name: self.machines[name].shared for name in shape.machines if name in self.machines}
        if not places or not all(places.values()):
            return
        first, *others = places
        token = secrets.token_hex(8)
        remedy = "mount one file system there on every machine, or leave `shared` out: entries on it are then left out"
        try:
            wrong = self.agents[first].ask("write_shared", place=places[first], token=token).content["wrong"]
            if wrong:
                yield Problem.blocker(f"machine {first}: {wrong}", remedy)
                return
            for name in others:
                said = self.agents[name].ask("read_shared", place=places[name], token=token).content["found"]
                if said is None:
                    yield Problem.blocker(f"machine {name}: it has no directory {places[name]}", remedy)
                elif said != token:
                    what = f"{first} and {name} do not share {places[name]}: one does not see what the other writes"
                    yield Problem.blocker(what, remedy)
        finally:
            self.agents[first].ask("remove_shared", place=places[first], token=token)

    def _unfit(self, spec: EnvironmentSpec, shape: ClusterShape) -> Iterator[Problem]:
        options = self.options.model_validate(dict(spec.options))
        if not self.first.makes_parts:
            what = f"provider {self.name!r} cannot have nodes of one cluster on several machines"
            yield Problem.blocker(what, 'set place = "together", or leave the environment out')
        elif not self.capabilities_with(options).separate_nodes:
            yield Problem.blocker(f"nodes of {spec.name} share a network stack, so they are on one machine", NETWORK)
        elif options.host_network and any(len(shape.on(name).nodes) > 1 for name in shape.machines):
            what = f"two nodes of {spec.name} are on one machine, whose network they would share"
            yield Problem.blocker(what, 'set network = "bridge", or place = "spread"')

    def workload_problems(self, spec: EnvironmentSpec) -> Sequence[Problem]:
        return self.first.workload_problems(spec)

    def prepare(self, spec: EnvironmentSpec, shape: ClusterShape, image: Image) -> None:
        """On every machine, at the same time."""
        given = spec.model_dump(mode="json")

        def one(name: str) -> None:
            nodes = shape.on(name).model_dump(mode="json")
            self.agents[name].ask("prepare_part", spec=given, shape=nodes, recipe=image.recipe)

        each(one, shape.machines)

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        try:
            return self._created(spec, shape, shared_path, site)
        except MachineLost as error:  # worth a second attempt, which connects again
            raise ProvisionError(error.message, detail=error.detail, remedy=error.remedy) from error

    def lost(self) -> str:
        def one(agent: Agent) -> str:
            try:
                agent.ask("hello")
            except MachineLost as error:
                return agent.machine.ended() or error.message
            return ""

        return "; ".join(dict.fromkeys(filter(None, each(one, self.agents.values()))))

    def _created(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        for name in shape.machines:  # one after the other: Ctrl-C ends the wait for a machine
            self.agents[name].again()
        make_keys(site.keys, [node.name for node in shape.nodes])
        links = self._links(spec, shape, site)
        self.serving[site.campaign] = links[shape.machines[0]].server
        sharing.share(self.agents, links, {name: label_on(site.campaign, name) for name in links}, spec.provider)

        def make(machine: str) -> Cluster:
            order = _order(spec, shape.on(machine), shared_path, site, links[machine])
            with understood(self.agents[machine]):
                said = self.agents[machine].ask("create_part", order=order.model_dump(mode="json"))
                return self._part(order, MadePart.model_validate(said.content))

        made = dict(zip(shape.machines, each(make, shape.machines), strict=True))
        options = self.options.model_validate(dict(spec.options))
        launcher = self.launcher(options)
        if launcher.from_outside:
            self._relay(made, site)
        return parts.joined(spec, shape, made, links, self.capabilities_with(options), launcher)

    def _relay(self, made: Mapping[str, Cluster], site: Site) -> None:
        """Have every machine start MPI programs for its nodes, on all nodes of the cluster."""
        nodes = {
            name: (self.agents[machine].machine.node, words)
            for machine, part in made.items()
            for name, words in part.joins.items()
        }

        def one(machine: str) -> None:
            agent = self.agents[machine]
            agent.ask("relay", label=label_on(site.campaign, machine), job=agent.machine.job, nodes=nodes)

        each(one, made)

    def _links(self, spec: EnvironmentSpec, shape: ClusterShape, site: Site) -> dict[str, Link]:
        """The network between the machines of this cluster, as their interfaces are now."""

        def listed(name: str) -> list[Interface]:
            with understood(self.agents[name]):
                return [Interface.model_validate(one) for one in self.agents[name].ask("interfaces").content]

        known = dict(zip(shape.machines, each(listed, shape.machines), strict=True))
        given = {name: self.machines[name].address for name in known if self.machines[name].address}
        theirs = self.options.model_validate(dict(spec.options)).host_network
        between = parts.interconnect("host" if theirs else "vxlan", uplinks(known, given))
        places = {name: self.machines[name].shared for name in known}
        own = f"vtax-{site.campaign}-{secrets.token_hex(4)}"  # of this cluster: nothing is there of another one
        shared = {name: f"{place}/{own}" for name, place in places.items()} if all(places.values()) else {}
        if not self.nfs:
            return parts.links(shape, between, shared)
        # Guests have a server among them, and are only told that there is one directory.
        server = "" if self.capabilities.own_kernel else sharing.server_of(shape)
        return parts.links(shape, between, dict.fromkeys(known, f"/{RUN}/{own}"), server)

    def _part(self, order: PartOrder, made: MadePart) -> Cluster:
        """The nodes of a machine, as they are reached from here."""
        agent = self.agents[order.link.machine]
        way = agent.machine
        return Cluster(
            environment=order.spec,
            shape=order.shape,
            nodes=tuple(
                Node(
                    node.name,
                    order.link.places[node.name],
                    node,
                    ThroughTransport.of(way.command, made.nodes[node.name], terminals=way.terminals),
                )
                for node in order.shape.nodes
            ),
            capabilities=self.capabilities,
            launcher=self.first.launcher(self.options.model_validate(dict(order.spec.options))),
            shared_path=order.shared_path,
            commands=made.commands,
            notes=made.notes,
            timeout_factor=made.timeout_factor,
            facts=made.facts,
            pausing=None if made.pausing is None else PartPausing(agent, order.label, made.pausing),
            joins=made.joins,
        )

    def connect(
        self,
        spec: EnvironmentSpec,  # noqa: ARG002  # of the protocol
        shape: ClusterShape,  # noqa: ARG002
        shared_path: str,  # noqa: ARG002
        site: Site,  # noqa: ARG002
    ) -> Cluster:
        raise MachineLost("a cluster on several machines ends with the process that made it")

    def destroy(self, campaign: str) -> None:
        """On all machines, even where one does not answer: its agent removes its part itself."""
        failed: list[VtaxError] = []

        def one(name: str) -> None:
            try:
                with suppress(MachineLost):
                    self.agents[name].ask("destroy_part", label=label_on(campaign, name))
            except VtaxError as error:
                failed.append(error)

        last = self.serving.pop(campaign, "")  # what others mount goes after them
        each(one, [name for name in self.agents if name != last])
        each(one, [name for name in self.agents if name == last])
        if failed:
            raise failed[0]

    def leftovers(self) -> Sequence[Leftover]:
        return ()  # each machine has its own

    def remove_image(self, image: Image) -> None:
        """Each machine has its own."""


@dataclass
class PartPausing:
    """Pauses the nodes on one machine."""

    agent: Agent
    label: str
    reason: str

    def pause(self) -> str:
        return str(self._asked("pause_part"))

    def resume(self) -> None:
        self._asked("resume_part")

    def _asked(self, what: str) -> Any:
        try:
            return self.agent.ask(what, label=self.label).content
        except MachineLost as error:
            raise PauseError(error.message, detail=error.detail, remedy=error.remedy) from error


def label_on(label: str, machine: str) -> str:
    """The label of a cluster's part on a machine. Not that of another machine: two may share a kernel, and with it
    control groups, as containers do."""
    return hashlib.sha256(f"{label}@{machine}".encode()).hexdigest()[: len(label)]


def _apart(capabilities: Capabilities) -> Capabilities:
    return capabilities.model_copy(update={"shares_machine": False})


def _order(spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site, link: Link) -> PartOrder:
    return PartOrder(
        label=label_on(site.campaign, link.machine),
        environment=spec.name,
        origin=str(site.directory),
        spec=spec,
        shape=shape,
        shared_path=shared_path,
        recipe=site.image.recipe,
        link=link,
        paused=site.paused,
        keys=_keys(site.keys, [node.name for node in shape.nodes]),
    )


def _keys(directory: Path, nodes: Sequence[str]) -> dict[str, str]:
    """What a machine gets of a cluster's keys: all public ones, the private ones of its own nodes and of the user."""
    private = {USER, *nodes}
    return {
        file.name: file.read_text()
        for file in sorted(directory.iterdir())
        if file.suffix == ".pub" or file.name in private
    }
