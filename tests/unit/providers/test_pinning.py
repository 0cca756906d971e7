"""Who works for a running machine, where that is put, and the NUMA nodes around it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fakes.cluster import node_shape
from vtax.model.cluster import Image
from vtax.model.finding import Severity
from vtax.model.nodes import ClusterShape
from vtax.providers.base import Site
from vtax.providers.guest import numa, pinning
from vtax.providers.qemu import placement, qmp
from vtax.providers.qemu.command import Machine, QemuOptions
from vtax.providers.qemu.machines import machines_of
from vtax.providers.qemu.processes import Process

TWO = {0: (0, 1, 4, 5), 1: (2, 3, 6, 7)}


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Process 100 with the tasks 100 to 102, and some that are none of its."""
    monkeypatch.setattr(pinning, "PROC", tmp_path / "proc")
    for task, name in ((100, "qemu-system-x86"), (101, "CPU 0/KVM"), (102, "IO mon_iothread")):
        write(tmp_path / "proc/100/task" / str(task), name)
    for process, name in ((100, "qemu-system-x86"), (7, "vhost-99"), (8, "vhost-1000"), (9, "kworker/0:1")):
        write(tmp_path / "proc" / str(process), name)
    (tmp_path / "proc/12").mkdir()  # gone meanwhile
    return tmp_path / "proc"


def write(place: Path, name: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / "comm").write_text(f"{name}\n")


def test_vhost_is_a_thread_of_the_kernel_before_linux_6_4(proc: Path) -> None:
    assert pinning.vhost_workers(100) == ()
    write(proc / "55", "vhost-100")
    assert pinning.vhost_workers(100) == (55,)


def test_vhost_is_a_task_of_the_process_from_linux_6_4_on(proc: Path) -> None:
    write(proc / "100/task/103", "vhost-100")
    assert pinning.vhost_workers(100) == (103,)


@pytest.fixture
def placed(proc: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, set[int]]:
    """Where each thread was put."""
    found: dict[int, set[int]] = {}
    monkeypatch.setattr("os.sched_setaffinity", lambda task, cpus: found.update({task: set(cpus)}))
    monkeypatch.setattr(qmp, "threads", lambda _: (101,))
    return found


def machine(place: Path, *, vhost: bool) -> Machine:
    (place / "pid").write_text("100")
    return Machine("c1", node_shape("worker1", (2, 3)), 1, place, place / "switch", "/vmlinuz", vhost=vhost)


def test_all_that_works_for_a_machine_is_on_its_cpus(proc: Path, placed: dict[int, set[int]], tmp_path: Path) -> None:
    write(proc / "55", "vhost-100")
    told, facts = placement.pin(machine(tmp_path, vhost=True), QemuOptions(network="tap"))
    assert placed == {100: {2, 3}, 101: {2}, 102: {2, 3}, 55: {2, 3}}
    assert told == "worker1: virtual CPU 0 on CPU 2; emulator threads on CPU 2,3; vhost with them"
    assert facts == {
        "vm_pinned": True,
        "vm_cpu_places": [2],
        "vm_emulator_cpus": [2, 3],
        "vm_vhost_cpus": [2, 3],
    }


def test_vhost_that_is_not_to_be_seen_is_said(placed: dict[int, set[int]], tmp_path: Path) -> None:
    told, facts = placement.pin(machine(tmp_path, vhost=True), QemuOptions(network="tap"))
    assert "vhost not found, so where the host puts it" in told
    assert facts["vm_vhost_cpus"] == []


def test_the_switch_is_on_the_cpus_of_all_nodes(
    placed: dict[int, set[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = (("c1", "", 7), ("c1", "worker1", 8), ("c2", "", 9))
    found = [Process(pid, campaign, node, tmp_path) for campaign, node, pid in ours]
    monkeypatch.setattr(placement, "processes", lambda: found)
    shape = ClusterShape(nodes=(node_shape("master", (0,)), node_shape("worker1", (3, 2)), node_shape("worker2", (0,))))
    assert placement.pin_switch("c1", shape, QemuOptions()) == (
        ("switch: on CPU 0,2,3",),
        {"vm_switch_cpus": [0, 2, 3]},
    )
    assert placed == {7: {0, 2, 3}}
    assert placement.pin_switch("c1", shape, QemuOptions(pin=False)) == ((), {})
    assert placement.pin_switch("c1", shape, QemuOptions(network="tap")) == ((), {})


# --- NUMA ----------------------------------------------------------------------------------------------------------


def test_the_numa_nodes_of_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numa, "NODES", tmp_path)
    assert numa.nodes() == {}
    for number, cpus in ((0, "0-1,4-5"), (1, "2-3,6-7"), (10, "")):  # the last has memory alone
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}/cpulist").write_text(f"{cpus}\n")
    assert numa.nodes() == {**TWO, 10: ()}


def test_near_is_all_of_the_numa_nodes_that_are_touched() -> None:
    everything = range(8)
    assert numa.near((0, 1), TWO, everything) == (0, 1, 4, 5)
    assert numa.near((3,), TWO, everything) == (2, 3, 6, 7)
    assert numa.near((3,), TWO, (1, 2, 3)) == (2, 3)
    assert numa.near((1, 2), TWO, everything) == (), "all of them: nothing to choose"
    assert numa.near((3,), TWO, (2, 3)) == ()
    assert numa.near((0,), {0: tuple(everything)}, everything) == ()
    assert numa.near((0,), {}, everything) == (), "nothing is known"


def test_a_node_of_two_numa_nodes_is_warned_of() -> None:
    shape = ClusterShape(nodes=(node_shape("master", (0,)), node_shape("worker1", (1, 2))))
    (problem,) = numa.spanned(shape, TWO)
    assert problem.severity is Severity.WARNING
    assert problem.message.startswith("worker1 has CPUs of the NUMA nodes 0, 1: ")
    assert list(numa.spanned(shape, {0: tuple(range(8))})) == []


def test_a_machine_starts_near_its_cpus_only_when_it_is_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numa, "nodes", lambda: TWO)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    shape = ClusterShape(nodes=(node_shape("master", (0,)), node_shape("worker1", (2, 3))))
    site = Site("c1", tmp_path, Image(recipe="", digest="", directory="", archive="", kernel="k"), tmp_path)

    def starts(options: QemuOptions) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        made = machines_of(site, shape, options, "kvm", None)
        return [(one.numa_nodes, one.near) for one in made]

    assert starts(QemuOptions()) == [((0,), (0, 1, 4, 5)), ((1,), (2, 3, 6, 7))]
    assert starts(QemuOptions(pin=False)) == [((), ())] * 2
