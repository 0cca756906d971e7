"""A cluster's network as a bridge of the kernel, in the cluster's own network namespace.

Nothing of it is in the namespace of this machine: no name, address or rule can collide with others, and the rules that
container engines set for all bridges (a policy of DROP) do not reach it. Deleting the namespace removes everything.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from vtax.model.finding import Problem
from vtax.providers.qemu import tap
from vtax.providers.qemu.command import Accelerator, QemuOptions
from vtax.transport import process

TUN = Path("/dev/net/tun")
VHOST = Path("/dev/vhost-net")
NAMESPACES = Path(tap.NAMESPACES)
PREFIX = "vtax-"
SCRIPT = Path(tap.__file__)
PROGRAMS = {"ip": "iproute2", "sysctl": "procps"}
COMMAND_S = 20.0
FILTERED = tuple(f"net.bridge.bridge-nf-call-{kind}=0" for kind in ("iptables", "ip6tables", "arptables"))


def name_of(campaign: str) -> str:
    """The namespace of a campaign's cluster."""
    return f"{PREFIX}{campaign}"


def commands(campaign: str, directory: Path) -> tuple[tuple[str, ...], ...]:
    """What makes the bridge. Its alias is the directory with the files of the cluster."""
    name = name_of(campaign)
    inside = ("ip", "-n", name, "link")
    return (
        ("ip", "netns", "add", name),
        (*inside, "add", tap.BRIDGE, "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0"),
        # Its frames bypass the packet filter, whether this machine applies such rules to bridges or not.
        ("ip", "netns", "exec", name, "sysctl", "-q", "-e", "-w", *FILTERED),
        (*inside, "set", tap.BRIDGE, "alias", str(directory), "up"),
    )


def through(campaign: str, node: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """`command` with the tap of a node as file descriptor 3."""
    return (sys.executable, "-I", "-S", str(SCRIPT), name_of(campaign), node, *command)


def vhost(options: QemuOptions, accel: Accelerator) -> bool:
    """Whether the kernel carries the frames between guest and tap: as the study says, else where possible under KVM."""
    if options.vhost != "auto":
        return options.vhost == "on"
    return options.network == "tap" and options.nic == "virtio" and accel == "kvm" and VHOST.exists()


def settled(options: QemuOptions) -> QemuOptions:
    """The options with the network that "auto" means on this machine."""
    if options.network != "auto":
        return options
    tapped = options.model_copy(update={"network": "tap"})
    return options.model_copy(update={"network": "switch"}) if any(refused(tapped)) else tapped


def refused(options: QemuOptions) -> Iterator[Problem]:
    """Why a bridge cannot be made here."""
    if options.network != "tap":
        if options.vhost == "on":
            yield Problem.blocker('vhost = "on" needs network = "tap"', 'set network = "tap", or leave `vhost` out')
        return
    switch = 'or network = "switch", which needs no rights'
    if os.geteuid() != 0:
        yield Problem.blocker('network = "tap" needs root, to make a bridge', f"run vtax as root, {switch}")
    elif not _opens(TUN):
        yield Problem.blocker(f'network = "tap": {TUN} cannot be opened', f"as root: modprobe tun; {switch}")
    missing = [package for program, package in PROGRAMS.items() if not process.installed(program)]
    if missing:
        yield Problem.blocker(
            f'network = "tap" needs {" and ".join(PROGRAMS)}', f"apt-get install {' '.join(missing)}; {switch}"
        )
    if options.vhost == "on" and options.nic != "virtio":
        yield Problem.blocker(
            f'vhost = "on" is for virtio, not for {options.nic}', 'set nic = "virtio", or leave `vhost` out'
        )
    elif options.vhost == "on" and not VHOST.exists():
        yield Problem.blocker(
            f'vhost = "on", but {VHOST} does not exist', "as root: modprobe vhost_net; or leave `vhost` out"
        )


def _opens(device: Path) -> bool:
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def make(network: Sequence[tuple[str, ...]]) -> None:
    """Run what makes a network. Raises CommandError; `remove` then removes what was made."""
    for command in network:
        process.run(command, timeout_s=COMMAND_S, env=process.system_environment(), check=True)


def remove(campaign: str) -> None:
    """The namespace with all in it; fine when there is none."""
    name = name_of(campaign)
    if (NAMESPACES / name).exists():
        process.run(("ip", "netns", "del", name), timeout_s=COMMAND_S, env=process.system_environment(), check=True)


def found() -> Iterator[tuple[str, Path | None]]:
    """Campaign and directory of every cluster's namespace that this user may remove; None when it is not recorded."""
    for entry in sorted(NAMESPACES.glob(f"{PREFIX}*")) if os.geteuid() == 0 else ():
        command = ("ip", "-n", entry.name, "-j", "link", "show", tap.BRIDGE)
        result = process.run(command, timeout_s=COMMAND_S, env=process.system_environment())
        yield entry.name.removeprefix(PREFIX), alias(result.stdout)


def alias(text: str) -> Path | None:
    """The alias in what `ip -j link show` printed."""
    try:
        (link,) = json.loads(text)
        return Path(link["ifalias"])
    except (ValueError, KeyError, TypeError):
        return None
