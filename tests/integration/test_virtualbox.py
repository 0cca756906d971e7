"""Everything that VirtualBox does but run a machine, with the real VBoxManage, as it is without its driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.cluster import node_shape
from vtax.errors import EnvironmentMissing
from vtax.model.cluster import Image
from vtax.model.finding import Severity
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.study import EnvironmentSpec
from vtax.providers.base import Site
from vtax.providers.virtualbox import listing, manage
from vtax.providers.virtualbox import provider as module
from vtax.providers.virtualbox.command import VirtualBoxOptions, mac
from vtax.providers.virtualbox.provider import VirtualBox
from vtax.running.provision import destroy

from . import sid

pytestmark = [pytest.mark.integration, pytest.mark.slow]
GIB = 2**30
SHAPE = ClusterShape(
    nodes=(node_shape("master", (0,), GIB // 2), node_shape("worker1", (0, 1), GIB), node_shape("worker2", (1,), GIB))
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything of these tests is here, because VBoxManage sees nothing else. A short path, for the sockets."""
    return tmp_path_factory.mktemp("v")


@pytest.fixture(scope="module")
def program(cache: Path, place: Path) -> Iterator[Path]:
    with sid.vboxmanage(sid.tree(cache), place) as found:
        yield found


@pytest.fixture(scope="module")
def own_image(image: Image, place: Path) -> Image:
    """As much of the common root file system as the disk is made of, by links: what is in it is not asked here."""
    own = place / "image" / "rootfs"
    own.mkdir(parents=True)
    for name in ("boot", "usr"):
        (own / name).symlink_to(Path(image.directory) / name)
    return image.model_copy(update={"directory": str(own), "kernel": image.kernel.replace(image.directory, str(own))})


@pytest.fixture
def supplier(program: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> VirtualBox:
    monkeypatch.setattr(manage, "DIRECT", program)
    monkeypatch.setattr(manage, "DRIVER", place / "no-such-driver")
    return VirtualBox(place / "run")


def site_of(place: Path, image: Image, label: str) -> Site:
    site = Site(label, place / "run" / label / "c", image, place / "run" / label / "keys")
    site.directory.mkdir(parents=True, mode=0o700)
    return site


def spec(options: VirtualBoxOptions) -> EnvironmentSpec:
    return EnvironmentSpec(name="box", provider="virtualbox", options=options.model_dump(mode="json"))


def define(supplier: VirtualBox, site: Site, shape: ClusterShape, options: VirtualBoxOptions, port: str) -> None:
    supplier.define(module._machines(site, shape, options, port), shape, "/shared", site, options)


def ours() -> set[str]:
    return {name for name in manage.machines().values() if not name.startswith("vtax.base-")}


def test_what_is_missing_is_told_at_once(supplier: VirtualBox) -> None:
    """The version is good, the driver is not there."""
    found = manage.version()
    assert found is not None
    assert (7, 0) <= found <= (7, 2)
    problems = supplier.check(spec(VirtualBoxOptions()), SHAPE, HostCapacity(cpu_ids=(0, 1), memory_bytes=8 * GIB))
    (driver,) = problems
    assert driver.severity is Severity.BLOCKER
    assert "driver is not loaded" in driver.message
    assert "modprobe vboxdrv" in driver.remedy


def test_a_life_without_running(supplier: VirtualBox, own_image: Image, place: Path) -> None:
    """Two clusters at once: registered as planned, found by their labels, gone by their labels."""
    options = VirtualBoxOptions(cpu_cap=80, paravirt="kvm", cache="writeback")
    site, other = site_of(place, own_image, "c1c1c1c1"), site_of(place, own_image, "c2c2c2c2")
    define(supplier, site, SHAPE, options, "2201")
    define(supplier, other, ClusterShape(nodes=SHAPE.nodes[:1]), VirtualBoxOptions(), "2202")

    assert ours() == {"vtax-c1c1c1c1-master", "vtax-c1c1c1c1-worker1", "vtax-c1c1c1c1-worker2", "vtax-c2c2c2c2-master"}
    master, worker = manage.about("vtax-c1c1c1c1-master"), manage.about("vtax-c1c1c1c1-worker1")
    assert (master["cpus"], master["memory"], worker["cpus"], worker["memory"]) == ("1", "512", "2", "1024")
    assert (worker["cpuexecutioncap"], worker["effparavirtprovider"], worker["firmware"]) == ("80", "kvm", "EFI")
    assert (master["groups"], worker["groups"]) == ("/vtax-c1c1c1c1", "/vtax-c1c1c1c1")
    assert (master["nic1"], worker["nic1"], master["nic2"], worker["intnet2"]) == (
        "nat",
        "none",
        "intnet",
        "vtax-c1c1c1c1",
    )
    assert {worker["nictype2"], master["nictype1"]} == {"virtio"}
    for name, port in (("vtax-c1c1c1c1-master", 2201), ("vtax-c2c2c2c2-master", 2202)):
        rules = [rule for key, rule in manage.about(name).items() if key.startswith("Forwarding(")]
        assert [rule.split(",")[:4] for rule in rules] == [["ssh", "tcp", "127.0.0.1", str(port)]]
    addresses = {manage.about(name)["macaddress2"] for name in ours()}
    assert len(addresses) == 4
    assert worker["macaddress2"] == mac("c1c1c1c1", 1).upper()
    assert listing.serial_socket(worker) == str(site.directory / "worker1" / "orders")
    assert worker["uartmode1"] == f"file,{site.directory / 'worker1' / 'console.log'}"
    assert worker["disks-1-0"] == str(site.directory / "worker1" / "vtax-c1c1c1c1-worker1.vdi")
    assert worker["VMState"] == "poweroff"

    layers = [Path(one.location) for one in manage.media() if one.owner == "c1c1c1c1"]
    assert len(layers) == 6, "a layer and a seed for each"
    assert sum(path.stat().st_size for path in layers) < 30 * 2**20, "nothing common is copied"
    assert all(path.stat().st_mode & 0o077 == 0 for path in layers), "the seeds hold keys"
    assert not list(site.directory.rglob("seed.tar"))
    found = {(item.kind, item.campaign) for item in supplier.leftovers()}
    assert found == {("machine", "c1c1c1c1"), ("medium", "c1c1c1c1"), ("machine", "c2c2c2c2"), ("medium", "c2c2c2c2")}
    others = VirtualBox(place / "elsewhere").leftovers()
    assert others and all(item.elsewhere for item in others), "another state directory looks after its own"

    supplier.destroy("c1c1c1c1")
    assert ours() == {"vtax-c2c2c2c2-master"}
    assert {one.owner for one in manage.media()} == {"", "c2c2c2c2"}
    assert not list(site.directory.rglob("*.vdi"))
    supplier.destroy("c1c1c1c1")  # twice is fine
    supplier.destroy("c2c2c2c2")
    assert supplier.leftovers() == []


def test_a_machine_that_cannot_start_says_why(supplier: VirtualBox, own_image: Image, place: Path) -> None:
    """VirtualBox itself only says that the machine has ended; provisioning then leaves nothing of the cluster."""
    site = site_of(place, own_image, "c3c3c3c3")
    with pytest.raises(EnvironmentMissing) as failure:
        supplier.create(spec(VirtualBoxOptions(disk="nvme")), SHAPE, "/shared", site)
    assert "its driver is not loaded" in str(failure.value)
    assert "has terminated unexpectedly during startup" in str(failure.value)
    assert "modprobe vboxdrv" in failure.value.remedy
    destroy(supplier, site, None)
    assert supplier.leftovers() == []
    assert ours() == set()


def test_a_medium_of_a_run_that_was_killed(supplier: VirtualBox, own_image: Image, place: Path) -> None:
    """A disk that is registered without its machine goes by its label too."""
    site = site_of(place, own_image, "c4c4c4c4")
    machine = module._machines(site, SHAPE, VirtualBoxOptions(), "1")[1]
    machine.directory.mkdir()
    line = ("VBoxManage", "createmedium", "disk", "--filename", str(machine.seed_disk), "--size", "1")
    manage.run(line)
    kinds = [(item.kind, item.name) for item in supplier.leftovers()]
    assert kinds == [("medium", "vtax-c4c4c4c4-worker1.vdi")]
    supplier.destroy("c4c4c4c4")
    assert supplier.leftovers() == []
    assert not machine.seed_disk.exists()


def test_an_image_is_forgotten(supplier: VirtualBox, own_image: Image, place: Path) -> None:
    """Last: the machines that others were clones of go, and all disks."""
    assert {name[:10] for name in manage.machines().values()} == {"vtax.base-"}
    supplier.remove_image(own_image)
    assert manage.machines() == {}
    assert manage.media() == ()
    assert [path.name for path in (place / "image").iterdir()] == ["rootfs"]
    supplier.remove_image(own_image)
