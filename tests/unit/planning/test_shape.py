"""From a study's sizes and a machine's capacity to the nodes that every environment must have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vtax.model.finding import Problem, Severity
from vtax.model.nodes import ClusterShape, HostCapacity, Role
from vtax.model.study import ImageSpec, Study
from vtax.planning.shape import AUTO_DISK, cluster_shape

GIB = 2**30
MIB = 2**20


def study(
    workers: int = 2,
    cpus: int | None = None,
    memory_bytes: int | None = None,
    disk_bytes: int | None = None,
    overrides: Mapping[str, Mapping[str, int]] | None = None,
) -> Study:
    return Study(
        name="test",
        seed=1,
        rounds=6,
        baseline="host",
        margin=0.02,
        settle_s=0,
        environments=(),
        workers=workers,
        cpus=cpus,
        memory_bytes=memory_bytes,
        disk_bytes=disk_bytes,
        overrides=overrides or {},
        shared_path="/shared",
        image=ImageSpec(),
        benchmarks=(),
    )


def machine(cpus: int, gib: float = 64) -> HostCapacity:
    return HostCapacity(cpu_ids=tuple(range(cpus)), memory_bytes=int(gib * GIB))


def cpus_of(shape: ClusterShape) -> dict[str, tuple[int, ...]]:
    return {node.name: node.cpu_ids for node in shape.nodes}


def of(problems: tuple[Problem, ...], severity: Severity) -> list[str]:
    return [problem.message for problem in problems if problem.severity is severity]


# --- automatic sizes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        (1, {"master": (0,), "worker1": (0,), "worker2": (0,)}),
        (2, {"master": (0,), "worker1": (0,), "worker2": (1,)}),
        (3, {"master": (2,), "worker1": (0,), "worker2": (1,)}),
        (4, {"master": (2,), "worker1": (0,), "worker2": (1,)}),
        (9, {"master": (6, 7, 8), "worker1": (0, 1, 2), "worker2": (3, 4, 5)}),
    ],
)
def test_automatic_cpus_are_equal_shares(available: int, expected: Mapping[str, tuple[int, ...]]) -> None:
    shape, _ = cluster_shape(study(), machine(available))
    assert cpus_of(shape) == expected


@pytest.mark.parametrize(
    ("gib", "workers", "expected"),
    [
        (64, 2, 4 * GIB),  # 0.6 x 64 / 3 = 12.8 GiB, more than the most
        (8, 2, 1536 * MIB),  # 0.6 x 8 / 3 = 1.6 GiB, cut to 256 MiB
        (1, 2, 256 * MIB),  # 0.6 / 3 = 204.8 MiB, less than the step
    ],
)
def test_automatic_memory_leaves_the_host_its_own(gib: float, workers: int, expected: int) -> None:
    shape, _ = cluster_shape(study(workers), machine(4, gib))
    assert {node.memory_bytes for node in shape.nodes} == {expected}


def test_the_nodes_in_order() -> None:
    shape, problems = cluster_shape(study(3), machine(4))
    assert [node.name for node in shape.nodes] == ["master", "worker1", "worker2", "worker3"]
    assert [node.role for node in shape.nodes] == [Role.MASTER, Role.WORKER, Role.WORKER, Role.WORKER]
    assert [node.name for node in shape.workers] == ["worker1", "worker2", "worker3"]
    assert {node.disk_bytes for node in shape.nodes} == {AUTO_DISK}
    assert problems == ()


def test_cpus_are_given_in_the_machine_s_order() -> None:
    """One hardware thread of every core comes first there; a node's own list is sorted."""
    shape, _ = cluster_shape(study(cpus=2), HostCapacity(cpu_ids=(0, 2, 4, 6, 1, 3), memory_bytes=64 * GIB))
    assert cpus_of(shape) == {"worker1": (0, 2), "worker2": (4, 6), "master": (1, 3)}


# --- sizes that a study sets ---------------------------------------------------------------------------------------


def test_fixed_sizes() -> None:
    shape, problems = cluster_shape(study(cpus=2, memory_bytes=GIB, disk_bytes=5 * GIB), machine(8))
    assert cpus_of(shape) == {"worker1": (0, 1), "worker2": (2, 3), "master": (4, 5)}
    assert {(node.cpus, node.memory_bytes, node.disk_bytes) for node in shape.nodes} == {(2, GIB, 5 * GIB)}
    assert problems == ()


def test_unequal_nodes() -> None:
    overrides = {"worker1": {"cpus": 4, "disk_bytes": GIB}, "master": {"memory_bytes": 512 * MIB}}
    shape, problems = cluster_shape(study(cpus=1, memory_bytes=GIB, overrides=overrides), machine(8))
    assert cpus_of(shape) == {"worker1": (0, 1, 2, 3), "worker2": (4,), "master": (5,)}
    assert [node.memory_bytes for node in shape.nodes] == [512 * MIB, GIB, GIB]
    assert [node.disk_bytes for node in shape.nodes] == [AUTO_DISK, GIB, AUTO_DISK]
    assert problems == ()


# --- problems ------------------------------------------------------------------------------------------------------


def test_a_master_that_shares_is_a_warning() -> None:
    _, problems = cluster_shape(study(cpus=1), machine(2))
    assert of(problems, Severity.WARNING) == ["master shares CPUs with worker1: this machine offers only 2"]
    assert of(problems, Severity.BLOCKER) == []


def test_a_node_larger_than_the_machine_is_a_blocker() -> None:
    _, problems = cluster_shape(study(cpus=5), machine(4))
    assert of(problems, Severity.BLOCKER) == [
        "master needs 5 CPUs, but this machine offers 4",
        "worker1 needs 5 CPUs, but this machine offers 4",
        "worker2 needs 5 CPUs, but this machine offers 4",
    ]
    assert problems[0].remedy == 'set cpus to at most 4, or to "auto"'


def test_workers_that_must_share_are_a_blocker() -> None:
    _, problems = cluster_shape(study(cpus=3), machine(4))
    assert of(problems, Severity.BLOCKER) == ["the workers need 6 CPUs together, but this machine offers 4"]


def test_more_workers_than_cpus_are_a_blocker() -> None:
    _, problems = cluster_shape(study(workers=5), machine(2))
    assert of(problems, Severity.BLOCKER) == ["the workers need 5 CPUs together, but this machine offers 2"]


def test_too_much_memory_is_a_blocker() -> None:
    _, problems = cluster_shape(study(cpus=1, memory_bytes=3 * GIB), machine(4, gib=8))
    assert of(problems, Severity.BLOCKER) == ["the nodes need 9 GiB together; this machine has 8 GiB"]


def test_too_little_memory_is_a_blocker() -> None:
    _, problems = cluster_shape(study(cpus=1, overrides={"worker2": {"memory_bytes": 100 * MIB}}), machine(4))
    assert of(problems, Severity.BLOCKER) == ["worker2 has 100 MiB of memory"]
    assert problems[0].remedy == "give it at least 256 MiB"


def test_every_problem_is_told_at_once() -> None:
    _, problems = cluster_shape(study(cpus=5, memory_bytes=100 * MIB), machine(4, gib=0.25))
    assert len(of(problems, Severity.BLOCKER)) == 3 + 1 + 3  # CPUs of each, memory together, memory of each


# --- any study on any machine --------------------------------------------------------------------------------------

CPUS = st.one_of(st.none(), st.integers(1, 8))
OVERRIDES = st.dictionaries(
    st.sampled_from(["master", "worker1", "worker2"]), st.fixed_dictionaries({}, optional={"cpus": st.integers(1, 8)})
)


@given(st.integers(1, 6), CPUS, OVERRIDES, st.integers(1, 24), st.integers(2**20, 2**40))
def test_workers_share_no_cpu_unless_a_blocker_says_so(
    workers: int, cpus: int | None, overrides: Mapping[str, Mapping[str, int]], available: int, memory: int
) -> None:
    capacity = HostCapacity(cpu_ids=tuple(reversed(range(available))), memory_bytes=memory)
    shape, problems = cluster_shape(study(workers, cpus, overrides=overrides), capacity)
    assert {cpu for node in shape.nodes for cpu in node.cpu_ids} <= set(capacity.cpu_ids)
    blocked = any("CPU" in message for message in of(problems, Severity.BLOCKER))
    given_away = [cpu for node in shape.workers for cpu in node.cpu_ids]
    if not blocked:
        assert len(given_away) == len(set(given_away))
        assert all(len(node.cpu_ids) == node.cpus for node in shape.nodes)
        shares = bool(set(shape.nodes[0].cpu_ids) & set(given_away))
        assert bool(of(problems, Severity.WARNING)) == shares
        # it shares only when there are not enough for all
        assert shares == (sum(node.cpus for node in shape.nodes) > available)


@given(st.integers(1, 8), st.integers(1, 24), st.integers(4 * GIB, 2**42))
def test_automatic_sizes_fit_every_machine_with_a_cpu_for_each_worker(
    workers: int, available: int, memory: int
) -> None:
    capacity = HostCapacity(cpu_ids=tuple(range(available)), memory_bytes=memory)
    _, problems = cluster_shape(study(workers), capacity)
    assert bool(of(problems, Severity.BLOCKER)) == (workers > available)


def test_a_study_gives_the_same_shape_twice() -> None:
    assert cluster_shape(study(), machine(4)) == cluster_shape(study(), machine(4))
