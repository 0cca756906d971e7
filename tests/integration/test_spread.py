"""Clusters with nodes on several machines, by `vtax run`: machines with a real SSH server and files of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.machines_lab import Lab, lab
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.store import Campaign

pytestmark = pytest.mark.integration

STUDY = """\
name = "spread"
seed = 1
rounds = 1
baseline = "host"
interleave = "cell"
[environments.host]
provider = "host"
network = "host"
[environments.bridged]
provider = "host"
network = "bridge"
[nodes]
workers = 1
cpus = 1
memory = "512 MiB"
place = "spread"
[[benchmarks]]
name = "ping"
count = 5
interval_s = 0.01
[[benchmarks]]
name = "iperf3"
time_s = 1
[[benchmarks]]
name = "hpl"
scopes = ["cluster"]
n = 400
nb = 64
[[benchmarks]]
name = "iozone"
scopes = ["shared"]
"""
WAIT_S = 240.0


@pytest.fixture
def machines(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    images = Path(image.directory).parent.parent
    with lab(("a", "b"), Path(image.directory), images, tmp_path_factory.mktemp("lab")) as made:
        yield made


def test_a_node_on_each_machine(machines: Lab, image: Image, tmp_path: Path, state: Path) -> None:
    images = Path(image.directory).parent.parent
    (tmp_path / "study.toml").write_text(STUDY + machines.tables(images))
    environment = {
        **os.environ,
        **machines.environment,
        "XDG_STATE_HOME": str(state),
        "XDG_CACHE_HOME": str(images.parents[1]),
    }

    def vtax(*words: str) -> str:
        command = machines.enter((sys.executable, "-m", "vtax", *words))
        made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_S, cwd=tmp_path)
        assert made.returncode == 0, made.stdout + made.stderr
        return made.stdout + made.stderr

    said = vtax("run", "study.toml", "-o", "campaign")
    assert "the machines share no directory" in said
    campaign = Campaign.open(tmp_path / "campaign")
    assert {one.status for one in campaign.trials(texts=False)} == {Status.OK}
    for cell in campaign.cells():
        facts = {one.node: one.values for one in cell.facts}
        assert {one["machine"] for one in facts.values()} == {"a", "b"}
        checks = "\n".join(cell.checks)
        assert "names and SSH between all 2 pairs of nodes" in checks
        assert "mpi placement cluster: master=1 worker1=1" in checks
        assert cell.host_facts == {}, "this machine is none of those that are measured"
        mtu = {"host": 1500, "bridged": 1450}[cell.environment]
        assert f"packets of {mtu} bytes cross unfragmented: master to worker1, worker1 to master" in checks
    for machine in machines.machines.values():
        assert machine.processes() == []
    assert vtax("clean", "--machines", "study.toml", "--check").startswith("nothing is left behind")
    assert json.loads((tmp_path / "campaign/plan.json").read_text())["cells"][0]["placement"]
