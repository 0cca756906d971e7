"""QEMU's exact command lines, what a console says, the probe of KVM, and how processes of ours are recognised."""

from __future__ import annotations

import io
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from fakes import node_shape
from vtax.cluster.access import write_ssh_config
from vtax.cluster.seed import seed
from vtax.errors import ProvisionError
from vtax.model.cluster import Image
from vtax.model.trial import CommandResult
from vtax.providers.base import LABEL, UNKNOWN
from vtax.providers.guest import console
from vtax.providers.guest.setting import addresses
from vtax.providers.qemu import bridge, command, kvm, problems, qmp
from vtax.providers.qemu import provider as module
from vtax.providers.qemu.command import Machine, QemuOptions
from vtax.providers.qemu.provider import SWITCH, Qemu, owner_of
from vtax.transport import process

SITE = Path("/run/c1/vm")
NAMES = ("master", "worker1", "worker2")
PLACES = addresses(NAMES)
SLOTS = {"master": 1, "worker1": 1, "worker2": 1}


def machine(number: int, cpu_ids: tuple[int, ...] = (2, 3)) -> Machine:
    name = NAMES[number]
    return Machine("c1", node_shape(name, cpu_ids), number, SITE / name, SITE / "switch", "/cache/vmlinuz")


def line(number: int, accel: command.Accelerator = "tcg", **options: object) -> str:
    return " ".join(command.argv(machine(number), QemuOptions.model_validate(options), accel, (7, 2)))


def start(name: str) -> str:
    return (
        f"qemu-system-x86_64 -name vtax-c1-{name},debug-threads=on -nodefaults -no-user-config -no-reboot "
        f"-display none -daemonize -pidfile /run/c1/vm/{name}/pid"
    )


def serial(name: str) -> str:
    return (
        f"-qmp unix:/run/c1/vm/{name}/qmp,server=on,wait=off "
        f"-chardev file,id=console,path=/run/c1/vm/{name}/console.log -serial chardev:console "
        f"-chardev socket,id=orders,path=/run/c1/vm/{name}/orders,server=on,wait=off -serial chardev:orders"
    )


def end(name: str) -> str:
    return (
        f"-fw_cfg name=opt/vtax/seed,file=/run/c1/vm/{name}/seed.tar -kernel /cache/vmlinuz "
        "-append console=ttyS0 quiet panic=-1 oops=panic no_timer_check rw root=/dev/nvme0n1 rootfstype=ext4 "
        "init=/usr/local/bin/vm-init"
    )


def system(name: str, cache: str = "none", kind: str = "qcow2") -> str:
    return (
        f"-drive id=system,file=/run/c1/vm/{name}/system,format={kind},cache={cache}"
        f"{',backing.cache.direct=off' if kind == 'qcow2' else ''},if=none,discard=unmap,werror=report,rerror=report "
        "-device nvme,drive=system,serial=system"
    )


def inner(number: int, nic: str = "virtio-net-pci") -> str:
    return (
        "-netdev stream,id=inner,server=off,addr.type=unix,addr.path=/run/c1/vm/switch "
        f"-device {nic},netdev=inner,mac=52:54:00:76:00:0{number},romfile="
    )


SIZE = "-smp 2,sockets=1,cores=2,threads=1 -m 2048M"
OUTER = (
    "-netdev user,id=outer,net=10.0.2.0/24,ipv6=off,hostfwd=tcp:127.0.0.1:0-:22 "
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
        "-object memory-backend-memfd,id=memory,size=2048M,hugetlb=on,prealloc=on "
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
    assert "fd=3,vhost=on " in " ".join(command.argv(carried, QemuOptions(network="tap"), "kvm", (7, 2)))


def test_every_card_has_its_device_and_its_driver() -> None:
    for nic, device, drivers in (
        ("virtio", "virtio-net-pci", "virtio_pci virtio_net"),
        ("e1000", "e1000", "e1000"),
        ("vmxnet3", "vmxnet3", "vmxnet3"),
    ):
        options = QemuOptions.model_validate({"nic": nic})
        assert f"-device {device},netdev=inner," in line(0, nic=nic)
        assert f"-device {device},netdev=outer," in line(0, nic=nic)
        assert f"DRIVERS='{drivers}'\n" in command.setting(machine(1), PLACES, "/shared", options)


def test_the_small_kernel_lacks_one_driver() -> None:
    assert QemuOptions(nic="e1000").undriven("cloud") == "nic"
    assert QemuOptions(nic="e1000").undriven("generic") == ""
    assert QemuOptions().undriven("cloud") == ""


def test_a_ram_disk_only_where_the_kernel_needs_one() -> None:
    assert "-initrd" not in line(1)
    given = replace(machine(1), initrd=Path("/cache/initrd-nvme.cpio"))
    made = " ".join(command.argv(given, QemuOptions(), "tcg", (7, 2)))
    assert "-kernel /cache/vmlinuz -initrd /cache/initrd-nvme.cpio -append console=ttyS0 " in made


def test_memory_that_is_taken_before_the_guest_starts() -> None:
    made = line(1, prealloc=True)
    assert "-machine q35,memory-backend=memory " in made
    assert "-object memory-backend-ram,id=memory,size=2048M,prealloc=on " in made


def test_what_a_node_cannot_see_of_itself_is_recorded() -> None:
    options = QemuOptions(network="tap", nic="e1000", cache="writeback", format="raw", disk="virtio-blk")
    given = replace(machine(1), initrd=Path("/x"), vhost=False)
    assert command.facts(given, options, "tcg", (7, 2)) == {
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
    }
    assert command.facts(machine(1), QemuOptions(hugepages=True), "kvm", (10, 0))["vm_memory"] == "huge pages"
    assert command.facts(machine(1), QemuOptions(prealloc=True), "kvm", (10, 0))["vm_memory"] == "preallocated"


def test_a_virtio_disk_is_a_second_one() -> None:
    data = (
        "-drive id=data,file=/run/c1/vm/worker1/data,format=qcow2,cache=none,"
        "backing.cache.direct=off,if=none,discard=unmap,werror=report,rerror=report -device virtio-blk-pci,drive=data"
    )
    assert f"{system('worker1')} {data} {inner(1)}" in line(1, disk="virtio-blk")
    setting = command.setting(machine(1), PLACES, "/shared", QemuOptions(disk="virtio-blk"))
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
        ("Nehalm", "tcg", "this QEMU has no CPU 'Nehalm' | Nehalem; `qemu-system-x86_64 -cpu help` lists all"),
        ("host", "tcg", 'cpu = "host" needs KVM, and this environment runs in software emulation | cpu = "max", or'),
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
    setting = command.setting(machine(1), PLACES, "/shared", QemuOptions())
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
        "SERVER='10.214.0.10'\nDATA_DISK=''\n"
    )
    assert held["etc/ssh/ssh_host_ed25519_key"] == (0o600, "secret of worker1\n")


def test_a_container_gets_no_setting(keys: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(seed(keys, "worker1", PLACES, SLOTS))) as archive:
        assert not {"etc/hosts", "etc/vtax-node"} & set(archive.getnames())


def test_workers_are_reached_through_the_master(keys: Path, tmp_path: Path) -> None:
    config = write_ssh_config(tmp_path, keys, {"master": 4321}, behind=PLACES, patience=5).read_text()
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
    assert kvm.judged(result(85)) == ""
    for code in (0, 1, 67, 69, 71, -6):  # those of guests that stop on the way, too
        assert f"exit code {code}" in kvm.judged(result(code))
    assert "within 2 s" in kvm.judged(result(-9, timed_out=True))
    assert kvm.judged(result(1, "qemu: no such thing\nmore\n")).endswith(": qemu: no such thing")


def test_a_cpu_without_the_flags_is_not_asked_at_all() -> None:
    assert kvm.refused("processor : 0\nflags\t\t: fpu vmx sse\n") == ""
    assert kvm.refused("flags : fpu svm\n") == ""
    assert "neither vmx nor svm" in kvm.refused("flags : fpu vmxnet sse\n")
    assert "neither vmx nor svm" in kvm.refused("")


def test_the_answer_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(kvm, "refused", lambda _: "")
    monkeypatch.setattr(kvm, "unopened", lambda: "")

    def tried(accel: str, cpu: str) -> str:
        asked.append(f"{accel} {cpu}")
        return "no guest"

    monkeypatch.setattr(kvm, "tried", tried)
    assert [kvm.working(tmp_path), kvm.working(tmp_path)] == ["no guest", "no guest"]
    assert asked == ["kvm host"]


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


def test_whose_process_it_is() -> None:
    made = command.argv(machine(1), QemuOptions(), "tcg", (7, 2))
    assert owner_of(("/usr/bin/qemu-system-x86_64", *made[1:])) == ("c1", "worker1", SITE / "worker1")
    switch = ("/usr/bin/python3", "-I", "-S", str(SWITCH), f"{LABEL}=up-1a2b", "/run/up-1a2b/vm/switch", "")
    assert owner_of(switch) == ("up-1a2b", "", Path("/run/up-1a2b/vm"))


@pytest.mark.parametrize(
    "words",
    [
        ("",),
        ("qemu-system-x86_64", "-name", "mine", "-pidfile", "/x/pid"),
        ("qemu-system-x86_64", "-name", "vtax-c1-worker1"),
        ("vi", "-name", "vtax-c1-worker1", "-pidfile", "/x/pid"),
        ("python3", "-I", "-S", "/x/switch.py", "other=c1", "/x/switch", ""),
        ("python3", "switch.py"),
    ],
)
def test_other_processes_are_none_of_ours(words: tuple[str, ...]) -> None:
    assert owner_of(words) is None


def test_what_another_vtax_may_be_using_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs, gone = tmp_path / "run" / "c1" / "vm", tmp_path / "other" / "c2" / "vm", tmp_path / "other" / "c3"
    ours.mkdir(parents=True)
    theirs.mkdir(parents=True)
    found = [module._Process(1, name, "", place) for name, place in (("c1", ours), ("c2", theirs), ("c3", gone))]
    monkeypatch.setattr(module, "_processes", lambda: found)
    monkeypatch.setattr(bridge, "found", lambda: [("c4", None), ("c1", None), ("c2", theirs)])
    whose = [(item.campaign, item.elsewhere) for item in Qemu(tmp_path / "run").leftovers()]
    others = str(tmp_path / "other")
    assert whose == [("c1", ""), ("c2", others), ("c3", ""), ("c4", UNKNOWN), ("c1", ""), ("c2", others)]


def test_processes_with_another_root_directory_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "owner_of", lambda words: ("c1", words[0], Path("/run/c1")))
    assert os.getpid() in {one.pid for one in module._processes()}
    monkeypatch.setattr(Path, "samefile", lambda path, other: path.parent.name != str(os.getpid()))
    assert os.getpid() not in {one.pid for one in module._processes()}


def test_the_unpacked_kernel_is_started_where_there_is_one(tmp_path: Path) -> None:
    packed = tmp_path / "vmlinuz-6.12-amd64"
    packed.touch()
    image = Image(recipe="", digest="", directory="", archive="", kernel=str(packed))
    assert module._kernel(image) == str(packed)
    (tmp_path / "vmlinux-6.12-amd64").touch()
    assert module._kernel(image) == str(tmp_path / "vmlinux-6.12-amd64")
