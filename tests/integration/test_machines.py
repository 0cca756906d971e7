"""Two machines with a real SSH server and files of their own: a campaign, and the bad days.

They share the kernel and the clock of this machine, and the cache of root file systems.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.machines_lab import Lab, lab
from integration.user import CommandUser
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.store import Campaign

pytestmark = pytest.mark.integration

STUDY = """\
name = "two"
seed = 1
rounds = {rounds}
baseline = "host"
interleave = "cell"
[environments.host]
provider = "host"
[environments.bridged]
provider = "host"
network = "bridge"
[nodes]
workers = 1
cpus = 1
memory = "512 MiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = {seconds}
"""
WAIT_S = 120.0


@pytest.fixture(scope="module")
def machines(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    images = Path(image.directory).parent.parent
    with lab(("a", "b"), Path(image.directory), images, tmp_path_factory.mktemp("lab")) as made:
        yield made


class User(CommandUser):
    """A user of vtax in the lab's network, with a state directory and files of their own."""

    def __init__(self, machines: Lab, images: Path, place: Path, state: Path, wait_s: float = WAIT_S) -> None:
        super().__init__(machines.environment, images.parents[1], state, place, wait_s)
        self.machines, self.images = machines, images

    def command(self, *words: str) -> tuple[str, ...]:
        return self.machines.enter(super().command(*words))

    def study(self, rounds: int = 1, seconds: int = 1) -> Path:
        return self.written(STUDY.format(rounds=rounds, seconds=seconds) + self.machines.tables(self.images))


@pytest.fixture
def user(machines: Lab, image: Image, tmp_path: Path, state: Path) -> Iterator[User]:
    """A user whose machines are as before, afterwards."""
    known = (machines.place / "known_hosts").read_text()
    made = User(machines, Path(image.directory).parent.parent, tmp_path, state)
    yield made
    made.end()
    (machines.place / "known_hosts").write_text(known)
    for machine in machines.machines.values():
        machine.go_on()


def test_a_study_on_two_machines(user: User) -> None:
    said = user.vtax("run", str(user.study(rounds=2)), "-o", str(user.campaign))
    assert "report:" in said
    assert user.statuses() == {
        f"r00{number}-{machine}-{name}/sysbench-cpu.worker1.1": Status.OK
        for number in (1, 2)
        for machine in "ab"
        for name in ("host", "bridged")
    }
    campaign = Campaign.open(user.campaign)
    identities = {(cell.cell.split("-")[1], cell.host_facts["machine_id"]) for cell in campaign.cells()}
    assert len(identities) == 2  # each machine has one, and not the same
    assert {cell.host_facts["hostname"] for cell in campaign.cells()} == {"a", "b"}
    assert set(campaign.about()["machines"]) == {"a", "b"}
    assert all(abs(one["clock_offset_s"]) < 1 for one in campaign.about()["machines"].values())  # one clock
    assert (user.campaign / "report/index.html").exists()
    for machine in user.machines.machines.values():
        assert machine.processes() == []
    assert user.vtax("clean", "--machines", str(user.study()), "--check").startswith("nothing is left behind")


def test_each_machine_is_described(user: User) -> None:
    states = json.loads(user.vtax("doctor", "--machines", str(user.study()), "--json"))
    assert [(one["name"], one["works"], one["owner"]) for one in states] == [("a", True, ""), ("b", True, "")]
    lines = user.vtax("doctor", "--machines", str(user.study())).splitlines()
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == ["a (a)", "b (b)"]
    assert lines[0].startswith("a (a): host works; ")


def test_a_host_key_that_is_not_known_is_never_added(user: User) -> None:
    user.machines.forget("b")
    said = user.vtax("plan", str(user.study()), code=3)
    assert "error: machine b (b) has a host key that is not known, and vtax adds none" in said
    assert "next: run `ssh b` by hand and compare the key" in said
    user.machines.exchange("b")
    assert "has another host key than the one that is known" in user.vtax("plan", str(user.study()), code=3)
    assert "b (b): machine b (b) has another host key" in user.vtax("doctor", "--machines", str(user.study()), code=3)


def running(user: User) -> list[str]:
    """The commands of benchmarks that run on machine a."""
    return [line for line in user.machines.machines["a"].processes() if line.startswith("sysbench")]


def test_a_connection_that_is_lost_costs_one_trial(user: User) -> None:
    process = user.start("run", str(user.study(seconds=4)), "-o", str(user.campaign))
    user.wait(lambda: running(user))
    sessions = user.machines.machines["a"].inside("pgrep", "-f", "sshd-session: root@").split()
    user.machines.machines["a"].inside("kill", "-9", *sessions)  # as when the network is gone
    process.wait(timeout=WAIT_S)
    assert process.returncode == 4, (user.place / "log").read_text()
    found = user.statuses()
    lost = [name for name, status in found.items() if status is not Status.OK]
    assert len(found) == 4 and len(lost) == 1 and lost[0].startswith("r001-a-")
    failure = next(one.failure for one in Campaign.open(user.campaign).trials(texts=False) if one.id == lost[0])
    assert failure.startswith("the connection to machine a (a) was lost")
    assert user.machines.machines["a"].processes() == []


def test_a_second_campaign_is_told_who_uses_the_machines(user: User) -> None:
    process = user.start("run", str(user.study(seconds=6)), "-o", str(user.campaign))
    user.wait(lambda: running(user))
    said = user.vtax("run", str(user.study(seconds=6)), "-o", str(user.place / "second"), code=3)
    assert "it is being used by another campaign" in said and str(user.campaign) in said
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=WAIT_S)
    assert process.returncode == 130
    for machine in user.machines.machines.values():
        assert machine.processes() == []
    assert user.vtax("clean", "--machines", str(user.study()), "--check").startswith("nothing is left behind")


def test_nothing_is_left_after_all_of_it_was_killed(user: User) -> None:
    process = user.start("run", str(user.study(seconds=30)), "-o", str(user.campaign))
    user.wait(lambda: running(user))
    for machine in user.machines.machines.values():
        machine.inside("pkill", "-9", "-f", "vtax[.]running[.]agent")  # first, so that they cannot clean up
    process.kill()
    process.wait()
    user.vtax("clean", "--machines", str(user.study()), "--check", code=5)
    user.vtax("clean", "--machines", str(user.study()))
    assert user.vtax("clean", "--machines", str(user.study()), "--check").startswith("nothing is left behind")
    for machine in user.machines.machines.values():
        assert machine.processes() == []
