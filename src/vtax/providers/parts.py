"""A cluster of parts, each made by a provider on one machine: planned so that they meet, and joined to one cluster."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from vtax.launchers.base import Launcher
from vtax.model.capabilities import Capabilities
from vtax.model.link import Interconnect, Link, Uplink
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.providers import network, tunnel
from vtax.providers.base import Cluster, Node, Pausing
from vtax.transport.parallel import each
from vtax.units import format_quantity

NETWORKS = 200  # 10.213.1 ... 10.213.200, as for clusters on one machine
FIRST_PORT, PORTS = 20_000, 10_000  # below those that the kernel gives to outgoing connections


def interconnect(kind: Literal["vxlan", "host"], uplinks: Mapping[str, Uplink]) -> Interconnect:
    """A network between machines. Its addresses, ports and numbers are chosen at random: where one is taken on one of
    the machines, the next attempt has others."""
    narrowest = min(one.mtu for one in uplinks.values())
    tunnelled = kind == "vxlan"
    return Interconnect(
        kind=kind,
        uplinks=uplinks,
        mtu=narrowest - tunnel.OVERHEAD if tunnelled else narrowest,
        port=tunnel.PORT if tunnelled else FIRST_PORT + secrets.randbelow(PORTS),
        prefix=f"10.213.{1 + secrets.randbelow(NETWORKS)}",
        vni=1 + secrets.randbelow(2**24 - 1) if tunnelled else 0,
    )


def links(shape: ClusterShape, between: Interconnect, shared: Mapping[str, str], server: str = "") -> dict[str, Link]:
    """What each machine's part knows of the whole cluster; `shared` is the directory of each that all of them see, and
    `server` the machine that serves it by NFS."""
    names = [node.name for node in shape.nodes]
    machines = {node.name: node.machine for node in shape.nodes}
    own = {name: between.uplinks[machine].address for name, machine in machines.items()}
    return {
        machine: Link(
            machine=machine,
            interconnect=between,
            places=own if between.kind == "host" else network.addresses(names, between.prefix),
            slots={node.name: node.cpus for node in shape.nodes},
            machines=machines,
            shared=shared.get(machine, ""),
            server=server,
        )
        for machine in shape.machines
    }


def joined(
    spec: EnvironmentSpec,
    shape: ClusterShape,
    parts: Mapping[str, Cluster],
    known: Mapping[str, Link],
    capabilities: Capabilities,
    launcher: Launcher,
) -> Cluster:
    """One cluster of the parts on its machines. What a part reports of this machine's clock or processes is not its."""
    nodes: dict[str, Node] = {node.name: node for part in parts.values() for node in part.nodes}
    every = [one for part in parts.values() for one in _of_nodes(part)]
    first = parts[shape.nodes[0].machine]
    link = known[shape.nodes[0].machine]
    return replace(
        first,
        environment=spec,
        shape=shape,
        nodes=tuple(replace(nodes[node.name], shape=node, address=link.places[node.name]) for node in shape.nodes),
        capabilities=capabilities,
        launcher=launcher,
        commands=tuple(("ssh", name, *command) for name, part in parts.items() for command in part.commands),
        notes=(*sentences(link), *(f"{name}: {note}" for name, part in parts.items() for note in part.notes)),
        timeout_factor=max(part.timeout_factor for part in parts.values()),
        logs={name: path for part in parts.values() for name, path in part.logs.items()},
        facts={name: {**facts, **node_facts(known, name), "launcher": launcher.program} for name, facts in every},
        shared_transports={},
        pausing=_pausing(parts),
        outside=None,
        creations={name: one for part in parts.values() for name, one in part.creations.items()},
        link=link,
    )


def _of_nodes(part: Cluster) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for node in part.nodes:
        yield node.name, part.facts.get(node.name, {})


def node_facts(known: Mapping[str, Link], node: str) -> dict[str, Any]:
    """What a node cannot observe itself: its machine, and that machine's interface to the others."""
    machine = next(iter(known.values())).machines[node]
    between = known[machine].interconnect
    return {
        "on_machine": machine,
        "between_machines": between.kind,
        "between_machines_mtu": between.mtu,
        "uplink": between.uplinks[machine].model_dump(mode="json"),
        **({"shared_server": known[machine].server} if known[machine].server else {}),
    }


def sentences(link: Link) -> Iterator[str]:
    """What connects the machines, for the record."""
    between = link.interconnect
    how = {
        "vxlan": f"a VXLAN tunnel (number {between.vni}, UDP port {between.port}) between the bridges of the machines",
        "host": f"the machines' own, with SSH servers on port {between.port}",
    }
    yield f"network between machines: {how[between.kind]}, MTU {between.mtu}"
    for name, one in between.uplinks.items():
        speed = "of unknown speed" if one.speed_bits is None else f"of {format_quantity(one.speed_bits, 'bit/s')}"
        driver = f" ({one.driver})" if one.driver else ""
        yield f"{name}: {one.address} on {one.interface}{driver} {speed}, MTU {one.mtu}"
    if link.server:
        yield f"shared directory: served by {link.server} with NFS from {between.uplinks[link.server].address}"


@dataclass
class PartsPausing:
    """Pauses the parts of a cluster at the same time."""

    parts: Sequence[Pausing]
    reason: str

    def pause(self) -> str:
        return ", ".join(dict.fromkeys(each(lambda one: one.pause(), self.parts)))

    def resume(self) -> None:
        each(lambda one: one.resume(), self.parts)


def _pausing(parts: Mapping[str, Cluster]) -> PartsPausing | None:
    """None where the nodes of one machine cannot be paused."""
    found = [part.pausing for part in parts.values() if part.pausing is not None]
    if len(found) != len(parts):
        return None
    return PartsPausing(found, next((one.reason for one in found if one.reason), ""))
