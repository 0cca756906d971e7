"""VirtualBox's exact command lines, what VBoxManage prints, why a machine does not start, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from fakes.cluster import node_shape
from vtax.errors import CommandError, EnvironmentMissing, PauseError, ProvisionError
from vtax.facts.nesting import Evidence, stack
from vtax.model.cluster import Image
from vtax.model.finding import Severity
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import CommandResult
from vtax.providers.guest import firmware
from vtax.providers.network import addresses
from vtax.providers.virtualbox import command, listing, manage, threads
from vtax.providers.virtualbox.command import Machine, VirtualBoxOptions
from vtax.providers.virtualbox.pausing import MachinePausing
from vtax.providers.virtualbox.provider import VirtualBox
from vtax.transport import process

DATA = Path(__file__).parents[2] / "data" / "virtualbox" / "7.2.22--debian-sid"
SITE = Path("/run/c1/box")
NAMES = ("master", "worker1")
GIB = 2**30


def machine(number: int, cpu_ids: tuple[int, ...] = (2, 3)) -> Machine:
    return Machine("c1", node_shape(NAMES[number], cpu_ids), number, SITE, "vtax.base-0123-4096-sata", "2201")


def lines_of(number: int, **options: object) -> list[str]:
    return [" ".join(line) for line in command.commands(machine(number), VirtualBoxOptions.model_validate(options))]


def modified(number: int, **options: object) -> str:
    return lines_of(number, **options)[1]


def recorded(name: str) -> str:
    return (DATA / name).read_text()


# --- command lines ---------------------------------------------------------------------------------------------------


def test_a_worker() -> None:
    assert lines_of(1) == [
        "VBoxManage clonevm vtax.base-0123-4096-sata --snapshot clean --options link --name vtax-c1-worker1 "
        "--register --basefolder /run/c1/box",
        "VBoxManage modifyvm vtax-c1-worker1 --groups /vtax-c1 --cpus 2 --memory 2048 --cpuexecutioncap 100 "
        "--paravirtprovider default --nestedpaging on --largepages off --nic1 none --nic2 intnet --intnet2 vtax-c1 "
        "--nictype2 virtio --macaddress2 080027d0f601 --uart1 0x3F8 4 --uartmode1 file "
        "/run/c1/box/worker1/console.log --uart2 0x2F8 3 --uartmode2 server /run/c1/box/worker1/orders",
        "VBoxManage storagectl vtax-c1-worker1 --name disks --hostiocache off",
        "VBoxManage convertfromraw /run/c1/box/worker1/seed.tar /run/c1/box/worker1/vtax-c1-worker1.vdi --format VDI",
        "VBoxManage storageattach vtax-c1-worker1 --storagectl disks --port 1 --device 0 --type hdd "
        "--medium /run/c1/box/worker1/vtax-c1-worker1.vdi",
        "VBoxManage startvm vtax-c1-worker1 --type headless",
    ]


def test_the_master_has_the_outside_and_ssh_on_loopback() -> None:
    assert (
        "--nic1 nat --nictype1 virtio --macaddress1 080027d0f680 --nat-localhostreachable1 off"
        " --natpf1 ssh,tcp,127.0.0.1,2201,10.0.2.15,22 "
        "--nic2 intnet --intnet2 vtax-c1 --nictype2 virtio --macaddress2 080027d0f600"
    ) in modified(0)


def test_the_machine_that_others_are_clones_of() -> None:
    made = command.base("vtax.base-0-4096-nvme", Path("/c/b.vdi"), Path("/c/v"), VirtualBoxOptions(disk="nvme"))
    assert [" ".join(line) for line in made] == [
        "VBoxManage createvm --name vtax.base-0-4096-nvme --ostype Debian_64 --register --basefolder /c/v",
        "VBoxManage modifyvm vtax.base-0-4096-nvme --firmware efi --memory 512 --ioapic on --rtcuseutc on "
        "--boot1 disk --boot2 none --boot3 none --boot4 none --audio-enabled off --nic1 none",
        "VBoxManage storagectl vtax.base-0-4096-nvme --name disks --add pcie --controller NVMe --portcount 2 "
        "--bootable on",
        "VBoxManage storageattach vtax.base-0-4096-nvme --storagectl disks --port 0 --device 0 --type hdd "
        "--medium /c/b.vdi",
        "VBoxManage snapshot vtax.base-0-4096-nvme take clean",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cpu_cap": 80}, "--cpuexecutioncap 80"),
        ({"paravirt": "kvm"}, "--paravirtprovider kvm"),
        ({"nested_paging": False}, "--nestedpaging off"),
        ({"large_pages": True}, "--largepages on"),
        ({"engine": "interpreter"}, "--vm-execution-engine interpreter"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_every_option_is_a_word(options: Mapping[str, object], words: str) -> None:
    assert words in modified(1, **options)
    assert words not in modified(1)


def test_the_host_s_cache() -> None:
    assert lines_of(1, cache="writeback")[2].endswith("--hostiocache on")


@pytest.mark.parametrize("options", [{"cpu_cap": 0}, {"cpu_cap": 101}, {"nic": "pcnet"}, {"disk": "ide"}, {"x": 1}])
def test_what_no_option_is(options: Mapping[str, object]) -> None:
    with pytest.raises(ValidationError):
        VirtualBoxOptions.model_validate(options)


def test_addresses_of_cards_are_other_ones_in_every_cluster() -> None:
    made = {
        command.mac(campaign, number, outer=outer)
        for campaign in ("c1", "c2")
        for number in (0, 1)
        for outer in (False, True)
    }
    assert len(made) == 8
    assert all(len(one) == 12 and int(one[1], 16) % 2 == 0 for one in made), "VirtualBox takes no others"
    assert command.written("080027D0F601") == "08:00:27:d0:f6:01"


def test_the_seed_says_what_the_cards_are() -> None:
    said = command.guest_config(machine(0), addresses(NAMES), "/shared", VirtualBoxOptions())
    assert "MAC='08:00:27:d0:f6:00'\n" in said
    assert "OUTER_MAC='08:00:27:d0:f6:80'\n" in said
    assert "DRIVERS='virtio_pci virtio_net'\n" in said
    assert "OUTER_MAC=''\n" in command.guest_config(machine(1), addresses(NAMES), "/shared", VirtualBoxOptions())


# --- what VBoxManage prints ------------------------------------------------------------------------------------------


WRAPPED = "WARNING: The character device /dev/vboxdrv does not exist.\n\t Please install the package\n\n"


def test_the_version() -> None:
    assert listing.version(recorded("version")) == (7, 2)
    assert listing.version(WRAPPED + "7.0.20r163906\n") == (7, 0)
    assert listing.version(WRAPPED) is None


def test_the_machines() -> None:
    names = ["vtax.base-0123456789ab-64-sata", "vtax-c1-master", "vtax-c1-worker1"]
    assert list(listing.machines(WRAPPED + recorded("vms")).values()) == names
    gone = '"<inaccessible>" {95e6da2a-1fad-481f-bafc-14fec12c30c4}\n"a "b" c" {0127bc6a-8667-4fb5-9063-0410b88c4c19}\n'
    assert list(listing.machines(gone).values()) == ["<inaccessible>", 'a "b" c']


def test_the_settings_of_a_machine() -> None:
    master, worker = (listing.settings(WRAPPED + recorded(f"showvminfo-{name}")) for name in NAMES)
    assert (worker["name"], worker["cpus"], worker["memory"], worker["cpuexecutioncap"]) == (
        "vtax-c1-worker1",
        "2",
        "512",
        "80",
    )
    assert worker["disks-1-0"] == "/srv/vtax/run/c1/box/worker1/vtax-c1-worker1.vdi", "its key is quoted"
    assert "rec_screen0" not in " ".join(worker), "a line without a value means nothing"
    assert master["Forwarding(0)"] == "ssh,tcp,127.0.0.1,2201,,22"
    assert "Forwarding(0)" not in worker
    assert listing.serial_socket(worker) == "/srv/vtax/run/c1/box/worker1/orders"
    assert listing.serial_socket({"uartmode2": "file,/x"}) == ""
    assert not listing.runs(worker)
    assert listing.runs({"VMState": "running"})
    assert not listing.runs({})


def test_what_a_node_is_made_of() -> None:
    about = listing.settings(recorded("showvminfo-worker1"))
    facts = command.facts(VirtualBoxOptions(cpu_cap=80), about, (7, 2))
    assert facts == {
        "vm_virtualbox": "7.2",
        "emulated": False,
        "vm_engine": "default",
        "vm_cpu_cap": 80,
        "vm_paravirt": "kvm",
        "vm_nested_paging": True,
        "vm_large_pages": False,
        "vm_firmware": "EFI",
        "vm_nic": "virtio",
        "vm_network": "intnet",
        "vm_disk": "IntelAhci",
        "vm_disk_cache": "none",
    }


def test_the_small_kernel_has_one_driver() -> None:
    assert VirtualBoxOptions(nic="e1000").missing_driver("cloud") == "nic"
    assert VirtualBoxOptions(nic="e1000").missing_driver("generic") == ""
    assert VirtualBoxOptions().missing_driver("cloud") == ""
    assert "--nictype1 82540EM" in modified(0, nic="e1000")


def test_what_was_asked_for_is_what_there_is() -> None:
    """The recorded machine was made by these command lines."""
    worker = listing.settings(recorded("showvminfo-worker1"))
    assert worker["macaddress2"] == command.mac("c1", 1).upper()
    assert (worker["intnet2"], worker["nic1"], worker["groups"]) == ("vtax-c1", "none", "/vtax-c1")


def test_the_media() -> None:
    found = listing.media(WRAPPED + recorded("hdds"))
    assert [one.owner for one in found] == ["", "", "c1", "c1", "c1", "c1"]
    assert found[0].location == "/srv/vtax/base.vdi"
    assert listing.media("") == ()


def test_errors_without_their_context() -> None:
    said = "The virtual machine 'vtax-c1-worker1' has terminated unexpectedly during startup with exit code 1 (0x1)"
    assert listing.errors(recorded("startvm.stderr") + recorded("startvm.stdout")) == said
    assert listing.errors(recorded("unknown.stderr")) == "Could not find a registered machine named 'vtax-c1-nosuch'"
    assert listing.errors(recorded("poweroff.stderr")) == "Machine 'vtax-c1-worker1' is not currently running."


# --- why a machine does not start ------------------------------------------------------------------------------------


def test_without_its_driver() -> None:
    error = manage.refusal("vtax-c1-worker1", listing.errors(recorded("startvm.stderr")), "", driver=False)
    assert isinstance(error, EnvironmentMissing)
    assert "its driver is not loaded" in str(error)
    assert "has terminated unexpectedly" in str(error)
    assert "modprobe vboxdrv" in error.remedy


@pytest.mark.parametrize(
    ("word", "why", "remedy"),
    [
        ("VERR_VMX_IN_VMX_ROOT_MODE", "another hypervisor", "kvm.enable_virt_at_load=0"),
        ("VERR_SVM_IN_USE", "another hypervisor", "modprobe -r"),
        ("VERR_SVM_NO_SVM", "neither VT-x nor AMD-V", "firmware"),
        ("VERR_VMX_MSR_ALL_VMX_DISABLED", "switched off", "firmware"),
        ("VERR_VM_DRIVER_VERSION_MISMATCH", "different versions", "reinstall"),
    ],
)
def test_known_reasons(word: str, why: str, remedy: str) -> None:
    error = manage.refusal("m", "it ended", f"00:00:01 Power up failed (vrc={word})\n", driver=True)
    assert why in str(error)
    assert remedy in error.remedy


def test_an_unknown_reason_shows_the_log() -> None:
    error = manage.refusal("m", "it ended", "\n".join(f"line {number}" for number in range(40)), driver=True)
    assert isinstance(error, ProvisionError)
    assert "line 39" in error.detail
    assert "line 24" not in error.detail


# --- processes -------------------------------------------------------------------------------------------------------


def test_whose_process_it_is() -> None:
    words = ["/usr/lib/virtualbox/VBoxHeadless", "--comment", "vtax-c1-worker1", "--startvm", "0-1", "--vrde", "config"]
    assert threads.runs(words, "vtax-c1-worker1")
    assert not threads.runs(words, "vtax-c1-worker2")
    assert not threads.runs(["vi", *words[1:]], "vtax-c1-worker1")
    assert not threads.runs([""], "vtax-c1-worker1")


def test_which_threads_are_virtual_cpus() -> None:
    assert threads.virtual_cpus(
        [(9, "VBoxHeadless"), (12, "EMT-1"), (11, "EMT-0"), (13, "AHCI-IO"), (14, "EMT-10")]
    ) == (
        11,
        12,
        14,
    )
    assert threads.virtual_cpus([(9, "VBoxHeadless"), (11, "EMT")]) == (11,)


# --- pauses --------------------------------------------------------------------------------------------------------


@pytest.fixture
def controlled(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The states of machines, which VBoxManage changes as the real one does: it refuses to do a thing twice."""
    states = {"vtax-c1-master": "running", "vtax-c1-worker1": "running"}

    def run(line: command.Command, *, check: bool = True) -> CommandResult:
        _, verb, name, word = line
        assert verb == "controlvm"
        wanted, needed = {"pause": ("paused", "running"), "resume": ("running", "paused")}[word]
        if states.get(name) != needed:
            raise CommandError(f"Machine '{name}' is not currently {needed}")
        states[name] = wanted
        return CommandResult(argv=line, exit_code=0, stdout="", stderr="", started=0, elapsed_s=0)

    monkeypatch.setattr(manage, "run", run)
    monkeypatch.setattr(manage, "about", lambda name: {"VMState": states[name]} if name in states else {})
    return states


def test_machines_are_paused_and_resumed_as_often_as_wanted(controlled: dict[str, str]) -> None:
    pausing = MachinePausing(tuple(controlled))
    for act, state in ((pausing.pause, "paused"), (pausing.pause, "paused"), (pausing.resume, "running")):
        act()
        assert set(controlled.values()) == {state}
    pausing.resume()
    assert pausing.pause() == "VBoxManage controlvm pause"


def test_a_machine_that_is_gone_cannot_be_paused(controlled: dict[str, str]) -> None:
    with pytest.raises(PauseError, match=r"^gone: Machine 'gone' is not currently running"):
        MachinePausing(("gone",)).pause()


# --- what is refused, and what is found ------------------------------------------------------------------------------


@pytest.fixture
def able(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which everything is there. Answers of VBoxManage are files of this directory, by their command."""
    for name in firmware.PROGRAMS:
        (tmp_path / name).touch(mode=0o755)
    driver = tmp_path / "vboxdrv"
    driver.touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(process, "SYSTEM_PATH", ())
    monkeypatch.setattr(manage, "DRIVER", driver)
    monkeypatch.setattr(manage, "DIRECT", Path(sys.executable))
    (tmp_path / "--version").write_text("7.1.4r165100\n")

    def run(line: command.Command, *, check: bool = True) -> CommandResult:
        answer = tmp_path / "-".join(line[1:3])
        text = answer.read_text() if answer.exists() else ""
        code = 0 if answer.exists() else 1
        return CommandResult(argv=line, exit_code=code, stdout=text, stderr="", started=0, elapsed_s=0, timed_out=False)

    monkeypatch.setattr(manage, "run", run)
    return tmp_path


def problems(nodes: tuple[NodeShape, ...] = (node_shape("master"),), **options: object) -> list[str]:
    spec = EnvironmentSpec(
        name="box",
        provider="virtualbox",
        options=VirtualBoxOptions.model_validate(options).model_dump(mode="json"),
    )
    found = VirtualBox(Path("/run")).check(spec, ClusterShape(nodes=nodes), HostCapacity(cpu_ids=(0,), memory_bytes=1))
    return [f"{one.severity.value}: {one.message}" for one in found]


def test_where_everything_is_there(able: Path) -> None:
    assert problems() == []
    assert VirtualBox(Path("/run")).unavailable() == ""
    assert VirtualBox(Path("/run")).status_note() == "VirtualBox 7.1, its driver is loaded"


def test_everything_that_is_missing_at_once(able: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (able / "vboxdrv").unlink()
    (able / "mcopy").unlink()
    monkeypatch.setattr(manage, "DIRECT", able / "none")
    blocker = Severity.BLOCKER.value
    assert problems() == [
        f"{blocker}: VBoxManage is not installed",
        f"{blocker}: VirtualBox's driver is not loaded: {able / 'vboxdrv'} does not exist",
        f"{blocker}: mcopy is not installed",
    ]
    assert VirtualBox(Path("/run")).leftovers() == []
    VirtualBox(Path("/run")).destroy("c1")  # nothing can be there


@pytest.mark.parametrize("version", ["6.1.50r161033", "7.3.0r1", "8.0.0r1", "what?"])
def test_other_versions_are_refused(able: Path, version: str) -> None:
    (able / "--version").write_text(f"{version}\n")
    (problem,) = problems()
    assert problem.startswith(f"{Severity.BLOCKER.value}: VirtualBox ")
    assert problem.endswith("is not supported; 7.0 to 7.2 is required")


def test_what_virtualbox_cannot_give(able: Path) -> None:
    warning, blocker = Severity.WARNING.value, Severity.BLOCKER.value
    assert problems(engine="interpreter")[0].startswith(f"{warning}: box runs in software emulation")
    assert problems(disk="nvme") == [f"{warning}: NVMe disks need the extension pack in VirtualBox 7.1"]
    large = node_shape("worker1", tuple(range(65)))
    assert problems((large,)) == [f"{blocker}: worker1 has 65 CPUs, but a VirtualBox machine has 64 at most"]
    small = node_shape("worker1").model_copy(update={"disk_bytes": GIB})
    assert problems((small,)) == [f"{blocker}: worker1 has a disk of 1.0 GiB; the system alone takes 1 GiB"]


def test_what_was_left_behind(able: Path, tmp_path: Path) -> None:
    """Machines of this directory, and such whose files are gone; not those of another one."""
    mine, others = tmp_path / "run" / "c1c1c1c1", tmp_path / "elsewhere" / "c2c2c2c2"
    for place in (mine, others):
        place.mkdir(parents=True)
        (place / "box").touch()
    (able / "list-vms").write_text(
        '"vtax-c1c1c1c1-master" {0127bc6a-8667-4fb5-9063-0410b88c4c19}\n'
        '"vtax-c2c2c2c2-worker1" {0127bc6a-8667-4fb5-9063-0410b88c4c18}\n'
        '"vtax-c3c3c3c3-worker1" {0127bc6a-8667-4fb5-9063-0410b88c4c17}\n'
        '"vtax.base-0123-4096-sata" {0127bc6a-8667-4fb5-9063-0410b88c4c16}\n'
        '"mine" {0127bc6a-8667-4fb5-9063-0410b88c4c15}\n'
    )
    (able / "showvminfo-vtax-c1c1c1c1-master").write_text(f'CfgFile="{mine / "box"}"\n')
    (able / "showvminfo-vtax-c2c2c2c2-worker1").write_text(f'CfgFile="{others / "box"}"\n')
    (able / "showvminfo-vtax-c3c3c3c3-worker1").write_text('CfgFile="/no/such/file"\n')
    medium = mine / "vtax-c1c1c1c1-worker2.vdi"
    medium.touch()
    (able / "list-hdds").write_text(f"UUID:           1\nLocation:       {medium}\n\nUUID: 2\nLocation: /x/mine.vdi\n")
    found = [(one.kind, one.name, one.campaign, one.elsewhere) for one in VirtualBox(tmp_path / "run").leftovers()]
    assert found == [
        ("machine", "vtax-c1c1c1c1-master", "c1c1c1c1", ""),
        ("machine", "vtax-c2c2c2c2-worker1", "c2c2c2c2", str(tmp_path / "elsewhere")),
        ("machine", "vtax-c3c3c3c3-worker1", "c3c3c3c3", ""),
        ("medium", "vtax-c1c1c1c1-worker2.vdi", "c1c1c1c1", ""),
    ]


def test_an_image_without_what_starts_it(tmp_path: Path) -> None:
    image = Image(recipe="k", digest="d", directory=str(tmp_path), archive="", kernel=str(tmp_path / "vmlinuz"))
    with pytest.raises(EnvironmentMissing, match="no kernel that starts from firmware"):
        firmware.efi_program(image)


# --- what is seen from inside ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", ["kvm-clock tsc", "hyperv_clocksource tsc", "tsc"])
def test_a_guest_of_virtualbox_knows_what_it_is(clock: str) -> None:
    """Whatever interface VirtualBox offers to the guest: its name stands in the firmware's tables."""
    seen = Evidence(flags=("fpu", "hypervisor"), dmi="VirtualBox innotek GmbH", vendor="KVM", clock_sources=clock)
    assert stack(seen) == ["virtual machine (VirtualBox)"]
