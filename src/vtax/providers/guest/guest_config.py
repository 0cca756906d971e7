"""The configuration that the first process of a guest reads: names, addresses, network cards. Pure.

The topology is the same whatever runs the machines: a private network of the cluster, and for one node on each host (of
one host the master) a NAT to the outside, with the addresses that QEMU and VirtualBox both use there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from vtax.model.nodes import NodeShape

OUTER = {"OUTER_ADDRESS": "10.0.2.15", "OUTER_GATEWAY": "10.0.2.2"}
VIRTIO = "virtio_pci virtio_net"  # kernel modules, where they are not inside the kernel
INIT = "/usr/local/bin/vm-init"
NAME = re.compile(r"^vtax-(.+)-(master|worker[0-9]+)$")


def name_of(campaign: str, node: str) -> str:
    """The name of a machine in its hypervisor: all that `destroy` needs."""
    return f"vtax-{campaign}-{node}"


def guest_config(
    node: NodeShape,
    places: Mapping[str, str],
    shared_path: str,
    mac: str,
    outer_mac: str,
    data_disk: str = "",
    drivers: str = VIRTIO,
    workload: str = "",
    mtu: int | None = None,
) -> str:
    """`NAME=value`, a line each. `mac` and `outer_mac` are of its cards, the second "" where it has one card, and
    `drivers` the kernel modules for them; `data_disk` holds /scratch and /shared where the system's disk does not;
    `workload` is the serial number of the disk with the study's own image where there is one. `mtu` is that of the
    cluster's network, None the usual."""
    server = next(iter(places.values()))
    values = {
        "NODE": node.name,
        "ADDRESS": places[node.name],
        "MAC": mac,
        "DRIVERS": drivers,
        "GATEWAY": server,
        "OUTER_MAC": outer_mac,
        **OUTER,
        "NETWORK": f"{server.rpartition('.')[0]}.0/24",
        "SHARED": shared_path,
        "SERVER": server,
        "DATA_DISK": data_disk,
        "WORKLOAD": workload,
        "MTU": "" if mtu is None else str(mtu),
    }
    return "".join(f"{name}='{value}'\n" for name, value in values.items())
