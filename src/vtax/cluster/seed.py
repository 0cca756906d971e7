"""The seed: what makes one node of a cluster out of the common root file system, as one small tar archive.

A container gets it by `cp`. The name and network of a virtual machine cannot be set from outside, so its seed contains
these too, and comes through a file that only this user can read and that is deleted with the cluster. It holds secrets.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from vtax.cluster.keys import USER, public

SSH = 22


def known_hosts(keys: Path, addresses: Mapping[str, str]) -> str:
    """One line a node: its name and address, and its host key."""
    return "".join(f"{name},{address} {public(keys, name)}\n" for name, address in addresses.items())


def hosts(addresses: Mapping[str, str]) -> str:
    """/etc/hosts with all nodes."""
    local = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
    return local + "".join(f"{address} {name}\n" for name, address in addresses.items())


def seed(
    keys: Path,
    node: str,
    addresses: Mapping[str, str],
    slots: Mapping[str, int],
    config: str = "",
    port: int = SSH,
    interface: str = "",
) -> bytes:
    """The archive for `node`; `addresses` and `slots` are name -> address and name -> CPUs of all nodes.

    With another `port` than SSH's own, the nodes' servers listen on it, each on its own address only; mpirun and the
    ranks use the `interface` of the machine whose network the node has: the command lines are the same on all machines,
    and interfaces are not.

    /root/hostfile is for users who run MPI by hand; trials bring the host file of their nodes. `config` is what
    the first process of a virtual machine reads: one `NAME=value` a line.
    """
    hostfile = "".join(f"{name} slots={count}\n" for name, count in slots.items())
    own_kernel = (("etc/hosts", 0o644, hosts(addresses).encode()), ("etc/vtax-node", 0o644, config.encode()))
    at_port = (
        ("etc/ssh/sshd_config.d/port.conf", 0o644, f"ListenAddress {addresses[node]}:{port}\n".encode()),
        ("etc/ssh/ssh_config.d/port.conf", 0o644, f"Host *\n  Port {port}\n".encode()),
    )
    mpi = (
        ("root/.openmpi/mca-params.conf", 0o644, f"btl_tcp_if_include = {interface}\n".encode()),
        ("root/.prte/mca-params.conf", 0o644, f"prte_if_include = {interface}\n".encode()),
    )
    contents = (
        *(at_port if port != SSH else ()),
        *(mpi if port != SSH and interface else ()),
        *(own_kernel if config else ()),
        ("etc/ssh/ssh_host_ed25519_key", 0o600, (keys / node).read_bytes()),
        ("etc/ssh/ssh_host_ed25519_key.pub", 0o644, (keys / f"{node}.pub").read_bytes()),
        ("etc/ssh/ssh_known_hosts", 0o644, known_hosts(keys, addresses).encode()),
        ("root/.ssh/id_ed25519", 0o600, (keys / USER).read_bytes()),
        ("root/.ssh/authorized_keys", 0o600, (keys / f"{USER}.pub").read_bytes()),
        ("root/.hushlogin", 0o644, b""),
        ("root/hostfile", 0o644, hostfile.encode()),
    )
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, mode, content in contents:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()
