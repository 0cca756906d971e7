"""Network namespaces and bridges of clusters on this machine, for all providers: made, found and removed here alone.

A namespace is called `vtax-LABEL`, or `vtax-LABEL.PART` where a cluster has several, and the alias of its loopback
interface is the directory with the cluster's files. Nothing is added to the namespace of this machine: no name,
address or rule can collide with others, the rules that container engines set for all bridges (a policy of DROP) do not
reach it, and nothing that listens in it is reachable from outside. Devices disappear with their namespace.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from vtax.cluster.seed import SSH
from vtax.errors import CommandError, ProvisionError
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape
from vtax.model.trial import CommandResult
from vtax.providers.base import Commands, Leftover, Site, elsewhere
from vtax.transport import process

NAMESPACES = Path("/run/netns")  # where iproute2 keeps those with a name
PREFIX = "vtax-"
BRIDGE = "bridge"
OWN = "/proc/self/ns/net"  # the namespace of whatever opens it
INTERFACE = "eth0"  # of a node
SUBNET = "10.214.0"  # of every cluster's own network, which nothing outside it sees
PROGRAMS = {"ip": "iproute2", "sysctl": "procps"}
COMMAND_S = 20.0
RIGHTS = "run as root; in a container it needs the capabilities SYS_ADMIN and NET_ADMIN"
FILTERED = tuple(f"net.bridge.bridge-nf-call-{kind}=0" for kind in ("iptables", "ip6tables", "arptables"))
# Any group may open a ping socket, so that ping needs no capability; no IPv6 between nodes, as between containers.
OF_A_NODE = ("net.ipv4.ping_group_range=0 2147483647", "net.ipv6.conf.default.disable_ipv6=1")


def name_of(label: str, part: str = "") -> str:
    """The namespace of a cluster, or of a part of it."""
    return f"{PREFIX}{label}.{part}" if part else f"{PREFIX}{label}"


def path_of(label: str, part: str = "") -> Path:
    """The file by which a namespace is entered."""
    return NAMESPACES / name_of(label, part)


def addresses(names: Sequence[str], prefix: str = SUBNET) -> Mapping[str, str]:
    """Fixed addresses: .10, .11, ... in the order of the nodes."""
    return {name: f"{prefix}.{10 + number}" for number, name in enumerate(names)}


def places(site: Site, shape: ClusterShape) -> Mapping[str, str]:
    """The addresses of all nodes of the cluster, those on other machines included."""
    return site.link.places if site.link else addresses([node.name for node in shape.nodes])


def slots(site: Site, shape: ClusterShape) -> Mapping[str, int]:
    """The CPUs of all nodes of the cluster, those on other machines included."""
    return site.link.slots if site.link else {node.name: node.cpus for node in shape.nodes}


def ssh_port(site: Site) -> int:
    """Where the nodes' SSH servers listen: on the machine's own network not where its own server does."""
    between = site.link.interconnect if site.link else None
    return between.port if between and between.kind == "host" else SSH


def namespace(label: str, directory: Path, part: str = "") -> Commands:
    """What makes a namespace with nothing but loopback. `directory` has the files of its cluster."""
    name = name_of(label, part)
    return (
        ("ip", "netns", "add", name),
        ("ip", "-n", name, "link", "set", "lo", "alias", str(directory), "up"),
    )


def bridge(label: str, directory: Path, part: str = "") -> Commands:
    """What makes a namespace with a bridge. Its frames bypass the packet filter, whether this machine applies such
    rules to bridges or not."""
    name = name_of(label, part)
    inside = ("ip", "-n", name, "link")
    return (
        *namespace(label, directory, part),
        (*inside, "add", BRIDGE, "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0"),
        ("ip", "netns", "exec", name, "sysctl", "-q", "-e", "-w", *FILTERED),
        (*inside, "set", BRIDGE, "up"),
    )


def node(label: str, directory: Path, name: str, address: str, mtu: int | None = None) -> Commands:
    """What makes the namespace of a node, connected with the bridge in that of part `BRIDGE`. The port of the bridge
    has the node's name (at most 15 characters, as for every interface). `mtu` is that of the node, None the usual."""
    inside, outside = name_of(label, name), name_of(label, BRIDGE)
    size = () if mtu is None else ("mtu", str(mtu))
    return (
        *namespace(label, directory, name),
        ("ip", "netns", "exec", inside, "sysctl", "-q", "-e", "-w", *OF_A_NODE),
        ("ip", "-n", outside, "link", "add", "name", name, "type", "veth", "peer", "name", INTERFACE, "netns", inside),
        ("ip", "-n", outside, "link", "set", "dev", name, "master", BRIDGE, "up"),
        ("ip", "-n", inside, "address", "add", f"{address}/24", "dev", INTERFACE),
        ("ip", "-n", inside, "link", "set", INTERFACE, *size, "up"),
    )


def make(commands: Commands) -> None:
    """Run what makes a network. Raises ProvisionError or CommandError; `remove` then removes what was made."""
    for command in commands:
        result = process.run(command, timeout_s=COMMAND_S, env=process.system_environment())
        if result.exit_code != 0 or result.timed_out:
            raise _failure(result)


def _failure(result: CommandResult) -> ProvisionError | CommandError:
    if result.argv[:3] == ("ip", "netns", "add") and "File exists" in result.stderr:
        return ProvisionError(
            f"the network namespace {result.argv[3]} exists already",
            detail=result.stderr.strip(),
            remedy=f"`vtax clean` removes those of crashed runs; `ip netns del {result.argv[3]}` removes any other",
        )
    return process.failed(result, RIGHTS if "not permitted" in result.stderr else "`vtax doctor` shows what is missing")


def remove(label: str) -> None:
    """All namespaces of a cluster with all in them; fine when there is none."""
    for name in sorted(one.name for one in _entries() if _split(one.name)[0] == label):
        command = ("ip", "netns", "del", name)
        result = process.run(command, timeout_s=COMMAND_S, env=process.system_environment())
        if result.exit_code != 0 and (NAMESPACES / name).exists():  # not when another process removed it meanwhile
            raise process.failed(result, RIGHTS)


class Namespace(NamedTuple):
    """A namespace that is there; `directory` is None when it is not recorded."""

    label: str
    part: str
    directory: Path | None

    @property
    def name(self) -> str:
        return name_of(self.label, self.part)


def found() -> Iterator[Namespace]:
    """Every namespace of every cluster that this user may remove."""
    for entry in _entries() if os.geteuid() == 0 else ():
        command = ("ip", "-n", entry.name, "-j", "link", "show", "lo")
        result = process.run(command, timeout_s=COMMAND_S, env=process.system_environment())
        yield Namespace(*_split(entry.name), alias(result.stdout))


def leftovers(provider: str, runtime: Path, *, parts: bool) -> list[Leftover]:
    """The namespaces that a provider's clusters left: those with `parts`, or those without. One whose owner is not
    recorded yet may be one that another vtax instance is just making."""
    return [
        Leftover(provider, "network namespace", one.name, one.label, elsewhere(runtime, one.label, one.directory))
        for one in found()
        if bool(one.part) is parts
    ]


def _entries() -> list[Path]:
    return sorted(NAMESPACES.glob(f"{PREFIX}*"))


def _split(name: str) -> tuple[str, str]:
    label, _, part = name.removeprefix(PREFIX).partition(".")
    return label, part


def alias(text: str) -> Path | None:
    """The alias in what `ip -j link show` printed."""
    try:
        (link,) = json.loads(text)
        return Path(link["ifalias"])
    except (ValueError, KeyError, TypeError):
        return None


def refused(option: str, instead: str, *devices: str) -> Iterator[Problem]:
    """Why a network with such devices ("bridge", "veth") cannot be made here. `option` is what the study says and
    `instead` the end of a remedy: what it may say where that is not possible."""
    if os.geteuid() != 0:
        yield Problem.blocker(f"{option} needs root, to make a bridge", f"run vtax as root, {instead}")
        return
    missing = [package for program, package in PROGRAMS.items() if not process.installed(program)]
    if missing:
        needed = " and ".join(PROGRAMS)
        yield Problem.blocker(f"{option} needs {needed}", f"apt-get install {' '.join(missing)}; {instead}")
    elif reason := impossible(*devices):
        modules = " ".join(devices)
        yield Problem.blocker(f"{option}: {reason}", f"as root: modprobe -a {modules}; {RIGHTS}; {instead}")


@cache
def impossible(*devices: str) -> str:
    """Why network namespaces (with such devices) cannot be made here, by trying; "" when they can."""
    tries = [
        "ip link set lo up",
        *(f"ip link add probe{number} type {device}" for number, device in enumerate(devices)),
    ]
    command = ("unshare", "--net", "sh", "-c", " && ".join(tries))
    result = process.run(command, timeout_s=COMMAND_S, env=process.system_environment())
    if result.exit_code == 0:
        return ""
    lines = result.stderr.strip().splitlines()
    what = f"network namespaces with {' and '.join(devices)}" if devices else "network namespaces"
    return f"{what} cannot be made: {lines[-1] if lines else 'no message'}"
