"""The command lines of QEMU, with what every word is for. Pure.

The kernel is given to QEMU and finds its root file system on an NVMe disk: so there is no boot loader, and no initial
RAM disk where the kernel needs no module for that. What makes the node of a cluster out of the root file system is a
tar archive that QEMU shows to the guest in its firmware configuration; no network and no disk carries it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from vtax.model.nodes import NodeShape
from vtax.providers.base import Options
from vtax.providers.guest import guest_config as guest
from vtax.providers.qemu import descriptors
from vtax.providers.qemu.descriptors import Disk, Number, Open

QEMU = "qemu-system-x86_64"
OLDEST = (7, 2)  # `-netdev stream`
CMPXCHG16B_FIXED = (8, 0)  # earlier, software emulation leaves wrong flags after it: guest kernels crash at random
NICS = {"virtio": "virtio-net-pci", "e1000": "e1000", "vmxnet3": "vmxnet3"}
DRIVERS = {"virtio": guest.VIRTIO, "e1000": "e1000", "vmxnet3": "vmxnet3"}  # modules of the guest
MIB = 2**20
HUGE_PAGE = 2 * MIB  # the size that is asked for, whatever the host's default
SLOW_EMULATED = "-erms,-fsrm"  # with them guests copy and clear memory by byte instructions, at half the speed and less
KERNEL_WORDS = "console=ttyS0 quiet panic=-1 oops=panic no_timer_check"  # a busy host delays the timer that it checks
WORKLOAD_SERIAL = "workload"  # of the disk with the study's own image, by which the guest finds it
# What a guest that takes over QEMU does not have: other programs, other users, other priorities. `-daemonize` and
# `-runas` do not work with it.
SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
VERSION = re.compile(r"QEMU emulator version ([0-9]+)\.([0-9]+)")

Accelerator = Literal["kvm", "tcg"]
Version = tuple[int, int]


class QemuOptions(Options):
    """`accel` "auto" is KVM where a test guest runs with it, else software emulation ("tcg"), whose figures say nothing
    about virtualization: they are not compared unless `allow_emulation` is true. `cpu` is QEMU's model of the CPU (the
    host's own under KVM, otherwise "max"). `disk` holds /scratch and /shared; `cache` is QEMU's word for who keeps its
    blocks in memory ("none": the guest alone). `pin` puts every virtual CPU on its own CPU of the node. `network` "tap"
    is a bridge of the kernel, which needs root; "auto" is "tap" where it can be made, else a "switch" in user space.
    With `vhost` the kernel carries a tap's frames, not QEMU ("auto": where it can). `nic` "e1000" needs the generic
    kernel, `kernel` in [image]. The guest's memory is in `hugepages` of the host, or in ordinary pages; with
    `prealloc` all of it is allocated before the guest starts."""

    emulation: ClassVar[bool] = True

    accel: Literal["auto", "kvm", "tcg"] = "auto"
    allow_emulation: bool = False
    cpu: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.,=+-]*$")] | None = None
    network: Literal["switch", "tap", "auto"] = "switch"
    vhost: Literal["auto", "on", "off"] = "auto"
    nic: Literal["virtio", "e1000", "vmxnet3"] = "virtio"
    disk: Literal["nvme", "virtio-blk"] = "nvme"
    cache: Literal["none", "writeback", "writethrough", "directsync", "unsafe"] = "none"
    format: Literal["qcow2", "raw"] = "qcow2"
    hugepages: bool = False
    prealloc: bool = False
    pin: bool = True
    mpi_transport: Literal["auto", "tcp"] = "auto"

    def missing_driver(self, kernel: str) -> str:
        return "nic" if self.nic == "e1000" and kernel == "cloud" else ""


@dataclass(frozen=True)
class Machine:
    """One node as QEMU needs it: whose it is, its shape, its files."""

    campaign: str
    node: NodeShape
    number: int  # in the whole cluster; 0 is the master
    directory: Path  # of this node's files
    switch: Path  # the socket of the cluster's switch
    kernel: str
    initrd: Path | None = None  # the initial RAM disk, where the kernel needs one
    bases: Mapping[str, Path] = field(default_factory=dict)  # disk -> the common one that it is made from
    user: str = ""  # that QEMU runs as, where that is not this one
    vhost: bool = False  # whether the kernel carries the frames of a tap
    numa_nodes: tuple[int, ...] = ()  # of the host, that its CPUs are of
    near: tuple[int, ...] = ()  # the CPUs it starts on, so that its memory is local to them; none: any CPU
    workload: Path | None = None  # the disk with the study's own image, where it has one
    way_in: bool = False  # whether the cluster's nodes on this machine are reached through this one
    mtu: int | None = None  # of the cluster's network, where that is not the usual one


def version(text: str) -> Version | None:
    """Of `qemu-system-x86_64 --version`."""
    found = VERSION.search(text)
    return (int(found[1]), int(found[2])) if found else None


def cpu_models(text: str) -> tuple[str, ...]:
    """The names in what `-cpu help` prints: one a line, between its title and the flags."""
    listed = text.partition("Available CPUs:")[2].partition("\nRecognized")[0]
    return tuple(re.findall(r"^(?:x86)? *(\S+)", listed, re.MULTILINE))


def cpu_model(options: QemuOptions, accel: Accelerator, qemu: Version) -> str:
    """The model of the CPU, without what this version cannot emulate, and what it emulates a byte at a time."""
    model = options.cpu or ("host" if accel == "kvm" else f"max,{SLOW_EMULATED}")
    if accel == "tcg" and qemu < CMPXCHG16B_FIXED and "-cx16" not in model:
        return f"{model},-cx16"
    return model


def inner_mac(number: int) -> str:
    return f"52:54:00:76:00:{number:02x}"


OUTER_MAC = "52:54:00:76:01:00"


def guest_config(machine: Machine, places: Mapping[str, str], shared_path: str, options: QemuOptions) -> str:
    """The configuration that the first process of the guest reads."""
    data_disk = "/dev/vda" if options.disk == "virtio-blk" else ""
    macs = inner_mac(machine.number), OUTER_MAC if machine.way_in else ""
    own = WORKLOAD_SERIAL if machine.workload else ""
    drivers = DRIVERS[options.nic]
    return guest.guest_config(machine.node, places, shared_path, *macs, data_disk, drivers, own, machine.mtu)


def clone(base: Path, disk: Path, options: QemuOptions) -> tuple[str, ...]:
    """A node's own disk from the common one: a layer above it, or a copy that is written to itself."""
    if options.format == "raw":
        return ("cp", "--sparse=always", "--reflink=auto", "--", str(base), str(disk))
    return ("qemu-img", "create", "-q", "-f", "qcow2", "-b", str(base), "-F", "raw", str(disk))


def files(machine: Machine, options: QemuOptions) -> tuple[Open, ...]:
    """What is open when QEMU starts: all that it needs of this machine's files, but for what everybody may read."""
    place = machine.directory
    kernel = (Open("share", Number.KERNEL, Path(machine.kernel)),)
    initrd = (Open("share", Number.INITRD, machine.initrd),) if machine.initrd else ()
    switch = () if options.network == "tap" else (Open("connect", Number.SWITCH, machine.switch),)
    vhost = (Open("write", Number.VHOST, descriptors.VHOST),) if machine.vhost else ()
    own = _workload(machine)
    return (
        _console(place),
        Open("listen", Number.MONITOR, place / "qmp"),
        Open("listen", Number.ORDERS, place / "orders"),
        *(file for disk in _disks(machine, options) for file in disk.files),
        *((own,) if own else ()),
        *(*switch, *vhost, Open("share", Number.SEED, place / "seed.tar"), *kernel, *initrd),
    )


def _console(place: Path) -> Open:
    return Open("log", Number.CONSOLE, place / descriptors.LOG)


def argv(machine: Machine, options: QemuOptions, accel: Accelerator, qemu: Version) -> tuple[str, ...]:
    """One node, in the foreground, with its files open."""
    node = machine.node
    memory = node.memory_bytes // MIB
    return (
        QEMU,
        *("-name", f"{guest.name_of(machine.campaign, node.name)},debug-threads=on"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *SANDBOX,
        *("-machine", "q35" + (",memory-backend=memory" if options.hugepages or options.prealloc else "")),
        *("-accel", "tcg,thread=multi" if accel == "tcg" else "kvm"),
        *("-cpu", cpu_model(options, accel, qemu)),
        *("-smp", f"{node.cpus},sockets=1,cores={node.cpus},threads=1"),
        *("-m", f"{memory}M"),
        *_memory(memory, options),
        *("-chardev", f"socket,id=monitor,fd={Number.MONITOR:d},server=on,wait=off", "-mon", "monitor,mode=control"),
        *_console(machine.directory).given,
        *("-chardev", f"file,id=console,path={descriptors.place(Number.CONSOLE)}", "-serial", "chardev:console"),
        # The request to power off comes through a second serial port: that works when the network does not.
        *("-chardev", f"socket,id=orders,fd={Number.ORDERS:d},server=on,wait=off", "-serial", "chardev:orders"),
        *_drives(machine, options),
        *_own_image(machine),
        *_network(machine, options),
        *("-fw_cfg", f"name=opt/vtax/seed,file={descriptors.again(Number.SEED)}"),
        *("-kernel", descriptors.again(Number.KERNEL)),
        *(("-initrd", descriptors.again(Number.INITRD)) if machine.initrd else ()),
        *("-append", f"{KERNEL_WORDS} rw root=/dev/nvme0n1 rootfstype=ext4 init={guest.INIT}"),
    )


def started(machine: Machine, options: QemuOptions, accel: Accelerator, qemu: Version) -> tuple[str, ...]:
    """What starts one node: on CPUs near its own, because memory is taken where the CPU is that touches it first."""
    where = ("taskset", "-c", ",".join(map(str, machine.near))) if machine.near else ()
    command = argv(machine, options, accel, qemu)
    return (*where, *descriptors.started(machine.user, machine.directory, files(machine, options), command))


def facts(machine: Machine, options: QemuOptions, accel: Accelerator, qemu: Version) -> dict[str, Any]:
    """What a node is made of, as far as it cannot observe that itself."""
    return {
        "emulated": accel == "tcg",
        "vm_accelerator": accel,
        "vm_qemu": ".".join(map(str, qemu)),
        "vm_cpu_model": cpu_model(options, accel, qemu),
        "vm_memory": "huge pages" if options.hugepages else "preallocated" if options.prealloc else "on demand",
        "vm_network": options.network,
        "vm_vhost": machine.vhost,
        "vm_nic": options.nic,
        "vm_disk": options.disk,
        "vm_disk_cache": options.cache,
        "vm_disk_format": options.format,
        "vm_initrd": machine.initrd is not None,
        "vm_numa_nodes": list(machine.numa_nodes),
        **({"workload_layer": "ext4"} if machine.workload else {}),  # the node's own disk
    }


def _memory(mebibytes: int, options: QemuOptions) -> tuple[str, ...]:
    """Where the guest's memory is, when not in pages of this process that come as they are touched."""
    if options.hugepages:
        return ("-object", f"memory-backend-memfd,id=memory,size={mebibytes}M,hugetlb=on,hugetlbsize=2M,prealloc=on")
    return ("-object", f"memory-backend-ram,id=memory,size={mebibytes}M,prealloc=on") if options.prealloc else ()


def _disks(machine: Machine, options: QemuOptions) -> tuple[Disk, ...]:
    """The system is always on NVMe; with "virtio-blk", /scratch and /shared are on an additional disk of that kind."""
    numbers = {"system": Number.SYSTEM, **({"data": Number.DATA} if options.disk == "virtio-blk" else {})}
    bases = machine.bases if options.format == "qcow2" else {}
    return tuple(Disk(name, number, machine.directory / name, bases.get(name)) for name, number in numbers.items())


def _drives(machine: Machine, options: QemuOptions) -> tuple[str, ...]:
    """The common disk below a node's layer is never written, so the host may keep it in memory whatever `cache` is."""
    common = ",backing.cache.direct=off" if options.format == "qcow2" else ""
    # The guest must see errors of the host's disk: by default QEMU would stop it until a user continues it.
    words = f"format={options.format},cache={options.cache}{common},if=none,discard=unmap,werror=report,rerror=report"
    devices = {"system": "nvme,drive=system,serial=system", "data": "virtio-blk-pci,drive=data"}
    return tuple(
        word
        for disk in _disks(machine, options)
        for word in (
            *(part for file in disk.files for part in file.given),
            *("-drive", f"{disk.drive},{words}", "-device", devices[disk.name]),
        )
    )


def _own_image(machine: Machine) -> tuple[str, ...]:
    """The study's own image: one disk for all machines, which none of them writes."""
    file = _workload(machine)
    if file is None:
        return ()
    words = f"id=workload,file={descriptors.place(file.number)},format=raw,cache=writeback,if=none"
    device = f"virtio-blk-pci,drive=workload,serial={WORKLOAD_SERIAL}"
    return (*file.given, "-drive", f"{words},readonly=on,rerror=report", "-device", device)


def _workload(machine: Machine) -> Open | None:
    return Open("read", Number.WORKLOAD, machine.workload) if machine.workload else None


def _network(machine: Machine, options: QemuOptions) -> tuple[str, ...]:
    """The cluster's own network; and for one node a way in, SSH on a loopback port that the system chooses. There is
    no way out: QEMU's NAT would lead guests to what listens on this machine's loopback."""
    nic = NICS[options.nic]
    stream = f"stream,id=inner,server=off,addr.type=fd,addr.str={Number.SWITCH:d}"
    vhost = f"vhost=on,vhostfd={Number.VHOST:d}" if machine.vhost else "vhost=off"
    tap = f"tap,id=inner,fd={Number.TAP:d},{vhost}"
    inner = (
        *("-netdev", tap if options.network == "tap" else stream),
        *("-device", f"{nic},netdev=inner,mac={inner_mac(machine.number)},romfile="),
    )
    if not machine.way_in:
        return inner
    return (
        *inner,
        *("-netdev", "user,id=outer,net=10.0.2.0/24,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:0-:22"),
        *("-device", f"{nic},netdev=outer,mac={OUTER_MAC},romfile="),
    )
