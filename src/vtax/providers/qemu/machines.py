"""The machines of a cluster: their files, their common disks, and the commands that start them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, NodeShape
from vtax.paths import replacing
from vtax.providers import network, tunnel
from vtax.providers.base import LABEL, Commands, Site
from vtax.providers.guest import disk, numa
from vtax.providers.guest import initrd as guest_initrd
from vtax.providers.qemu import bridge, confined, switch, user
from vtax.providers.qemu.command import Accelerator, Machine, QemuOptions, Version, started


def machines_of(
    site: Site, shape: ClusterShape, options: QemuOptions, accel: Accelerator, initrd: Path | None
) -> tuple[Machine, ...]:
    vhost = bridge.vhost(options, accel)
    known, usable = numa.nodes(), os.sched_getaffinity(0)
    order = list(network.places(site, shape))
    return tuple(
        Machine(
            campaign=site.campaign,
            node=node,
            number=order.index(node.name),
            directory=site.console(node.name).parent,
            switch=site.directory / "switch",
            kernel=_kernel(site.image),
            initrd=initrd,
            bases=bases_of(site.image, node, options),
            user=user.words(site.campaign, accel),
            vhost=vhost,
            numa_nodes=numa.holding(node.cpu_ids, known) if options.pin else (),
            near=numa.near(node.cpu_ids, known, usable) if options.pin else (),
            workload=disk.own_image_path(site.image.workload) if site.image.workload else None,
            way_in=node is shape.nodes[0],
            mtu=site.link.mtu if site.link else None,
        )
        for node in shape.nodes
    )


def parts(
    site: Site, machines: Sequence[Machine], options: QemuOptions, accel: Accelerator, version: Version
) -> tuple[Commands, ...]:
    """The commands that make the network, then those that start each node."""
    commands = [(machine.node.name, started(machine, options, accel, version)) for machine in machines]
    if options.network == "tap":
        joined = tunnel.inside(site.link, network.name_of(site.campaign)) if site.link else ()
        between = (*network.bridge(site.campaign, site.directory), *joined)
        return between, *((bridge.through(site.campaign, name, command),) for name, command in commands)
    path = str(site.directory / "switch")
    whose = user.words(site.campaign, "tcg").partition(":")[0] or confined.KEEP
    between = ((sys.executable, "-I", "-S", switch.__file__, f"{LABEL}={site.campaign}", path, whose),)
    return between, *((command,) for _, command in commands)


def _kernel(image: Image) -> str:
    """The kernel as it is in memory, where the image has it so: unpacking takes an emulated CPU more than a second."""
    packed = Path(image.kernel)
    unpacked = packed.with_name(packed.name.replace("vmlinuz", "vmlinux"))
    return str(unpacked if unpacked.exists() else packed)


def ram_disk(image: Image) -> Path | None:
    """The initial RAM disk next to the cached image, built when it is not there; None when the kernel needs none."""
    path = Path(image.directory).parent / "initrd-nvme.cpio"
    if path.exists():
        return path
    content = guest_initrd.build(image, guest_initrd.NVME)
    if content is None:
        return None
    with replacing(path) as fresh:
        fresh.write_bytes(content)
    return path


def bases_of(image: Image, node: NodeShape, options: QemuOptions) -> dict[str, Path]:
    """The common disks that a node's own disks are made from, whether they are there or not."""
    kinds = {"system": disk.system_path, **({"data": disk.data_path} if options.disk == "virtio-blk" else {})}
    return {name: path(image, node.disk_bytes) for name, path in kinds.items()}


def make_bases(image: Image, shape: ClusterShape, options: QemuOptions) -> None:
    """The common disks of all nodes; each kind is made once. So is the disk of the study's own image."""
    if image.workload:
        disk.own_image(image.workload)
    for node in shape.nodes:
        disk.system(image, node.disk_bytes)
        if options.disk == "virtio-blk":
            disk.data(image, node.disk_bytes)
