"""STREAM and start-up on real clusters: numbers of every environment that can have them, and no others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from vtax.model.trial import Status
from vtax.paths import Paths
from vtax.pipeline import measurements

from .conftest import Vtax, finish

pytestmark = [pytest.mark.integration, pytest.mark.alone]
STUDY = """
name = "both"
seed = 5
rounds = 1
baseline = "host"
[environments.host]
provider = "host"
[environments.bridged]
provider = "host"
network = "bridge"
{environments}
[nodes]
workers = 1
cpus = 1
memory = "512 MiB"
[[benchmarks]]
name = "startup"
[[benchmarks]]
name = "stream"
n = 1000000
passes = 10
nodes = ["worker1"]
"""
NODES = {"master", "worker1"}
SEEN = {"first_process", "ssh_ready", "idle_memory"}


def run(vtax: Vtax, top: Path, *providers: str) -> Mapping[str, Mapping[tuple[str, str], float]]:
    """Environment -> (metric, node) -> value, of a campaign of one round with these environments and the host."""
    environments = "\n".join(
        f'[environments.{name}]\nprovider = "{name}"\n' + ("allow_emulation = true" if name == "qemu" else "")
        for name in providers
    )
    study = top / "both.toml"
    study.write_text(STUDY.format(environments=environments))
    code, _, err = finish(vtax("run", str(study), "--output", str(top / "campaign")))
    assert code == 0, err
    found: dict[str, dict[tuple[str, str], float]] = {}
    values, trials = measurements(top / "campaign")
    assert {trial.status for trial in trials} == {Status.OK}
    for one in values:
        found.setdefault(one.environment, {})[one.metric, one.labels.get("node", "")] = one.value
    return found


def assert_nodes_were_seen(found: Mapping[tuple[str, str], float], smallest: float, largest: float) -> None:
    assert {key for key in found if key[0] in SEEN} == {(metric, node) for metric in SEEN for node in NODES}
    for node in NODES:
        assert 0 < found["first_process", node] <= found["ssh_ready", node] < 120
        assert smallest < found["idle_memory", node] < largest
    assert 0 < found["destroy", ""] < 60


def test_host_and_containers(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    found = run(vtax, tmp_path, "docker", "podman")
    assert {metric for metric, _ in found["host"] if metric in SEEN} == set()
    assert 0 < found["host"]["destroy", ""] < 10
    assert_nodes_were_seen(found["bridged"], 1e6, 100e6)
    for name in ("docker", "podman"):
        assert_nodes_were_seen(found[name], 1e6, 100e6)
    for environment in found.values():
        assert environment["Triad", ""] > 1e8
    noted = json.loads((tmp_path / "campaign/trials/r001-docker/startup.provisioning.1/startup.json").read_text())
    assert noted["memory_is"].startswith("PSS on this machine")
    about = json.loads((tmp_path / "campaign/cells/r001-docker.1.json").read_text())
    licence = "based on a variant of the STREAM benchmark code"
    (printed,) = (tmp_path / "campaign/trials").glob("r001-docker/stream.*/*stream.txt")
    assert licence in printed.read_text()
    assert about["status"] == "ok"


@pytest.mark.long
def test_virtual_machines(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    found = run(vtax, tmp_path, "qemu")
    assert_nodes_were_seen(found["qemu"], 50e6, 1e9)
    assert found["qemu"]["Triad", ""] > 1e7
