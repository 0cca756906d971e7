"""Clusters on several machines, on worse days and in containers: a machine that is gone, an engine on each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import sid
from integration.machines_lab import Lab, lab
from integration.test_machines import User
from integration.test_machines_long import DAEMON, DOCKER
from integration.test_spread import assert_nothing_is_left, pinging, written
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.running.fleet import GONE_S
from vtax.store import Campaign

pytestmark = [pytest.mark.integration, pytest.mark.long]
QEMU = (
    "qemu-system-x86,qemu-utils,e2fsprogs,util-linux,openssh-server,openssh-client,iproute2,procps,iputils-ping,"
    "libffi8"  # of Python, where it is not the system's own
)


@pytest.fixture
def machines(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    images = Path(image.directory).parent.parent
    with lab(("a", "b", "c"), Path(image.directory), images, tmp_path_factory.mktemp("lab")) as made:
        yield made


def test_a_machine_that_does_not_come_back_ends_the_campaign_which_is_resumed(
    machines: Lab, image: Image, tmp_path: Path, state: Path
) -> None:
    """Everything on it stops for longer than vtax waits. On the other one nothing is left meanwhile."""
    user = User(machines, Path(image.directory).parent.parent, tmp_path, state)
    study = written(user, "ab", count=600, network="bridge")
    process = user.start("run", str(study), "-o", str(user.campaign))
    user.wait(lambda: pinging(user, 600))
    machines.machines["b"].pause()
    try:
        assert process.wait(timeout=GONE_S + 200) == 3, (user.place / "log").read_text()
        said = (user.place / "log").read_text()
        assert "machine b did not come back, and every cluster needs it" in said
        assert f"vtax run --resume {user.campaign}" in said
        assert machines.machines["a"].processes() == []
        failed = [one for one in Campaign.open(user.campaign).cells() if one.status is Status.FAILED]
        assert failed and "machine b" in failed[0].failure
        before = user.statuses()
        assert list(before.values()).count(Status.FAILED) == 1
    finally:
        machines.machines["b"].go_on()
    time.sleep(5)  # its agent finds that nobody is there, and removes its part
    user.vtax("run", "--resume", str(user.campaign), code=4)  # one trial failed, before
    after = user.statuses()
    assert len(after) == 6 and list(after.values()).count(Status.OK) == 5
    assert {name: after[name] for name in before} == before
    assert_nothing_is_left(user, study)


@pytest.mark.parametrize("network", ["bridge", "host"])
def test_host_and_docker_with_a_node_on_each_machine(
    network: str, image: Image, cache: Path, state: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two rounds, so that each machine has each node once, with trials in turns between paused clusters."""
    tree = sid.tree(cache, "machine-with-docker", DOCKER, "trixie")
    images = Path(image.directory).parent.parent
    with lab(("a", "b", "c"), tree, images, tmp_path_factory.mktemp("lab"), DAEMON) as made:
        user = User(made, images, tmp_path, state)
        for machine in made.machines.values():
            user.wait(Path(f"/proc/{machine.sshd}/root/run/docker.sock").exists)
        study = written(user, "ab", rounds=2, network=network, interleave="trial")
        text = study.read_text().replace(
            f'[environments.second]\nprovider = "host"\nnetwork = "{network}"',
            '[environments.second]\nprovider = "docker"' + ('\nnetwork = "host"' if network == "host" else ""),
        )
        assert "docker" in text
        study.write_text(text)
        user.vtax("run", str(study), "-o", str(user.campaign))
        assert set(user.statuses().values()) == {Status.OK} and len(user.statuses()) == 12
        mtu = 1450 if network == "bridge" else 1500
        cells = [one for one in Campaign.open(user.campaign).cells() if one.environment == "second"]
        assert len(cells) == 2
        for one in cells:
            assert any(line.startswith(f"packets of {mtu} bytes cross unfragmented") for line in one.checks)
            assert {fact.values["on_machine"] for fact in one.facts} == {"a", "b"}
        assert_nothing_is_left(user, study)


def test_virtual_machines_with_a_node_on_each_machine(
    image: Image, cache: Path, state: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two rounds, so that each machine has the master once. Guests have an NFS server on the other machine. Files of
    these machines are in memory, so disks there cannot be opened past a cache."""
    tree = sid.tree(cache, "machine-with-qemu", QEMU, "trixie")
    images = Path(image.directory).parent.parent
    with lab(("a", "b", "c"), tree, images, tmp_path_factory.mktemp("lab")) as made:
        user = User(made, images, tmp_path, state)
        study = written(user, "ab", rounds=2, network="bridge")
        guests = (
            '[environments.second]\nprovider = "qemu"\naccel = "tcg"\nallow_emulation = true\ncache = "writeback"\n'
            'network = "{}"'
        )
        text = study.read_text().replace('[environments.second]\nprovider = "host"\nnetwork = "bridge"', guests)
        assert guests in text
        study.write_text(text.format("switch"))
        assert "a switch in user space connects those of one" in " ".join(user.vtax("plan", str(study)).split())
        study.write_text(text.format("tap"))
        user.vtax("run", str(study), "-o", str(user.campaign))
        assert set(user.statuses().values()) == {Status.OK} and len(user.statuses()) == 12
        cells = [one for one in Campaign.open(user.campaign).cells() if one.environment == "second"]
        assert len(cells) == 2
        for one in cells:
            assert any(line.startswith("packets of 1450 bytes cross unfragmented") for line in one.checks)
            assert {fact.values["on_machine"] for fact in one.facts} == {"a", "b"}
        assert_nothing_is_left(user, study)
