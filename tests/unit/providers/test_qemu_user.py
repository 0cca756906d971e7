"""QEMU without the rights of who runs vtax: which user it is, what is open for it, and who is recognised by that."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.cluster import node_shape
from vtax.providers.qemu import command, confined, descriptors, processes, user
from vtax.providers.qemu.command import Machine, QemuOptions

LABEL = "0badcafe"
NUMBER = 0x78000000 + 0x0BADCAFE % 2**26
WHOLE = "         0          0 4294967295\n"
SOME = "0 100000 65536\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which this process is root, without KVM."""
    for name in ("uid", "gid"):
        (tmp_path / name).write_text(WHOLE)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(user, "MAPS", (tmp_path / "uid", tmp_path / "gid"))
    monkeypatch.setattr(user, "KVM", tmp_path / "kvm")
    return tmp_path


def test_every_cluster_has_a_user_of_its_own(machine: Path) -> None:
    assert user.number_of(LABEL) == user.number_of(f"up-{LABEL}") == NUMBER
    assert user.FIRST <= user.number_of("ffffffff") < user.FIRST + user.COUNT < 2**31
    assert user.words(LABEL, "tcg") == str(NUMBER)
    assert user.sentence(LABEL, "tcg") == f"QEMU runs as user {NUMBER}, who owns nothing"
    assert list(user.problems("vm", "tcg")) == []
    assert user.words("CAMPAIGN", "tcg") == "USER"


def test_an_ordinary_user_has_nothing_to_give_up(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert user.words(LABEL, "kvm") == user.kept("kvm") == ""
    assert user.sentence(LABEL, "tcg") == "QEMU runs as vtax's user"
    assert user.is_ours(LABEL, 1000)
    assert not user.is_ours(LABEL, NUMBER)


@pytest.mark.parametrize("which", ["uid", "gid"])
def test_a_container_without_that_user_says_so(machine: Path, which: str) -> None:
    (machine / which).write_text(SOME)
    assert user.words(LABEL, "tcg") == ""
    assert user.sentence(LABEL, "tcg") == "QEMU runs as root: this container has no users beyond its own"
    (only,) = user.problems("vm", "tcg")
    assert only.message == "vm: QEMU runs as root, because this container has no users beyond its own"


class Owned:
    """What `stat` says about /dev/kvm."""

    def __init__(self, mode: int, group: int) -> None:
        self.st_mode, self.st_gid = stat.S_IFCHR | mode, group


@pytest.mark.parametrize(
    ("mode", "group", "words"),
    [(0o666, 0, str(NUMBER)), (0o660, 104, f"{NUMBER}:104"), (0o660, 0, ""), (0o600, 104, ""), (0o644, 104, "")],
)
def test_kvm_is_opened_by_a_group_or_by_everybody(
    machine: Path, monkeypatch: pytest.MonkeyPatch, mode: int, group: int, words: str
) -> None:
    (machine / "kvm").touch()
    plain = Path.stat
    about = Owned(mode, group)
    monkeypatch.setattr(Path, "stat", lambda path, **how: about if path == user.KVM else plain(path, **how))
    assert user.words(LABEL, "kvm") == words
    assert [one.remedy for one in user.problems("vm", "kvm")] == (
        [] if words else [f"as root: chgrp kvm {user.KVM}; chmod 660 {user.KVM}"]
    )
    assert user.words(LABEL, "tcg") == str(NUMBER)


def test_whose_process_may_be_a_node(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command line is what anybody writes, so the process's user decides."""
    for other in (65534, 1000, NUMBER + 1):
        assert not user.is_ours(LABEL, other)
    assert user.is_ours(LABEL, NUMBER)
    assert user.is_ours(LABEL, 0)
    assert not user.is_ours("../../etc", NUMBER)
    monkeypatch.setattr(processes, "owner_of", lambda words: (LABEL, "worker1", Path("/run/x")))
    monkeypatch.setattr("os.geteuid", os.getuid)
    assert os.getpid() in {one.pid for one in processes.processes()}
    monkeypatch.setattr(user, "is_ours", lambda label, uid: False)
    assert processes.processes() == []


def words_of(*options: str) -> tuple[str, ...]:
    bases = {"system": Path("/cache/system,1.raw")}
    site = Path("/run/a,b")
    made = Machine(LABEL, node_shape("worker1", (0,)), 1, site / "worker1", site / "s", "/cache/k", None, bases, "77")
    return command.started(made, QemuOptions.model_validate(dict.fromkeys(options, True)), "tcg", (8, 0))


def test_qemu_is_given_no_file_by_its_name() -> None:
    """All that its command line names are descriptors, and what they are for vtax to see."""
    line = words_of("prealloc")
    end = line.index("--")
    before, after = line[:end], line[end + 1 :]
    assert before[3:6] == (str(descriptors.SCRIPT), "77", "/run/a,b/worker1/pid")
    numbers = [int(word.split(":")[1]) for word in before[6:]]
    assert len(set(numbers)) == len(numbers)
    assert before[6:] == (
        *("log:5:/run/a,b/worker1/console.log", "listen:6:/run/a,b/worker1/qmp", "listen:7:/run/a,b/worker1/orders"),
        *("write:12:/run/a,b/worker1/system", "read:13:/run/a,b/worker1/system", "read:14:/cache/system,1.raw"),
        *("connect:8:/run/a,b/s", "share:9:/run/a,b/worker1/seed.tar", "share:10:/cache/k"),
    )
    named = [word for word in after if "/run" in word or "/cache" in word]
    assert all("opaque=" in word for word in named)
    assert "fd=14,set=14,opaque=/cache/system,,1.raw" in named
    assert processes.owner_of(after) == (LABEL, "worker1", Path("/run/a,b/worker1"))


@pytest.fixture
def free() -> Iterator[tuple[int, ...]]:
    """Numbers that no descriptor has; what gets them is closed."""
    numbers = tuple(number for number in range(60, 99) if not Path(f"/proc/self/fd/{number}").exists())
    yield numbers
    for number in numbers:
        if Path(f"/proc/self/fd/{number}").exists():
            os.close(number)


def test_files_are_open_under_their_numbers(tmp_path: Path, free: tuple[int, ...]) -> None:
    (tmp_path / "disk").write_bytes(b"disk")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "switch"))
    server.listen()
    kinds = {"write": "disk", "read": "disk", "log": "log", "listen": "own", "connect": "switch"}
    confined.open_all([f"{how}:{free[at]}:{tmp_path / name}" for at, (how, name) in enumerate(kinds.items())])
    flags = [fcntl.fcntl(free[at], fcntl.F_GETFL) & os.O_ACCMODE for at in range(3)]
    assert flags == [os.O_RDWR, os.O_RDONLY, os.O_WRONLY]
    assert all(os.get_inheritable(free[at]) for at in range(5))
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o600
    with server, socket.socket(socket.AF_UNIX) as client:
        server.accept()[0].close()
        client.connect(str(tmp_path / "own"))


def test_a_log_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "log").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"):
        confined.open_all([f"log:60:{tmp_path / 'log'}"])
    assert (tmp_path / "precious").read_text() == "kept"


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_what_not_everybody_may_read_is_shared_as_a_copy(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "seed.tar"
    path.write_bytes(b"seed" * 5000)
    path.chmod(mode)
    descriptor = confined.share(str(path))
    try:
        assert Path(f"/proc/self/fd/{descriptor}").read_bytes() == b"seed" * 5000
        assert os.fstat(descriptor).st_mode & 0o004, "any user may open it again"
        assert (os.fstat(descriptor).st_ino == path.stat().st_ino) is (mode == 0o644)
        if mode == 0o600:
            with pytest.raises(OSError, match="not permitted"):
                os.write(descriptor, b"x")
    finally:
        os.close(descriptor)


def test_the_program_is_found_before_the_user_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Afterwards Python cannot even import a module, where it is installed in a home directory."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "qemu").touch(mode=0o755)
    (tmp_path / "bin" / "other").touch(mode=0o644)
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path / 'bin'}")
    done: list[object] = []
    monkeypatch.setattr(confined, "become", done.append)
    monkeypatch.setattr(os, "execv", lambda path, words: done.append((path, words)))
    confined.main("77", str(tmp_path / "pid"), "--", "qemu", "-S")
    assert done == ["77", (str(tmp_path / "bin" / "qemu"), ("qemu", "-S"))]
    assert (tmp_path / "pid").read_text() == f"{os.getpid()}\n"
    with pytest.raises(FileNotFoundError, match="other"):
        confined.main("77", str(tmp_path / "pid"), "--", "other")
    assert len(done) == 2, "who cannot start the program stays who it is"


def test_another_user_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, object]] = []
    for name in ("setgroups", "setresgid", "setresuid"):
        monkeypatch.setattr(os, name, lambda *ids, name=name: done.append((name, ids)))
    confined.become("-")
    assert done == []
    confined.become("77:104")
    assert done == [("setgroups", ([104],)), ("setresgid", (77, 77, 77)), ("setresuid", (77, 77, 77))]
    confined.become("78")
    assert done[3:] == [("setgroups", ([],)), ("setresgid", (78, 78, 78)), ("setresuid", (78, 78, 78))]
