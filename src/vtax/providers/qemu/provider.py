"""Virtual machines under QEMU: one process a node, and for the network a switch process or a network namespace.

All files of a cluster are in one directory; its processes carry the campaign's label in their command lines, its
namespace in its name. `destroy` needs only that label, so it also works after vtax itself was killed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from vtax.cluster.keys import make_keys
from vtax.cluster.seed import seed
from vtax.errors import EnvironmentMissing, PauseError
from vtax.facts.perf import Subject
from vtax.launchers.base import Launcher
from vtax.launchers.mpirun import Mpirun
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity, Role
from vtax.model.study import EnvironmentSpec
from vtax.providers import network, overlay, tunnel
from vtax.providers.base import Cluster, Commands, Creation, Leftover, Outside, Provider, Site, elsewhere
from vtax.providers.guest import disk, numa, saved_cluster
from vtax.providers.guest.shutdown import power_off
from vtax.providers.qemu import bridge, kvm, problems, user
from vtax.providers.qemu import command as lines
from vtax.providers.qemu.boot import READY_S, wait_until_ready
from vtax.providers.qemu.command import Accelerator, Machine, QemuOptions, Version
from vtax.providers.qemu.machines import machines_of, make_bases, parts, ram_disk
from vtax.providers.qemu.pausing import MonitorPausing
from vtax.providers.qemu.placement import pin, pin_switch
from vtax.providers.qemu.processes import end, processes, unkillable
from vtax.providers.qemu.start import start_machine
from vtax.transport import process
from vtax.transport.parallel import each

EMULATION_FACTOR = 5.0  # by which everything may take longer in software emulation
VIRTUAL_S, EMULATED_S = 10.0, 35.0  # what a cluster takes to be verified
OFF_S = 3.0  # for a guest to write its caches to disk, and power off
COMMAND_S = 120.0
PROGRAMS = {lines.QEMU: "qemu-system-x86", "qemu-img": "qemu-utils", "mke2fs": "e2fsprogs", "taskset": "util-linux"}


class Qemu(Provider):
    name = "qemu"
    options = QemuOptions
    runners = (lines.QEMU, "qemu-kvm")
    install_hint = "as root: apt-get install --no-install-recommends qemu-system-x86 qemu-utils e2fsprogs util-linux"
    capabilities = saved_cluster.CAPABILITIES
    in_parts = True

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime
        self._children: dict[str, list[process.Running]] = {}  # of each cluster that this object created

    @property
    def provision_estimate_s(self) -> float:
        return EMULATED_S if self._kvm.reason else VIRTUAL_S

    def launcher(self, options: QemuOptions) -> Launcher:
        return Mpirun(interface="eth0", transport=options.mpi_transport)

    def slowdown(self, options: QemuOptions) -> float:
        return EMULATION_FACTOR if self.emulates(options) else 1.0

    def emulates(self, options: QemuOptions) -> bool:
        return self.accelerator(options) == "tcg"

    def accelerator(self, options: QemuOptions) -> Accelerator:
        """What runs the guests: what the study says, or what works."""
        if options.accel != "auto":
            return options.accel
        return "tcg" if self._kvm.reason else "kvm"

    @cached_property
    def _kvm(self) -> kvm.Answer:
        """One answer for the whole life of this process, whatever other hypervisors begin or end meanwhile."""
        return kvm.probe(self.runtime)

    @cached_property
    def _kvm_again(self) -> kvm.Answer:
        """A new answer, for `vtax doctor`."""
        return kvm.probe(self.runtime, again=True)

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str, workload: bool = False
    ) -> Commands:
        own = overlay.PLANNED if workload else None
        image = Image(
            recipe="", digest="", directory="CACHE/rootfs", archive="", kernel="CACHE/rootfs/boot/vmlinuz", workload=own
        )
        site = Site("CAMPAIGN", Path("SITE"), image, Path("KEYS"))
        options = _options(spec)
        accel = self.accelerator(options)
        machines = machines_of(site, shape, options, accel, Path("INITRD") if kernel == "generic" else None)
        every = parts(site, machines, options, accel, self._version() or lines.OLDEST)
        return tuple(command for part in every for command in part)

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        reason = self.unavailable()
        if reason:
            return [Problem.blocker(reason, self.install_hint)]
        options = _options(spec)
        return [
            *problems.emulation(spec.name, options, self.accelerator(options), self._broken(options)),
            *problems.cpu(options, self.accelerator(options)),
            *user.problems(spec.name, self.accelerator(options)),
            *bridge.refused(options),
            *bridge.unjoined(spec.name, shape, options),
            *disk.too_small(shape),
            *problems.huge_pages(shape, options),
            *(numa.spanned(shape, numa.nodes()) if options.pin else ()),
        ]

    def workload_problems(self, spec: EnvironmentSpec) -> Sequence[Problem]:
        return ()  # a disk, which needs no rights

    def _broken(self, options: QemuOptions) -> kvm.Answer:
        """Why KVM does not work here, where the study wants it."""
        return self._kvm if options.accel != "tcg" else kvm.Answer()

    def unavailable(self) -> str:
        missing = [program for program in PROGRAMS if not process.installed(program)]
        if missing:
            return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        found = self._version()
        if found is None or found < lines.OLDEST:
            version = "of unknown version" if found is None else f"{'.'.join(map(str, found))} is too old"
            return f"QEMU {version}; {'.'.join(map(str, lines.OLDEST))} or newer is required"
        return ""

    def status_note(self) -> str:
        reason = self._kvm_again.reason
        return f"software emulation only: {reason}" if reason else "with KVM, which ran a test guest"

    def improvement_hint(self) -> str:
        return self._kvm_again.remedy

    def _version(self) -> Version | None:
        """Of the QEMU that is installed; None when none is, or its version is unknown."""
        if shutil.which(lines.QEMU) is None:
            return None
        return lines.version(process.run((lines.QEMU, "--version"), timeout_s=20).stdout)

    def prepare(self, spec: EnvironmentSpec, shape: ClusterShape, image: Image) -> None:
        ram_disk(image)
        make_bases(image, shape, _options(spec))

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        options = _options(spec)
        timeout_factor = self.slowdown(options)
        if not site.image.kernel:
            raise EnvironmentMissing(
                "the root file system has no kernel for virtual machines",
                remedy=f"`vtax image remove {site.image.recipe}`, then `vtax image build`",
            )
        if site.image.workload:
            overlay.refuse_unfit(site.image.workload, shared_path)
        names = tuple(node.name for node in shape.nodes)
        places, slots = network.places(site, shape), network.slots(site, shape)
        accel, version = self.accelerator(options), self._version() or lines.OLDEST
        machines = machines_of(site, shape, options, accel, ram_disk(site.image))
        between, *nodes = parts(site, machines, options, accel, version)
        with ThreadPoolExecutor(max_workers=2) as pool:
            keys = pool.submit(make_keys, site.keys, names)
            made = pool.submit(tunnel.connect, between)
            make_bases(site.image, shape, options)
            keys.result()
            made.result()

        ordered: dict[str, float] = {}
        children = self._children.setdefault(site.campaign, [])

        def start(machine: Machine, commands: Commands) -> None:
            ordered[machine.node.name] = time.monotonic()
            place = machine.directory
            place.mkdir(mode=0o700)
            config = lines.guest_config(machine, places, shared_path, options)
            _write_secret(place / "seed.tar", seed(site.keys, machine.node.name, places, slots, config))
            for name, base in machine.bases.items():
                process.run(lines.clone(base, place / name, options), timeout_s=COMMAND_S, check=True)
            children.append(start_machine(commands[0], machine.directory, COMMAND_S))

        deadline = time.monotonic() + READY_S * timeout_factor  # not earlier: making disks may take minutes
        each(lambda one: start(*one), zip(machines, nodes, strict=True))
        first, answered = wait_until_ready(site, machines, places, timeout_factor, deadline)
        # Only now: while they start, nodes that share a CPU would wait for each other.
        pinned = [pin(machine, options) for machine in machines]
        pinned_switch, switched = pin_switch(site.campaign, shape, options)
        about = (self._acceleration(options), user.sentence(site.campaign, accel))
        notes = [*about, *(note for note, _ in pinned), *pinned_switch]
        facts = {
            machine.node.name: {**lines.facts(machine, options, accel, version), **where, **switched}
            for machine, (_, where) in zip(machines, pinned, strict=True)
        }
        commands = [command for part in (between, *nodes) for command in part]
        saved_cluster.save(site, commands, notes, timeout_factor, facts)
        creations = {
            machine.node.name: Creation(
                ordered[machine.node.name],
                first.get(machine.node.name),
                answered.get(machine.node.name),
                int((machine.directory / "pid").read_text()),
            )
            for machine in machines
        }
        return replace(self.connect(spec, shape, shared_path, site), creations=creations)

    def _acceleration(self, options: QemuOptions) -> str:
        accel = self.accelerator(options)
        broken = self._kvm.reason if options.accel == "auto" else ""
        return f"acceleration: {accel}" + (f" ({broken})" if broken else "")

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        launcher = self.launcher(_options(spec))
        pausing = MonitorPausing([site.console(node.name).parent for node in shape.nodes])
        loaded = saved_cluster.load(spec, shape, shared_path, site, launcher, pausing)

        def outside(names: Sequence[str]) -> tuple[Outside, ...]:
            pids = (int((site.console(name).parent / "pid").read_text()) for name in names)
            return tuple(Outside(Subject(process=pid)) for pid in pids)

        return replace(loaded, outside=outside)

    def destroy(self, campaign: str) -> None:
        """Ask to power off, wait a moment, then SIGKILL: workers first, because the master has their files; the
        network last. Raises ProvisionError when a process does not end even so."""
        machines = [one for one in processes() if one.campaign == campaign and one.node]
        with suppress(PauseError):  # a paused guest could not power off; one that does not answer is killed
            MonitorPausing([one.place for one in machines], OFF_S).resume()
        workers = [one for one in machines if one.node != Role.MASTER]
        for group in (workers, [one for one in machines if one not in workers]):
            each(lambda one: power_off(one.place / "orders", one.alive, OFF_S), group)
            end(group)
        remaining = end([one for one in processes() if one.campaign == campaign])
        stuck = {one.pid for one in remaining}
        for child in self._children.pop(campaign, ()):
            if child.process.pid not in stuck:
                child.stop()  # it has ended, and its last threads may not have
        network.remove(campaign)
        if remaining:
            raise unkillable(remaining)

    def leftovers(self) -> Sequence[Leftover]:
        """Machines and networks; owned here are those of this run-time directory, and those whose files are gone."""
        running = [
            Leftover(
                self.name,
                "process",
                f"{one.node or 'switch'} ({one.pid})",
                one.campaign,
                self._elsewhere(one.campaign, one.place),
            )
            for one in processes()
        ]
        return [*running, *network.leftovers(self.name, self.runtime, parts=False)]

    def _elsewhere(self, campaign: str, place: Path) -> str:
        return elsewhere(self.runtime, campaign, place) if place.exists() else ""

    def remove_image(self, image: Image) -> None:
        disk.remove(image)


def _options(spec: EnvironmentSpec) -> QemuOptions:
    """The options of the study, with the network that is possible here."""
    return bridge.settled(QemuOptions.model_validate(dict(spec.options)))


def _write_secret(path: Path, content: bytes) -> None:
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)
