"""A cluster's network as a bridge of the kernel, in the cluster's own network namespace, with a tap for every node."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape
from vtax.providers import network
from vtax.providers.qemu import tap
from vtax.providers.qemu.command import Accelerator, QemuOptions
from vtax.providers.qemu.descriptors import VHOST

TUN = Path("/dev/net/tun")
SCRIPT = Path(tap.__file__)


def through(campaign: str, node: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """`command` with the tap of a node as file descriptor 3."""
    place = (str(network.path_of(campaign)), network.BRIDGE, node)
    return (sys.executable, "-I", "-S", str(SCRIPT), *place, *command)


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
    yield from network.refused('network = "tap"', switch, "bridge")
    if os.geteuid() == 0 and not _opens(TUN):
        yield Problem.blocker(f'network = "tap": {TUN} cannot be opened', f"as root: modprobe tun; {switch}")
    if options.vhost == "on" and options.nic != "virtio":
        yield Problem.blocker(
            f'vhost = "on" is for virtio, not for {options.nic}', 'set nic = "virtio", or leave `vhost` out'
        )
    elif options.vhost == "on" and not VHOST.exists():
        yield Problem.blocker(
            f'vhost = "on", but {VHOST} does not exist', "as root: modprobe vhost_net; or leave `vhost` out"
        )


def unjoined(environment: str, shape: ClusterShape, options: QemuOptions) -> Iterator[Problem]:
    """Why nodes on this machine cannot be in one network with those on others."""
    if options.network == "switch" and any(node.machine for node in shape.nodes):
        yield Problem.blocker(
            f"nodes of {environment} are on several machines, and a switch in user space connects those of one",
            'set network = "tap", and run vtax as root there',
        )


def _opens(device: Path) -> bool:
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True
