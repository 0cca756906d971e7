"""What a command on the host cannot do, although it is root: asked from inside, of the real kernel."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from vtax.model.cluster import Image
from vtax.model.nodes import Scope
from vtax.model.trial import CommandResult
from vtax.paths import Paths
from vtax.providers import provider
from vtax.providers.base import Cluster
from vtax.running.provision import provision

from .test_clusters import finish as take_down
from .test_clusters import shape_for, site_for, spec_for

pytestmark = pytest.mark.integration
DEVICES = {"fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
LOGIN = ("ssh", "root@worker2")
KEPT = 1 << 29 | 1 << 10 | 1 << 6 | 1 << 7 | 1 << 18  # audit_write, net_bind_service, setgid, setuid, sys_chroot


@pytest.fixture(params=["none", "bridge"])
def cluster(request: pytest.FixtureRequest, places: Paths, image: Image) -> Iterator[Cluster]:
    supplier = provider("host", places.runtime)
    spec = spec_for("host", supplier, network=request.param)
    site = site_for(places, image, f"confined-{request.param}")
    ready = provision(supplier, spec, shape_for("host"), "/shared", site, [Scope.WORKERS])
    try:
        yield ready.cluster
    finally:
        take_down(supplier, site, ready.cluster)


def ask(cluster: Cluster, *words: str) -> CommandResult:
    return cluster.node("worker1").transport.run(words, timeout_s=20)


def capabilities(status: str) -> dict[str, int]:
    return {line[:6]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith("Cap")}


def shell(cluster: Cluster, text: str) -> CommandResult:
    return ask(cluster, "sh", "-c", text)


def logged_in(cluster: Cluster) -> bool:
    return cluster.node("worker1").address != "127.0.0.1"


def test_root_without_its_power(cluster: Cluster, image: Image) -> None:
    status = ask(cluster, "cat", "/proc/self/status").stdout
    assert set(capabilities(status).values()) == {0}
    assert "NoNewPrivs:\t1" in status
    assert ask(cluster, "id", "-u").stdout.strip() == "0"
    for refused in (
        "mount -o remount,bind,rw /",
        "mount -t tmpfs none /mnt",
        "umount /proc/sys",
        "mknod /tmp/disk b 254 0",
        "chroot / true",
        "touch /usr/local/bin/vtax-enter",
        "unshare --mount true",
        "echo 0 >/proc/sys/kernel/randomize_va_space",
        "echo '|/bin/true' >/proc/sys/kernel/core_pattern",
        "for file in $(find /sys -type f -writable 2>/dev/null | head -n 3); do exit 0; done; exit 1",
        "mkdir /sys/fs/cgroup/escaped",
    ):
        assert shell(cluster, refused).exit_code != 0, refused
    assert (Path(image.directory) / "usr/local/bin/vtax-enter").exists()


def test_nothing_of_the_machine_but_harmless_devices(cluster: Cluster, image: Image) -> None:
    assert set(ask(cluster, "ls", "/dev").stdout.split()) == DEVICES
    found = shell(cluster, "find / -xdev -type b; find /dev /scratch /tmp /run /shared -type b").stdout.split()
    assert found == []
    machine = [entry for entry in Path("/dev").iterdir() if stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode)]
    assert machine, "this machine has a disk that could be seen"
    mounted = ask(cluster, "cat", "/proc/self/mountinfo").stdout
    assert {line.split()[4] for line in mounted.splitlines() if line.split()[4].count("/") == 1} == {
        *("/", "/dev", "/proc", "/sys", "/scratch", "/tmp", "/run", "/shared"),
        *(("/root",) if logged_in(cluster) else ()),
    }
    inside = shell(cluster, "ls -id / /proc/1/root/ | cut -d' ' -f1 | sort -u").stdout.split()
    assert inside == [str(Path(image.directory).stat().st_ino)], "no process in sight has another root"
    assert shell(cluster, "echo kept >/dev/shm/file; cat /dev/shm/file").stdout == "kept\n"
    assert not Path("/dev/shm/file").exists()
    assert shell(cluster, "ipcs -m | grep -c 0x").stdout == "0\n", "shared memory of other programs is not reached"


def test_a_terminal_works(cluster: Cluster) -> None:
    answer = shell(cluster, "script -qc tty /dev/null")
    assert answer.stdout.strip() == "/dev/pts/0", answer.stderr


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_what_is_lent_to_become_another_user_is_given_back(cluster: Cluster, user: str) -> None:
    done = ask(cluster, "vtax-run", "--report", f"/tmp/{user}", "--user", user, "--", "cat", "/proc/self/status")
    assert set(capabilities(done.stdout).values()) == {0}, done.stderr
    assert "NoNewPrivs:\t1" in done.stdout
    assert ask(cluster, "vtax-run", "--user", user, "--", "id", "-un").stdout.strip() == user
    again = ask(cluster, "vtax-run", "--user", user, "--", "vtax-run", "--user", "root", "--", "true")
    assert again.exit_code == 125
    assert "Operation not permitted" in again.stderr
    assert '"status": 0}' in ask(cluster, "cat", f"/tmp/{user}").stdout


@pytest.mark.parametrize("cluster", ["bridge"], indirect=True)
def test_what_a_login_keeps(cluster: Cluster) -> None:
    status = ask(cluster, *LOGIN, "cat", "/proc/self/status").stdout
    assert "NoNewPrivs:\t1" in status
    found = capabilities(status)
    assert found["CapEff"] == found["CapBnd"] == KEPT
    for refused in ("mount -o remount,bind,rw /", "mknod /tmp/disk b 254 0", "echo 0 >/proc/sys/vm/swappiness"):
        assert ask(cluster, *LOGIN, refused).exit_code != 0, refused
    terminal = ask(cluster, "ssh", "-tt", "root@worker2", "tty")
    assert terminal.stdout.strip() == "/dev/pts/0"
