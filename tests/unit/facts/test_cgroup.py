"""Control groups of our own, on plain files that stand for both versions of the file system."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from vtax.errors import ProvisionError
from vtax.providers import cgroup
from vtax.providers.cgroup import Hierarchy

GIB = 2**30
MakeTree = Callable[[Path], Path]


def tree(top: Path, content: Mapping[str, str]) -> Path:
    for name, text in content.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def version_1(top: Path) -> Path:
    parts = {"cpuset.cpus": "0-3\n", "cpuset.mems": "0\n", "cgroup.procs": ""}
    return tree(top, {f"cpuset/{name}": text for name, text in parts.items()} | {"memory/cgroup.procs": ""})


def version_2(top: Path, controllers: str = "cpuset cpu io memory pids\n") -> Path:
    return tree(top, {"cgroup.controllers": controllers, "cgroup.subtree_control": ""})


def contents(place: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(place.iterdir()) if path.is_file()}


def test_version_1_counts_cpu_time_where_that_is_a_tree_of_its_own(tmp_path: Path) -> None:
    tree(version_1(tmp_path), {"cpu/cgroup.procs": "", "cpuacct/cgroup.procs": ""})
    found = cgroup.find(tmp_path)
    assert found is not None
    assert found.account == tmp_path / "cpuacct"
    made = cgroup.make(found, "c1", "worker1", (0,), GIB)
    assert tmp_path / "cpuacct/vtax-c1/worker1" in made
    shutil.rmtree(tmp_path / "cpuacct")
    (tmp_path / "cpuacct").symlink_to("cpu")  # mounted together: the group of `cpu` counts
    together = cgroup.find(tmp_path)
    assert together is not None
    assert (together.cpu, together.account) == (tmp_path / "cpu", None)


# --- what is there -------------------------------------------------------------------------------------------------


def test_version_2_is_one_tree(tmp_path: Path) -> None:
    found = cgroup.find(version_2(tmp_path))
    assert found == Hierarchy(2, tmp_path, tmp_path, events=tmp_path)
    assert found.trees == (tmp_path,)


@pytest.mark.parametrize("controllers", ["", "cpu io pids\n", "cpuset cpu\n", "memory\n"])
def test_version_2_needs_both_controllers(tmp_path: Path, controllers: str) -> None:
    assert cgroup.find(version_2(tmp_path, controllers)) is None


def test_version_1_is_a_tree_for_each_controller(tmp_path: Path) -> None:
    found = cgroup.find(version_1(tmp_path))
    assert found == Hierarchy(1, tmp_path / "cpuset", tmp_path / "memory")
    assert found.trees == (tmp_path / "cpuset", tmp_path / "memory")


def test_nodes_are_one_party_for_the_scheduler_where_groups_can_say_so(tmp_path: Path) -> None:
    """Without a group for its CPU time, a program over several logins would be several (sched_autogroup)."""
    version_1(tmp_path)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cgroup.procs").write_text("")
    found = cgroup.find(tmp_path)
    assert found is not None
    assert found.cpu == tmp_path / "cpu"
    assert tmp_path / "cpu" in found.trees, "processes of a node enter a group in every tree"


def test_a_hybrid_is_used_as_version_1(tmp_path: Path) -> None:
    tree(version_1(tmp_path), {"unified/cgroup.controllers": "", "unified/cgroup.procs": ""})
    found = cgroup.find(tmp_path)
    assert found is not None
    assert found.version == 1


@pytest.mark.parametrize("missing", ["cpuset", "memory"])
def test_version_1_needs_both_controllers(tmp_path: Path, missing: str) -> None:
    shutil.rmtree(version_1(tmp_path) / missing)
    assert cgroup.find(tmp_path) is None


def test_nothing_is_found_in_nothing(tmp_path: Path) -> None:
    assert cgroup.find(tmp_path) is None


@pytest.mark.parametrize("make_tree", [version_1, version_2])
def test_what_may_not_be_written_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_tree: MakeTree
) -> None:
    make_tree(tmp_path)
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert cgroup.find(tmp_path) is None


# --- what is made --------------------------------------------------------------------------------------------------


def test_a_group_of_version_2(tmp_path: Path) -> None:
    where = Hierarchy(2, version_2(tmp_path), tmp_path)
    (place,) = cgroup.make(where, "c1", "worker1", (2, 3), 2 * GIB)
    assert place == tmp_path / "vtax-c1" / "worker1"
    assert contents(place) == {"cpuset.cpus": "2,3", "memory.max": "2147483648", "memory.swap.max": "0"}
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpuset +memory"
    assert (tmp_path / "vtax-c1" / "cgroup.subtree_control").read_text() == "+cpuset +memory"


def test_a_group_of_version_1(tmp_path: Path) -> None:
    """A parent must allow all that its children use, and version 1 starts it empty."""
    where = cgroup.find(version_1(tmp_path))
    assert where is not None
    cpus, memory = cgroup.make(where, "c1", "worker1", (2, 3), 2 * GIB)
    assert (cpus, memory) == (tmp_path / "cpuset/vtax-c1/worker1", tmp_path / "memory/vtax-c1/worker1")
    assert contents(cpus) == {"cpuset.cpus": "2,3", "cpuset.mems": "0\n"}
    assert contents(cpus.parent) == {"cpuset.cpus": "0-3\n", "cpuset.mems": "0\n"}
    assert contents(memory) == {
        "memory.limit_in_bytes": "2147483648",
        "memory.memsw.limit_in_bytes": "2147483648",
    }


@pytest.mark.parametrize("make_tree", [version_1, version_2])
def test_making_a_group_twice_is_fine(tmp_path: Path, make_tree: MakeTree) -> None:
    make_tree(tmp_path)
    where = cgroup.find(tmp_path)
    assert where is not None
    first = cgroup.make(where, "c1", "worker1", (2,), GIB)
    again = cgroup.make(where, "c1", "worker1", (3,), GIB)
    assert first == again
    assert (first[0] / "cpuset.cpus").read_text() == "3"


@pytest.mark.parametrize("make_tree", [version_1, version_2])
def test_campaigns_that_have_groups(tmp_path: Path, make_tree: MakeTree) -> None:
    make_tree(tmp_path)
    where = cgroup.find(tmp_path)
    assert where is not None
    assert cgroup.campaigns(where) == ()
    for campaign, group in (("c2", "worker1"), ("c1", "master"), ("c1", "worker1")):
        cgroup.make(where, campaign, group, (0,), GIB)
    (where.trees[0] / "other").mkdir()
    assert cgroup.campaigns(where) == ("c1", "c2")


# --- what is removed -----------------------------------------------------------------------------------------------


def test_removing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    cgroup.remove(Hierarchy(2, version_2(tmp_path), tmp_path), "c1")


def test_a_program_that_does_not_end_is_named_by_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = Hierarchy(2, version_2(tmp_path), tmp_path)
    (place,) = cgroup.make(where, "c1", "master", (0,), GIB)
    (place / "cgroup.procs").write_text("")
    (tmp_path / "vtax-c1" / "cgroup.procs").write_text("")
    times = iter(range(0, 1000, 4))
    monkeypatch.setattr("time.monotonic", lambda: float(next(times)))
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def rmdir(self: Path) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", str(self))

    monkeypatch.setattr(Path, "rmdir", rmdir)
    with pytest.raises(ProvisionError, match="vtax-c1/master cannot be removed: Device or resource busy"):
        cgroup.remove(where, "c1")


def test_processes_end_before_their_group_goes_and_groups_before_their_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's files vanish with their directory, which plain ones do not: removal is stood in for."""
    where = Hierarchy(2, version_2(tmp_path), tmp_path)
    for group in ("master", "worker1"):
        (place,) = cgroup.make(where, "c1", group, (0,), GIB)
        (place / "cgroup.procs").write_text("1111\n2222\n" if group == "worker1" else "")
    (tmp_path / "vtax-c1" / "cgroup.procs").write_text("")
    ended: list[tuple[int, int]] = []
    removed: list[str] = []

    def rmdir(self: Path) -> None:
        removed.append(self.name)
        shutil.rmtree(self)

    def kill(pid: int, number: int) -> None:
        ended.append((pid, number))
        if pid == 2222:
            raise ProcessLookupError

    monkeypatch.setattr(Path, "rmdir", rmdir)
    monkeypatch.setattr(os, "kill", kill)
    cgroup.remove(where, "c1")
    assert sorted(ended) == [(1111, signal.SIGKILL), (2222, signal.SIGKILL)]
    assert sorted(removed[:2]) == ["master", "worker1"]
    assert removed[2:] == ["vtax-c1"]
    assert cgroup.campaigns(where) == ()
    cgroup.remove(where, "c1")
