"""Runs where KVM works: the probe, then two machines from beginning to end, by the provider's own functions.

`kvm_in_qemu.py` starts it, in a guest whose CPU has virtualization in software emulation: all takes long there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape, Role
from vtax.model.study import EnvironmentSpec
from vtax.providers import provider
from vtax.providers.base import Cluster, Site
from vtax.providers.guest import pinning
from vtax.providers.qemu import kvm
from vtax.providers.qemu import provider as module
from vtax.providers.qemu.command import HUGE_PAGE, QemuOptions
from vtax.running import provision

PLACE = Path(__file__).parent
PATIENCE = 20.0  # how much longer than on a CPU of metal all may take
ATTEMPTS = 5
MEMORY = 512 * 2**20
CAPACITY = HostCapacity(cpu_ids=(0, 1), memory_bytes=2 * MEMORY)
HUGE = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
OPTIONS = QemuOptions(accel="kvm", network="tap", vhost="on", hugepages=True)
ASKED = "tr ' ' '\\n' </proc/cpuinfo | grep -c -x hypervisor; ping -c 3 -W 60 -q master | grep -o ' 0% packet loss'"


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def node(name: str, cpu: int) -> NodeShape:
    role = Role(name.rstrip("1"))
    return NodeShape(name=name, role=role, cpus=1, cpu_ids=(cpu,), memory_bytes=MEMORY, disk_bytes=2**32)


def drive() -> None:
    began = time.monotonic()
    answer = kvm.probe(PLACE / "run")
    say("PROBED", f"in {time.monotonic() - began:.1f} s {answer}")
    assert answer == kvm.Answer()
    tree = PLACE / "image" / "rootfs"
    kernel = next((tree / "boot").glob("vmlinuz-*"))
    image = Image(recipe="k", digest="0123456789abcdef", directory=str(tree), archive="", kernel=str(kernel))
    site = Site("c1", PLACE / "run/c1/c", image, PLACE / "run/c1/keys")
    shape = ClusterShape(nodes=(node("master", 0), node("worker1", 1)))
    spec = EnvironmentSpec(name="vm", provider="qemu", options=OPTIONS.model_dump(mode="json"))
    supplier = provider("qemu", PLACE / "run")
    assert supplier.unavailable() == ""
    say("AVAILABLE", supplier.status_note())
    problems = [one.message for one in supplier.check(spec, shape, CAPACITY)]
    assert problems == [f"the nodes want {2 * MEMORY // HUGE_PAGE} huge pages of 2 MiB, 0 are free"]
    (HUGE / "nr_hugepages").write_text(str(2 * MEMORY // HUGE_PAGE))
    assert supplier.check(spec, shape, CAPACITY) == []
    try:
        began = time.monotonic()
        ready = provision.provision(supplier, spec, shape, "/shared", site, [], ended)
        say("READY", f"in {time.monotonic() - began:.1f} s")
        for sentence in ready.checks:
            say("CHECK", sentence)
        live(ready.cluster, site)
    finally:
        supplier.destroy("c1")
    assert supplier.leftovers() == []
    say("GONE")


def ended(attempt: int, consoles: Mapping[str, Path]) -> None:
    """Under emulated virtualization QEMU ended early for two machines of eleven, and said nothing: so again."""
    for name, path in consoles.items():
        say("ENDED", attempt, name, path.read_text(errors="replace")[-2000:])


def live(cluster: Cluster, site: Site) -> None:
    assert (HUGE / "free_hugepages").read_text() == "0\n"
    for one in cluster.nodes:
        (cpu,) = one.shape.cpu_ids
        pid = int((site.directory / one.name / "pid").read_text())
        carriers = pinning.vhost_workers(pid)
        assert carriers
        assert {*map(affinity, pinning.tasks(pid)), *map(affinity, carriers)} == {(cpu,)}
        say("PINNED", one.name, len(pinning.tasks(pid)), "tasks and vhost", carriers, cluster.facts[one.name])
    result = cluster.node("worker1").transport.run(("sh", "-c", ASKED), timeout_s=60 * PATIENCE)
    assert result.stdout.split("\n") == ["1", " 0% packet loss", ""], result
    say("ANSWERED", f"in {result.elapsed_s:.1f} s")


def affinity(task: int) -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(task)))


if __name__ == "__main__":
    kvm.LIMIT_S *= PATIENCE
    module.OFF_S *= PATIENCE
    provision.ATTEMPTS = ATTEMPTS
    module.Qemu.slowdown = lambda self, options: PATIENCE  # type: ignore[method-assign]
    drive()
