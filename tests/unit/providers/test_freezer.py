"""The freezer of control groups, on files that look like the kernel's; and the engines' own pause, where it fails."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fakes.cluster import Reply, result_of
from vtax.errors import PauseError
from vtax.model.trial import CommandResult
from vtax.providers import cgroup, freezer
from vtax.providers.cgroup import GroupPausing, Hierarchy
from vtax.providers.container.pausing import ContainerPausing
from vtax.providers.freezer import Freezer, of_process


def group(place: Path, version: int, pid: int = 42) -> Freezer:
    """A group with one process, as the kernel shows it."""
    place.mkdir(parents=True)
    (place / "cgroup.procs").write_text(f"{pid}\n")
    (place / ("freezer.state" if version == 1 else "cgroup.freeze")).write_text("THAWED" if version == 1 else "0")
    if version == 2:
        (place / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    return Freezer(place, version)


def state(one: Freezer) -> str:
    return (one.group / ("freezer.state" if one.version == 1 else "cgroup.freeze")).read_text()


@pytest.mark.parametrize(("version", "on", "off"), [(1, "FROZEN", "THAWED"), (2, "1", "0")])
def test_a_group_freezes_and_thaws_as_often_as_wanted(tmp_path: Path, version: int, on: str, off: str) -> None:
    one = group(tmp_path / "g", version)
    for act, wanted in ((one.freeze, on), (one.freeze, on), (one.thaw, off), (one.thaw, off)):
        act()
        assert state(one) == wanted


def test_a_group_in_which_a_process_does_not_stop_is_thawed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezer, "LIMIT_S", 0.01)
    one = group(tmp_path / "g", 2)
    (one.group / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    with pytest.raises(PauseError, match=r"did not stop within 0\.01 s"):
        one.freeze()
    assert state(one) == "0"


def test_a_group_that_is_gone_cannot_be_frozen_and_need_not_be_thawed(tmp_path: Path) -> None:
    gone = Freezer(tmp_path / "gone", 1)
    gone.thaw()
    with pytest.raises(PauseError, match="cannot be frozen: No such file"):
        gone.freeze()
    assert list(tmp_path.iterdir()) == []


# --- whose group it is ---------------------------------------------------------------------------------------------

V1 = "12:memory:/docker/ab\n5:freezer:/docker/ab\n1:name=systemd:/docker/ab\n0::/system.slice/docker.service\n"


def proc(top: Path, of_pid: str, own: str = "5:freezer:/\n0::/init\n") -> Path:
    for name, text in (("42", of_pid), ("self", own)):
        (top / "proc" / name).mkdir(parents=True)
        (top / "proc" / name / "cgroup").write_text(text)
    return top / "proc"


def test_the_group_of_a_process_under_version_1_and_hybrid(tmp_path: Path) -> None:
    one = group(tmp_path / "cg" / "freezer" / "docker" / "ab", 1)
    assert of_process(42, tmp_path / "cg", proc(tmp_path, V1)) == one


def test_the_group_of_a_process_under_version_2(tmp_path: Path) -> None:
    one = group(tmp_path / "cg" / "machine.slice" / "libpod-ab.scope", 2)
    (tmp_path / "cg" / "cgroup.controllers").touch()
    places = proc(tmp_path, "0::/machine.slice/libpod-ab.scope\n", "0::/user.slice\n")
    assert of_process(42, tmp_path / "cg", places) == one


@pytest.mark.parametrize(
    ("mine", "own"),
    [
        ("5:freezer:/\n", "5:freezer:/\n"),  # the group of everything
        ("5:freezer:/a\n", "5:freezer:/a/b\n"),  # vtax would freeze itself
        ("5:freezer:/elsewhere\n", "5:freezer:/\n"),  # a path of another namespace
        ("0::/a\n", "0::/\n"),  # version 2 is not mounted here
        ("nonsense\n", "nonsense\n"),
    ],
)
def test_groups_that_are_not_to_be_frozen(tmp_path: Path, mine: str, own: str) -> None:
    group(tmp_path / "cg" / "freezer" / "a", 1)
    (tmp_path / "cg" / "freezer" / "freezer.state").touch()
    assert of_process(42, tmp_path / "cg", proc(tmp_path, mine, own)) is None
    assert of_process(43, tmp_path / "cg", tmp_path / "proc") is None, "there is no such process"


def test_a_group_that_holds_another_process_is_not_the_one(tmp_path: Path) -> None:
    group(tmp_path / "cg" / "freezer" / "docker" / "ab", 1, pid=7)
    assert of_process(42, tmp_path / "cg", proc(tmp_path, V1)) is None


# --- the host ------------------------------------------------------------------------------------------------------


def test_the_groups_of_the_host_are_frozen_at_once_and_thawed_before_they_are_removed(tmp_path: Path) -> None:
    where = Hierarchy(1, tmp_path / "cpuset", tmp_path / "memory", tmp_path / "freezer")
    assert where.trees == (tmp_path / "cpuset", tmp_path / "memory", tmp_path / "freezer")
    one = group(tmp_path / "freezer" / "vtax-c1", 1)
    pausing = GroupPausing(where, "c1")
    assert pausing.pause() == "the freezer of control groups, version 1"
    assert state(one) == "FROZEN"
    pausing.resume()
    assert state(one) == "THAWED"


def test_frozen_groups_of_the_host_are_thawed_before_their_processes_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = Hierarchy(1, tmp_path / "cpuset", tmp_path / "memory", tmp_path / "freezer")
    one = group(tmp_path / "freezer" / "vtax-c1", 1)
    one.freeze()
    ended: list[tuple[int, str]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: ended.append((pid, state(one))))
    monkeypatch.setattr(Path, "rmdir", lambda self: None)
    cgroup.remove(where, "c1")
    assert ended == [(42, "THAWED")]


def test_without_a_freezer_the_host_can_only_be_paused_when_nothing_runs(tmp_path: Path) -> None:
    where = Hierarchy(1, tmp_path / "cpuset", tmp_path / "memory")
    pausing = GroupPausing(where, "c1")
    assert pausing.pause() == "nothing, since no process runs between trials"
    group(tmp_path / "cpuset" / "vtax-c1" / "worker1", 1)
    with pytest.raises(PauseError, match="no freezer of control groups"):
        pausing.pause()
    assert GroupPausing(None, "c1").pause() == "nothing, since no process runs between trials"


# --- containers ----------------------------------------------------------------------------------------------------


class Engine:
    """The client of a container engine; its answers to `pause` and `unpause`."""

    def __init__(self, reply: Reply = (0, "", "")) -> None:
        self.reply, self.asked = reply, list[tuple[str, ...]]()

    def __call__(self, words: Sequence[str]) -> CommandResult:
        self.asked.append(tuple(words))
        return result_of(words, self.reply)


def test_containers_are_frozen_directly_and_the_engine_is_not_asked(tmp_path: Path) -> None:
    groups = tuple(group(tmp_path / name, 1) for name in ("master", "worker1"))
    engine, found = Engine(), list[int]()

    def find() -> tuple[Freezer, ...]:
        found.append(1)
        return groups

    pausing = ContainerPausing("docker", engine, ("m", "w"), find)
    for _ in range(2):
        assert pausing.pause() == "the freezer of control groups, version 1"
        assert [state(one) for one in groups] == ["FROZEN"] * 2
        pausing.resume()
        assert [state(one) for one in groups] == ["THAWED"] * 2
    assert (engine.asked, found) == ([], [1])


def refusing() -> tuple[Freezer, ...]:
    raise PauseError("only root may freeze control groups")


def test_where_control_groups_cannot_be_used_the_engine_pauses_and_the_reason_is_kept() -> None:
    engine = Engine()
    pausing = ContainerPausing("docker", engine, ("m", "w"), refusing)
    assert pausing.pause() == "docker pause (only root may freeze control groups)"
    pausing.pause()  # twice is fine
    pausing.resume()
    pausing.resume()
    assert engine.asked == [("pause", "m", "w"), ("unpause", "m", "w")]


def test_where_one_group_does_not_freeze_the_engine_pauses_all(tmp_path: Path) -> None:
    good, gone = group(tmp_path / "m", 1), Freezer(tmp_path / "w", 1)
    engine = Engine()
    pausing = ContainerPausing("podman", engine, ("m", "w"), lambda: (good, gone))
    assert pausing.pause().startswith(f"podman pause (the control group {gone.group} cannot be frozen")
    assert state(good) == "THAWED"
    pausing.resume()
    assert engine.asked == [("pause", "m", "w"), ("unpause", "m", "w")]


def test_where_nothing_pauses_containers_the_engine_says_why() -> None:
    engine = Engine((125, "", "Error: cannot pause the container without a cgroup\n"))
    pausing = ContainerPausing("podman", engine, ("m",), refusing)
    with pytest.raises(PauseError, match="podman pause failed: Error: cannot pause the container without a cgroup"):
        pausing.pause()
