"""Three virtual machines, for real: made from the common root file system, verified from inside, measured, gone.

They run with whatever works here, which is software emulation where KVM does not: nothing in them depends on speed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from vtax.errors import ProvisionError
from vtax.events import ignore
from vtax.facts.host import capacity, host_facts
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, Scope
from vtax.model.study import EnvironmentSpec, ImageSpec
from vtax.paths import Paths
from vtax.pipeline import measurements
from vtax.planning import preparation
from vtax.planning.shape import cluster_shape
from vtax.planning.study import parse
from vtax.providers import provider as provider_of
from vtax.providers.base import Provider, Site
from vtax.providers.guest import disk
from vtax.providers.qemu import kvm, user
from vtax.providers.qemu.command import QemuOptions
from vtax.providers.qemu.machines import machines_of, parts
from vtax.providers.qemu.processes import processes
from vtax.running.provision import Ready, destroy, provision
from vtax.store import Campaign

from .conftest import CPU, PING, Vtax, finish, labels_of, own, study
from .test_bad_days import left, wait_for, write
from .test_clusters import remove_keys

pytestmark = [pytest.mark.integration, pytest.mark.slow]
QEMU = '[environments.vm]\nprovider = "qemu"\nallow_emulation = true\n'


def shape(workers: int = 2) -> ClusterShape:
    text = study(["qemu"], PING if workers > 1 else CPU.format(seconds=1)).replace(
        "workers = 2", f"workers = {workers}"
    )
    return cluster_shape(parse(text, "(test)"), capacity(host_facts()))[0]


def spec(**options: object) -> EnvironmentSpec:
    return EnvironmentSpec(
        name="vm", provider="qemu", options=QemuOptions.model_validate(options).model_dump(mode="json")
    )


def site_of(places: Paths, image: Image, label: str) -> Site:
    label, top = own(label), places.runtime / own(label)
    return Site(label, top / "c", image, top / "keys")


@pytest.fixture
def supplier(places: Paths) -> Provider:
    found = provider_of("qemu", places.runtime)
    assert found.unavailable() == "", "integration tests need every provider: scripts/bootstrap test"
    return found


@pytest.fixture
def standing(supplier: Provider, places: Paths, image: Image) -> Iterator[tuple[Ready, Site]]:
    site = site_of(places, image, "vm1")
    ready = provision(supplier, spec(), shape(), "/shared", site, [Scope.WORKERS])
    try:
        yield ready, site
    finally:
        destroy(supplier, site, ready.cluster)
        remove_keys(site)


def said(ready: Ready, node: str, script: str) -> str:
    result = ready.cluster.node(node).transport.run(("sh", "-c", script), timeout_s=30)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def test_a_cluster_of_virtual_machines(standing: tuple[Ready, Site], supplier: Provider, places: Paths) -> None:
    """One cluster for everything that can be asked of it: bringing it up is what takes long."""
    ready, site = standing
    checks = "\n".join(ready.checks)
    assert "names and SSH between all 6 pairs of nodes" in checks
    assert "/shared is the same on all 3 nodes" in checks
    assert "mpi placement workers: worker1=1 worker2=1" in checks
    assert "worker2: virtual CPU 0 on CPU 1; emulator threads on CPU 1" in checks
    assert "switch: on CPU 0,1" in checks

    facts = {one.node: one.values for one in ready.facts}
    assert facts["worker2"]["cpus_allowed"] == "0", "a guest counts its own CPUs"
    assert 400 * 2**20 < int(facts["worker1"]["memory_total_bytes"]) <= 512 * 2**20
    assert {facts[name]["shared_filesystem"] for name in ("worker1", "worker2")} == {"nfs4"}
    assert facts["worker1"]["scratch_filesystem"] == "ext4"
    assert "virtual machine" in facts["worker1"]["virtualization"][0]
    assert facts["worker1"]["kernel"] != host_facts()["kernel"]

    said(ready, "worker1", "echo seen >/shared/x")
    assert said(ready, "master", "cat /shared/x") == "seen"
    assert said(ready, "worker2", "cat /shared/x; stat -f -c %T /shared").split() == ["seen", "nfs"]
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.settimeout(0)
        reach = f"! timeout 5 bash -c ': </dev/tcp/10.0.2.2/{service.getsockname()[1]}' 2>/dev/null"
        for node in ("master", "worker2"):
            said(ready, node, reach)
        with pytest.raises(BlockingIOError):  # the address is this machine's loopback, as QEMU's NAT has it
            service.accept()
    assert "cx16" not in facts["worker1"]["cpu_flags"] or kvm.probe(places.runtime).reason == ""

    mine = [one for one in processes() if one.campaign == site.campaign]
    assert sorted(one.node for one in mine) == ["", "master", "worker1", "worker2"]
    status = {one.node: Path(f"/proc/{one.pid}/status").read_text() for one in mine}
    assert all("Seccomp:\t2" in status[node] for node in ("master", "worker1", "worker2")), "QEMU's own sandbox"
    about = [dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line) for text in status.values()]
    assert {one["CapPrm"] for one in about} == {"0" * 16}
    assert {one["Groups"].strip() for one in about} == {""}
    (number,) = {one[kind] for one in about for kind in ("Uid", "Gid")}
    assert set(number.split()) == {str(user.number_of(site.campaign))}, "of this cluster alone, the switch too"
    assert "runs as user" in checks
    owners = {path.stat().st_uid for path in (site.directory, *site.directory.rglob("*"))}
    assert owners == {0}, "nothing belongs to it"
    assert stat.S_IMODE(site.directory.stat().st_mode) == 0o700
    pid = next(one.pid for one in mine if one.node == "worker2")
    assert {tuple(os.sched_getaffinity(int(task.name))) for task in Path(f"/proc/{pid}/task").iterdir()} == {(1,)}
    assert os.sched_getaffinity(next(one.pid for one in mine if one.node == "")) == {0, 1}
    secrets = [path for path in site.directory.rglob("*") if path.name in ("seed.tar", "switch")]
    assert len(secrets) == 4
    assert all(path.stat().st_mode & 0o077 == 0 for path in secrets)
    assert not any(b"PRIVATE KEY" in Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in mine)

    again = supplier.connect(spec(), shape(), "/shared", site)
    assert again.commands == ready.cluster.commands
    assert again.node("worker1").transport.run(("hostname",), timeout_s=20).stdout == "worker1\n"

    os.kill(pid, signal.SIGSTOP)  # it answers neither its monitor nor a request to power off
    began = time.monotonic()
    supplier.destroy(site.campaign)
    assert time.monotonic() - began < 20, "a hung QEMU does not hang `vtax clean`"
    assert not [one for one in processes() if one.campaign == site.campaign]


def test_nothing_is_left(supplier: Provider, places: Paths, image: Image) -> None:
    """The machines are powered off by their own kernels, and quickly; what they held is gone."""
    site = site_of(places, image, "vm2")
    ready = provision(supplier, spec(disk="virtio-blk", nic="vmxnet3"), shape(workers=1), "/shared", site, [])
    try:
        assert said(ready, "worker1", "stat -c %n /sys/class/block/vda; ls /sys/bus/pci/drivers/vmxnet3 | head -c 4")
        assert said(ready, "worker1", "grep -c '^/dev/vda /scratch ext4' /proc/mounts") == "1"
        consoles = {node: path.open() for node, path in ready.cluster.logs.items()}
        began = time.monotonic()
    finally:
        destroy(supplier, site, ready.cluster)
        took_s = time.monotonic() - began
        remove_keys(site)
    for node, console in consoles.items():
        with console:
            assert "reboot: Power down" in console.read(), node
    assert took_s < 10
    assert not [one for one in processes() if one.campaign == site.campaign]
    assert not site.directory.exists()
    supplier.destroy(site.campaign)  # twice is fine


def test_an_ordinary_user_starts_machines_in_the_same_way(image: Image, state: Path) -> None:
    """In a user namespace in which this process is not root: files, disks and sockets are passed as for root, and a
    machine that hangs is ended."""
    script = Path(__file__).with_name("drive_qemu.py")
    user_ = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
    done = subprocess.run(
        (*user_, sys.executable, str(script), str(state), own("vm6"), image.kernel.replace("vmlinuz", "vmlinux")),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert seen["user"] == "QEMU runs as vtax's user"
    assert seen["nodes"] == ["", "worker1"]
    assert seen["status"] == "running"
    assert seen["left"] == []
    assert seen["ended_s"] < 20


@pytest.mark.long
def test_every_network_card_with_the_generic_kernel(supplier: Provider, cache: Path, places: Paths) -> None:
    """The same kernel, from a RAM disk with its modules, drives e1000; what was used stands in the facts."""
    generic = preparation.base_image(ImageSpec(kernel="generic"), Paths(cache / "vtax", cache / "vtax"), ignore)
    site = site_of(places, generic, "vm5")
    ready = provision(supplier, spec(nic="e1000", prealloc=True), shape(), "/shared", site, [Scope.WORKERS])
    try:
        assert said(ready, "worker1", "readlink /sys/class/net/eth0/device/driver | sed 's,.*/,,'") == "e1000"
        assert said(ready, "master", "readlink /sys/class/net/eth1/device/driver | sed 's,.*/,,'") == "e1000"
        facts = {one.node: one.values for one in ready.facts}
        assert {values["kernel"] for values in facts.values()} == {Path(generic.kernel).name.removeprefix("vmlinuz-")}
        assert {values["vm_nic"] for values in facts.values()} == {"e1000"}
        assert {values["vm_memory"] for values in facts.values()} == {"preallocated"}
        assert {values["vm_initrd"] for values in facts.values()} == {True}
        assert facts["worker2"]["vm_cpu_places"] == facts["worker2"]["vm_emulator_cpus"] == [1]
    finally:
        destroy(supplier, site, ready.cluster)
        remove_keys(site)


def test_a_guest_that_panics_is_told_at_once(supplier: Provider, places: Paths, image: Image) -> None:
    """The kernel finds no root file system: the console says so, and nobody waits for the time to pass. The whole of it
    is kept for both attempts."""
    kept: dict[tuple[int, str], str] = {}

    def keep(attempt: int, consoles: Mapping[str, Path]) -> None:
        kept.update({(attempt, node): path.read_text(errors="replace") for node, path in consoles.items()})

    tree = places.runtime / "empty" / "tree"
    broken = image.model_copy(update={"directory": str(tree)})
    site = site_of(places, broken, "vm3")
    release = Path(image.kernel).name.removeprefix("vmlinuz-")
    for name in ("modules.dep", "modules.builtin"):  # what tells that this kernel needs no RAM disk
        copy = tree / "usr/lib/modules" / release / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((Path(image.directory) / "usr/lib/modules" / release / name).read_bytes())
    try:
        with pytest.raises(ProvisionError) as failure:
            provision(supplier, spec(), shape(), "/shared", site, [], keep)
        assert {attempt for attempt, _ in kept} == {1, 2}
        assert any("Kernel panic" in text and "Call Trace" in text for text in kept.values())
        assert "does not come up: " in str(failure.value)
        assert "Kernel panic" in str(failure.value)
        assert not [one for one in processes() if one.campaign == site.campaign]
    finally:
        disk.remove(broken)
        for path in sorted(tree.parent.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        tree.parent.rmdir()
        remove_keys(site)


def test_the_test_guest_reaches_user_mode_in_software_emulation() -> None:
    """The payload of the probe is right, so that a "no" under KVM is KVM's."""
    began = time.monotonic()
    assert kvm.answer_of(kvm.run_test_guest("tcg", "max")) == kvm.Answer()
    assert time.monotonic() - began < 3


def test_the_probe_answers_in_time(tmp_path: Path) -> None:
    began = time.monotonic()
    first = kvm.probe(tmp_path)
    assert time.monotonic() - began < 3
    assert kvm.probe(tmp_path) == first


def test_a_switch_that_nobody_uses_any_more_is_gone(
    supplier: Provider, places: Paths, image: Image, tmp_path: Path
) -> None:
    from vtax.transport import process

    place = tmp_path / "s"
    site, options = site_of(places, image, "vm4"), QemuOptions()
    machines = machines_of(site, shape(), options, "tcg", None)
    command = parts(site, machines, options, "tcg", (7, 2))[0][0]
    process.run((*command[:-2], str(place), command[-1]), timeout_s=20, check=True)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
        assert [one.node for one in processes() if one.campaign == site.campaign] == [""]
    deadline = time.monotonic() + 10
    while [one for one in processes() if one.campaign == site.campaign]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.long
def test_a_machine_that_dies_during_a_trial(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """The trial is a recorded failure, and the rest of the cell goes on with new machines."""
    benchmarks = CPU.format(seconds=20) + CPU.format(seconds=1).replace("time_s", 'label = "second"\ntime_s')
    text = study(["host"], benchmarks).replace('[environments.host]\nprovider = "host"', QEMU)
    text = text.replace('baseline = "host"', 'baseline = "vm"').replace("seed = 1", "seed = 3")
    campaign = tmp_path / "c"
    process = vtax("run", str(write(tmp_path, text)), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.sysbench-cpu.*.tmp/*stdout", 400)
    label = labels_of(campaign)["vm"]
    victim = next(one for one in processes() if (one.campaign, one.node) == (label, "worker1"))
    os.kill(victim.pid, signal.SIGKILL)
    code, _, err = finish(process, 600)
    assert code == 4, err
    trials = {trial.label: trial.status for trial in Campaign.open(campaign).trials()}
    assert trials == {"sysbench-cpu": "failed", "second": "ok"}
    assert left(places, campaign) == []


GROWS = """
[[benchmarks]]
name = "command"
label = "grows"
nodes = ["worker1"]
iterations = 2
files = [{ from = "grow.pl" }]
command = ["sh", "-c", "(setsid perl grow.pl &); sleep 4; test -e grown && rm grown"]
[[benchmarks]]
name = "command"
label = "small"
nodes = ["worker1"]
command = ["true"]
"""
GROW = "my $size = 100_000_000; my $text = 'x' x $size; open my $done, '>', 'grown'; sleep 1000;\n"


def test_the_memory_of_what_a_command_leaves_is_counted_in_guests_too(
    vtax: Vtax, places: Paths, tmp_path: Path
) -> None:
    """The command does not wait for what it starts, so its largest process is small; the kernel sees both."""
    text = study(["host"], GROWS).replace("[nodes]", f"{QEMU}\n[nodes]").replace("workers = 2", "workers = 1")
    (tmp_path / "grow.pl").write_text(GROW)
    code, _, err = finish(vtax("run", str(write(tmp_path, text)), "-o", "c"), 900)
    assert code == 0, err
    values, _ = measurements(tmp_path / "c")
    peaks: dict[tuple[str, str], list[float]] = {}
    for one in values:
        if one.metric in ("memory_peak", "max_rss"):
            peaks.setdefault((f"{one.label} {one.metric}", one.environment), []).append(one.value)
    for environment in ("host", "vm"):
        assert all(100e6 < peak < 300e6 for peak in peaks["grows memory_peak", environment])
        assert all(peak < 50e6 for peak in peaks["grows max_rss", environment])
        assert all(peak < 100e6 for peak in peaks["small memory_peak", environment]), "the mark begins anew"
    assert len(peaks["grows memory_peak", "vm"]) == len(peaks["grows memory_peak", "host"])
    reports = [json.loads(path.read_text()) for path in (tmp_path / "c" / "trials").rglob("*usage.json")]
    assert sum("memory_peak_bytes" in report for report in reports) == len(reports) / 2
