"""The command line that puts a command into the root file system, for root and for a user."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fakes.cluster import node_shape, result_of
from vtax.errors import ImageError, ProvisionError
from vtax.launchers.mpirun import Mpirun
from vtax.model.capabilities import NodeKind
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import CommandResult
from vtax.providers import cgroup, network
from vtax.providers.base import Site
from vtax.providers.host import ssh_nodes
from vtax.providers.host.entering import wrapper
from vtax.providers.host.provider import Host, HostOptions
from vtax.transport import process
from vtax.transport.local import LocalTransport

SHAPE = ClusterShape(nodes=(node_shape("master", (0,)), node_shape("worker1", (0, 1)), node_shape("worker2", (2, 3))))
SPEC = EnvironmentSpec(name="host", provider="host")


IMAGE = Image(recipe="key", digest="0" * 64, directory="/cache/key/rootfs", archive="/cache/key/rootfs.tar")


def wrapped(groups: tuple[Path, ...], network: str = "", node: str = "", keep: Sequence[str] = ()) -> list[str]:
    place, shared = Path("/run/c1/worker1"), Path("/run/c1/shared")
    wrap = wrapper("c1", IMAGE, place, shared, "/data", (0, 1), groups, network=network, node=node, keep=keep)
    return list(wrap("/scratch/t", ("hpcc", "a b")))


ENTER = [
    *("/cache/key/vtax-enter", "vtax.campaign=c1", "/cache/key/rootfs", "/run/c1/worker1", "/run/c1/shared", "/data"),
    "/scratch/t",
]
COMMAND = ["hpcc", "a b"]


def test_root_joins_control_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    groups = (Path("/sys/fs/cgroup/cpuset/vtax-c1/worker1"), Path("/sys/fs/cgroup/memory/vtax-c1/worker1"))
    assert wrapped(groups) == [*ENTER, f"{groups[0]} {groups[1]}", "", "", "", *COMMAND]


def test_root_without_control_groups_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert wrapped(()) == ["taskset", "-c", "0,1", *ENTER, "", "", "", "", *COMMAND]


def test_a_node_with_a_network_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    there = "/run/netns/vtax-c1.worker1"
    assert wrapped((), there, "worker1") == ["taskset", "-c", "0,1", *ENTER, "", there, "worker1", "", *COMMAND]


def test_a_user_pins_in_a_user_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    user = ["unshare", "--user", "--map-root-user", "--map-auto"]
    assert wrapped(()) == ["taskset", "-c", "0,1", *user, *ENTER, "", "", "", "", *COMMAND]


def test_only_what_is_asked_for_is_kept_of_root_s_capabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert wrapped((), keep=("setgid", "setuid"))[-3:] == ["setgid,setuid", *COMMAND]


@pytest.mark.parametrize(
    ("argv", "capabilities"),
    [
        (("vtax-run", "--report", "usage.json", "--", "true"), ""),
        (("vtax-run", "--user", "postgres", "--", "true"), "+setgid,+setuid"),
        (("vtax-run", "--report", "u", "--image", "/workload", "--", "true"), "+setgid,+setuid,+sys_chroot"),
        (("vtax-run", "--image", "/workload"), "+setgid,+setuid,+sys_chroot"),  # its entry point
        (("timeout", "-k", "5", "20", "vtax-run", "--user", "postgres", "--", "true"), "+setgid,+setuid"),
        (("vtax-supervise", "vtax-run", "--user", "postgres", "--", "true"), "+kill,+setgid,+setuid"),
        (("vtax-supervise", "--control", "vtax-run", "--user", "a", "--", "true"), "+kill,+setgid,+setuid"),
        (("vtax-supervise", "vtax-run", "--", "true"), ""),
        (("vtax-supervise", "sh", "--user", "postgres"), ""),
        (("vtax-run", "--set", "--user", "--", "true"), ""),
        (("vtax-run", "--", "vtax-run", "--user", "root", "true"), ""),
        (("sh", "-c", "vtax-run", "--user", "postgres"), ""),
    ],
)
def test_a_command_that_becomes_another_user_is_lent_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...], capabilities: str
) -> None:
    """It gives them back: see the tests of vtax-run, and test_confinement."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    wrap = wrapper("c1", IMAGE, Path("/run/w"), Path("/run/s"), "/data", (0,), (), network="", node="")
    assert wrap("/scratch/t", argv)[-len(argv) - 1 :] == (capabilities, *argv)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    root = tmp_path / "rootfs"
    root.mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "vtax-enter").write_bytes(b"program")
    image = Image(
        recipe="key",
        digest="0" * 64,
        directory=str(root),
        archive=str(tmp_path / "rootfs.tar"),
        enter_digest=hashlib.sha256(b"program").hexdigest(),
    )
    return Site("c1", tmp_path / "site", image, tmp_path / "keys")


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize("content", [b"another program", None])
def test_only_the_program_that_was_built_is_run(tmp_path: Path, site: Site, content: bytes | None) -> None:
    program = Path(site.image.enter)
    program.unlink()
    if content is not None:
        program.write_bytes(content)
    with pytest.raises(ImageError, match="not the program that was built"):
        Host(tmp_path).create(SPEC, SHAPE, "/data", site)
    with pytest.raises(ImageError, match="not the program that was built"):
        Host(tmp_path).connect(SPEC, SHAPE, "/data", site)
    assert not list(site.directory.iterdir())


def test_the_program_is_not_in_the_tree_that_commands_see(site: Site) -> None:
    assert not Path(site.image.enter).is_relative_to(site.image.directory)


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
    monkeypatch.setattr(network, "make", lambda commands: None)
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
    assert line[-6:] == ("DIRECTORY", "", "", "", "", "COMMAND")
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
    added, loopback, line = Host(tmp_path).commands(SPEC, SHAPE, "/data", "cloud")
    groups = "/sys/fs/cgroup/cpuset/vtax-CAMPAIGN/worker1 /sys/fs/cgroup/memory/vtax-CAMPAIGN/worker1"
    assert line[-6:] == ("DIRECTORY", groups, "/run/netns/vtax-CAMPAIGN.loopback", "", "", "COMMAND")
    assert added == ("ip", "netns", "add", "vtax-CAMPAIGN.loopback")
    assert loopback == ("ip", "-n", "vtax-CAMPAIGN.loopback", "link", "set", "lo", "alias", "CAMPAIGN", "up")


# --- with a bridge ---------------------------------------------------------------------------------------------------

BRIDGED = EnvironmentSpec(name="host-bridge", provider="host", options={"network": "bridge"})


def test_a_bridge_makes_separate_nodes(tmp_path: Path) -> None:
    """What containers have: their own stack each, and one mpirun over SSH to all of them."""
    host, options = Host(tmp_path), HostOptions(network="bridge")
    assert host.capabilities_with(options).separate_nodes
    assert not host.capabilities_with(HostOptions()).separate_nodes
    assert host.capabilities_with(options).kind is NodeKind.HOST
    assert host.launcher(options) == Mpirun(interface="eth0")
    assert host.launcher(HostOptions(network="bridge", mpi_transport="tcp")) == Mpirun(
        interface="eth0", transport="tcp"
    )


def test_the_plan_shows_what_makes_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cgroup, "find", lambda: None)
    commands = Host(tmp_path).commands(BRIDGED, SHAPE, "/data", "cloud")
    assert [line[3].partition(".")[2] for line in commands if line[:3] == ("ip", "netns", "add")] == [
        *("bridge", "master", "worker1", "worker2")
    ]
    server, entered = commands[-2:]
    assert server[:2] == ("setsid", "--fork")
    rights = "audit_write,net_bind_service,setgid,setuid,sys_chroot"
    assert server[-6:] == ("/", "", "/run/netns/vtax-CAMPAIGN.worker1", "worker1", rights, "node-init")
    assert entered[-5:] == ("", "/run/netns/vtax-CAMPAIGN.worker1", "worker1", "", "COMMAND")


@pytest.fixture
def tree(site: Site, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root file system with what nodes copy of it; keys that exist already; commands that make a network are kept."""
    root = Path(site.image.directory)
    for place, text in (("etc/ssh/sshd_config.d/vtax.conf", "UsePAM no\n"), ("root/.profile", "")):
        (root / place).parent.mkdir(parents=True)
        (root / place).write_text(text)
    site.keys.mkdir()
    for name in ("user", "master", "worker1", "worker2"):
        (site.keys / name).write_text(f"secret of {name}")
        (site.keys / f"{name}.pub").write_text(f"ssh-ed25519 {name} vtax\n")
    monkeypatch.setattr(cgroup, "find", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(network, "make", lambda commands: None)
    return root


def serve(argv: Sequence[str], stdout: Path, **_: Any) -> None:
    """What starts the server of a node: it prints what OpenSSH prints."""
    assert tuple(argv[:2]) == ("setsid", "--fork")
    stdout.write_text("Server listening on 0.0.0.0 port 22.\n")


def test_a_bridged_cluster(tmp_path: Path, site: Site, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "run", serve)
    cluster = Host(tmp_path).create(BRIDGED, SHAPE, "/data", site)
    assert [node.address for node in cluster.nodes] == ["10.214.0.10", "10.214.0.11", "10.214.0.12"]
    assert cluster.shared_transports == {}, "a parallel program starts on its first node, and the rest over SSH"
    assert cluster.capabilities.separate_nodes
    own = site.directory / "worker1"
    assert "10.214.0.12 worker2\n" in (own / "etc/hosts").read_text()
    assert (own / "etc/ssh/sshd_config.d/vtax.conf").read_text() == "UsePAM no\n"
    assert (own / "etc/ssh/ssh_host_ed25519_key").read_text() == "secret of worker1"
    assert (own / "root/.ssh/id_ed25519").stat().st_mode & 0o777 == 0o600
    assert "worker2,10.214.0.12 ssh-ed25519 worker2" in (own / "etc/ssh/ssh_known_hosts").read_text()
    assert sorted(path.name for path in tree.rglob("*")) == [
        *(".profile", "data", "etc", "root", "scratch", "ssh", "sshd_config.d", "vtax.conf")
    ], "no key reaches the root file system"


def test_a_server_that_does_not_start(tmp_path: Path, site: Site, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(argv: Sequence[str], stdout: Path, **_: Any) -> None:
        stdout.write_text("vtax-enter: cannot enter /run/netns/vtax-c1.master: No such file or directory\n")

    monkeypatch.setattr(process, "run", fail)
    monkeypatch.setattr(ssh_nodes, "READY_S", 0.05)
    with pytest.raises(ProvisionError, match="its SSH server did not start") as raised:
        Host(tmp_path).create(BRIDGED, SHAPE, "/data", site)
    assert "vtax-enter: cannot enter" in raised.value.detail


@pytest.mark.usefixtures("as_user")
def test_an_ordinary_user_is_refused_a_bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "unavailable", lambda self: "")
    capacity = HostCapacity(cpu_ids=(0,), memory_bytes=2**30)
    (problem,) = Host(tmp_path).check(BRIDGED, SHAPE, capacity)
    assert problem.message == 'network = "bridge" needs root, to make a bridge'
    assert 'network = "none"' in problem.remedy
    assert Host(tmp_path).check(SPEC, SHAPE, capacity) == []


def refuse(stderr: str) -> Callable[..., CommandResult]:
    return lambda argv, **_: result_of(argv, (1, "", stderr))


@pytest.mark.parametrize(
    ("user", "said"), [(0, "namespaces cannot be made (in a container"), (1000, "user namespaces")]
)
def test_no_permission_to_make_namespaces(
    user: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(process, "installed", lambda program: True)
    monkeypatch.setattr(process, "run", refuse("unshare: unshare failed: Operation not permitted\n"))
    (problem,) = Host(tmp_path).check(SPEC, SHAPE, HostCapacity(cpu_ids=(0,), memory_bytes=2**30))
    assert problem.message.startswith(said)
    assert problem.message.endswith("unshare failed: Operation not permitted")


def test_auto_is_a_bridge_where_this_user_can_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, options = Host(tmp_path), HostOptions(network="auto")
    monkeypatch.setattr(network, "refused", lambda *words: iter(()))
    assert host.capabilities_with(options).separate_nodes
    assert host.launcher(options) == host.launcher(HostOptions(network="bridge"))
    problem = Problem.blocker("it needs root", "run vtax as root")
    monkeypatch.setattr(network, "refused", lambda *words: iter((problem,)))
    assert not host.capabilities_with(options).separate_nodes
    assert host.launcher(options) == host.launcher(HostOptions())
    monkeypatch.setattr(host, "unavailable", lambda: "")
    spec = EnvironmentSpec(name="host", provider="host", options={"network": "auto"})
    assert list(host.check(spec, SHAPE, HostCapacity(cpu_ids=(0,), memory_bytes=2**30))) == []
