"""A real Slurm with task/cgroup, and an ordinary user on its nodes: matched where Slurm limits jobs, refused elsewhere.

vtax itself runs as on any machine; the jobs, and so its agents on the nodes, are of a user who is not root there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from integration.slurm_lab import USER, slurm
from integration.slurm_user import User
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.store import Campaign

pytestmark = [pytest.mark.integration, pytest.mark.long]

STUDY = """\
name = "ordinary"
seed = 1
rounds = {rounds}
baseline = "host"
interleave = "cell"
[environments.host]
provider = "host"
[environments.tcp]
provider = "host"
mpi_transport = "tcp"
[nodes]
workers = 1
cpus = 1
memory = "256 MiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = {seconds}
[[benchmarks]]
name = "hpl"
n = 500
scopes = ["cluster"]
[machines.cluster]
directory = "{directory}"
slurm = {{ {slurm} }}
"""
ONE = 'time = "10 min", options = ["--nodelist=c1", "--mem=2000"]'


@pytest.fixture
def user(cache: Path, image: Image, tmp_path: Path, state: Path, request: pytest.FixtureRequest) -> Iterator[User]:
    """An ordinary one, on a cluster that limits jobs, or does not."""
    images = Path(image.directory).parent.parent
    (tmp_path / "lab").mkdir()
    with slurm(cache, images, tmp_path / "lab", limits=request.param) as cluster:
        made = User(replace(cluster, user=USER[0]), images, tmp_path, state, "/var/tmp/vtax-ordinary")
        yield made
        made.end()


@pytest.mark.parametrize("user", [True], indirect=True)
def test_an_ordinary_user_measures_where_slurm_limits_jobs(user: User) -> None:
    """The root file system is sent, and unpacked in a user namespace; nodes see the CPUs and the memory of the job."""
    said = user.vtax("run", user.study(ONE, text=STUDY), "-o", str(user.campaign))
    assert set(user.statuses().values()) == {Status.OK}, said
    for cell in Campaign.open(user.campaign).cells():
        facts = cell.host_facts
        assert facts["euid"] == USER[1] and facts["slurm"]["constrained"]
        assert facts["memory_limit_bytes"] == 2000 * 2**20
    user.assert_nothing_is_left()


@pytest.mark.parametrize("user", [True], indirect=True)
def test_podman_without_root_is_refused_where_nothing_can_limit_it(user: User) -> None:
    """Slurm limits the job, but not the containers in it. This Slurm's control groups are of version 1."""
    text = STUDY.replace('provider = "host"\nmpi_transport = "tcp"', 'provider = "podman"').replace(".tcp", ".podman")
    said = user.vtax("run", user.study(ONE, text=text), "-o", str(user.campaign), code=3)
    assert "podman: machine cluster1: Podman without root cannot limit CPUs and memory on cgroup version 1" in said
    assert "cgroup version 2" in said and not user.campaign.exists()
    assert user.cluster.jobs() == []


@pytest.mark.parametrize("user", [False], indirect=True)
def test_an_ordinary_user_is_refused_where_slurm_limits_nothing(user: User) -> None:
    said = user.vtax("run", user.study(ONE, text=STUDY), "-o", str(user.campaign), code=3)
    assert "machine cluster1: nothing limits the memory of host: its user may not, and Slurm does not" in said
    assert "nothing limits the memory of tcp" in said
    assert user.cluster.jobs() == []
