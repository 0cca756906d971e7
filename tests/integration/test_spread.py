"""Clusters whose nodes are on several machines: a campaign from the plan to the report, and the bad days.

The machines are those of the lab: a real SSH server, files and addresses of their own, one kernel.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.machines_lab import Lab, lab
from integration.test_machines import WAIT_S, User
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.running.crossing import PINGS
from vtax.store import Campaign

pytestmark = pytest.mark.integration

STUDY = """\
name = "apart"
seed = 1
rounds = {rounds}
baseline = "host"
interleave = "{interleave}"
[environments.host]
provider = "host"
network = "bridge"
[environments.second]
provider = "host"
network = "{network}"
[nodes]
workers = {workers}
cpus = 1
memory = "512 MiB"
place = {place}
[[benchmarks]]
name = "ping"
count = {count}
interval_s = 0.01
[[benchmarks]]
name = "hpl"
n = 500
scopes = ["cluster"]
"""


@pytest.fixture(scope="module")
def machines(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    images = Path(image.directory).parent.parent
    with lab(("a", "b", "c"), Path(image.directory), images, tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture
def user(machines: Lab, image: Image, tmp_path: Path, state: Path) -> Iterator[User]:
    made = User(machines, Path(image.directory).parent.parent, tmp_path, state)
    yield made
    made.end()
    for machine in machines.machines.values():
        machine.go_on()


def written(
    user: User,
    names: str,
    place: str = '"spread"',
    rounds: int = 1,
    workers: int = 1,
    network: str = "host",
    count: int = 5,
    interleave: str = "cell",
    shared: str = "",
) -> Path:
    """A study for some of the machines."""
    study = STUDY.format(
        rounds=rounds, workers=workers, place=place, network=network, count=count, interleave=interleave
    )
    tables = user.machines.tables(user.images).split("[machines.")[1:]
    more = f'shared = "{shared}"\n' if shared else ""
    path = user.place / "study.toml"
    path.write_text(study + "".join(f"[machines.{one}{more}" for one in tables if one[0] in names))
    return path


def assert_nothing_is_left(user: User, study: Path) -> None:
    for machine in user.machines.machines.values():
        assert [line for line in machine.processes() if not line.startswith(("dockerd", "containerd"))] == []
    assert user.vtax("clean", "--machines", str(study), "--check").startswith("nothing is left behind")
    assert list(Path(user.environment["XDG_STATE_HOME"], "vtax/run").glob("*/")) == []  # here


def test_one_node_on_each_machine_and_roles_rotate(user: User) -> None:
    study = written(user, "ab", rounds=2, interleave="trial")
    said = " ".join(user.vtax("plan", str(study)).split())
    assert "one on each machine" in said and "change places from round to round" in said
    user.vtax("run", str(study), "-o", str(user.campaign))
    assert set(user.statuses().values()) == {Status.OK}
    campaign = Campaign.open(user.campaign)
    where = {cell.id: dict(cell.placement) for cell in campaign.plan().cells}
    assert where["r001-host"] == where["r001-second"] != where["r002-host"] == where["r002-second"]
    for record in campaign.cells():
        assert {one.node: one.values["on_machine"] for one in record.facts} == where[record.cell]
        assert {facts["hostname"] for facts in record.machine_facts.values()} == {"a", "b"}
        assert any(line.startswith("mpi world cluster: 2 ranks") for line in record.checks)
    crossed = {
        one.environment: [line for line in one.checks if "cross unfragmented" in line] for one in campaign.cells()
    }
    assert crossed["host"][0].startswith("packets of 1450 bytes") and crossed["second"][0].startswith("packets of 1500")
    report = (user.campaign / "report/report.md").read_text()
    assert "every pair of nodes crosses machines" in report
    rows = {one["id"]: one for one in json.loads((user.campaign / "audit.json").read_text())["rows"]}
    assert {rows[name]["outcome"] for name in ("N01", "N02", "C01", "R06")} == {"pass"}
    assert "part of what they differ by is the overlay" in str(rows["N09"])
    assert_nothing_is_left(user, study)


@pytest.mark.long
def test_a_table_says_where_each_node_is(user: User) -> None:
    """Three machines, four nodes; a pair on one machine is said to be one."""
    place = '{ master = "a", worker1 = "b", worker2 = "c", worker3 = "c" }'
    study = written(user, "abc", place, workers=3, network="bridge")
    assert "worker3 on c" in " ".join(user.vtax("plan", str(study)).split())
    user.vtax("run", str(study), "-o", str(user.campaign))
    assert set(user.statuses().values()) == {Status.OK}
    (one, _) = Campaign.open(user.campaign).cells()
    where = {each.node: each.values["on_machine"] for each in one.facts}
    assert where == {"master": "a", "worker1": "b", "worker2": "c", "worker3": "c"}
    rows = {one["id"]: one for one in json.loads((user.campaign / "audit.json").read_text())["rows"]}
    assert "worker2-worker3" in str(rows["N02"]["findings"]) and "stay on one machine" in str(rows["N02"]["findings"])
    assert "worker2 and worker3 are on one machine" in (user.campaign / "report/report.md").read_text()
    assert_nothing_is_left(user, study)


@pytest.mark.long
def test_a_directory_that_the_machines_share_is_verified(user: User, tmp_path: Path) -> None:
    """The machines see one directory of this machine below the cache of root file systems, which all of them have."""
    common = user.images / f"test-shared-{os.getpid()}"
    common.mkdir()
    try:
        study = written(user, "ab", shared=str(common))
        user.vtax("run", str(study), "-o", str(user.campaign))
        assert all("/shared is the same on all 2 nodes" in one.checks for one in Campaign.open(user.campaign).cells())
        assert_nothing_is_left(user, study)
        assert list(common.iterdir()) == []
        apart = written(user, "ab", shared="/srv")
        assert "do not share /srv" in user.vtax("run", str(apart), code=3)
        absent = written(user, "ab", shared="/srv/nothing")
        assert "it has no directory /srv/nothing" in user.vtax("run", str(absent), code=3)
    finally:
        common.rmdir()


def pinging(user: User, count: int) -> list[str]:
    """The pings of a trial, or of the verification of a cluster, by their count."""
    lines = (line for one in user.machines.machines.values() for line in one.processes())
    return [line for line in lines if line.startswith("ping -n") and f" -c {count} " in line]


@pytest.mark.long
@pytest.mark.parametrize(("count", "code", "costs"), [(600, 4, 1), (PINGS, 0, 0)], ids=["trial", "verification"])
def test_a_connection_that_is_lost_costs_at_most_one_trial(user: User, count: int, code: int, costs: int) -> None:
    study = written(user, "ab", count=600, network="bridge")
    process = user.start("run", str(study), "-o", str(user.campaign))
    user.wait(lambda: pinging(user, count))
    machine = user.machines.machines["b"]
    machine.inside("kill", "-9", *machine.inside("pgrep", "-f", "sshd-session: root@").split())
    process.wait(timeout=WAIT_S)
    said = (user.place / "log").read_text()
    assert process.returncode == code and "machine b is back" in said, said
    lost = [name for name, status in user.statuses().items() if status is not Status.OK]
    assert len(user.statuses()) == 6 and len(lost) == costs
    assert (Status.FAILED in {one.status for one in Campaign.open(user.campaign).cells()}) is bool(costs)
    assert_nothing_is_left(user, study)


@pytest.mark.long
def test_all_of_it_is_killed_then_cleaned_and_resumed(user: User) -> None:
    study = written(user, "ab", count=1000, network="bridge")
    process = user.start("run", str(study), "-o", str(user.campaign))
    user.wait(lambda: pinging(user, 1000))
    for name in "ab":
        user.machines.machines[name].inside("pkill", "-9", "-f", "vtax[.]running[.]agent")  # first: they clean up
    process.send_signal(signal.SIGKILL)
    process.wait()
    user.vtax("clean", "--machines", str(study), "--check", code=5)
    user.vtax("clean", "--machines", str(study))
    user.vtax("clean")
    assert_nothing_is_left(user, study)
    done = set(user.statuses())
    resumed = user.vtax("run", "--resume", str(user.campaign))
    assert "report:" in resumed and set(user.statuses().values()) == {Status.OK} and done < set(user.statuses())
    assert_nothing_is_left(user, study)


@pytest.mark.long
def test_a_second_campaign_is_refused_on_all_machines(user: User) -> None:
    study = written(user, "ab", count=600, network="bridge")
    process = user.start("run", str(study), "-o", str(user.campaign))
    user.wait(lambda: pinging(user, 600))
    said = user.vtax("run", str(study), "-o", str(user.place / "other"), code=3)
    assert "it is being used by another campaign" in said
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=WAIT_S) == 130
    assert_nothing_is_left(user, study)


def test_what_cannot_be_spread_is_refused(user: User) -> None:
    """A network stack that all nodes share, and two nodes of one machine on its network."""
    place = '{ master = "a", worker1 = "b", worker2 = "b" }'
    said = user.vtax("run", str(written(user, "ab", place, workers=2)), code=3)
    assert "two nodes of second are on one machine" in said
    few = written(user, "ab", workers=3)
    assert '"spread" needs a machine for each of 4 nodes' in user.vtax("plan", str(few), code=2)
