"""Virtual machines under VirtualBox: linked clones of one machine, driven by VBoxManage.

All files of a cluster are in one directory; its machines, their disks and their group carry the campaign's label in
their names. `destroy` needs only that label, so it also works after vtax itself was killed.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from vtax.cluster.access import wait_for_banner, wait_for_banner_through, write_ssh_config
from vtax.cluster.keys import make_keys
from vtax.cluster.seed import seed
from vtax.errors import CommandError
from vtax.launchers.base import Launcher
from vtax.launchers.mpirun import Mpirun
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity, Role
from vtax.model.study import EnvironmentSpec
from vtax.providers.base import Cluster, Commands, Creation, Leftover, Provider, Site, elsewhere
from vtax.providers.guest import console, disk, firmware, pinning, ready, saved_cluster
from vtax.providers.guest.guest_config import NAME, name_of
from vtax.providers.guest.shutdown import power_off
from vtax.providers.network import addresses
from vtax.providers.virtualbox import base, listing, manage, threads
from vtax.providers.virtualbox import command as lines
from vtax.providers.virtualbox.command import Machine, VirtualBoxOptions
from vtax.providers.virtualbox.pausing import MachinePausing
from vtax.transport import process
from vtax.transport.parallel import each

OLDEST, NEWEST = (7, 0), (7, 2)
NVME_INSIDE = (7, 2)  # before, the controller is in the extension pack
READY_S = 120.0  # the firmware takes its part of it
EMULATION_FACTOR = 5.0  # by which everything may take longer in software emulation
POLL_S, STATE_S = 0.1, 2.0  # between two readings of a console, and of a machine's state
OFF_S = 5.0  # for a guest to write its caches to disk, and power off
GONE_S = 20.0  # for VirtualBox to release a machine that has ended
SECTOR_UNIT = 2**20  # of a disk of VirtualBox's own format


class VirtualBox(Provider):
    name = "virtualbox"
    options = VirtualBoxOptions
    runners = (threads.PROGRAM, "VirtualBoxVM")
    install_hint = (
        "install VirtualBox 7.0 to 7.2 (virtualbox.org, or Debian sid), then as root: apt-get install fdisk dosfstools "
        "mtools e2fsprogs; modprobe vboxdrv"
    )
    provision_estimate_s = 30.0
    capabilities = saved_cluster.CAPABILITIES.model_copy(update={"sole_hypervisor": True})

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime

    def slowdown(self, options: VirtualBoxOptions) -> float:
        return EMULATION_FACTOR if self.emulates(options) else 1.0

    def emulates(self, options: VirtualBoxOptions) -> bool:
        return options.engine == "interpreter"

    def launcher(self, options: VirtualBoxOptions) -> Launcher:
        return Mpirun(interface="eth0", transport=options.mpi_transport)

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str, workload: bool = False
    ) -> Commands:
        image = Image(recipe="", digest="DIGEST", directory="ROOTFS", archive="", kernel="ROOTFS/boot/vmlinuz")
        site = Site("CAMPAIGN", Path("SITE"), image, Path("KEYS"))
        options = VirtualBoxOptions.model_validate(dict(spec.options))
        return _commands(_machines(site, shape, options, "PORT"), options)

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        options = VirtualBoxOptions.model_validate(dict(spec.options))
        found = self._version() if manage.program() else None
        return [
            *(Problem.blocker(what, how) for what, how in self._missing(found)),
            *_unsupported(spec, shape, options, found),
            *disk.too_small(shape),
        ]

    def unavailable(self) -> str:
        return "; ".join(what for what, _ in self._missing(self._version() if manage.program() else None))

    def _missing(self, found: listing.Version | None) -> Iterator[tuple[str, str]]:
        """What is missing for any cluster, and the remedy."""
        if manage.program() is None:
            yield "VBoxManage is not installed", self.install_hint
        elif found is None or not OLDEST <= found <= NEWEST:
            version = "of unknown version" if found is None else f"{found[0]}.{found[1]}"
            yield f"VirtualBox {version} is not supported; 7.0 to 7.2 is required", self.install_hint
        if not manage.DRIVER.exists():
            yield f"VirtualBox's driver is not loaded: {manage.DRIVER} does not exist", manage.LOAD
        lost = {one: package for one, package in firmware.PROGRAMS.items() if not process.installed(one)}
        if lost:
            is_ = "is" if len(lost) == 1 else "are"
            remedy = f"as root: apt-get install {' '.join(sorted(set(lost.values())))}"
            yield f"{', '.join(lost)} {is_} not installed", remedy

    def status_note(self) -> str:
        found = self._version()
        return f"VirtualBox {found[0]}.{found[1]}, its driver is loaded" if found else ""

    def _version(self) -> listing.Version | None:
        try:
            return manage.version()
        except CommandError:
            return None

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        options = VirtualBoxOptions.model_validate(dict(spec.options))
        timeout_factor = self.slowdown(options)
        port = _free_port()
        machines = _machines(site, shape, options, str(port))
        ordered = time.monotonic()
        self.define(machines, shape, shared_path, site, options)
        names = tuple(node.name for node in shape.nodes)
        places = addresses(names)
        config = write_ssh_config(
            site.directory,
            site.keys,
            {names[0]: port},
            behind=places,
            timeout_factor=timeout_factor,
            paused=site.paused,
        )
        deadline = time.monotonic() + READY_S * timeout_factor
        each(lambda machine: manage.start(machine.name), machines)

        def come_up(machine: Machine) -> Creation:
            name, watch, limit_s = machine.node.name, _Watch(machine.name), READY_S * timeout_factor

            def passed(checks: Sequence[console.Check]) -> float:
                ready.wait(machine.node, site.console(name), watch, limit_s, deadline, POLL_S, checks)
                return time.monotonic()

            first = passed(console.STARTED[:1])
            passed(console.STARTED)
            if machine is machines[0]:
                wait_for_banner(name, port, deadline, answer_s=2 * timeout_factor)
            else:
                wait_for_banner_through(config, names[0], name, places[name], deadline, timeout_factor)
            answered = time.monotonic()
            passed(console.checks_for(machine.node))
            # No process: the memory of its guests is the driver's, and in no process of VirtualBox.
            return Creation(ordered, first, answered)

        creations = dict(zip((machine.node.name for machine in machines), each(come_up, machines), strict=True))
        # Only now: while they start, nodes that share a CPU would wait for each other.
        pinned = [_pinned(machine, options) for machine in machines]
        notes = [f"engine: {options.engine}", *(note for note, _ in pinned)]
        version = self._version()
        facts = {
            machine.node.name: {**lines.facts(options, manage.about(machine.name), version), **cpus}
            for machine, (_, cpus) in zip(machines, pinned, strict=True)
        }
        saved_cluster.save(site, _commands(machines, options), notes, timeout_factor, facts)
        return replace(self.connect(spec, shape, shared_path, site), creations=creations)

    def define(
        self,
        machines: Sequence[Machine],
        shape: ClusterShape,
        shared_path: str,
        site: Site,
        options: VirtualBoxOptions,
    ) -> None:
        """Register the machines with all that they need to be started."""
        names = tuple(node.name for node in shape.nodes)
        places, slots = addresses(names), {node.name: node.cpus for node in shape.nodes}
        with ThreadPoolExecutor(max_workers=1) as pool:
            keys = pool.submit(make_keys, site.keys, names)
            for machine in machines:
                with base.ready(site.image, machine.node.disk_bytes, options):
                    manage.run(lines.clone(machine))
            keys.result()

        def furnish(machine: Machine) -> None:
            config = lines.guest_config(machine, places, shared_path, options)
            archive = seed(site.keys, machine.node.name, places, slots, config)
            machine.directory.mkdir(mode=0o700)
            plain = machine.directory / "seed.tar"
            plain.touch(mode=0o600, exist_ok=False)
            plain.write_bytes(archive.ljust(-(-len(archive) // SECTOR_UNIT) * SECTOR_UNIT, b"\0"))
            for line in lines.commands(machine, options)[1:-1]:
                manage.run(line)
            plain.unlink()
            machine.seed_disk.chmod(0o600)

        each(furnish, machines)

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        launcher = self.launcher(VirtualBoxOptions.model_validate(dict(spec.options)))
        pausing = MachinePausing([name_of(site.campaign, node.name) for node in shape.nodes])
        return saved_cluster.load(spec, shape, shared_path, site, launcher, pausing)

    def destroy(self, campaign: str) -> None:
        """Ask to power off, wait a moment, then end: workers first, because the master has their files. Then
        unregister and delete the machines and their disks."""
        if manage.program() is None:
            return
        mine = [name for name in manage.machines().values() if _owner(name) == campaign]
        masters = [name for name in mine if name.endswith(f"-{Role.MASTER}")]
        for group in ([name for name in mine if name not in masters], masters):
            each(_end, group)
        for medium in manage.media():
            if medium.owner == campaign:
                manage.run(lines.forget(medium.uuid), check=False)  # one that was deleted with another is fine

    def leftovers(self) -> Sequence[Leftover]:
        """Machines and disks; owned here are those of this run-time directory, and those whose files are gone."""
        if manage.program() is None or self._version() is None:
            return []
        found = []
        for name in manage.machines().values():
            owner = _owner(name)
            if owner:
                whose = self._elsewhere(owner, manage.about(name).get("CfgFile", ""))
                found.append(Leftover(self.name, "machine", name, owner, whose))
        for medium in manage.media():
            if medium.owner:
                whose = self._elsewhere(medium.owner, medium.location)
                found.append(Leftover(self.name, "medium", Path(medium.location).name, medium.owner, whose))
        return found

    def _elsewhere(self, campaign: str, path: str) -> str:
        return elsewhere(self.runtime, campaign, Path(path)) if Path(path).exists() else ""

    def remove_image(self, image: Image) -> None:
        base.remove(image)


def _machines(site: Site, shape: ClusterShape, options: VirtualBoxOptions, port: str) -> tuple[Machine, ...]:
    return tuple(
        Machine(
            site.campaign,
            node,
            number,
            site.directory,
            lines.base_name(site.image, node.disk_bytes, options),
            port,
        )
        for number, node in enumerate(shape.nodes)
    )


def _commands(machines: Sequence[Machine], options: VirtualBoxOptions) -> Commands:
    return tuple(line for machine in machines for line in lines.commands(machine, options))


def _unsupported(
    spec: EnvironmentSpec, shape: ClusterShape, options: VirtualBoxOptions, found: listing.Version | None
) -> Iterator[Problem]:
    """What this study asks for and VirtualBox does not support, or supports with a cost."""
    for node in shape.nodes:
        if node.cpus > lines.MOST_CPUS:
            message = f"{node.name} has {node.cpus} CPUs, but a VirtualBox machine has {lines.MOST_CPUS} at most"
            yield Problem.blocker(message, "use smaller nodes")
    if options.engine == "interpreter":
        message = f"{spec.name} runs in software emulation; its results say nothing about virtualization"
        remedy = 'set engine = "default"; allow_emulation = true compares it anyway'
        yield Problem.warning(message, remedy)
    if options.disk == "nvme" and found is not None and found < NVME_INSIDE:
        message = f"NVMe disks need the extension pack in VirtualBox {found[0]}.{found[1]}"
        yield Problem.warning(message, 'install it, or set disk = "sata"')


def _free_port() -> int:
    """A loopback port that is free now. Should another program take it before VirtualBox does, SSH refuses that
    program's host key."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class _Watch:
    """Why a machine will never be ready, "" while it may. Asks only now and then, because a starting machine needs the
    CPU more than VBoxManage does."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.next = 0.0

    def __call__(self) -> str:
        if time.monotonic() < self.next:
            return ""
        about = manage.about(self.name)
        self.next = time.monotonic() + STATE_S
        return "" if listing.runs(about) else f"its state in VirtualBox is {about.get('VMState', 'not registered')!r}"


def _pinned(machine: Machine, options: VirtualBoxOptions) -> tuple[str, dict[str, Any]]:
    """Pin the threads of a machine. Returns the sentence for the record, and the facts."""
    node = machine.node
    if not options.pin:
        return pinning.unpinned_sentence(node), {"vm_pinned": False}
    pid, virtual = threads.machine(machine.name)
    places = pinning.pin(pid, virtual, node.cpu_ids)
    facts = {"vm_pinned": True, "vm_emulator_cpus": list(node.cpu_ids)}
    if len(virtual) != node.cpus:  # then all threads are on the node's CPUs, and the record says how that differs
        cpus = ",".join(map(str, node.cpu_ids))
        return f"{node.name}: all its threads on CPU {cpus}; virtual CPUs not identified", facts
    return pinning.pinned_sentence(node, places), {**facts, "vm_cpu_places": list(places)}


def _owner(name: str) -> str:
    """The campaign of a cluster's machine by its name; "" for any other."""
    found = NAME.match(name)
    return found[1] if found else ""


def _end(name: str) -> None:
    """Power off, unregister and delete one machine."""

    def runs() -> bool:
        return listing.runs(manage.about(name))

    if manage.about(name).get("VMState") == "paused":  # it could not power off
        manage.run(lines.control(name, "resume"), check=False)
    socket_path = listing.serial_socket(manage.about(name))
    if socket_path and runs():
        power_off(Path(socket_path), runs, OFF_S, POLL_S)
    if runs():
        manage.run(lines.power_off(name), check=False)
    deadline = time.monotonic() + GONE_S  # until VirtualBox has released the machine
    while manage.run(lines.unregister(name), check=False).exit_code != 0 and manage.about(name):
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_S)
