"""The disk that VirtualBox's machines start from, started by other EFI firmware: a master and a worker that pass every
check of a cluster. It is the same disk, with the same seeds on a second one, on the same kind of controller."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.cluster import node_shape
from vtax.cluster.access import wait_for_banner, write_ssh_config
from vtax.cluster.keys import make_keys
from vtax.cluster.seed import seed
from vtax.launchers.mpirun import Mpirun
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, Scope
from vtax.model.study import EnvironmentSpec
from vtax.providers.base import Cluster, Site
from vtax.providers.guest import firmware, ready, saved_cluster
from vtax.providers.network import addresses
from vtax.providers.qemu.processes import SWITCH
from vtax.providers.virtualbox import command as lines
from vtax.providers.virtualbox import provider
from vtax.providers.virtualbox.command import VirtualBoxOptions
from vtax.providers.virtualbox.pausing import MachinePausing
from vtax.running.verify import parallel_targets, verify
from vtax.transport.parallel import each

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.long]
FIRMWARE = Path("/usr/share/OVMF")
GIB = 2**30
SHAPE = ClusterShape(nodes=(node_shape("master", (0,), GIB // 2), node_shape("worker1", (1,), GIB // 2)))
PATIENCE, READY_S = 5.0, 600.0


def ovmf(kind: str) -> Path:
    """OVMF's code, or the variables that it starts with; releases differ in their names."""
    found = [path for path in (FIRMWARE / f"OVMF_{kind}_4M.fd", FIRMWARE / f"OVMF_{kind}.fd") if path.exists()]
    assert found, "integration tests need OVMF: scripts/bootstrap test"
    return found[0]


def argv(machine: lines.Machine, base: Path, switch: Path) -> tuple[str, ...]:
    """QEMU as a machine with firmware, SATA disks and the two adapters in VirtualBox's order."""
    place = machine.directory
    nat = f"user,id=outer,net=10.0.2.0/24,ipv6=off,hostfwd=tcp:127.0.0.1:{machine.port}-:22"
    outer = lines.written(lines.mac(machine.campaign, machine.number, outer=True))
    inner = lines.written(lines.mac(machine.campaign, machine.number))
    stream = f"stream,id=inner,server=off,addr.type=unix,addr.path={switch}"
    return (
        *("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "q35"),
        *("-accel", "tcg,thread=multi", "-cpu", "max,-cx16", "-smp", str(machine.node.cpus)),
        *("-m", f"{machine.node.memory_bytes // 2**20}M", "-serial", f"file:{place / 'console.log'}"),
        *("-drive", f"if=pflash,format=raw,readonly=on,file={ovmf('CODE')}"),
        *("-drive", f"if=pflash,format=raw,file={place / 'variables'}"),
        *(
            "-drive",
            f"id=system,file={base},format=raw,if=none,snapshot=on",
            "-device",
            "ide-hd,drive=system,bus=ide.0",
        ),
        *("-drive", f"id=seed,file={place / 'seed'},format=raw,if=none", "-device", "ide-hd,drive=seed,bus=ide.1"),
        *(("-netdev", nat, "-device", f"virtio-net-pci,netdev=outer,mac={outer}") if machine.is_master else ()),
        *("-netdev", stream, "-device", f"virtio-net-pci,netdev=inner,mac={inner}"),
    )


@pytest.fixture
def standing_cluster(image: Image, state: Path) -> Iterator[Cluster]:
    site = Site("efi1", state / "c", image, state / "keys")
    site.directory.mkdir(parents=True)
    base, switch = site.directory / "base", site.directory / "switch"
    machines = provider._machines(site, SHAPE, VirtualBoxOptions(), str(provider._free_port()))
    names = tuple(node.name for node in SHAPE.nodes)
    known, slots = addresses(names), {node.name: node.cpus for node in SHAPE.nodes}
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, site.directory)
        firmware.write(base, image, SHAPE.nodes[0].disk_bytes)
        make_keys(site.keys, names)
        subprocess.run((sys.executable, "-I", "-S", str(SWITCH), "vtax.campaign=efi1", str(switch)), check=True)
        running = {}
        for machine in machines:
            machine.directory.mkdir()
            archive = seed(
                site.keys,
                machine.node.name,
                known,
                slots,
                lines.guest_config(machine, known, "/shared", VirtualBoxOptions()),
            )
            (machine.directory / "seed").write_bytes(archive.ljust(2**20, b"\0"))
            shutil.copy(ovmf("VARS"), machine.directory / "variables")
            process = subprocess.Popen(argv(machine, base, switch))
            stack.callback(process.wait)
            stack.callback(process.kill)
            running[machine.node.name] = process

        def ended(name: str) -> str:
            return "" if running[name].poll() is None else "QEMU has ended"

        def come_up(machine: lines.Machine) -> None:
            log, name = machine.directory / "console.log", machine.node.name
            ready.wait(machine.node, log, lambda: ended(name), READY_S, time.monotonic() + READY_S, 0.1)

        each(come_up, machines)
        port = int(machines[0].port)
        wait_for_banner(names[0], port, time.monotonic() + 60, answer_s=10)
        write_ssh_config(site.directory, site.keys, {names[0]: port}, behind=known, timeout_factor=PATIENCE)
        saved_cluster.save(site, (), (), PATIENCE, {})
        spec = EnvironmentSpec(name="efi", provider="virtualbox")
        cluster = saved_cluster.load(spec, SHAPE, "/shared", site, Mpirun(interface="eth0"), MachinePausing([]))
        stack.callback(cluster.close)
        yield cluster


def test_the_disk_starts_a_cluster(standing_cluster: Cluster) -> None:
    facts, checks = verify(standing_cluster, parallel_targets(standing_cluster, [Scope.CLUSTER]))
    said = "\n".join(checks)
    assert "names and SSH between all 2 pairs of nodes" in said
    assert "/shared is the same on all 2 nodes" in said
    assert "mpi placement cluster: master=1 worker1=1" in said
    seen = {one.node: one.values for one in facts}
    assert seen["worker1"]["shared_filesystem"] == "nfs4"
    assert seen["master"]["scratch_filesystem"] == "ext4"

    def asked(node: str, script: str) -> str:
        result = standing_cluster.node(node).transport.run(("sh", "-c", script), timeout_s=60)
        assert result.exit_code == 0, result.stderr
        return result.stdout.strip()

    assert asked("master", "ls /sys/bus/pci/drivers/ahci | grep -c :; ls -d /sys/firmware/efi").split() == [
        "1",
        "/sys/firmware/efi",
    ]
    assert asked("worker1", "findmnt -n -o PARTLABEL /") == firmware.ROOT
    assert asked("master", "ip -br link show eth1 | grep -c -i 08:00:27") == "1"
    assert asked("worker1", "ping -c 1 -W 20 -q 10.0.2.2 | grep -c ' 0% packet loss'") == "1", "through the master"
    assert asked("worker1", "ls -A / | grep -c -E '^(modules|init)$' || true") == "0"
