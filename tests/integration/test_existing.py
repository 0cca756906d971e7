"""Nodes that exist already, by `provider = "ssh"`: two machines with an SSH server each are a cluster, beside the host.

They share the kernel and the clock of this machine, and the cache of root file systems.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.machines_lab import Lab, lab
from integration.test_machines import WAIT_S, User
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.store import Campaign

pytestmark = pytest.mark.integration

STUDY = """\
name = "existing"
seed = 1
rounds = {rounds}
baseline = "host"
interleave = "cell"
[environments.host]
provider = "host"
network = "bridge"
[environments.cloud]
provider = "ssh"
nodes = {{ master = "a", worker1 = "b" }}
directory = "{directory}"
[nodes]
workers = 1
cpus = 1
memory = "512 MiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = {seconds}
[[benchmarks]]
name = "ping"
scopes = ["pairs"]
count = 5
[[benchmarks]]
name = "startup"
"""


@pytest.fixture(scope="module")
def machines(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    images = Path(image.directory).parent.parent
    with lab(("a", "b"), Path(image.directory), images, tmp_path_factory.mktemp("lab")) as made:
        yield made


class Owner(User):
    """A user with a study for nodes that exist."""

    def study(self, rounds: int = 1, seconds: int = 1) -> Path:
        return self.written(STUDY.format(rounds=rounds, seconds=seconds, directory=self.images.parent))


@pytest.fixture
def user(machines: Lab, image: Image, tmp_path: Path, state: Path) -> Iterator[Owner]:
    made = Owner(machines, Path(image.directory).parent.parent, tmp_path, state)
    yield made
    made.end()


def test_existing_nodes_are_measured_beside_the_host(user: Owner) -> None:
    said = user.vtax("run", str(user.study(rounds=2)), "-o", str(user.campaign))
    assert "report:" in said
    found = user.statuses()
    assert set(found.values()) == {Status.OK}
    mine = {name for name in found if "-cloud/" in name}
    assert mine == {
        f"r00{number}-cloud/{work}.1"
        for number in (1, 2)
        for work in ("sysbench-cpu.worker1", "ping.master-worker1", "ping.worker1-master")
    }  # and no start-up: nothing is created
    cells = [cell for cell in Campaign.open(user.campaign).cells() if cell.environment == "cloud"]
    for cell in cells:
        assert any("did not create them" in line for line in cell.checks)
        assert not cell.host_facts  # this machine's say nothing of the nodes
        assert {name: facts["hostname"] for name, facts in cell.machine_facts.items()} == {
            "cloud-master": "a",
            "cloud-worker1": "b",
        }
        assert {one.node: one.values["on_machine"] for one in cell.facts} == {
            "master": "cloud-master",
            "worker1": "cloud-worker1",
        }
    for machine in user.machines.machines.values():
        assert machine.processes() == []
    assert user.vtax("clean", "--machines", str(user.study()), "--check").startswith("nothing is left behind")


def test_each_node_is_described(user: Owner) -> None:
    states = json.loads(user.vtax("doctor", "--machines", str(user.study()), "--json"))
    assert [(one["name"], one["works"]) for one in states] == [("cloud-master", True), ("cloud-worker1", True)]


def test_a_connection_that_is_lost_costs_one_trial(user: Owner) -> None:
    machine = user.machines.machines["b"]
    process = user.start("run", str(user.study(seconds=6)), "-o", str(user.campaign))
    user.wait(lambda: any(line.startswith("sysbench") for line in machine.processes()))
    sessions = machine.inside("pgrep", "-f", "sshd-session: root@").split()
    machine.inside("kill", "-9", *sessions)
    process.wait(timeout=WAIT_S)
    assert process.returncode == 4, (user.place / "log").read_text()
    lost = [name for name, status in user.statuses().items() if status is not Status.OK]
    assert lost == ["r001-cloud/sysbench-cpu.worker1.1"]
    assert machine.processes() == []


def test_a_second_campaign_waits_for_the_end_of_the_first_one_however_that_ends(user: Owner) -> None:
    first = user.start("run", str(user.study(seconds=8)), "-o", str(user.campaign))
    machine = user.machines.machines["b"]
    user.wait(lambda: any(line.startswith("sysbench") for line in machine.processes()))
    said = user.vtax("run", str(user.study()), "-o", str(user.place / "second"), code=3)
    assert "it is being used by another campaign: " in said and f"process {first.pid}" in said
    first.kill()  # nobody releases anything: the agents notice it, remove what they made, and end
    user.wait(lambda: machine.processes() == [] == user.machines.machines["a"].processes())
    user.vtax("run", str(user.study()), "-o", str(user.place / "third"))
