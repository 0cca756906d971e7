"""Two machines on worse days, and with more on them: frozen, cut off, without the root file system, with Docker."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import sid
from integration.machines_lab import Lab, lab, run
from integration.test_machines import User, running
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.store import Campaign

pytestmark = [pytest.mark.integration, pytest.mark.long]

DOCKER = (
    "docker.io,docker-cli,iptables,openssh-server,openssh-client,iproute2,procps,ca-certificates,"
    "libffi8"  # of Python, where it is not the system's own
)
DAEMON = "(dockerd --iptables=false >/run/dockerd.log 2>&1 &) &&"


@pytest.fixture
def machines(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    images = Path(image.directory).parent.parent
    with lab(("a", "b"), Path(image.directory), images, tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture
def user(machines: Lab, image: Image, tmp_path: Path, state: Path) -> Iterator[User]:
    made = User(machines, Path(image.directory).parent.parent, tmp_path, state)
    yield made
    made.end()


def lost(user: User) -> list[str]:
    return [name for name, status in user.statuses().items() if status is not Status.OK]


def test_a_machine_that_freezes_for_a_while_loses_one_trial(user: User) -> None:
    """SIGSTOP of everything on it, its SSH server too, for longer than the lease."""
    process = user.start("run", str(user.study(seconds=5)), "-o", str(user.campaign))
    user.wait(lambda: running(user))
    user.machines.machines["a"].pause()
    time.sleep(35)
    user.machines.machines["a"].go_on()
    assert process.wait(timeout=240) == 4, (user.place / "log").read_text()
    assert len(user.statuses()) == 4 and len(lost(user)) == 1
    assert user.machines.machines["a"].processes() == []


def test_a_machine_whose_packets_are_dropped_loses_one_trial(user: User) -> None:
    process = user.start("run", str(user.study(seconds=5)), "-o", str(user.campaign))
    user.wait(lambda: running(user))
    drop = ("ip", "netns", "exec", user.machines.machines["a"].namespace, "iptables", "-{}", "INPUT", "-j", "DROP")
    run(*(word.format("A") for word in drop))
    time.sleep(60)
    run(*(word.format("D") for word in drop))
    assert process.wait(timeout=240) == 4, (user.place / "log").read_text()
    assert len(user.statuses()) == 4 and len(lost(user)) == 1
    user.wait(lambda: user.machines.machines["a"].processes() == [])  # what was cut off ends when it learns that


def test_the_root_file_system_is_sent_once_and_goes_on_where_it_was_cut_off(user: User) -> None:
    """Into a directory that has none. Half of it is there already."""
    study = user.study()
    elsewhere = study.read_text().replace(str(user.images.parent), "/srv/vtax")
    study.write_text(elsewhere.partition("[machines.b]")[0])
    process = user.start("run", str(study), "-o", str(user.campaign))
    machine = user.machines.machines["a"]
    script = "cat /srv/vtax/images/incoming/*.part 2>/dev/null | wc -c"
    user.wait(lambda: int(machine.inside("sh", "-c", script)) > 2**24)
    process.kill()
    process.wait()
    there = int(machine.inside("sh", "-c", script))
    assert there > 2**24
    said = user.vtax("run", str(study), "-o", str(user.place / "second"))
    assert "are there from an earlier time" in said and "the root file system is sent" in said
    again = user.vtax("run", str(study), "-o", str(user.place / "third"))
    assert "is sent" not in again
    sent, here = (Campaign.open(user.place / name).about()["image"]["digest"] for name in ("second", "third"))
    assert sent == here


def test_a_copy_that_is_wrong_is_sent_again(user: User) -> None:
    """What lies there from before is not the beginning of this file."""
    source = user.place / "source"
    source.write_bytes(bytes(range(256)) * 40_000)
    user.machines.machines["a"].inside("sh", "-c", "mkdir -p /srv; head -c 5000 /dev/zero >/srv/copy.part")
    code = (
        "from pathlib import Path; from vtax.machines.ssh import Ssh; from vtax.model.study import MachineSpec; "
        f"one = Ssh('a', MachineSpec(ssh='a'), Path('{user.place}/s')); one.connect(); "
        f"one.put(Path('{source}'), '/srv/copy'); one.get('/srv/copy', Path('{user.place}/back')); one.close()"
    )
    command = user.machines.enter((sys.executable, "-c", code))
    made = subprocess.run(command, env=user.environment, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    assert (user.place / "back").read_bytes() == source.read_bytes()


def test_host_and_docker_on_two_machines_with_a_daemon_each(
    image: Image, cache: Path, state: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = sid.tree(cache, "machine-with-docker", DOCKER, "trixie")
    images = Path(image.directory).parent.parent
    with lab(("a", "b"), tree, images, tmp_path_factory.mktemp("lab"), DAEMON) as made:
        user = User(made, images, tmp_path, state)
        for machine in made.machines.values():
            user.wait(Path(f"/proc/{machine.sshd}/root/run/docker.sock").exists)
        study = user.study(rounds=1)
        text = study.read_text().replace('provider = "host"\nnetwork = "bridge"', 'provider = "docker"')
        flat = '[environments.flat]\nprovider = "docker"\nnetwork = "host"\n[nodes]'  # in the machine's own network
        text = text.replace("[environments.bridged]", "[environments.docker]").replace("[nodes]", flat)
        study.write_text(text.replace(str(images.parent), "/srv/vtax"))
        user.vtax("doctor", "--machines", str(study))
        user.vtax("run", str(study), "-o", str(user.campaign))
        assert lost(user) == [] and len(user.statuses()) == 6
        clean = ("clean", "--machines", str(study))
        assert user.vtax(*clean, "--check").startswith("nothing is left behind")

        def there() -> list[str]:  # root file systems, and Docker's images of them
            script = "ls /srv/vtax/images; docker images --quiet"
            return [one for machine in made.machines.values() for one in machine.inside("sh", "-c", script).split()]

        assert len(there()) == 4
        listed = user.vtax(*clean, "--images", "--check", code=5)
        assert listed.count("root file system") == 2, listed
        assert len(there()) == 4  # --check removes nothing
        user.vtax(*clean, "--images")
        assert there() == []
        assert user.vtax(*clean, "--images", "--check").startswith("nothing is left behind")
        assert any(images.glob("*/image.json"))  # those of this machine are not looked at
