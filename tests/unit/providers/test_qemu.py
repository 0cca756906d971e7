"""QEMU's exact command lines, what a console says, the probe of KVM, and how processes of ours are recognised."""

from __future__ import annotations

import errno
import io
import os
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from fakes.cluster import node_shape, result_of
from vtax.cluster.access import write_ssh_config
from vtax.cluster.seed import seed
from vtax.errors import CommandError, PauseError, ProvisionError
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import CommandResult
from vtax.providers import network, overlay
from vtax.providers.base import LABEL, UNKNOWN, Site
from vtax.providers.guest import console, disk
from vtax.providers.network import Namespace, addresses
from vtax.providers.qemu import boot, command, kvm, machines, problems, processes, qmp
from vtax.providers.qemu import provider as module
from vtax.providers.qemu.command import Machine, QemuOptions
from vtax.providers.qemu.pausing import MonitorPausing
from vtax.providers.qemu.processes import SWITCH, Process, owner_of
from vtax.providers.qemu.provider import Qemu
from vtax.providers.qemu.start import start_machine
from vtax.transport import process

SITE = Path("/run/c1/vm")
SANDBOX = "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
NAMES = ("master", "worker1", "worker2")
PLACES = addresses(NAMES)
SLOTS = {"master": 1, "worker1": 1, "worker2": 1}


def machine(number: int, cpu_ids: tuple[int, ...] = (2, 3)) -> Machine:
    name = NAMES[number]
    bases = {"system": Path("/cache/system.raw"), "data": Path("/cache/data.raw")}
    files = (SITE / name, SITE / "switch", "/cache/vmlinuz", None, bases)
    return Machine("c1", node_shape(name, cpu_ids), number, *files, way_in=number == 0)


def line(number: int, accel: command.Accelerator = "tcg", **options: object) -> str:
    return " ".join(command.argv(machine(number), QemuOptions.model_validate(options), accel, (7, 2)))


def start(name: str) -> str:
    return (
        f"qemu-system-x86_64 -name vtax-c1-{name},debug-threads=on -nodefaults -no-user-config -no-reboot "
        f"-display none {SANDBOX}"
    )


def serial(name: str) -> str:
    return (
        "-chardev socket,id=monitor,fd=6,server=on,wait=off -mon monitor,mode=control "
        f"-add-fd fd=5,set=5,opaque=/run/c1/vm/{name}/console.log "
        "-chardev file,id=console,path=/dev/fdset/5 -serial chardev:console "
        "-chardev socket,id=orders,fd=7,server=on,wait=off -serial chardev:orders"
    )


def end(name: str) -> str:
    return (
        "-fw_cfg name=opt/vtax/seed,file=/proc/self/fd/9 -kernel /proc/self/fd/10 "
        "-append console=ttyS0 quiet panic=-1 oops=panic no_timer_check rw root=/dev/nvme0n1 rootfstype=ext4 "
        "init=/usr/local/bin/vm-init"
    )


def system(name: str, cache: str = "none", kind: str = "qcow2") -> str:
    files = {12: f"/run/c1/vm/{name}/system", 13: f"/run/c1/vm/{name}/system", 14: "/cache/system.raw"}
    layered = kind == "qcow2"
    given = [
        (f"fd={fd},set={12 if fd == 13 else fd},opaque={path}") for fd, path in files.items() if layered or fd < 14
    ]
    below = ",backing.driver=raw,backing.file.driver=file,backing.file.filename=/dev/fdset/14" if layered else ""
    return (
        f"{' '.join(f'-add-fd {one}' for one in given)} "
        f"-drive id=system,file=/dev/fdset/12{below},format={kind},cache={cache}"
        f"{',backing.cache.direct=off' if kind == 'qcow2' else ''},if=none,discard=unmap,werror=report,rerror=report "
        "-device nvme,drive=system,serial=system"
    )


def inner(number: int, nic: str = "virtio-net-pci") -> str:
    return (
        "-netdev stream,id=inner,server=off,addr.type=fd,addr.str=8 "
        f"-device {nic},netdev=inner,mac=52:54:00:76:00:0{number},romfile="
    )


SIZE = "-smp 2,sockets=1,cores=2,threads=1 -m 2048M"
OUTER = (
    "-netdev user,id=outer,net=10.0.2.0/24,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:0-:22 "
    "-device virtio-net-pci,netdev=outer,mac=52:54:00:76:01:00,romfile="
)


def test_a_worker_in_software_emulation() -> None:
    assert line(1) == (
        f"{start('worker1')} -machine q35 -accel tcg,thread=multi -cpu max,-erms,-fsrm,-cx16 {SIZE} "
        f"{serial('worker1')} {system('worker1')} {inner(1)} {end('worker1')}"
    )


def test_the_master_has_a_second_network_card() -> None:
    assert line(0, "kvm") == (
        f"{start('master')} -machine q35 -accel kvm -cpu host {SIZE} {serial('master')} "
        f"{system('master')} {inner(0)} {OUTER} {end('master')}"
    )


def test_options_of_a_worker() -> None:
    chosen: dict[str, object] = {
        "cpu": "Nehalem",
        "nic": "vmxnet3",
        "cache": "unsafe",
        "format": "raw",
        "hugepages": True,
    }
    assert line(2, "kvm", **chosen) == (
        f"{start('worker2')} -machine q35,memory-backend=memory -accel kvm -cpu Nehalem {SIZE} "
        "-object memory-backend-memfd,id=memory,size=2048M,hugetlb=on,hugetlbsize=2M,prealloc=on "
        f"{serial('worker2')} {system('worker2', 'unsafe', 'raw')} {inner(2, 'vmxnet3')} {end('worker2')}"
    )


def test_a_tap_is_open_when_the_machine_starts() -> None:
    """Its file descriptor is the one that the program before QEMU leaves open; the master's NAT is as before."""
    device = "-device virtio-net-pci,netdev=inner,mac=52:54:00:76:00:0{},romfile="
    assert f"-netdev tap,id=inner,fd=3,vhost=off {device.format(1)}" in line(1, network="tap")
    made = line(0, network="tap")
    assert f"-netdev tap,id=inner,fd=3,vhost=off {device.format(0)} {OUTER} " in made
    assert "stream" not in made
    carried = replace(machine(1), vhost=True)
    assert "fd=3,vhost=on,vhostfd=4 " in " ".join(command.argv(carried, QemuOptions(network="tap"), "kvm", (7, 2)))
    opened = [file.word for file in command.files(carried, QemuOptions(network="tap"))]
    assert "write:4:/dev/vhost-net" in opened
    assert not any(word.startswith("connect:") for word in opened), "there is no switch"


def test_every_card_has_its_device_and_its_driver() -> None:
    for nic, device, drivers in (
        ("virtio", "virtio-net-pci", "virtio_pci virtio_net"),
        ("e1000", "e1000", "e1000"),
        ("vmxnet3", "vmxnet3", "vmxnet3"),
    ):
        options = QemuOptions.model_validate({"nic": nic})
        assert f"-device {device},netdev=inner," in line(0, nic=nic)
        assert f"-device {device},netdev=outer," in line(0, nic=nic)
        assert f"DRIVERS='{drivers}'\n" in command.guest_config(machine(1), PLACES, "/shared", options)


def test_the_small_kernel_lacks_one_driver() -> None:
    assert QemuOptions(nic="e1000").missing_driver("cloud") == "nic"
    assert QemuOptions(nic="e1000").missing_driver("generic") == ""
    assert QemuOptions().missing_driver("cloud") == ""


def test_a_ram_disk_only_where_the_kernel_needs_one() -> None:
    assert "-initrd" not in line(1)
    given = replace(machine(1), initrd=Path("/cache/initrd-nvme.cpio"))
    made = " ".join(command.argv(given, QemuOptions(), "tcg", (7, 2)))
    assert "-kernel /proc/self/fd/10 -initrd /proc/self/fd/11 -append console=ttyS0 " in made
    assert "share:11:/cache/initrd-nvme.cpio" in [file.word for file in command.files(given, QemuOptions())]


def test_an_image_of_the_study_is_a_disk_that_is_only_read() -> None:
    given = replace(machine(1), workload=Path("/cache/a,b/5e5e.disk"))
    made = " ".join(command.argv(given, QemuOptions(), "tcg", (7, 2)))
    own = (
        "-add-fd fd=18,set=18,opaque=/cache/a,,b/5e5e.disk "
        "-drive id=workload,file=/dev/fdset/18,format=raw,cache=writeback,if=none,readonly=on,rerror=report "
        "-device virtio-blk-pci,drive=workload,serial=workload"
    )
    assert f"{system('worker1')} {own} {inner(1)}" in made
    assert "id=workload" not in line(1)
    assert "WORKLOAD='workload'\n" in command.guest_config(given, PLACES, "/shared", QemuOptions())
    assert "WORKLOAD=''\n" in command.guest_config(machine(1), PLACES, "/shared", QemuOptions())
    assert command.facts(given, QemuOptions(), "tcg", (7, 2))["workload_layer"] == "ext4"
    assert "workload_layer" not in command.facts(machine(1), QemuOptions(), "tcg", (7, 2))


def test_the_disk_of_an_image_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As large as all files with a block more each, a sixteenth, and 32 MiB: 600 MB in 10 000 files take 683 MiB."""
    counted = {"--apparent-size": "600000000\t/x\n", "--inodes": "10000\t/x\n"}
    ran: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], **_: object) -> CommandResult:
        ran.append(tuple(argv))
        if "mke2fs" in argv:
            Path(argv[-2]).touch()
        return result_of(argv, (0, next((text for word, text in counted.items() if word in argv), ""), ""))

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(process, "as_root_here", tuple)
    workload = overlay.PLANNED.model_copy(update={"directory": str(tmp_path / "5e5e")})
    assert disk.own_image(workload) == tmp_path / "5e5e.disk"
    assert disk.own_image(workload).exists()
    (made,) = (argv for argv in ran if "mke2fs" in argv)
    assert made[:7] == ("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0")
    assert made[-4:-2] == ("-d", str(tmp_path / "5e5e"))
    assert (made[made.index("-N") + 1], made[-1]) == ("10064", "682M")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["5e5e.disk", "5e5e.disk.lock"]


def test_memory_that_is_taken_before_the_guest_starts() -> None:
    made = line(1, prealloc=True)
    assert "-machine q35,memory-backend=memory " in made
    assert "-object memory-backend-ram,id=memory,size=2048M,prealloc=on " in made


def test_what_a_node_cannot_see_of_itself_is_recorded() -> None:
    options = QemuOptions(network="tap", nic="e1000", cache="writeback", format="raw", disk="virtio-blk")
    given = replace(machine(1), initrd=Path("/x"), vhost=False)
    assert command.facts(given, options, "tcg", (7, 2)) == {
        "emulated": True,
        "vm_accelerator": "tcg",
        "vm_qemu": "7.2",
        "vm_cpu_model": "max,-erms,-fsrm,-cx16",
        "vm_memory": "on demand",
        "vm_network": "tap",
        "vm_vhost": False,
        "vm_nic": "e1000",
        "vm_disk": "virtio-blk",
        "vm_disk_cache": "writeback",
        "vm_disk_format": "raw",
        "vm_initrd": True,
        "vm_numa_nodes": [],
    }
    assert command.facts(machine(1), QemuOptions(hugepages=True), "kvm", (10, 0))["vm_memory"] == "huge pages"
    assert command.facts(machine(1), QemuOptions(prealloc=True), "kvm", (10, 0))["vm_memory"] == "preallocated"


def test_a_node_starts_near_its_cpus() -> None:
    """Where that is a choice: memory is taken where the CPU is that touches it first."""
    far = replace(machine(1), numa_nodes=(1,), near=(2, 3, 6))
    made = command.started(far, QemuOptions(), "kvm", (7, 2))
    assert made[:3] == ("taskset", "-c", "2,3,6")
    assert made[made.index("--") + 1 :] == command.argv(far, QemuOptions(), "kvm", (7, 2))
    assert command.facts(far, QemuOptions(), "kvm", (7, 2))["vm_numa_nodes"] == [1]
    assert command.started(machine(1), QemuOptions(), "kvm", (7, 2))[0] == sys.executable


def huge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, *mebibytes: int) -> list[str]:
    (tmp_path / "free").write_text(f"{free}\n")
    monkeypatch.setattr(problems, "HUGE", tmp_path / "free")
    nodes = tuple(node_shape(name, (0,), size * 2**20) for name, size in zip(NAMES, mebibytes, strict=False))
    return [one.message for one in problems.huge_pages(ClusterShape(nodes=nodes), QemuOptions(hugepages=True))]


def test_huge_pages_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert huge(tmp_path, monkeypatch, 768, 512, 1024) == []
    assert huge(tmp_path, monkeypatch, 767, 512, 1024) == ["the nodes need 768 huge pages of 2 MiB, but 767 are free"]
    assert huge(tmp_path, monkeypatch, 999, 513) == [
        "master has 513 MiB of memory, which is not a multiple of 2 MiB, the size of `hugepages`"
    ]


def test_the_plan_shows_what_will_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of the QEMU that is installed, for the kernel that the study wants; the oldest where none is."""
    monkeypatch.setattr(kvm, "probe", lambda _: kvm.Answer("no"))
    spec = EnvironmentSpec(name="vm", provider="qemu", options=QemuOptions().model_dump(mode="json"))
    shape = ClusterShape(nodes=(node_shape("master", (0,)), node_shape("worker1", (0,))))

    def planned(installed: command.Version | None, kernel: str) -> str:
        monkeypatch.setattr(Qemu, "_version", lambda _: installed)
        return " ".join(Qemu(tmp_path).commands(spec, shape, "/shared", kernel)[-1])

    assert " -cpu max,-erms,-fsrm -smp" in planned((8, 0), "cloud")
    assert " -cpu max,-erms,-fsrm,-cx16 -smp" in planned((7, 2), "cloud")
    assert " -cpu max,-erms,-fsrm,-cx16 -smp" in planned(None, "cloud")
    assert " share:10:CACHE/rootfs/boot/vmlinuz -- " in planned((8, 0), "cloud")
    assert " share:10:CACHE/rootfs/boot/vmlinuz share:11:INITRD -- " in planned((8, 0), "generic")
    assert " read:14:CACHE/system-" in planned((8, 0), "cloud")


def test_a_virtio_disk_is_a_second_one() -> None:
    data = (
        "-add-fd fd=15,set=15,opaque=/run/c1/vm/worker1/data -add-fd fd=16,set=15,opaque=/run/c1/vm/worker1/data "
        "-add-fd fd=17,set=17,opaque=/cache/data.raw -drive id=data,file=/dev/fdset/15,backing.driver=raw,"
        "backing.file.driver=file,backing.file.filename=/dev/fdset/17,format=qcow2,cache=none,"
        "backing.cache.direct=off,if=none,discard=unmap,werror=report,rerror=report -device virtio-blk-pci,drive=data"
    )
    assert f"{system('worker1')} {data} {inner(1)}" in line(1, disk="virtio-blk")
    setting = command.guest_config(machine(1), PLACES, "/shared", QemuOptions(disk="virtio-blk"))
    assert "DATA_DISK='/dev/vda'\n" in setting


@pytest.mark.parametrize(
    ("cpu", "accel", "qemu", "model"),
    [
        (None, "kvm", (7, 2), "host"),
        (None, "tcg", (7, 2), "max,-erms,-fsrm,-cx16"),
        (None, "tcg", (8, 0), "max,-erms,-fsrm"),
        ("Nehalem", "tcg", (7, 2), "Nehalem,-cx16"),
        ("qemu64,-cx16", "tcg", (7, 2), "qemu64,-cx16"),
        ("Nehalem", "kvm", (7, 2), "Nehalem"),
    ],
)
def test_the_cpu_never_has_what_old_emulators_do_wrong(
    cpu: str | None, accel: command.Accelerator, qemu: command.Version, model: str
) -> None:
    assert command.cpu_model(QemuOptions(cpu=cpu), accel, qemu) == model


@pytest.mark.parametrize("wrong", [{"cpu": "host; rm"}, {"cache": "writeback,file=/etc/passwd"}, {"accel": "hvf"}])
def test_options_that_are_none(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        QemuOptions.model_validate(wrong)


def test_versions() -> None:
    assert command.version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg)\nCopyright") == (7, 2)
    assert command.version("QEMU emulator version 10.0.2") == (10, 0)
    assert command.version("") is None


@pytest.mark.parametrize(
    "listed",
    [
        "x86 486                   (alias configured by machine type)\nx86 486-v1                \nx86 max  All\n",
        "  486                   (alias configured by machine type)\n  486-v1\n  max                   Enables all\n",
    ],
    ids=["7.2", "9.1"],
)
def test_the_cpus_that_qemu_knows(listed: str) -> None:
    text = f"Available CPUs:\n{listed}\nRecognized CPUID flags:\n  3dnow 3dnowext\n"
    assert command.cpu_models(text) == ("486", "486-v1", "max")


@pytest.mark.parametrize(
    ("cpu", "accel", "said"),
    [
        (
            "Nehalm",
            "tcg",
            "this QEMU has no CPU model 'Nehalm' | choose Nehalem; `qemu-system-x86_64 -cpu help` lists all",
        ),
        ("host", "tcg", 'cpu = "host" needs KVM, and this environment runs in software emulation | set cpu = "max"'),
        ("Nehalem,-sse4.2", "tcg", ""),
        ("host", "kvm", ""),
        (None, "tcg", ""),
    ],
)
def test_a_cpu_that_is_none(
    cpu: str | None, accel: command.Accelerator, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = result(0).model_copy(update={"stdout": "Available CPUs:\nx86 Nehalem  Intel\nx86 host  all\nx86 max\n"})
    monkeypatch.setattr(process, "run", lambda argv, timeout_s: printed)
    options = QemuOptions.model_validate({"cpu": cpu, "accel": accel})
    found = [f"{one.message} | {one.remedy}" for one in problems.cpu(options, accel)]
    assert "".join(found).startswith(said)
    assert bool(found) is bool(said)


def test_disks_are_layers_or_copies() -> None:
    base, disk = Path("/cache/base.raw"), Path("/run/x/system")
    layer = "qemu-img create -q -f qcow2 -b /cache/base.raw -F raw /run/x/system"
    assert " ".join(command.clone(base, disk, QemuOptions())) == layer
    assert command.clone(base, disk, QemuOptions(format="raw"))[0] == "cp"


# --- the seed and the way to the nodes -----------------------------------------------------------------------------


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir()
    for name in ("user", *NAMES):
        (folder / name).write_text(f"secret of {name}\n")
        (folder / f"{name}.pub").write_text(f"ssh-ed25519 AAAA{name} vtax {name}\n")
    return folder


def test_the_seed_of_a_worker(keys: Path) -> None:
    setting = command.guest_config(machine(1), PLACES, "/shared", QemuOptions())
    with tarfile.open(fileobj=io.BytesIO(seed(keys, "worker1", PLACES, SLOTS, setting))) as archive:
        held = {entry.name: (entry.mode, archive.extractfile(entry).read().decode()) for entry in archive}  # type: ignore[union-attr]
    assert held["etc/hosts"][1] == (
        "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
        "10.214.0.10 master\n10.214.0.11 worker1\n10.214.0.12 worker2\n"
    )
    assert held["etc/vtax-node"][1] == (
        "NODE='worker1'\nADDRESS='10.214.0.11'\nMAC='52:54:00:76:00:01'\nDRIVERS='virtio_pci virtio_net'\n"
        "GATEWAY='10.214.0.10'\nOUTER_MAC=''\n"
        "OUTER_ADDRESS='10.0.2.15'\nOUTER_GATEWAY='10.0.2.2'\nNETWORK='10.214.0.0/24'\nSHARED='/shared'\n"
        "SERVER='10.214.0.10'\nDATA_DISK=''\nWORKLOAD=''\nMTU=''\n"
    )
    assert held["etc/ssh/ssh_host_ed25519_key"] == (0o600, "secret of worker1\n")


def test_a_container_gets_no_setting(keys: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(seed(keys, "worker1", PLACES, SLOTS))) as archive:
        assert not {"etc/hosts", "etc/vtax-node"} & set(archive.getnames())


def test_workers_are_reached_through_the_master(keys: Path, tmp_path: Path) -> None:
    config = write_ssh_config(tmp_path, keys, {"master": 4321}, behind=PLACES, timeout_factor=5).read_text()
    assert "Host master\n  HostName 127.0.0.1\n  Port 4321\n" in config
    assert "Host worker2\n  HostName 10.214.0.12\n  ProxyJump master\n  HostKeyAlias worker2\n" in config
    assert config.count("Host master\n") == 1
    assert "ConnectTimeout 50\n" in config
    assert "worker2 ssh-ed25519 AAAAworker2\n" in (tmp_path / "known_hosts").read_text()


# --- the console ---------------------------------------------------------------------------------------------------

STORY = "".join(f"vtax-init {n}.10 {word}\n" for n, word in enumerate(("mounted", "seeded", "network", "sshd")))


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("", "mounted"),
        ("vtax-init 1.0 mount", "mounted"),
        (STORY, "shared"),
        (STORY + "vtax-init 9.9 shared\n", "ready"),
        (STORY + "vtax-init 9.9 shared\nvtax-init 9.9 ready\n", None),
    ],
)
def test_how_far_a_worker_has_come(text: str, missing: str | None) -> None:
    check = console.first_missing(text, console.checks_for(node_shape("worker1")))
    assert (check.word if check else None) == missing


def test_the_master_exports_and_forwards() -> None:
    words = [check.word for check in console.checks_for(node_shape("master"))]
    assert words == ["mounted", "seeded", "network", "sshd", "exported", "gateway", "ready"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STORY, ""),
        ("[    1.2] Kernel panic - not syncing: VFS\n", "[    1.2] Kernel panic - not syncing: VFS"),
        ("x\nvtax-init 3.1 failed: no seed\n", "vtax-init 3.1 failed: no seed"),
    ],
)
def test_what_is_fatal(text: str, said: str) -> None:
    assert console.fatal(text) == said


def test_a_console_without_what_moves_cursors() -> None:
    assert console.plain("\x1bc\x1b[?7l\x1b[2Jvtax-init 1 ready\r\n") == "vtax-init 1 ready\n"
    assert console.tail("\n".join(map(str, range(40)))).split("\n")[0] == "25"


# --- KVM ------------------------------------------------------------------------------------------------------------


def result(exit_code: int, stderr: str = "", timed_out: bool = False) -> CommandResult:
    return CommandResult(
        argv=("x",), exit_code=exit_code, stdout="", stderr=stderr, started=0, elapsed_s=1, timed_out=timed_out
    )


def test_only_one_exit_code_is_a_yes() -> None:
    assert kvm.answer_of(result(85)) == kvm.Answer()
    for code in (0, 1, 67, 69, 71, -6):  # those of guests that stop on the way, too
        assert f"exit code {code}" in kvm.answer_of(result(code)).reason
    assert "within 2.5 s" in kvm.answer_of(result(-9, timed_out=True)).reason
    assert kvm.answer_of(result(1, "qemu: no such thing\nmore\n")).reason.endswith(": qemu: no such thing")
    busy = kvm.answer_of(result(1, "ioctl(KVM_CREATE_VM) failed: 16 Device or resource busy"))
    assert busy.remedy == "stop the virtual machines of other hypervisors (VirtualBox)"


def test_a_cpu_without_the_flags_is_not_asked_at_all() -> None:
    assert kvm.refused("processor : 0\nflags\t\t: fpu vmx sse\n") is None
    assert kvm.refused("flags : fpu svm\n") is None
    for text in ("flags : fpu vmxnet sse\n", ""):
        answer = kvm.refused(text)
        assert answer is not None
        assert "neither vmx nor svm" in answer.reason
        assert "firmware" in answer.remedy
        assert "nested virtualization" in answer.remedy


@pytest.mark.parametrize(
    ("number", "flags", "remedy"),
    [
        (errno.EACCES, "vmx", "as root: usermod -aG kvm ada; then log in again"),
        (errno.EPERM, "vmx", "in a container: start it with --device /dev/kvm"),
        (errno.ENOENT, "vmx", "as root: modprobe kvm_intel; in a container: start it with --device /dev/kvm"),
        (errno.ENODEV, "svm", "as root: modprobe kvm_amd; in a container: start it with --device /dev/kvm"),
    ],
)
def test_what_makes_the_device_open(
    number: int, flags: str, remedy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(path: Path, how: int) -> int:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(kvm, "name_of", lambda _: "ada")
    monkeypatch.setattr("os.open", refuse)
    assert kvm.unopened(f"flags : {flags}\n") == kvm.Answer(f"/dev/kvm: {os.strerror(number)}", remedy)


class Probes:
    """A machine on which test guests end as `results` says, one after another."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch, *results: CommandResult) -> None:
        self.asked: list[str] = []
        self.qemu = place / "qemu"
        self.qemu.touch()
        coming = iter(results)

        def tried(accel: str, cpu: str) -> CommandResult:
            self.asked.append(f"{accel} {cpu}")
            return next(coming)

        monkeypatch.setattr(kvm, "refused", lambda _: None)
        monkeypatch.setattr(kvm, "unopened", lambda _: None)
        monkeypatch.setattr("shutil.which", lambda _: str(self.qemu))
        monkeypatch.setattr(kvm, "run_test_guest", tried)


def test_the_answer_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest that ran, for everybody; one that did not, until somebody asks again."""
    probes = Probes(tmp_path, monkeypatch, result(-9, timed_out=True), result(85))
    run = tmp_path / "run"
    first = kvm.probe(run)
    assert "did not reach user mode" in first.reason
    assert "`vtax doctor` tests again" in first.remedy
    assert kvm.probe(run) == first
    assert probes.asked == ["kvm host"]
    assert kvm.probe(run, again=True) == kvm.probe(run) == kvm.probe(run, again=True) == kvm.Answer()
    assert probes.asked == ["kvm host"] * 2


def test_another_qemu_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probes = Probes(tmp_path, monkeypatch, result(85), result(-9, timed_out=True))
    assert kvm.probe(tmp_path / "run").reason == ""
    os.utime(probes.qemu, ns=(1, 1))
    assert kvm.probe(tmp_path / "run").reason != ""


def test_what_qemu_says_is_no_answer_of_the_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another hypervisor has the CPU's virtualization now, or QEMU is not there yet: neither holds for long."""
    Probes(tmp_path, monkeypatch, result(1, "failed: 16 Device or resource busy"), result(85))
    assert "busy" in kvm.probe(tmp_path / "run").reason
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert kvm.probe(tmp_path / "run").reason == "qemu-system-x86_64 is not installed"
    monkeypatch.setattr("shutil.which", lambda _: str(tmp_path / "qemu"))
    assert kvm.probe(tmp_path / "run") == kvm.Answer()


def test_a_provider_says_one_thing_all_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of one run are never of two kinds; a person who asks is told what is so now."""
    answers = {False: iter([kvm.Answer("busy", "end it"), kvm.Answer()]), True: iter([kvm.Answer("hung", "fix it")])}
    monkeypatch.setattr(kvm, "probe", lambda _, again=False: next(answers[again]))
    supplier = Qemu(tmp_path)
    assert [supplier.accelerator(QemuOptions()) for _ in range(2)] == ["tcg", "tcg"]
    assert supplier.emulates(QemuOptions())
    assert not supplier.emulates(QemuOptions(accel="kvm"))
    assert (supplier.status_note(), supplier.improvement_hint()) == ("software emulation only: hung", "fix it")


def emulation(broken: kvm.Answer, **options: object) -> list[str]:
    chosen = QemuOptions.model_validate(options)
    accel: command.Accelerator = "kvm" if chosen.accel == "kvm" else "tcg"
    return [f"{one.message} | {one.remedy}" for one in problems.emulation("vm", chosen, accel, broken)]


def test_where_kvm_does_not_work_the_plan_says_what_to_do() -> None:
    broken = kvm.Answer("/dev/kvm: Permission denied", "as root: usermod -aG kvm ada; then log in again")
    assert emulation(broken, accel="kvm") == [
        "no working KVM on this machine: /dev/kvm: Permission denied | as root: usermod -aG kvm ada; "
        'then log in again; or set accel = "tcg" for software emulation'
    ]
    (warned,) = emulation(broken)
    assert "runs in software emulation: /dev/kvm: Permission denied; its results say nothing" in warned
    assert "| as root: usermod -aG kvm ada; then log in again; allow_emulation = true" in warned
    assert "| run on a host with working KVM; " in emulation(kvm.Answer(), accel="tcg")[0]
    assert emulation(kvm.Answer(), accel="kvm") == []


def test_no_processor_writes_to_the_table_in_read_only_memory() -> None:
    """Loading a segment marks its descriptor as accessed; under KVM a guest cannot write that to its firmware, and
    hangs. So all of them are marked already."""
    image = kvm.IMAGE
    table = image.index(bytes.fromhex("ffff0000009bcf00")) - 8  # its first is empty
    found = []
    for start in range(table + 8, len(image), 8):
        access = image[start + 5]
        if not access & 0x10:  # the task, which is loaded from a copy in memory, and the end
            break
        found.append(access & 1)
    assert found == [1] * 6


def test_the_probe_is_firmware() -> None:
    rom = kvm.rom()
    assert len(rom) == 65536
    assert rom[:1] == b"\xfa", "its first instruction switches interrupts off"
    assert rom[-16:-11] == bytes.fromhex("ea000000f0")


# --- the monitor, and processes of ours ----------------------------------------------------------------------------


def test_the_forwarded_port() -> None:
    table = "  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n"
    row = "  TCP[HOST_FORWARD]  11       127.0.0.1 43787       10.0.2.15    22     0     0\r\n"
    assert qmp.forwarded_port(f"Hub -1 (outer):\r\n{table}{row}") == 43787
    with pytest.raises(ProvisionError):
        qmp.forwarded_port(table)


@pytest.fixture
def monitor(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What monitors are asked: node and command. That of worker2 does not answer."""
    asked: list[tuple[str, str]] = []

    def ask(path: Path, word: str, *, answer_s: float) -> object:
        if path.parent.name == "worker2":
            raise ProvisionError(f"QEMU's monitor {path} does not answer: gone", remedy="has QEMU ended?")
        asked.append((path.parent.name, word))
        return {}

    monkeypatch.setattr(qmp, "ask", ask)
    return asked


def test_machines_are_stopped_and_continued_by_their_monitors(monitor: list[tuple[str, str]]) -> None:
    pausing = MonitorPausing([SITE / "master", SITE / "worker1"])
    assert pausing.pause() == "QEMU's monitor (stop)"
    pausing.resume()
    assert sorted(monitor[:2]) == [("master", "stop"), ("worker1", "stop")]
    assert sorted(monitor[2:]) == [("master", "cont"), ("worker1", "cont")]


def test_a_machine_that_cannot_be_stopped_is_named(monitor: list[tuple[str, str]]) -> None:
    with pytest.raises(PauseError, match=r"^worker2: QEMU's monitor .* does not answer: gone") as caught:
        MonitorPausing([SITE / "master", SITE / "worker2"]).pause()
    assert caught.value.remedy == "has QEMU ended?"


def test_paused_machines_are_continued_before_they_are_asked_to_power_off(
    monitor: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Paused:
        pid = 0

        def __init__(self, node: str) -> None:
            self.campaign, self.node, self.place = "c1", node, SITE / node

        def alive(self) -> bool:
            return ("kill", self.node) not in done

        def kill(self) -> None:
            done.append(("kill", self.node))

    done: list[tuple[str, str]] = []

    def power_off(path: Path, *_: object) -> None:
        done.append(("power off", path.parent.name))
        assert (path.parent.name, "cont") in monitor or path.parent.name == "worker2"

    monkeypatch.setattr(module, "processes", lambda: [Paused("master"), Paused("worker1"), Paused("worker2")])
    monkeypatch.setattr(module, "power_off", power_off)
    monkeypatch.setattr(network, "remove", lambda campaign: None)
    Qemu(Path("/run")).destroy("c1")
    assert {node for word, node in done if word == "power off"} == {"master", "worker1", "worker2"}
    assert {node for word, node in done if word == "kill"} == {"master", "worker1", "worker2"}


def test_a_machine_that_does_not_end_does_not_stop_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL does nothing to a process that waits for a device in the kernel."""

    class Waiting(Process):
        def alive(self) -> bool:
            return self.node == "worker1" or self.pid not in killed

        def kill(self) -> None:
            killed.append(self.pid)

    killed: list[int] = []
    removed: list[str] = []
    limits: list[float] = []
    nodes = [Waiting(pid, "c1", node, SITE / node) for pid, node in enumerate((*NAMES, ""), 2**22)]
    monkeypatch.setattr(module, "processes", lambda: nodes)
    monkeypatch.setattr(module, "power_off", lambda *_: None)
    monkeypatch.setattr(qmp, "ask", lambda *_, answer_s: limits.append(answer_s))
    monkeypatch.setattr(processes, "END_S", 0.02)
    monkeypatch.setattr(network, "remove", removed.append)
    with pytest.raises(ProvisionError, match=r"after 0\.02 s: worker1 \(4194305\)") as raised:
        Qemu(Path("/run")).destroy("c1")
    assert "state D" in raised.value.remedy
    assert set(killed) == {one.pid for one in nodes}
    assert removed == ["c1"]
    assert set(limits) == {module.OFF_S}, "one that does not answer is not waited for as during a trial"


class Foreground:
    """A QEMU that ends by itself after some questions, or never."""

    def __init__(self, log: Path, lives: int) -> None:
        self.log, self.lives = log, lives

    def ended(self) -> bool:
        self.lives -= 1
        return self.lives < 0

    def stop(self) -> CommandResult:
        self.log.write_text("qemu: no such device\n")
        return result_of(("qemu",), (1, "", ""))


def test_a_machine_is_started_when_its_monitor_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Foreground(tmp_path / "qemu.log", 10)
    answers = iter([False, False, True])

    def ask(path: Path, *_: object) -> None:
        assert path == tmp_path / "qmp"
        if not next(answers):
            raise ProvisionError("it does not answer")

    monkeypatch.setattr(process, "start", lambda *_, **__: running)
    monkeypatch.setattr(qmp, "ask", ask)
    started: object = start_machine(("qemu",), tmp_path, 60)
    assert started is running
    assert next(answers, None) is None


@pytest.mark.parametrize(
    ("lives", "limit_s", "said"), [(1, 60, "ended with exit code 1"), (99, 0, "did not end in time")]
)
def test_a_machine_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives: int, limit_s: float, said: str
) -> None:
    monkeypatch.setattr(process, "start", lambda *_, **__: Foreground(tmp_path / "qemu.log", lives))
    with pytest.raises(CommandError, match=said) as raised:
        start_machine(("qemu",), tmp_path, limit_s)
    assert raised.value.detail == "qemu: no such device"


def test_whose_process_it_is() -> None:
    made = command.argv(machine(1), QemuOptions(), "tcg", (7, 2))
    assert owner_of(("/usr/bin/qemu-system-x86_64", *made[1:])) == ("c1", "worker1", SITE / "worker1")
    switch = ("/usr/bin/python3", "-I", "-S", str(SWITCH), f"{LABEL}=up-1a2b", "/run/up-1a2b/vm/switch", "")
    assert owner_of(switch) == ("up-1a2b", "", Path("/run/up-1a2b/vm"))


@pytest.mark.parametrize(
    "words",
    [
        ("",),
        ("qemu-system-x86_64", "-name", "mine", "-add-fd", "fd=5,set=5,opaque=/x/console.log"),
        ("qemu-system-x86_64", "-name", "vtax-c1-worker1"),
        ("qemu-system-x86_64", "-name", "vtax-c1-worker1", "-add-fd", "fd=5,set=5,opaque=/x/other.log"),
        ("vi", "-name", "vtax-c1-worker1", "-add-fd", "fd=5,set=5,opaque=/x/console.log"),
        ("python3", "-I", "-S", "/x/switch.py", "other=c1", "/x/switch", ""),
        ("python3", "switch.py"),
    ],
)
def test_other_processes_are_none_of_ours(words: tuple[str, ...]) -> None:
    assert owner_of(words) is None


def test_what_another_vtax_may_be_using_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, other = tmp_path / "run" / "c1c1c1c1" / "vm", tmp_path / "other"
    theirs, gone = other / "c2c2c2c2" / "vm", other / "c3c3c3c3"
    ours.mkdir(parents=True)
    theirs.mkdir(parents=True)
    places = {"c1c1c1c1": ours, "c2c2c2c2": theirs, "c3c3c3c3": gone}
    found = [Process(1, name, "", place) for name, place in places.items()]
    monkeypatch.setattr(module, "processes", lambda: found)
    networks = [Namespace("c4c4c4c4", "", None), Namespace("c1c1c1c1", "", None), Namespace("c2c2c2c2", "", theirs)]
    monkeypatch.setattr(network, "found", lambda: networks)
    whose = [(item.campaign, item.elsewhere) for item in Qemu(tmp_path / "run").leftovers()]
    others = str(tmp_path / "other")
    assert whose == [
        *(("c1c1c1c1", ""), ("c2c2c2c2", others), ("c3c3c3c3", "")),
        *(("c4c4c4c4", UNKNOWN), ("c1c1c1c1", ""), ("c2c2c2c2", others)),
    ]


def test_processes_with_another_root_directory_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "owner_of", lambda words: ("c1", words[0], Path("/run/c1")))
    assert os.getpid() in {one.pid for one in processes.processes()}
    monkeypatch.setattr(Path, "samefile", lambda path, other: path.parent.name != str(os.getpid()))
    assert os.getpid() not in {one.pid for one in processes.processes()}


def test_the_time_to_come_up_begins_when_the_disks_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the common disk takes minutes where it is large, once."""
    now, deadlines = [1000.0], []

    def bases(*_: object) -> dict[str, dict[str, Path]]:
        now[0] += 900
        return {}

    def wait(site: Site, machines: object, places: object, timeout_factor: float, deadline: float) -> None:
        deadlines.append(deadline)
        raise ProvisionError("far enough")

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(kvm, "probe", lambda _: kvm.Answer())
    monkeypatch.setattr(module, "make_bases", bases)
    monkeypatch.setattr(module, "wait_until_ready", wait)
    for place, name in (
        (module, "make_keys"),
        (module, "seed"),
        (module, "ram_disk"),
        (module, "_write_secret"),
        (module, "start_machine"),
    ):
        monkeypatch.setattr(place, name, lambda *_: None)
    monkeypatch.setattr(network, "make", lambda _: None)
    monkeypatch.setattr(Qemu, "_version", lambda _: (8, 0))
    monkeypatch.setattr(process, "run", lambda argv, timeout_s, check: result(0))
    site = Site("c1", tmp_path, Image(recipe="", digest="", directory="", archive="", kernel="k"), tmp_path)
    spec = EnvironmentSpec(name="vm", provider="qemu", options=QemuOptions().model_dump(mode="json"))
    with pytest.raises(ProvisionError, match="far enough"):
        Qemu(tmp_path).create(spec, ClusterShape(nodes=(node_shape("master", (0,)),)), "/shared", site)
    assert deadlines == [1900 + boot.READY_S]


def test_the_unpacked_kernel_is_started_where_there_is_one(tmp_path: Path) -> None:
    packed = tmp_path / "vmlinuz-6.12-amd64"
    packed.touch()
    image = Image(recipe="", digest="", directory="", archive="", kernel=str(packed))
    assert machines._kernel(image) == str(packed)
    (tmp_path / "vmlinux-6.12-amd64").touch()
    assert machines._kernel(image) == str(tmp_path / "vmlinux-6.12-amd64")
