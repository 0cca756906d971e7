"""What the machine counts while a step runs, and what of it is vtax's own, from files made by hand."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

from fakes.cluster import FakeTransport
from vtax.running.machine_use import connection_of, counting
from vtax.transport.base import Transport
from vtax.transport.ssh import SshTransport


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine that has counted something."""
    (tmp_path / "proc").mkdir()
    stat(tmp_path, busy=1000, idle=5000, steal=50)
    return tmp_path


def stat(root: Path, busy: int, idle: int, steal: int) -> None:
    (root / "proc/stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 1 2 3\n")


def process(root: Path, pid: int, command: bytes, ran_ns: int) -> Path:
    place = root / f"proc/{pid}"
    place.mkdir(exist_ok=True)
    (place / "cmdline").write_bytes(command)
    (place / "schedstat").write_text(f"{ran_ns} 12 7\n")
    return place


def test_all_cpus_are_counted(root: Path) -> None:
    with counting([FakeTransport()], root) as counted:
        assert counted == {}
        stat(root, busy=1800, idle=5300, steal=60)
    assert counted.pop("seconds") < 5
    assert counted.pop("vtax_cpu_s") < 5
    assert counted == {"cpu_ticks": 1110, "busy_ticks": 810, "steal_ticks": 10}


def test_they_are_counted_too_when_a_step_fails(root: Path) -> None:
    with pytest.raises(RuntimeError), counting([FakeTransport()], root) as counted:
        raise RuntimeError
    assert counted["busy_ticks"] == 0


def test_what_nothing_counts_is_absent(tmp_path: Path) -> None:
    with counting([], tmp_path) as counted:
        pass
    assert counted.keys() == {"seconds", "vtax_cpu_s"}


def test_energy_is_that_of_the_step(root: Path) -> None:
    zone = root / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, text in (("name", "package-0"), ("energy_uj", "5000000"), ("max_energy_range_uj", "9000000000")):
        (zone / name).write_text(text)
    with counting([FakeTransport()], root) as counted:
        (zone / "energy_uj").write_text("47000000")
    assert counted["energy_j"] == 42


def test_vtax_itself_is_counted_apart(root: Path) -> None:
    with counting([FakeTransport()], root) as counted:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
    assert 0.05 <= counted["vtax_cpu_s"] < 1


NODE = SshTransport(Path("/run/c1/ssh_config"), "worker1")
TITLE = b"ssh: /run/c1/c-worker1 [mux]\0"


def test_the_shared_connection_of_a_node_is_vtax_s_own(root: Path) -> None:
    process(root, 11, b"ssh\0worker1\0true\0", 0)
    process(root, 12, b"sysbench\0ssh: /run/c1/c-worker1 [mux]\0", 0)
    process(root, 13, b"ssh: /run/c1/c-worker12 [mux]\0", 0)
    process(root, 14, b"ssh: /run/c2/c-worker1 [mux]\0", 0)
    (root / "proc/15").mkdir()  # ended meanwhile
    assert connection_of(NODE, root / "proc") is None
    mine = process(root, 10, TITLE, 0)
    assert connection_of(NODE, root / "proc") == mine


def test_another_connection_is_found_when_one_was_lost(root: Path) -> None:
    first = process(root, 10, TITLE, 0)
    assert connection_of(NODE, root / "proc") == first
    (first / "cmdline").write_bytes(b"another program")
    second = process(root, 20, TITLE, 0)
    assert connection_of(NODE, root / "proc") == second
    assert connection_of(NODE, root / "proc") == second


def test_what_a_connection_used_is_vtax_s_own(root: Path) -> None:
    place = process(root, 10, TITLE, 1_000_000_000)
    with counting([NODE], root) as counted:
        (place / "schedstat").write_text("3500000000 12 7\n")
    assert counted["vtax_cpu_s"] == pytest.approx(2.5, abs=0.2)


def test_children_are_vtax_s_own_only_where_all_nodes_are_behind_ssh(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the host the children of vtax are what is measured."""
    asked: list[int] = []
    real = resource.getrusage

    def spy(who: int) -> resource.struct_rusage:
        asked.append(who)
        return real(who)

    monkeypatch.setattr(resource, "getrusage", spy)
    ssh = SshTransport(Path("config"), "worker1")
    cases: list[tuple[list[Transport], bool]] = [([ssh, ssh], True), ([ssh, FakeTransport()], False), ([], False)]
    for transports, children in cases:
        asked.clear()
        with counting(transports, root):
            pass
        assert (resource.RUSAGE_CHILDREN in asked) is children


def test_connections_of_other_users_are_not_vtax_s(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process(root, 10, TITLE, 0)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert connection_of(NODE, root / "proc") is None
