"""Networks of the host environment, on the real kernel: what is inside a node, what is seen outside, what is left."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vtax.errors import ProvisionError
from vtax.model.cluster import Image
from vtax.model.nodes import Scope
from vtax.paths import Paths
from vtax.providers import cgroup, network, provider
from vtax.providers.base import Cluster
from vtax.running.provision import provision

from .conftest import CPU, PING, Vtax, finish, labels_of, own, study
from .test_bad_days import left, wait_for, write
from .test_clusters import finish as take_down
from .test_clusters import shape_for, site_for, spec_for

pytestmark = pytest.mark.integration
SERVERS = ("mpirun", "prterun", "prted", "sshd")  # what listens during a parallel program
HPL = '[[benchmarks]]\nname = "hpl"\nscopes = ["workers"]\nn = 5000\nnb = 192\n'
ENTERED_S = 0.05  # a generous limit for entering a node: it takes 1.5 ms on a quiet machine


def on_host(benchmarks: str, kind: str) -> str:
    return study(["host"], benchmarks).replace('provider = "host"\n', f'provider = "host"\nnetwork = "{kind}"\n')


# --- what can be seen of a cluster -----------------------------------------------------------------------------------


def members(label: str) -> list[int]:
    """Processes in the control groups of a label."""
    where = cgroup.find()
    assert where is not None
    files = [file for tree in where.trees for file in (tree / f"{cgroup.PREFIX}{label}").glob("*/cgroup.procs")]
    return sorted({int(pid) for file in files for pid in file.read_text().split()})


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""  # gone meanwhile


def sockets_of(pid: int) -> set[str]:
    """The inodes of a process's sockets."""
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[len("socket:[") : -1])
    return found


def listening(pid: int | str = "self") -> dict[str, str]:
    """Inode -> address, as the kernel writes it, of TCP sockets that listen, and of UDP sockets, in the network
    namespace of a process."""
    found: dict[str, str] = {}
    for kind, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        try:
            rows = Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]
        except OSError:
            continue
        found |= {words[9]: words[1].partition(":")[0] for words in map(str.split, rows) if words[3] == state}
    return found


def namespaces() -> dict[str, int]:
    """Name -> inode of each network namespace with a name."""
    found = {}
    for place in network.NAMESPACES.glob("vtax-*"):
        with contextlib.suppress(OSError):  # gone meanwhile
            found[place.name] = place.stat().st_ino
    return found


def in_use() -> set[int]:
    """The inodes of the network namespaces in which any process runs."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            found.add((place / "ns/net").stat().st_ino)
        except OSError:
            continue
    return found


def links() -> set[str]:
    """The names of interfaces in this machine's own namespace."""
    listed = subprocess.run(["ip", "-j", "link"], check=True, capture_output=True, text=True).stdout
    return {link["ifname"] for link in json.loads(listed)}


def nothing_is_left(label: str, were: dict[str, int], places: Paths, campaign: Path) -> None:
    """No namespace (also none without a name), interface, process, control group or mount."""
    assert left(places, campaign) == []
    assert members(label) == []
    mine = {inode for name, inode in were.items() if label in name}
    assert not mine & in_use()
    assert not [name for name in namespaces() if label in name]
    assert not links() & {"bridge", "master", "worker1", "worker2"}
    assert not [place for place in Path("/sys/fs/cgroup").glob(f"**/{cgroup.PREFIX}{label}") if place.is_dir()]
    assert label not in Path("/proc/self/mountinfo").read_text()


# --- a cluster with a bridge -----------------------------------------------------------------------------------------


@pytest.fixture
def bridged(places: Paths, image: Image) -> Iterator[tuple[Cluster, tuple[str, ...], str]]:
    supplier = provider("host", places.runtime)
    spec = spec_for("host", supplier, network="bridge")
    site = site_for(places, image, "bridged")
    ready = provision(supplier, spec, shape_for("host"), "/shared", site, [Scope.WORKERS, Scope.CLUSTER])
    try:
        yield ready.cluster, ready.checks, site.campaign
    finally:
        take_down(supplier, site, ready.cluster)


def test_nodes_with_a_bridge_are_what_containers_are(bridged: tuple[Cluster, tuple[str, ...], str]) -> None:
    cluster, checks, label = bridged
    assert "names and SSH between all 6 pairs of nodes" in checks
    assert "mpi placement workers: worker1=1 worker2=1" in checks
    assert "mpi placement cluster: master=1 worker1=1 worker2=1" in checks
    assert "/shared is the same on all 3 nodes" in checks
    assert [node.address for node in cluster.nodes] == ["10.214.0.10", "10.214.0.11", "10.214.0.12"]
    worker = cluster.node("worker1").transport
    seen = worker.run(("sh", "-c", "hostname; ls /sys/class/net; ip -br -4 address show eth0"), timeout_s=10).stdout
    assert seen.split() == ["worker1", "eth0", "lo", *seen.split()[3:5], "10.214.0.11/24"]
    assert worker.run(("ping", "-c", "1", "-q", "worker2"), timeout_s=10).exit_code == 0
    assert worker.run(("ping", "-c", "1", "-W", "1", "192.0.2.1"), timeout_s=10).exit_code != 0, "no way out"
    servers = [pid for pid in members(label) if command_of(pid) == "sshd"]
    assert len(servers) >= 3, "an SSH server is in the control groups of every node: pausing them pauses it"
    assert not listening().keys() & set().union(*map(sockets_of, members(label)))
    took = []
    for _ in range(20):
        began = time.monotonic()
        worker.run(("true",), timeout_s=10)
        took.append(time.monotonic() - began)
    assert sorted(took)[10] < ENTERED_S


def test_a_login_runs_within_the_limits_of_its_node(bridged: tuple[Cluster, tuple[str, ...], str]) -> None:
    """What mpirun starts on another node has that node's CPUs and memory."""
    cluster, _, _ = bridged
    ask = ("ssh", "root@worker2", "nproc; hostname; cat /proc/self/cgroup; head -c 700M /dev/zero | tail >/dev/null")
    answer = cluster.node("worker1").transport.run(ask, timeout_s=60)
    assert answer.stdout.splitlines()[:2] == ["1", "worker2"]
    assert f"/{cgroup.PREFIX}" in answer.stdout
    assert answer.stdout.count("/worker2") >= 1
    assert answer.exit_code == 137, "tail keeps what it reads, which is more than the node's memory"
    again = cluster.node("worker1").transport.run(("ssh", "root@worker2", "true"), timeout_s=20)
    assert again.exit_code == 0, "its SSH server survives a program that takes too much memory"


def test_a_pause_stops_the_servers_too(bridged: tuple[Cluster, tuple[str, ...], str]) -> None:
    cluster, _, label = bridged
    where, pausing = cgroup.find(), cluster.pausing
    assert where is not None
    assert pausing is not None
    freezer = where.freezer_of(label)
    assert freezer is not None, "integration tests need the freezer of control groups"
    pausing.pause()
    try:
        assert freezer.frozen()
        inside = {int(pid) for file in freezer.group.glob("*/cgroup.procs") for pid in file.read_text().split()}
        servers = [pid for pid in members(label) if command_of(pid) == "sshd"]
        assert len(servers) >= 3
        assert set(servers) <= inside
    finally:
        pausing.resume()
    again = cluster.node("worker1").transport.run(("ssh", "root@worker2", "hostname"), timeout_s=20)
    assert again.stdout == "worker2\n"


# --- what is reachable from outside ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "bridge"])
def test_nothing_listens_outside_during_a_parallel_program(
    kind: str, vtax: Vtax, places: Paths, tmp_path: Path
) -> None:
    """mpirun listens on all addresses that it finds: inside it does, in this machine's own namespace nothing of it."""
    campaign = tmp_path / "c"
    process = vtax("run", str(write(tmp_path, on_host(HPL, kind))), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.*.tmp")
    label, inside, outside = labels_of(campaign)["host"], set[str](), set[str]()
    while list(campaign.glob("trials/*/.*.tmp")):
        for pid in [pid for pid in members(label) if command_of(pid) in SERVERS]:
            held = sockets_of(pid)
            inside |= {command_of(pid) for _ in held & listening(pid).keys()}
            outside |= held & listening().keys()
        time.sleep(0.05)
    code, _, err = finish(process)
    assert code == 0, err
    assert inside >= ({"prterun"} if kind == "none" else {"prterun", "sshd"})
    assert outside == set()
    assert left(places, campaign) == []


@pytest.mark.parametrize("name", ["docker", pytest.param("podman", marks=pytest.mark.long)])
def test_only_the_loopback_is_listened_on_in_this_machine_s_own_network(
    name: str, vtax: Vtax, places: Paths, tmp_path: Path
) -> None:
    """Containers with network = "host": mpirun, its daemon on the other node and the ranks. They are in the network
    namespace of this machine, which is where the addresses are listed."""
    campaign = tmp_path / "c"
    text = study([name], HPL).replace(f'provider = "{name}"\n', f'provider = "{name}"\nnetwork = "host"\n')
    process = vtax("run", str(write(tmp_path, text)), "-o", str(campaign))
    wait_for(process, campaign, "trials/*/.*.tmp")
    label, seen = labels_of(campaign)[name], set[tuple[str, str]]()
    inside = {Path(f"/proc/{pid}/ns/pid").stat().st_ino for pid in first_processes(name, label)}
    assert len(inside) == 3, "master and two workers"
    while list(campaign.glob("trials/*/.*.tmp")):
        for pid in [pid for pid in members_of(inside) if command_of(pid) != "sshd"]:
            held, ours = sockets_of(pid), listening()
            seen |= {(command_of(pid), ours[inode]) for inode in held & ours.keys()}
        time.sleep(0.05)
    code, _, err = finish(process)
    assert code == 0, err
    assert {"prterun", "prted", "xhpl"} <= {command for command, _ in seen}
    assert {one for one in seen if not is_loopback(one[1])} == set()
    assert left(places, campaign) == []


def first_processes(engine: str, label: str) -> list[int]:
    """Of each node of a cluster of containers."""

    def said(*words: str) -> list[str]:
        return subprocess.run((engine, *words), check=True, capture_output=True, text=True).stdout.split()

    names = said("ps", "--quiet", "--filter", f"label=vtax.campaign={label}")
    return [int(pid) for pid in said("inspect", "--format", "{{.State.Pid}}", *names)]


def members_of(namespaces: set[int]) -> list[int]:
    """Processes in any of these process namespaces."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if (place / "ns" / "pid").stat().st_ino in namespaces:
                found.append(int(place.name))
    return found


def is_loopback(address: str) -> bool:
    """Of IP version 4 the first number is 127, and stands last; of version 6 it is ::1, or stands for such a one."""
    return address[-2:] == "7F" if len(address) == 8 else address == "0" * 24 + "01000000"


# --- after kill -9 ---------------------------------------------------------------------------------------------------


def some_namespace(label: str, campaign: Path) -> bool:
    return any(label in name for name in namespaces())


def some_server(label: str, campaign: Path) -> bool:
    return any(command_of(pid) in ("vtax-enter", "node-init", "sshd") for pid in members(label))


def some_trial(label: str, campaign: Path) -> bool:
    return bool(list(campaign.glob("trials/*/.*.tmp")))


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        ("bridge", some_namespace),
        ("bridge", some_server),
        ("bridge", some_trial),
        ("none", some_trial),
    ],
)
def test_killed_at_any_moment_and_cleaned(
    kind: str, moment: Callable[[str, Path], bool], vtax: Vtax, places: Paths, tmp_path: Path
) -> None:
    campaign = tmp_path / "c"
    benchmarks = CPU.format(seconds=9) if kind == "none" else HPL.replace("5000", "9000")
    process = vtax("run", str(write(tmp_path, on_host(benchmarks, kind))), "-o", str(campaign))
    wait_for(process, campaign, "campaign.json")
    wait_for(process, campaign, "plan.json")
    label, deadline = labels_of(campaign)["host"], time.monotonic() + 60
    while not moment(label, campaign):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
    process.kill()
    process.communicate()
    time.sleep(0.5)  # a command that it had just started ends by itself
    were = namespaces()
    assert left(places, campaign) != []
    code, out, err = finish(vtax("clean"))
    assert code == 0, out + err
    assert "network namespace" in out
    nothing_is_left(label, were, places, campaign)


# --- what cannot be made ---------------------------------------------------------------------------------------------


def test_a_namespace_of_that_name_is_not_touched(places: Paths) -> None:
    label = own("taken")
    subprocess.run(["ip", "netns", "add", f"vtax-{label}.bridge"], check=True)
    try:
        before = namespaces()[f"vtax-{label}.bridge"]
        with pytest.raises(ProvisionError, match="exists already"):
            network.make(network.bridge(label, places.runtime / label, network.BRIDGE))
        assert namespaces()[f"vtax-{label}.bridge"] == before
    finally:
        network.remove(label)
    assert not [name for name in namespaces() if label in name]


def test_a_file_without_a_namespace_is_removed(places: Paths) -> None:
    """What is there when `ip` was killed between making the file and mounting the namespace on it."""
    network.NAMESPACES.mkdir(exist_ok=True)
    label = own("half")
    (network.NAMESPACES / f"vtax-{label}.worker1").touch()
    assert label in {one.label for one in network.found()}
    network.remove(label)
    assert label not in {one.label for one in network.found()}


@pytest.mark.parametrize(
    ("right", "kind", "said"),
    [
        ("net_admin", "bridge", "network namespaces cannot be made: RTNETLINK answers: Operation not permitted"),
        ("sys_admin", "none", "namespaces cannot be made (in a container they need the capability SYS_ADMIN)"),
    ],
)
def test_root_without_the_rights_is_told(
    right: str, kind: str, said: str, places: Paths, state: Path, cache: Path, tmp_path: Path
) -> None:
    """As in a container: refused before anything is made, with the reason of the kernel."""
    path = write(tmp_path, on_host(PING if kind == "bridge" else CPU.format(seconds=1), kind))
    dropped = ("setpriv", "--bounding-set", f"-{right}", "--inh-caps", f"-{right}")
    ran = subprocess.run(
        [*dropped, sys.executable, "-m", "vtax", "run", str(path), "-o", str(tmp_path / "c")],
        env={**os.environ, "XDG_STATE_HOME": str(state), "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert said in ran.stderr
    assert "next: " in ran.stderr
    assert not (tmp_path / "c").exists()
