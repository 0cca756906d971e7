"""The command lines of VBoxManage, with what every word is for. Pure.

All machines are linked clones of one machine that is never started and holds the common disk: a clone's own disk is a
layer above it. The names of options are those that VirtualBox 7.0 has too, which later versions still accept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from vtax.model.cluster import Image
from vtax.model.nodes import NodeShape, Role
from vtax.providers.base import Options
from vtax.providers.guest import guest_config as guest

PROGRAM = "VBoxManage"
BASE = "vtax.base"  # begins the names of machines that others are clones of
CONTROLLER = "disks"
SNAPSHOT = "clean"
CONTROLLERS = {"sata": ("sata", "IntelAhci"), "nvme": ("pcie", "NVMe")}
NICS = {"virtio": "virtio", "e1000": "82540EM"}
DRIVERS = {"virtio": guest.VIRTIO, "e1000": "e1000"}  # modules of the guest
SYSTEM_PORT, SEED_PORT = "0", "1"
MAKER = "080027"  # of network cards, VirtualBox's own
MIB = 2**20
MOST_CPUS = 64

Command = tuple[str, ...]


class VirtualBoxOptions(Options):
    """`cpu_cap` is the percentage of a CPU's time that every virtual CPU gets at most. `paravirt` is the hypervisor
    interface that the guest sees ("default" is VirtualBox's choice for Linux). `disk` "nvme" needs VirtualBox 7.2, or
    its extension pack. `cache` "writeback" keeps the disks' blocks in the host's memory too. `engine` "interpreter" is
    software emulation, whose figures are not compared unless `allow_emulation` is true. `pin` puts every virtual CPU on
    its own CPU of the node. `nic` "e1000" needs the generic kernel, `kernel` in [image]."""

    emulation: ClassVar[bool] = True

    cpu_cap: Annotated[int, Field(ge=1, le=100)] = 100
    paravirt: Literal["default", "none", "legacy", "minimal", "hyperv", "kvm"] = "default"
    nested_paging: bool = True
    large_pages: bool = False
    engine: Literal["default", "native-api", "interpreter"] = "default"
    allow_emulation: bool = False
    nic: Literal["virtio", "e1000"] = "virtio"
    network: Literal["intnet"] = "intnet"
    disk: Literal["sata", "nvme"] = "sata"
    cache: Literal["none", "writeback"] = "none"
    pin: bool = True
    mpi_transport: Literal["auto", "tcp"] = "auto"

    def missing_driver(self, kernel: str) -> str:
        return "nic" if self.nic == "e1000" and kernel == "cloud" else ""


@dataclass(frozen=True)
class Machine:
    """One node as VirtualBox needs it: whose it is, its shape, its files."""

    campaign: str
    node: NodeShape
    number: int  # 0 is the master
    site: Path  # of the cluster's files
    base: str  # the machine that it is a clone of
    port: str  # on loopback, to the master's SSH server

    @property
    def name(self) -> str:
        return guest.name_of(self.campaign, self.node.name)

    @property
    def directory(self) -> Path:
        return self.site / self.node.name

    @property
    def seed_disk(self) -> Path:
        """It has the machine's name, by which `destroy` finds it."""
        return self.directory / f"{self.name}.vdi"

    @property
    def is_master(self) -> bool:
        return self.node.role is Role.MASTER


def group(campaign: str) -> str:
    return f"/vtax-{campaign}"


def base_name(image: Image, size_bytes: int, options: VirtualBoxOptions) -> str:
    """The machine with the common disk: the content of that disk, its size and what it is attached to."""
    return f"{BASE}-{image.digest[:12]}-{size_bytes // MIB}-{options.disk}"


def mac(campaign: str, number: int, *, outer: bool = False) -> str:
    """Twelve hexadecimal digits: different in every cluster, so that no cache holds those of an earlier one."""
    return MAKER + hashlib.sha256(campaign.encode()).hexdigest()[:4] + f"{number + (0x80 if outer else 0):02x}"


def written(digits: str) -> str:
    """A network card's address as Linux writes it."""
    return ":".join(digits[start : start + 2] for start in range(0, len(digits), 2)).lower()


def guest_config(machine: Machine, places: Mapping[str, str], shared_path: str, options: VirtualBoxOptions) -> str:
    """The configuration that the first process of the guest reads."""
    inner = written(mac(machine.campaign, machine.number))
    outer = written(mac(machine.campaign, machine.number, outer=True)) if machine.is_master else ""
    return guest.guest_config(machine.node, places, shared_path, inner, outer, drivers=DRIVERS[options.nic])


def facts(options: VirtualBoxOptions, about: Mapping[str, str], version: tuple[int, int] | None) -> dict[str, Any]:
    """What a node is made of, as far as it cannot observe that itself. `about` is VirtualBox's description of it."""
    return {
        "emulated": options.engine == "interpreter",
        "vm_virtualbox": ".".join(map(str, version)) if version else None,
        "vm_engine": options.engine,
        "vm_cpu_cap": int(about["cpuexecutioncap"]),
        "vm_paravirt": about["effparavirtprovider"],
        "vm_nested_paging": about["nestedpaging"] == "on",
        "vm_large_pages": about["largepages"] == "on",
        "vm_firmware": about["firmware"],
        "vm_nic": about["nictype2"],
        "vm_network": options.network,
        "vm_disk": about["storagecontrollertype0"],
        "vm_disk_cache": options.cache,
    }


def convert(raw: Path, disk: Path) -> Command:
    return (PROGRAM, "convertfromraw", str(raw), str(disk), "--format", "VDI")


def base(name: str, disk: Path, folder: Path, options: VirtualBoxOptions) -> tuple[Command, ...]:
    """The machine that all others are clones of, with what is the same for all of them."""
    bus, controller = CONTROLLERS[options.disk]
    return (
        (PROGRAM, "createvm", "--name", name, "--ostype", "Debian_64", "--register", "--basefolder", str(folder)),
        (
            *(PROGRAM, "modifyvm", name, "--firmware", "efi", "--memory", "512", "--ioapic", "on", "--rtcuseutc", "on"),
            *("--boot1", "disk", "--boot2", "none", "--boot3", "none", "--boot4", "none", "--audio-enabled", "off"),
            *("--nic1", "none"),
        ),
        (
            *(PROGRAM, "storagectl", name, "--name", CONTROLLER, "--add", bus, "--controller", controller),
            *("--portcount", "2", "--bootable", "on"),
        ),
        attach(name, SYSTEM_PORT, disk),
        (PROGRAM, "snapshot", name, "take", SNAPSHOT),
    )


def attach(name: str, port: str, disk: Path) -> Command:
    return (
        *(PROGRAM, "storageattach", name, "--storagectl", CONTROLLER, "--port", port, "--device", "0"),
        *("--type", "hdd", "--medium", str(disk)),
    )


def clone(machine: Machine) -> Command:
    return (
        *(PROGRAM, "clonevm", machine.base, "--snapshot", SNAPSHOT, "--options", "link", "--name", machine.name),
        *("--register", "--basefolder", str(machine.site)),
    )


def modify(machine: Machine, options: VirtualBoxOptions) -> Command:
    """Everything that makes this node of a clone."""
    node, place = machine.node, machine.directory
    return (
        *(PROGRAM, "modifyvm", machine.name, "--groups", group(machine.campaign)),  # `clonevm` only takes it for a path
        *("--cpus", str(node.cpus), "--memory", str(node.memory_bytes // MIB)),
        *("--cpuexecutioncap", str(options.cpu_cap), "--paravirtprovider", options.paravirt),
        *("--nestedpaging", _switch(options.nested_paging), "--largepages", _switch(options.large_pages)),
        *(() if options.engine == "default" else ("--vm-execution-engine", options.engine)),
        *_network(machine, options),
        *("--uart1", "0x3F8", "4", "--uartmode1", "file", str(place / "console.log")),
        # The request to power off comes through a second serial port: that works when the network does not.
        *("--uart2", "0x2F8", "3", "--uartmode2", "server", str(place / "orders")),
    )


def _network(machine: Machine, options: VirtualBoxOptions) -> Command:
    """Adapter 1 is VirtualBox's NAT, for the master alone, with SSH on a loopback port; adapter 2 is the cluster's
    network."""
    inner = (
        *("--nic2", options.network, "--intnet2", f"vtax-{machine.campaign}", "--nictype2", NICS[options.nic]),
        *("--macaddress2", mac(machine.campaign, machine.number)),
    )
    if not machine.is_master:
        return ("--nic1", "none", *inner)
    return (
        *("--nic1", "nat", "--nictype1", NICS[options.nic]),
        *("--macaddress1", mac(machine.campaign, machine.number, outer=True)),
        *("--nat-localhostreachable1", "off"),  # else guests connect to what listens on this machine's loopback
        # With the guest's address, which is static: VirtualBox knows only those that its DHCP server has assigned.
        *("--natpf1", f"ssh,tcp,127.0.0.1,{machine.port},{guest.OUTER['OUTER_ADDRESS']},22"),
        *inner,
    )


def caching(machine: Machine, options: VirtualBoxOptions) -> Command:
    """Whether the host keeps the disks' blocks in memory too."""
    kept = _switch(options.cache == "writeback")
    return (PROGRAM, "storagectl", machine.name, "--name", CONTROLLER, "--hostiocache", kept)


def start(name: str) -> Command:
    return (PROGRAM, "startvm", name, "--type", "headless")


def power_off(name: str) -> Command:
    return control(name, "poweroff")


def control(name: str, word: str) -> Command:
    """What a running machine is told: to power off at once, to pause, to resume."""
    return (PROGRAM, "controlvm", name, word)


def unregister(name: str) -> Command:
    """With its disks, except those that other machines use."""
    return (PROGRAM, "unregistervm", name, "--delete")


def forget(disk: str) -> Command:
    return (PROGRAM, "closemedium", "disk", disk, "--delete")


def describe(name: str) -> Command:
    return (PROGRAM, "showvminfo", name, "--machinereadable")


def commands(machine: Machine, options: VirtualBoxOptions) -> tuple[Command, ...]:
    """All that makes and starts a node, in order."""
    return (
        clone(machine),
        modify(machine, options),
        caching(machine, options),
        convert(machine.directory / "seed.tar", machine.seed_disk),
        attach(machine.name, SEED_PORT, machine.seed_disk),
        start(machine.name),
    )


def _switch(on: bool) -> str:
    return "on" if on else "off"
