"""The command line that puts a command into the root file system, for root and for a user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fakes.cluster import node_shape
from vtax.errors import ProvisionError
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.providers import cgroup
from vtax.providers.base import Site
from vtax.providers.host.provider import Host, wrapper
from vtax.transport.local import LocalTransport

SHAPE = ClusterShape(nodes=(node_shape("master", (0,)), node_shape("worker1", (0, 1)), node_shape("worker2", (2, 3))))
SPEC = EnvironmentSpec(name="host", provider="host")


def wrapped(groups: tuple[Path, ...]) -> list[str]:
    wrap = wrapper("c1", "/rootfs", Path("/run/c1/worker1"), Path("/run/c1/shared"), "/data", (0, 1), groups)
    return list(wrap("/scratch/t", ("hpcc", "a b")))


ENTER = [
    *("/rootfs/usr/local/bin/vtax-enter", "vtax.campaign=c1", "/rootfs", "/run/c1/worker1", "/run/c1/shared", "/data"),
    "/scratch/t",
]
COMMAND = ["hpcc", "a b"]


def test_root_joins_control_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    groups = (Path("/sys/fs/cgroup/cpuset/vtax-c1/worker1"), Path("/sys/fs/cgroup/memory/vtax-c1/worker1"))
    assert wrapped(groups) == [*ENTER, f"{groups[0]} {groups[1]}", *COMMAND]


def test_root_without_control_groups_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert wrapped(()) == ["taskset", "-c", "0,1", *ENTER, "", *COMMAND]


def test_a_user_pins_in_a_user_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    user = ["unshare", "--user", "--map-root-user", "--map-auto"]
    assert wrapped(()) == ["taskset", "-c", "0,1", *user, *ENTER, "", *COMMAND]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    root = tmp_path / "rootfs"
    root.mkdir()
    (tmp_path / "site").mkdir()
    image = Image(recipe="key", digest="0" * 64, directory=str(root), archive=str(tmp_path / "rootfs.tar"))
    return Site("c1", tmp_path / "site", image, tmp_path / "keys")


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.mark.usefixtures("as_user")
def test_a_user_s_cluster(tmp_path: Path, site: Site) -> None:
    host = Host(tmp_path)
    assert not host.capabilities.limits_memory
    cluster = host.create(SPEC, SHAPE, "/data", site)
    assert [(node.name, node.address) for node in cluster.nodes] == [
        ("master", "127.0.0.1"),
        ("worker1", "127.0.0.1"),
        ("worker2", "127.0.0.1"),
    ]
    assert (site.directory / "worker1/scratch").is_dir()
    assert (site.directory / "shared").is_dir()
    assert {path.name for path in Path(site.image.directory).iterdir()} == {"scratch", "data"}
    host.connect(SPEC, SHAPE, "/data", site)  # another process finds it again


@pytest.mark.usefixtures("as_user")
def test_nodes_of_one_machine_are_used_together(tmp_path: Path, site: Site) -> None:
    """A parallel program runs on the CPUs of all its nodes, a command of one node on that node's."""
    cluster = Host(tmp_path).create(SPEC, SHAPE, "/data", site)

    def cpus(name: str, target: tuple[str, ...]) -> str:
        transport = cluster.reach(name, target)
        assert isinstance(transport, LocalTransport)
        return transport.wrap("/", ("true",))[2]

    assert cpus("worker1", ("worker1",)) == "0,1"
    assert cpus("worker1", ("worker1", "worker2")) == "0,1,2,3"
    assert cpus("master", ("master", "worker1", "worker2")) == "0,1,2,3"
    assert cpus("master", ("master",)) == "0"


def test_root_s_cluster_has_groups_for_all_sets_of_nodes(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    top = tmp_path / "cgroup"
    top.mkdir()
    (top / "cgroup.controllers").write_text("cpuset memory\n")
    (top / "cgroup.subtree_control").write_text("")
    hierarchy = cgroup.Hierarchy(2, top, top)
    monkeypatch.setattr(cgroup, "find", lambda: hierarchy)
    host = Host(tmp_path)
    assert host.capabilities.limits_memory
    host.create(SPEC, SHAPE, "/data", site)
    limits = {
        place.name: ((place / "cpuset.cpus").read_text(), int((place / "memory.max").read_text()) // 2**30)
        for place in (top / "vtax-c1").iterdir()
        if place.is_dir()
    }
    assert limits == {
        "master": ("0", 2),
        "worker1": ("0,1", 2),
        "worker2": ("2,3", 2),
        "workers": ("0,1,2,3", 4),
        "cluster": ("0,1,2,3", 6),
    }


def test_a_group_that_cannot_be_made_is_a_provision_error(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    gone = cgroup.Hierarchy(2, tmp_path / "gone", tmp_path / "gone")
    monkeypatch.setattr(cgroup, "find", lambda: gone)
    with pytest.raises(ProvisionError, match="the control group of master cannot be made"):
        Host(tmp_path).create(SPEC, SHAPE, "/data", site)


@pytest.mark.usefixtures("as_user")
def test_the_plan_shows_the_command_of_the_first_worker(tmp_path: Path) -> None:
    (line,) = Host(tmp_path).commands(SPEC, SHAPE, "/data", "cloud")
    assert line[:3] == ("taskset", "-c", "0,1")
    assert line[-3:] == ("DIRECTORY", "", "COMMAND")
    assert "vtax.campaign=CAMPAIGN" in line


@pytest.mark.usefixtures("as_user")
def test_a_terminal_on_a_node_has_a_plain_environment(tmp_path: Path, site: Site) -> None:
    transport = Host(tmp_path).create(SPEC, SHAPE, "/data", site).node("worker1").transport
    words = transport.shell((), terminal=True)
    assert words[:2] == ("env", "-i")
    assert "HOME=/root" in words
    assert words[-2:] == ("/bin/bash", "-l")
    assert transport.shell(("nproc",), terminal=False)[-1] == "nproc"


def test_the_plan_shows_the_control_groups_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    top = Path("/sys/fs/cgroup")
    monkeypatch.setattr(cgroup, "find", lambda: cgroup.Hierarchy(1, top / "cpuset", top / "memory"))
    (line,) = Host(tmp_path).commands(SPEC, SHAPE, "/data", "cloud")
    groups = "/sys/fs/cgroup/cpuset/vtax-CAMPAIGN/worker1 /sys/fs/cgroup/memory/vtax-CAMPAIGN/worker1"
    assert line[-3:] == ("DIRECTORY", groups, "COMMAND")
