"""Machines that are not as they should be, with real faults: wrong key, no root, no space, a jump on the way, a reboot.

Other architectures, old kernels and wrong clocks cannot be had here: tests/unit/machines/test_unfit.py has them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.machines_lab import Lab, lab, run
from integration.test_machines import WAIT_S, User, running
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.store import Campaign

pytestmark = pytest.mark.integration

ORDINARY = """
echo 'lab:x:1000:1000::/home/lab:/bin/sh' >>/etc/passwd
echo 'lab:*:19000:0:99999:7:::' >>/etc/shadow
echo 'lab:x:1000:' >>/etc/group
mkdir -p /home/lab && chown 1000:1000 /home/lab
chmod 711 /root  # the Python of the tests may be below it
"""
REBOOT = """
cat /proc/sys/kernel/random/uuid >/run/boot
mount --bind /run/boot /proc/sys/kernel/random/boot_id
pkill -9 -f 'sshd-session: root@|vtax[.]running[.]agent|sysbench'
"""


@pytest.fixture(scope="module")
def machines(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    images = Path(image.directory).parent.parent
    with lab(("a", "b"), Path(image.directory), images, tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture
def user(machines: Lab, image: Image, tmp_path: Path, state: Path) -> Iterator[User]:
    config = (machines.place / "config").read_text()
    made = User(machines, Path(image.directory).parent.parent, tmp_path, state)
    yield made
    (machines.place / "config").write_text(config)
    made.end()


def only(user: User, ssh: str, directory: str, seconds: int = 1) -> str:
    """The study for one machine."""
    study = user.study(seconds=seconds)
    table = f'[machines.one]\nssh = "{ssh}"\ndirectory = "{directory}"\n'
    study.write_text(study.read_text().partition("[machines.a]")[0] + table)
    return str(study)


def test_a_key_that_the_machine_does_not_know(user: User) -> None:
    other = user.place / "other"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other))
    config = user.machines.place / "config"
    config.write_text(config.read_text().replace(f"{user.machines.place}/user", str(other)))
    said = user.vtax("plan", only(user, "a", "/srv/vtax"), code=3)
    assert "error: machine one (a) refuses the login; vtax uses keys or an agent, never a password" in said
    assert "`ssh-copy-id a`" in said


def test_a_machine_that_is_not_there(user: User) -> None:
    config = user.machines.place / "config"
    config.write_text(config.read_text().replace("HostName 10.213.0.11", "HostName 10.213.0.99"))
    said = user.vtax("plan", only(user, "a", "/srv/vtax"), code=3)
    assert "machine one (a) cannot be reached" in said and "is the machine on" in said


def test_a_machine_without_space(user: User) -> None:
    machine = user.machines.machines["a"]
    machine.inside("sh", "-c", "mkdir -p /srv/small && mount -t tmpfs -o size=100m small /srv/small")
    said = user.vtax("plan", only(user, "a", "/srv/small"), code=3)
    assert "machine one (a) has 100 MiB free in /srv/small" in said
    assert "free 256 MiB there, or set `directory` of the machine" in said


def test_a_machine_without_root(user: User) -> None:
    """What needs root there is refused before anything is sent but vtax itself."""
    user.machines.machines["a"].inside("sh", "-c", ORDINARY)
    said = user.vtax("run", only(user, "lab@a", "/home/lab/vtax"), "-o", str(user.campaign), code=3)
    assert "host: machine one: user namespaces do not work for this user" in said and "/etc/subuid" in said
    assert not user.campaign.exists()
    assert user.machines.machines["a"].processes() == []


def test_a_machine_behind_another_one(user: User) -> None:
    """~/.ssh/config has a jump host, a user and a port; there is no other way to the machine."""
    place, address = user.machines.place, user.machines.machines["b"].address
    inner = f"Host inner\n  HostName {address}\n  HostKeyAlias b\n  Port 2222\n  User root\n  ProxyJump a\n"
    config = place / "config"
    config.write_text(inner + config.read_text())
    closed = ("ip", "netns", "exec", user.machines.namespace, "iptables", "-I", "OUTPUT", "-d", address, "-j", "REJECT")
    run(*closed)
    try:
        assert "cannot be reached" in user.vtax("plan", only(user, "b", str(user.images.parent)), code=3)
        user.vtax("run", only(user, "inner", str(user.images.parent)), "-o", str(user.campaign))
    finally:
        run(*(word.replace("-I", "-D") for word in closed))
    assert set(user.statuses().values()) == {Status.OK}
    assert {cell.host_facts["hostname"] for cell in Campaign.open(user.campaign).cells()} == {"b"}


def test_a_machine_that_reboots_half_way(user: User) -> None:
    """The trial that ran is lost, the others are measured, and the audit says that these are two boots."""
    process = user.start("run", only(user, "a", str(user.images.parent), seconds=4), "-o", str(user.campaign))
    user.wait(lambda: running(user))
    machine = user.machines.machines["a"]
    before = machine.inside("cat", "/proc/sys/kernel/random/boot_id").strip()
    subprocess.run(
        ("nsenter", "-t", str(machine.sshd), "-a", f"--root=/proc/{machine.sshd}/root", "--wdns=/", "sh", "-c", REBOOT),
        check=False,
        timeout=60,
    )
    assert process.wait(timeout=WAIT_S) == 4, (user.place / "log").read_text()
    after = machine.inside("cat", "/proc/sys/kernel/random/boot_id").strip()
    assert before != after
    lost = [name for name, status in user.statuses().items() if status is not Status.OK]
    assert len(user.statuses()) == 2 and len(lost) == 1
    assert f"the boot was {before} and, from cell" in user.vtax("audit", str(user.campaign))
