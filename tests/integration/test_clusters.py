"""One contract for every provider, on the real thing: a matched cluster, verified from inside, gone afterwards."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import time
from pathlib import Path

import pytest

from vtax.errors import NotMatched
from vtax.facts.host import capacity, host_facts
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, Scope
from vtax.model.study import EnvironmentSpec
from vtax.paths import Paths
from vtax.planning.shape import cluster_shape
from vtax.planning.study import parse
from vtax.providers import provider
from vtax.providers.base import LABEL, Cluster, Provider, Site
from vtax.providers.container.provider import Container
from vtax.running.provision import Ready, destroy, provision

from .conftest import PING, own, study

pytestmark = pytest.mark.integration
PROVIDERS = ("host", "docker", "podman")


def shape_for(name: str, overrides: str = "") -> ClusterShape:
    loaded = parse(study([name], PING).replace("[[benchmarks]]", f"{overrides}\n[[benchmarks]]", 1), "(test)")
    shape, problems = cluster_shape(loaded, capacity(host_facts()))
    assert not [problem for problem in problems if problem.severity == "blocker"]
    return shape


def spec_for(name: str, supplier: Provider, **options: object) -> EnvironmentSpec:
    return EnvironmentSpec(name=name, provider=name, options=supplier.options(**options).model_dump(mode="json"))


def site_for(places: Paths, image: Image, label: str) -> Site:
    label, top = own(label), places.runtime / own(label)
    return Site(label, top / "c", image, top / "keys")


@pytest.fixture(params=PROVIDERS)
def supplier(request: pytest.FixtureRequest, places: Paths) -> Provider:
    found = provider(request.param, places.runtime)
    assert found.unavailable() == "", "integration tests need every provider: scripts/bootstrap test"
    return found


def made(
    supplier: Provider, places: Paths, image: Image, label: str, *, paused: bool = False, **options: object
) -> tuple[Ready, Site]:
    site = dataclasses.replace(site_for(places, image, label), paused=paused)
    spec = spec_for(supplier.name, supplier, **options)
    ready = provision(supplier, spec, shape_for(supplier.name), "/shared", site, [Scope.WORKERS])
    return ready, site


def finish(supplier: Provider, site: Site, cluster: Cluster) -> None:
    destroy(supplier, site, cluster)
    remove_keys(site)


def test_a_cluster_is_made_verified_and_destroyed(supplier: Provider, places: Paths, image: Image) -> None:
    ready, site = made(supplier, places, image, "contract1")
    try:
        checks = "\n".join(ready.checks)
        assert "limits of worker2: CPUs 1, memory 512 MiB" in checks
        assert "/shared is the same on all 3 nodes" in checks
        assert "mpi placement workers: " in checks
        if supplier.capabilities.separate_nodes:
            assert "names and SSH between all 6 pairs of nodes" in checks
            assert "mpi placement workers: worker1=1 worker2=1" in checks
        facts = {one.node: one.values for one in ready.facts}
        assert facts["worker1"]["cpus_allowed"] == "0"
        assert facts["worker2"]["cpus_allowed"] == "1"
        assert facts["worker1"]["memory_limit_bytes"] == 512 * 2**20
        assert facts["worker1"]["blas_core"]
        assert supplier.leftovers(), "what is up must be found by its label"
    finally:
        finish(supplier, site, ready.cluster)
    assert not [item for item in supplier.leftovers() if item.campaign == site.campaign]
    supplier.destroy(site.campaign)  # twice is fine


def test_limits_bind_inside(supplier: Provider, places: Paths, image: Image) -> None:
    ready, site = made(supplier, places, image, "contract2")
    try:
        node = ready.cluster.node("worker2").transport
        assert node.run(("nproc",), timeout_s=10).stdout == "1\n"
        hungry = node.run(("sh", "-c", "head -c 700M /dev/zero | tail >/dev/null"), timeout_s=60)
        assert hungry.exit_code == 137, "tail keeps what it reads, which is more than the node's memory"
        busy = node.run(("sh", "-c", "cat /proc/self/stat | cut -d' ' -f39"), timeout_s=10)
        assert busy.stdout.strip() == "1", "the process runs on the node's CPU"
    finally:
        finish(supplier, site, ready.cluster)


def test_another_process_can_connect(supplier: Provider, places: Paths, image: Image) -> None:
    ready, site = made(supplier, places, image, "contract3")
    try:
        spec = spec_for(supplier.name, supplier)
        again = supplier.connect(spec, shape_for(supplier.name), "/shared", site)
        assert again.commands == ready.cluster.commands
        put = again.node("worker1").transport.run(("tee", "/shared/x"), timeout_s=10, stdin="seen")
        assert put.exit_code == 0
        assert ready.cluster.node("worker2").transport.run(("cat", "/shared/x"), timeout_s=10).stdout == "seen"
        again.close()
    finally:
        finish(supplier, site, ready.cluster)


def test_a_command_that_hangs_is_ended_on_the_node(supplier: Provider, places: Paths, image: Image) -> None:
    ready, site = made(supplier, places, image, "contract4")
    try:
        node = ready.cluster.node("worker1").transport
        result = node.run(("sleep", "61.25"), timeout_s=1)
        assert result.timed_out
        assert result.elapsed_s < 10
        running = node.run(("sh", "-c", "grep -al 'sleep.61[.]25' /proc/[0-9]*/cmdline | wc -l"), timeout_s=10)
        assert int(running.stdout) <= 1, "only the search itself may mention it"
    finally:
        finish(supplier, site, ready.cluster)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_a_cluster_with_a_wrong_limit_is_refused(
    name: str, places: Paths, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container gets less memory and another CPU than planned: nothing may be measured on it."""
    from vtax.providers.container import engine

    real = engine.create_node

    def wrong(*words: object) -> tuple[str, ...]:
        line = list(real(*words))  # type: ignore[arg-type]
        line[line.index("--memory") + 1] = str(256 * 2**20)
        line[line.index("--memory-swap") + 1] = str(256 * 2**20)
        line[line.index("--cpuset-cpus") + 1] = "0"
        return tuple(line)

    monkeypatch.setattr(engine, "create_node", wrong)
    supplier = provider(name, places.runtime)
    site = site_for(places, image, "contract5")
    with pytest.raises(NotMatched) as refusal:
        provision(supplier, spec_for(name, supplier), shape_for(name), "/shared", site, [Scope.WORKERS])
    assert "worker2: may use CPUs 0, but the plan has 1" in str(refusal.value)
    assert "master: has a memory limit of 256 MiB, but the plan has 512 MiB" in str(refusal.value)
    assert not [item for item in supplier.leftovers() if item.campaign == site.campaign]
    remove_keys(site)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_nothing_is_published_beyond_loopback(name: str, places: Paths, image: Image) -> None:
    supplier = provider(name, places.runtime)
    ready, site = made(supplier, places, image, "contract6")
    try:
        ports = subprocess.run(
            [name, "ps", "--filter", f"label={LABEL}={site.campaign}", "--format", "{{.Ports}}"],
            capture_output=True,
            text=True,
            check=True,
            env=dict(supplier.environment() or {}) or None,  # type: ignore[attr-defined]
        ).stdout
        published = [part.strip() for part in ports.replace("\n", ",").split(",") if "->" in part]
        assert len(published) == 3
        assert all(part.startswith("127.0.0.1:") and part.endswith("->22/tcp") for part in published)
        facts = {one.node: one.values for one in ready.facts}
        assert int(str(facts["master"]["capabilities"]), 16) & (1 << 21) == 0, "CAP_SYS_ADMIN means privileged"
    finally:
        finish(supplier, site, ready.cluster)


def test_a_quota_is_another_environment_of_the_same_provider(places: Paths, image: Image) -> None:
    supplier = provider("docker", places.runtime)
    ready, site = made(supplier, places, image, "contract7", cpu_limit="quota")
    try:
        facts = {one.node: one.values for one in ready.facts}
        assert facts["worker1"]["cpu_quota_cpus"] == 1.0
        assert facts["worker1"]["cpus"] == len(capacity(host_facts()).cpu_ids)
    finally:
        finish(supplier, site, ready.cluster)


def test_unequal_nodes(places: Paths, image: Image) -> None:
    supplier = provider("docker", places.runtime)
    site = site_for(places, image, "contract8")
    shape = shape_for("docker", '[nodes.overrides.master]\ncpus = 2\nmemory = "768 MiB"\n')
    spec = spec_for("docker", supplier)
    ready = provision(supplier, spec, shape, "/shared", site, [Scope.WORKERS, Scope.CLUSTER])
    try:
        facts = {one.node: one.values for one in ready.facts}
        assert facts["master"]["cpus"] == 2
        assert facts["master"]["memory_limit_bytes"] == 768 * 2**20
        assert "mpi placement cluster: master=2 worker1=1 worker2=1" in ready.checks
    finally:
        finish(supplier, site, ready.cluster)


def test_two_clusters_at_once(places: Paths, image: Image) -> None:
    supplier = provider("docker", places.runtime)
    first, here = made(supplier, places, image, "contract9a")
    second, there = made(supplier, places, image, "contract9b")
    try:
        assert first.cluster.node("worker1").address != second.cluster.node("worker1").address
        assert dataclasses.asdict(here)["campaign"] != there.campaign
    finally:
        finish(supplier, here, first.cluster)
        left = {item.campaign for item in supplier.leftovers()}
        assert here.campaign not in left and there.campaign in left
        finish(supplier, there, second.cluster)


def remove_keys(site: Site) -> None:
    top: Path = site.directory.parent
    for path in sorted(top.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    top.rmdir()


COUNTING = ("sh", "-c", "while :; do date +%s.%N; sleep 0.02; done")


def pid_of_connection(site: Site, node: str) -> str:
    """The process of the connection that all commands on a node share."""
    command = ("ssh", "-F", str(site.directory / "ssh_config"), "-O", "check", node)
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_a_pause_stops_every_process_and_resuming_lets_them_go_on(
    supplier: Provider, places: Paths, image: Image, tmp_path: Path
) -> None:
    """A connection outlives a pause of more than half a minute, after which it would be lost if it sent probes."""
    ready, site = made(supplier, places, image, "pause1", paused=True)
    try:
        assert ready.cluster.pausing is not None
        out, separate = tmp_path / "out", supplier.capabilities.separate_nodes
        transport = ready.cluster.node("worker1").transport
        background = transport.start(COUNTING, timeout_s=120, stdout=out, stderr=tmp_path / "err")
        before = pid_of_connection(site, "worker1") if separate else ""
        assert background.wait_for(re.compile("[0-9]"), 10)
        for rest_s in (40.0 if supplier.name == "docker" else 1.0, 0.5):
            assert "freezer of control groups" in ready.cluster.pausing.pause()
            time.sleep(0.2)  # for what is on its way to the file
            size = out.stat().st_size
            time.sleep(rest_s)
            assert out.stat().st_size == size
            ready.cluster.pausing.resume()
            assert transport.run(("true",), timeout_s=5).exit_code == 0
            time.sleep(0.5)
            assert out.stat().st_size > size
        assert not background.ended()
        assert (pid_of_connection(site, "worker1") if separate else "") == before
        background.stop()
    finally:
        finish(supplier, site, ready.cluster)


@pytest.mark.parametrize("by_engine", [False, True], ids=["freezer", "engine"])
@pytest.mark.parametrize("name", ["docker", "podman"])
def test_paused_containers_can_be_destroyed(
    name: str, by_engine: bool, places: Paths, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their label alone, as `vtax clean` does it after vtax was killed."""
    supplier = provider(name, places.runtime)
    if by_engine:
        monkeypatch.setattr(Container, "_freezers", lambda self, containers: ())
    ready, site = made(supplier, places, image, "pause2")
    try:
        assert ready.cluster.pausing is not None
        how = ready.cluster.pausing.pause()
        assert how.startswith(f"{name} pause (" if by_engine else "the freezer of control groups")
        began = time.monotonic()
        provider(name, places.runtime).destroy(site.campaign)
        assert time.monotonic() - began < 15
        assert [item for item in supplier.leftovers() if item.campaign == site.campaign] == []
    finally:
        finish(supplier, site, ready.cluster)
