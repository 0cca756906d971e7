"""Virtual machines under QEMU: one process a node, and one for the cluster's network or a network namespace of its own.

All files of a cluster are in one directory; its processes carry the campaign's label in their command lines, its
namespace in its name. `destroy` needs only that label, so it also works after vtax itself was killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from vtax.cluster.access import wait_for_banner, write_ssh_config
from vtax.cluster.keys import make_keys
from vtax.cluster.seed import seed
from vtax.errors import EnvironmentMissing
from vtax.launchers.mpirun import Mpirun
from vtax.model.cluster import Image
from vtax.model.finding import Problem, Severity
from vtax.model.nodes import ClusterShape, HostCapacity, Role
from vtax.model.study import EnvironmentSpec
from vtax.providers.base import LABEL, Cluster, Leftover, Site, elsewhere
from vtax.providers.guest import console, disk, initrd, numa, pinning, ready, saved_cluster
from vtax.providers.guest.guest_config import NAME, addresses
from vtax.providers.guest.shutdown import POWER_OFF, order
from vtax.providers.qemu import bridge, kvm, problems, qmp, switch
from vtax.providers.qemu import command as lines
from vtax.providers.qemu.command import Accelerator, Machine, QemuOptions, Version
from vtax.transport import process
from vtax.transport.parallel import each
from vtax.transport.ssh import SshTransport

READY_S = 60.0
EMULATION_PATIENCE = 5.0  # how much longer everything may take in software emulation
VIRTUAL_S, EMULATED_S = 10.0, 30.0  # what a cluster takes to be verified
OFF_S = 3.0  # for a guest to write what it has not written, and power off
POLL_S = 0.05
COMMAND_S = 120.0
SWITCH = Path(switch.__file__)
PROGRAMS = {lines.QEMU: "qemu-system-x86", "qemu-img": "qemu-utils", "mke2fs": "e2fsprogs", "taskset": "util-linux"}
SEARCH = ":/usr/local/sbin:/usr/sbin:/sbin"


class Qemu:
    name = "qemu"
    options = QemuOptions
    mend = "as root: apt-get install --no-install-recommends qemu-system-x86 qemu-utils e2fsprogs util-linux"
    capabilities = saved_cluster.CAPABILITIES

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime

    @property
    def provision_estimate_s(self) -> float:
        return EMULATED_S if self._kvm.reason else VIRTUAL_S

    def launcher(self, options: QemuOptions) -> Mpirun:
        return Mpirun(interface="eth0", transport=options.mpi_transport)

    def slowdown(self, options: QemuOptions) -> float:
        return self.patience(options)

    def patience(self, options: QemuOptions) -> float:
        return EMULATION_PATIENCE if self.accelerator(options) == "tcg" else 1.0

    def accelerator(self, options: QemuOptions) -> Accelerator:
        """What runs the guests: as told, or by what works."""
        if options.accel != "auto":
            return options.accel
        return "tcg" if self._kvm.reason else "kvm"

    @cached_property
    def _kvm(self) -> kvm.Answer:
        """The same for all that this process does, whatever other hypervisors begin or end meanwhile."""
        return kvm.asked(self.runtime)

    @cached_property
    def _kvm_again(self) -> kvm.Answer:
        """For a person who asks."""
        return kvm.asked(self.runtime, again=True)

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str
    ) -> tuple[tuple[str, ...], ...]:
        image = Image(recipe="", digest="", directory="ROOTFS", archive="", kernel="ROOTFS/boot/vmlinuz")
        site = Site("CAMPAIGN", Path("SITE"), image, Path("KEYS"))
        options = _options(spec)
        accel = self.accelerator(options)
        machines = _machines(site, shape, options, accel, Path("INITRD") if kernel == "generic" else None)
        parts = _parts(site, machines, options, accel, self._version() or lines.OLDEST)
        return tuple(command for part in parts for command in part)

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        reason = self.unavailable()
        if reason:
            return [Problem(severity=Severity.BLOCKER, message=reason, remedy=self.mend)]
        options = _options(spec)
        return [
            *problems.emulation(spec.name, options, self.accelerator(options), self._broken(options)),
            *problems.cpu(options, self.accelerator(options)),
            *bridge.refused(options),
            *disk.too_small(shape),
            *problems.huge_pages(shape, options),
            *(numa.spanned(shape, numa.nodes()) if options.pin else ()),
        ]

    def _broken(self, options: QemuOptions) -> kvm.Answer:
        """Why KVM does not work here, where it is wanted."""
        return self._kvm if options.accel != "tcg" else kvm.Answer()

    def unavailable(self) -> str:
        search = os.environ.get("PATH", os.defpath) + SEARCH
        missing = [program for program in PROGRAMS if shutil.which(program, path=search) is None]
        if missing:
            return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        found = self._version()
        if found is None or found < lines.OLDEST:
            return f"QEMU {'of unknown version' if found is None else '.'.join(map(str, found))} is too old, 7.2 is not"
        return ""

    def note(self) -> str:
        """What `vtax doctor` says beside "works"."""
        reason = self._kvm_again.reason
        return f"software emulation only: {reason}" if reason else "with KVM, which ran a test guest"

    def advice(self) -> str:
        return self._kvm_again.remedy

    def _version(self) -> Version | None:
        """Of the QEMU that is installed; None when none is, or does not tell."""
        if shutil.which(lines.QEMU) is None:
            return None
        return lines.version(process.run((lines.QEMU, "--version"), timeout_s=20).stdout)

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        try:
            return self._create(spec, shape, shared_path, site)
        except BaseException:
            self.destroy(site.campaign)
            raise

    def _create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        options = _options(spec)
        patience = self.patience(options)
        if not site.image.kernel:
            raise EnvironmentMissing(
                "the root file system has no kernel for virtual machines",
                remedy=f"`vtax image remove {site.image.recipe}`, then `vtax image build`",
            )
        names = tuple(node.name for node in shape.nodes)
        places = addresses(names)
        accel, version = self.accelerator(options), self._version() or lines.OLDEST
        machines = _machines(site, shape, options, accel, _ram_disk(site.image))
        network, *nodes = _parts(site, machines, options, accel, version)
        slots = {node.name: node.cpus for node in shape.nodes}
        with ThreadPoolExecutor(max_workers=2) as pool:
            keys = pool.submit(make_keys, site.keys, names)
            ways = pool.submit(bridge.make, network)
            bases = _bases(site.image, shape, options)
            keys.result()
            ways.result()

        def start(machine: Machine) -> None:
            place = machine.directory
            place.mkdir(mode=0o700)
            setting = lines.setting(machine, places, shared_path, options)
            _write_secret(place / "seed.tar", seed(site.keys, machine.node.name, places, slots, setting))
            for name, base in bases[machine.node.name].items():
                process.run(lines.clone(base, place / name, options), timeout_s=COMMAND_S, check=True)
            process.run(nodes[machine.number][0], timeout_s=COMMAND_S, check=True)

        deadline = time.monotonic() + READY_S * patience  # not before: making disks may take minutes
        each(start, machines)
        _await(site, machines, places, patience, deadline)
        # Only now: while they start, nodes that share a CPU would wait for each other.
        pinned = [_pinned(machine, options) for machine in machines]
        between, switched = _pinned_switch(site.campaign, shape, options)
        notes = [self._acceleration(options), *(note for note, _ in pinned), *between]
        facts = {
            machine.node.name: {**lines.facts(machine, options, accel, version), **where, **switched}
            for machine, (_, where) in zip(machines, pinned, strict=True)
        }
        commands = [command for part in (network, *nodes) for command in part]
        saved_cluster.remember(site, commands, notes, patience, facts)
        return self.connect(spec, shape, shared_path, site)

    def _acceleration(self, options: QemuOptions) -> str:
        accel = self.accelerator(options)
        broken = self._kvm.reason if options.accel == "auto" else ""
        return f"acceleration: {accel}" + (f" ({broken})" if broken else "")

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        launcher = self.launcher(_options(spec))
        return saved_cluster.connected(spec, shape, shared_path, site, launcher)

    def destroy(self, campaign: str) -> None:
        """The order to power off, a moment for it, then certain death: workers first, because the master has their
        files; the network last."""
        machines = [one for one in _processes() if one.campaign == campaign and one.node]
        workers = [one for one in machines if one.node != Role.MASTER]
        for group in (workers, [one for one in machines if one not in workers]):
            each(lambda one: order(one.place / "orders", POWER_OFF, one.alive, OFF_S), group)
            for one in group:
                one.kill()
        for one in _processes():
            if one.campaign == campaign:
                one.kill()
        bridge.remove(campaign)

    def leftovers(self) -> Sequence[Leftover]:
        """Machines and networks; ours are those of this run-time directory, and those whose files are gone."""
        processes = [
            Leftover(
                self.name,
                "process",
                f"{one.node or 'switch'} ({one.pid})",
                one.campaign,
                self._elsewhere(one.campaign, one.place),
            )
            for one in _processes()
        ]
        networks = [
            Leftover(
                self.name, "network namespace", bridge.name_of(campaign), campaign, self._elsewhere(campaign, place)
            )
            for campaign, place in bridge.found()
        ]
        return [*processes, *networks]

    def _elsewhere(self, campaign: str, place: Path | None) -> str:
        """A network that does not say whose it is yet may be of another vtax that is just making it."""
        return elsewhere(self.runtime, campaign, place) if place is None or place.exists() else ""

    def remove_image(self, image: Image) -> None:
        disk.remove(image)


def _options(spec: EnvironmentSpec) -> QemuOptions:
    """What the study says, with the network that there can be here."""
    return bridge.settled(QemuOptions.model_validate(dict(spec.options)))


def _await(
    site: Site, machines: Sequence[Machine], places: Mapping[str, str], patience: float, deadline: float
) -> None:
    """Until every node is ready and a connection to it is open."""
    master = machines[0]
    usernet = qmp.ask(master.directory / "qmp", "human-monitor-command", {"command-line": "info usernet"})
    port = qmp.forwarded_port(usernet)
    config = write_ssh_config(site.directory, site.keys, {master.node.name: port}, behind=places, patience=patience)

    def wait(machine: Machine, checks: Sequence[console.Check] = ()) -> None:
        log, limit_s = site.console(machine.node.name), READY_S * patience
        ready.wait(machine.node, log, lambda: _ended(machine), limit_s, deadline, POLL_S, checks)

    def log_in() -> None:
        """Open the connections that all commands share while the nodes still wait for the shared directory; the
        master's first, because the others go through it."""
        for group in (machines[:1], machines[1:]):
            each(lambda machine: wait(machine, console.STARTED), group)
            if group[0] is master:
                wait_for_banner(master.node.name, port, deadline, answer_s=2 * patience)
            each(lambda machine: SshTransport(config, machine.node.name, patience).open(), group)

    with ThreadPoolExecutor(max_workers=1) as pool:
        logged_in = pool.submit(log_in)
        each(wait, machines)
        logged_in.result()


def _pinned(machine: Machine, options: QemuOptions) -> tuple[str, dict[str, Any]]:
    """Put the threads of a machine in their places: the sentence for the record, and the facts."""
    node = machine.node
    if not options.pin:
        return pinning.free(node), {"vm_pinned": False}
    pid = int((machine.directory / "pid").read_text())
    workers = pinning.vhost_workers(pid) if machine.vhost else ()
    places = pinning.pin(pid, qmp.threads(machine.directory / "qmp"), node.cpu_ids, workers)
    facts = {"vm_pinned": True, "vm_cpu_places": list(places), "vm_emulator_cpus": list(node.cpu_ids)}
    if not machine.vhost:
        return pinning.told(node, places), facts
    facts["vm_vhost_cpus"] = list(node.cpu_ids) if workers else []
    how = "with them" if workers else "where the host puts it, it is not to be seen"
    return f"{pinning.told(node, places)}; vhost {how}", facts


def _pinned_switch(
    campaign: str, shape: ClusterShape, options: QemuOptions
) -> tuple[tuple[str, ...], dict[str, list[int]]]:
    """Put the switch of a cluster, where it has one, on the CPUs of its nodes: sentence and facts, as above."""
    if not options.pin or options.network != "switch":
        return (), {}
    cpus = sorted({cpu for node in shape.nodes for cpu in node.cpu_ids})
    for one in _processes():
        if one.campaign == campaign and not one.node:
            os.sched_setaffinity(one.pid, cpus)
    return (f"switch: on CPU {','.join(map(str, cpus))}",), {"vm_switch_cpus": cpus}


def _machines(
    site: Site, shape: ClusterShape, options: QemuOptions, accel: Accelerator, ram_disk: Path | None
) -> tuple[Machine, ...]:
    switch, vhost = site.directory / "switch", bridge.vhost(options, accel)
    known, usable = numa.nodes(), os.sched_getaffinity(0)
    return tuple(
        Machine(
            campaign=site.campaign,
            node=node,
            number=number,
            directory=site.console(node.name).parent,
            switch=switch,
            kernel=_kernel(site.image),
            initrd=ram_disk,
            vhost=vhost,
            numa_nodes=numa.holding(node.cpu_ids, known) if options.pin else (),
            near=numa.near(node.cpu_ids, known, usable) if options.pin else (),
        )
        for number, node in enumerate(shape.nodes)
    )


Commands = tuple[tuple[str, ...], ...]


def _parts(
    site: Site, machines: Sequence[Machine], options: QemuOptions, accel: Accelerator, version: Version
) -> tuple[Commands, ...]:
    """What makes the network, then what starts each node."""
    nodes = [(machine.node.name, lines.started(machine, options, accel, version)) for machine in machines]
    if options.network == "tap":
        network = bridge.commands(site.campaign, site.directory)
        return network, *((bridge.through(site.campaign, name, command),) for name, command in nodes)
    path = str(site.directory / "switch")
    network = ((sys.executable, "-I", "-S", str(SWITCH), f"{LABEL}={site.campaign}", path),)
    return network, *((command,) for _, command in nodes)


def _kernel(image: Image) -> str:
    """The kernel as it is in memory, where the image has it so: unpacking takes an emulated CPU more than a second."""
    packed = Path(image.kernel)
    unpacked = packed.with_name(packed.name.replace("vmlinuz", "vmlinux"))
    return str(unpacked if unpacked.exists() else packed)


def _ram_disk(image: Image) -> Path | None:
    """The initial RAM disk beside the cached image, made when it is not there; None when the kernel needs none."""
    path = Path(image.directory).parent / "initrd-nvme.cpio"
    if path.exists():
        return path
    content = initrd.made(image, initrd.NVME)
    if content is None:
        return None
    fresh = path.with_name(f"{path.name}.new.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(path)
    return path


def _bases(image: Image, shape: ClusterShape, options: QemuOptions) -> dict[str, dict[str, Path]]:
    """For every node the common disks that its own are made from; each kind is made once."""
    bases = {}
    for node in shape.nodes:
        bases[node.name] = {"system": disk.system(image, node.disk_bytes)}
        if options.disk == "virtio-blk":
            bases[node.name]["data"] = disk.data(image, node.disk_bytes)
    return bases


def _write_secret(path: Path, content: bytes) -> None:
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)


class _Process:
    """A process of ours, as its command line tells: `node` is "" for a switch, `place` the directory of its files."""

    def __init__(self, pid: int, campaign: str, node: str, place: Path) -> None:
        self.pid, self.campaign, self.node, self.place = pid, campaign, node, place
        self.started = _start_time(pid)

    def alive(self) -> bool:
        return self.started != "" and _start_time(self.pid) == self.started

    def kill(self) -> None:
        """End it, and return when it has ended."""
        while self.alive():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(POLL_S / 5)


def _start_time(pid: int) -> str:
    """When a process started, which tells it from a later one of the same number; "" when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _ended(machine: Machine) -> str:
    with suppress(OSError, ValueError):
        if _start_time(int((machine.directory / "pid").read_text())) != "":
            return ""
    return "QEMU has ended"


def _processes() -> list[_Process]:
    """All processes of this user that run nodes or switches of ours, whoever started them.

    Not those with another root directory: they are of a container's vtax, whose files cannot be seen from here.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if entry.stat().st_uid != os.geteuid() or not (entry.parent / "root").samefile("/"):
                continue
            words = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # gone meanwhile
        owner = owner_of(words)
        if owner is not None:
            found.append(_Process(int(entry.parent.name), *owner))
    return found


def owner_of(words: Sequence[str]) -> tuple[str, str, Path] | None:
    """Campaign, node and directory of a process of ours by its command line; None for any other."""
    if Path(words[0]).name == lines.QEMU and "-name" in words and "-pidfile" in words:
        name = NAME.match(words[words.index("-name") + 1].partition(",")[0])
        place = Path(words[words.index("-pidfile") + 1]).parent
        return (name[1], name[2], place) if name else None
    if len(words) > 5 and Path(words[3]).name == SWITCH.name:
        label, _, campaign = words[4].partition("=")
        return (campaign, "", Path(words[5]).parent) if label == LABEL else None
    return None
