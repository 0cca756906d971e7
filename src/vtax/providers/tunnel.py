"""The tunnel between the bridges of a cluster's parts, a VXLAN device on each machine: made, found and removed here.

A frame for a node elsewhere travels in a UDP datagram to the machine that has the node, and until that is known, to all
of them: no multicast, no daemon, no server. In a cluster's own network namespace the device is called `tunnel` and
disappears with the namespace; its datagrams still leave from the namespace in which vtax runs. The bridge of an engine
is in the machine's own namespace: there the device is called `vx-LABEL`, and its alias is the provider and the
directory with the cluster's files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vtax.errors import CommandError, ProvisionError
from vtax.model.link import Link
from vtax.model.trial import CommandResult
from vtax.providers import network
from vtax.providers.base import Commands, Leftover, elsewhere
from vtax.providers.network import BRIDGE, COMMAND_S, RIGHTS
from vtax.transport import process

NAME = "tunnel"  # in a cluster's own namespace
PREFIX = "vx-"  # in that of the machine
OVERHEAD = 50  # bytes of a packet between machines that are not of the packet inside: IPv4, UDP, VXLAN, Ethernet
PORT = 4789  # VXLAN's own, for which network cards have offloads and firewalls have a name
TAKEN = "Address already in use"
ANY = "00:00:00:00:00:00"  # the entry for frames whose machine is not known


def name_of(label: str) -> str:
    """The device of a cluster in the machine's own namespace: at most 15 characters, as for every interface."""
    return f"{PREFIX}{label}"


def inside(link: Link, namespace: str) -> Commands:
    """What connects the bridge in a cluster's own namespace with the other machines."""
    return _device(link, NAME, BRIDGE, ("netns", namespace), ("-n", namespace), ())


def beside(link: Link, label: str, provider: str, directory: Path, bridge: str) -> Commands:
    """What connects an engine's bridge with the other machines."""
    return _device(link, name_of(label), bridge, (), (), ("alias", f"{provider}:{directory}"))


def _device(
    link: Link, name: str, bridge: str, where: tuple[str, ...], there: tuple[str, ...], words: tuple[str, ...]
) -> Commands:
    between = link.interconnect
    # Not fragmented on the way either: a network that carries less than planned is found, and not only slow.
    settings = {"id": between.vni, "local": link.local, "dstport": between.port, "df": "set"}
    kind = ("type", "vxlan", *(str(word) for pair in settings.items() for word in pair))
    return (
        ("ip", "link", "add", "name", name, *where, "mtu", str(link.mtu), *kind),
        ("ip", *there, "link", "set", name, *words, "master", bridge, "up"),
        *(("bridge", *there, "fdb", "append", ANY, "dev", name, "dst", other) for other in link.others),
    )


def connect(commands: Commands) -> None:
    """Run what makes a tunnel. Raises ProvisionError or CommandError; `remove` then removes what was made."""
    try:
        network.make(commands)
    except CommandError as error:
        if TAKEN not in error.detail:
            raise
        raise ProvisionError(
            f"no VXLAN tunnel can be made on UDP port {PORT}: another program has it",
            detail=error.detail,
            remedy="`ip -d link show type vxlan` and `ss -lunp` show whose it is",
        ) from error


def remove(label: str) -> None:
    """The tunnel of a cluster in the machine's own namespace; fine when there is none."""
    name = name_of(label)
    if os.geteuid() != 0 or not _exists(name):
        return
    result = _run(("ip", "link", "del", name))
    if result.exit_code != 0 and _exists(name):  # not when another process removed it meanwhile
        raise process.failed(result, RIGHTS)


class Tunnel(NamedTuple):
    """A tunnel in the machine's own namespace; without a `directory` where its alias is not vtax's."""

    label: str
    provider: str
    directory: Path | None


def found() -> Iterator[Tunnel]:
    """Every tunnel in the machine's own namespace that this user may remove."""
    if os.geteuid() != 0 or not process.installed("ip"):
        return
    yield from listed(_run(("ip", "-j", "link", "show", "type", "vxlan")).stdout)


def listed(text: str) -> Iterator[Tunnel]:
    """The tunnels in what `ip -j link show type vxlan` printed."""
    try:
        links = json.loads(text or "[]")
    except ValueError:
        return
    for one in links:
        name, (provider, _, place) = str(one.get("ifname", "")), str(one.get("ifalias", "")).partition(":")
        if name.startswith(PREFIX):
            yield Tunnel(name.removeprefix(PREFIX), provider, Path(place) if place else None)


def leftovers(provider: str, runtime: Path) -> list[Leftover]:
    """The tunnels that a provider's clusters left."""
    return [
        Leftover(provider, "tunnel", name_of(one.label), one.label, elsewhere(runtime, one.label, one.directory))
        for one in found()
        if one.provider == provider
    ]


def _exists(name: str) -> bool:
    return _run(("ip", "link", "show", "dev", name)).exit_code == 0  # not /sys, which may show another namespace


def _run(words: tuple[str, ...]) -> CommandResult:
    return process.run(words, timeout_s=COMMAND_S, env=process.system_environment())
