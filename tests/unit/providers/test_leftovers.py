"""Whose it is what carries a label: only what a vtax with our state directory made is ours to remove."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.small import IMAGE, MACHINE, study
from fakes.cluster import FakeProvider, result_of
from vtax.cli import main
from vtax.model.trial import CommandResult
from vtax.paths import Paths
from vtax.planning.plan import make_plan
from vtax.providers import cgroup, network
from vtax.providers.base import LABEL, RUNTIME_LABEL, UNKNOWN, Leftover, elsewhere
from vtax.providers.cgroup import Hierarchy
from vtax.providers.docker.provider import Docker
from vtax.providers.host import processes, provider
from vtax.providers.podman.provider import Podman
from vtax.running import leftovers
from vtax.running.provision import remove_campaign
from vtax.running.sites import label_of, sites


def test_a_place_tells_whose_it_is(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a" / "run", tmp_path / "b" / "run"
    assert elsewhere(ours, "c1c1c1c1", ours / "c1c1c1c1" / "vm" / "worker1") == ""
    assert elsewhere(ours, "c1c1c1c1", ours / "c1c1c1c1") == ""  # though nothing is there any more
    assert elsewhere(ours, "c1c1c1c1", theirs / "c1c1c1c1" / "vm" / "worker1") == str(theirs)
    assert elsewhere(ours, "c1c1c1c1", theirs / "c1c1c1c1") == str(theirs)
    assert elsewhere(ours, "c1c1c1c1", Path("/somewhere/else")) == UNKNOWN


def test_without_a_place_our_own_directory_tells(tmp_path: Path) -> None:
    assert elsewhere(tmp_path, "c1c1c1c1", None) == UNKNOWN
    (tmp_path / "c1c1c1c1").mkdir()
    assert elsewhere(tmp_path, "c1c1c1c1", None) == ""


def test_a_cluster_that_could_not_be_removed_stays_ours(tmp_path: Path) -> None:
    for name in ("90e00000", "57ac0000"):
        (tmp_path / name / "keys").mkdir(parents=True)
        (tmp_path / name / "alive").touch()
    (tmp_path / "57ac0000" / "box").mkdir()
    for name in ("90e00000", "57ac0000", "00000000"):
        remove_campaign(tmp_path / name)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        *("57ac0000", "57ac0000/alive", "57ac0000/box")
    ]


@pytest.mark.parametrize("kind", [Docker, Podman])
def test_containers_of_others_are_told_apart(
    kind: type[Docker | Podman], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the second label; what lacks it, of an earlier version, is ours where we have a directory for its campaign."""
    runtime = tmp_path / "run"
    (runtime / "01d01d01").mkdir(parents=True)
    labels = {
        "vtax-c1c1c1c1-worker1": {LABEL: "c1c1c1c1", RUNTIME_LABEL: str(runtime)},
        "vtax-c2c2c2c2-worker1": {LABEL: "c2c2c2c2", RUNTIME_LABEL: "/home/b/vtax/run"},
        "vtax-01d01d01-worker1": {LABEL: "01d01d01"},
        "vtax-01d01d02-worker1": {LABEL: "01d01d02"},
        "database": {LABEL: "c1c1c1c1", RUNTIME_LABEL: str(runtime)},  # of an image with these labels
        "web": {LABEL: ""},
    }

    def answer(self: Any, words: Sequence[str], *rest: Any, **more: Any) -> CommandResult:
        if words[0] == "ps":
            return result_of(words, (0, "\n".join(labels), ""))
        if words[1] == "inspect":
            return result_of(
                words, (0, json.dumps([{"Name": f"/{words[2]}", "Config": {"Labels": labels[words[2]]}}]), "")
            )
        return result_of(words, (0, "", ""))

    monkeypatch.setattr(kind, "unavailable", lambda self: "")
    monkeypatch.setattr(kind, "run", answer)
    assert [(one.name, one.campaign, one.elsewhere) for one in kind(runtime).leftovers()] == [
        ("vtax-c1c1c1c1-worker1", "c1c1c1c1", ""),
        ("vtax-c2c2c2c2-worker1", "c2c2c2c2", "/home/b/vtax/run"),
        ("vtax-01d01d01-worker1", "01d01d01", ""),
        ("vtax-01d01d02-worker1", "01d01d02", UNKNOWN),
    ]


@pytest.mark.parametrize("kind", [Docker, Podman])
def test_only_what_has_the_name_of_a_campaign_is_removed(
    kind: type[Docker | Podman], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []

    def answer(self: Any, words: Sequence[str], *rest: Any, **more: Any) -> CommandResult:
        if "rm" in words:
            removed.extend(words[words.index("--") + 1 :])
        if words[0] == "inspect":
            return result_of(words, (1, "", "no such container"))
        return result_of(words, (0, "vtax-c1c1c1c1-worker1\ndatabase\nvtax-c1c1c1c1\nvtax-c1c1c1c11-x\n", ""))

    monkeypatch.setattr(kind, "unavailable", lambda self: "")
    monkeypatch.setattr(kind, "run", answer)
    kind(tmp_path).destroy("c1c1c1c1")
    assert removed == ["vtax-c1c1c1c1-worker1", "vtax-c1c1c1c1", "vtax-c1c1c1c1"]


def test_a_command_line_alone_makes_no_process_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's process, one with another root directory, and ours."""
    runtime, root = tmp_path / "run", tmp_path / "root"
    for place in (root, tmp_path / "proc", tmp_path / "other"):
        place.mkdir()
    words = ("/x/usr/local/bin/vtax-enter", f"{LABEL}=c1c1c1c1", str(root), f"{runtime}/c1c1c1c1/host/worker1")
    for pid, its_root in (("1", Path("/")), ("2", root), ("3", tmp_path / "other")):
        (tmp_path / "proc" / pid).mkdir()
        (tmp_path / "proc" / pid / "cmdline").write_text("\0".join(words))
        (tmp_path / "proc" / pid / "root").symlink_to(its_root)
    proc = tmp_path / "proc"
    monkeypatch.setattr(processes, "Path", lambda place: proc if place == "/proc" else Path(place))
    assert sorted(one.pid for one in processes.labelled()) == [1, 2]
    mine = processes.of_campaign("c1c1c1c1", runtime)
    assert sorted(one.pid for one in mine) == [1, 2]
    signals: list[object] = []
    monkeypatch.setattr(os, "pidfd_open", lambda pid: os.open(os.devnull, os.O_RDONLY))
    monkeypatch.setattr("signal.pidfd_send_signal", lambda held, number: signals.append(number))
    monkeypatch.setattr(processes, "process_at", lambda place: mine[0] if place.name == str(mine[0].pid) else None)
    for one in mine:
        one.kill()
    assert signals == [9], "the other number is no longer that process's"
    monkeypatch.undo()
    monkeypatch.setattr(processes, "Path", lambda place: proc if place == "/proc" else Path(place))
    assert processes.of_campaign("c1c1c1c1", tmp_path / "elsewhere") == []
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert processes.labelled() == []


def test_processes_and_control_groups_of_others_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tmp_path / "run"
    (runtime / "c1c1c1c1").mkdir(parents=True)
    for name in ("vtax-c1c1c1c1", "vtax-c2c2c2c2"):
        (tmp_path / "tree" / name).mkdir(parents=True)
    monkeypatch.setattr(cgroup, "find", lambda: Hierarchy(2, tmp_path / "tree", tmp_path / "tree"))
    found = [
        processes.Process(7, "c1c1c1c1", f"{runtime}/c1c1c1c1/host/worker1"),
        processes.Process(8, "c2c2c2c2", "/b/run/c2c2c2c2/host/worker1"),
    ]
    monkeypatch.setattr(processes, "labelled", lambda: found)
    monkeypatch.setattr(
        network, "found", lambda: [network.Namespace("c1c1c1c1", "worker1", runtime / "c1c1c1c1" / "host")]
    )
    made = provider.Host(runtime)
    made.groups = Hierarchy(2, tmp_path / "tree", tmp_path / "tree")
    assert [(one.kind, one.name, one.elsewhere) for one in made.leftovers()] == [
        ("control group", "vtax-c1c1c1c1", ""),
        ("control group", "vtax-c2c2c2c2", UNKNOWN),
        ("process", "7", ""),
        ("process", "8", "/b/run"),
        ("network namespace", "vtax-c1c1c1c1.worker1", ""),
    ]


@pytest.mark.parametrize("forged", ["", ".", "..", "/etc", "../../..", "c1c1c1c1/..", "C1C1C1C1", "--all"])
def test_labels_that_vtax_does_not_give_are_left_alone(
    forged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither removed nor looked up: as a path, some of them are directories that exist."""
    paths = Paths(tmp_path / "cache", tmp_path / "state")
    paths.runtime.mkdir(parents=True)
    destroyed: list[str] = []
    provider_ = FakeProvider("docker", tmp_path)
    monkeypatch.setattr(provider_, "destroy", destroyed.append)
    monkeypatch.setattr(provider_, "leftovers", lambda: [Leftover("docker", "container", "vtax-x", forged)])
    monkeypatch.setattr(leftovers, "all_providers", lambda runtime: {"docker": provider_})
    found = leftovers.leftovers(paths, everything=True)
    assert found == []
    leftovers.clean(found, paths)
    assert destroyed == []
    assert elsewhere(paths.runtime, forged, None) == UNKNOWN


def test_a_link_in_the_run_time_directory_is_not_followed_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = Paths(tmp_path / "cache", tmp_path / "state")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    (paths.runtime / "c2c2c2c2" / "docker").mkdir(parents=True)
    (paths.runtime / "c1c1c1c1").symlink_to(tmp_path / "precious")
    (paths.runtime / "c2c2c2c2" / "docker" / "link").symlink_to(tmp_path / "precious")
    (paths.runtime / "notes").mkdir()  # not vtax's
    monkeypatch.setattr(leftovers, "all_providers", lambda runtime: {})
    found = leftovers.leftovers(paths, everything=True)
    assert [item.campaign for item in found] == ["c2c2c2c2"]
    leftovers.clean(found, paths)
    assert sorted(place.name for place in paths.runtime.iterdir()) == ["c1c1c1c1", "notes"]
    assert (tmp_path / "precious" / "file").read_text() == "kept"


def test_clean_tells_of_others_and_leaves_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    others = [
        Leftover("docker", "container", f"vtax-c2c2c2c2-{n}", "c2c2c2c2", "/home/b/.state/vtax/run") for n in range(4)
    ]
    others += [
        Leftover("host", "control group", "vtax-c3c3c3c3", "c3c3c3c3", UNKNOWN),
        Leftover("qemu", "process", "master (7)", "c4c4c4c4", "/tmp/mine"),
    ]
    ours = Leftover("docker", "volume", "vtax-c1c1c1c1", "c1c1c1c1")
    removed: list[Leftover] = []
    monkeypatch.setattr(leftovers, "labelled", lambda paths: [*others, ours])

    def clean(items: Sequence[Leftover], paths: Paths, *, everything: bool) -> Sequence[Leftover]:
        assert everything
        removed.extend(items)
        return []

    monkeypatch.setattr(leftovers, "clean", clean)
    monkeypatch.setattr(sys, "argv", ["vtax", "clean", "--all"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 0
    assert removed == [ours]
    told = capsys.readouterr()
    assert "vtax-c1c1c1c1" in told.out
    assert "vtax-c2c2c2c2" not in told.out
    assert told.err.splitlines() == [
        "left alone: belongs to another state directory: docker container vtax-c2c2c2c2-0, "
        "docker container vtax-c2c2c2c2-1, docker container vtax-c2c2c2c2-2 and 1 more; "
        "to remove it: XDG_STATE_HOME=/home/b/.state vtax clean",
        "left alone: belongs to another state directory: qemu process master (7); it is removed by the program that "
        "made it in /tmp/mine",
        "left alone: belongs to another state directory: host control group vtax-c3c3c3c3; its owner is unknown; "
        "remove it by hand when no vtax instance uses it",
    ]


def test_what_is_left_behind_is_named_by_its_campaign_where_its_files_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `kill -9` the directory of a label still says whose it is; after a reboot perhaps nothing does."""
    paths = Paths(tmp_path / "cache", tmp_path / "state")
    plan = make_plan(study(("box",)), MACHINE, {"box": FakeProvider("box", tmp_path)})
    with pytest.raises(OSError, match="killed"), sites(tmp_path / "c", "c1c1c1c1", plan, paths.runtime, IMAGE) as found:
        found["box"].directory.mkdir()  # a cluster is up, so the directory stays
        raise OSError("killed")
    label = label_of("c1c1c1c1", "box")
    bare = [Leftover("docker", "container", "vtax-x-master", label), Leftover("docker", "volume", "v", "0123abcd")]
    monkeypatch.setattr(leftovers, "all_providers", lambda runtime: {})
    listed = {(one.kind, one.name): one.origin for one in leftovers.leftovers(paths, among=bare)}
    assert listed == {
        ("container", "vtax-x-master"): f"box of {tmp_path / 'c'}",
        ("volume", "v"): "",
        ("directory", f"{paths.runtime / label}"): f"box of {tmp_path / 'c'}",
    }
