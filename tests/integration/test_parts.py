"""Clusters in parts: two network namespaces that are connected by a wire stand for two machines."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from vtax.cluster.keys import USER, make_keys
from vtax.facts.uplink import uplinks
from vtax.model.cluster import Image
from vtax.model.link import Interconnect, Link
from vtax.model.nodes import ClusterShape, Scope
from vtax.model.study import EnvironmentSpec
from vtax.paths import Paths
from vtax.providers import parts, provider
from vtax.providers.base import Cluster, Node, Site
from vtax.running.crossing import crosses, lost_between
from vtax.running.verify import parallel_targets, verify
from vtax.transport.local import LocalTransport
from vtax.transport.process import run

from . import part
from .conftest import own
from .namespaces import new_name
from .test_clusters import shape_for, spec_for

pytestmark = pytest.mark.integration
WIRE_MTU = 1400  # not the usual one, so that what is found inside was worked out
INSIDE_MTU = 1350
PROGRAM = str(Path(part.__file__))


def ip(*words: str) -> None:
    run(("ip", *words), timeout_s=20, check=True)


class Wired:
    """Two machines, each with a run-time directory of its own, and one cluster on both of them."""

    def __init__(self, places: Paths, image: Image) -> None:
        self.image = image
        self.names = ("left", "right")
        self.labels = {
            name: own(f"parts {name}") for name in self.names
        }  # not one: both are in the same control groups
        self.namespaces = {name: new_name(name) for name in self.names}
        self.runtime = {name: places.runtime.parent / name for name in self.names}
        self.links: dict[str, Link] = {}

    def connect(self) -> None:
        for name in self.namespaces.values():
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")  # ranks of MPI reach their daemon by it
            anybody = "net.ipv4.ping_group_range=0 2147483647"  # as systemd sets it on machines
            ip("netns", "exec", name, "sysctl", "-q", "-w", anybody)
        left, right = self.namespaces.values()
        ip("-n", left, "link", "add", "wire0", "type", "veth", "peer", "name", "wire0", "netns", right)
        for number, name in enumerate((left, right), start=1):
            ip("-n", name, "addr", "add", f"10.99.0.{number}/24", "dev", "wire0")
            ip("-n", name, "link", "set", "wire0", "mtu", str(WIRE_MTU), "up")

    def disconnect(self) -> None:
        for name in self.namespaces.values():
            ip("netns", "del", name)

    def on(self, machine: str, *words: str, given: str = "") -> str:
        command = ("nsenter", f"--net=/run/netns/{self.namespaces[machine]}", *words)
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def interconnect(self, kind: str = "vxlan") -> Interconnect:
        text = {name: self.on(name, sys.executable, PROGRAM, "interfaces") for name in self.names}
        known = {name: part.INTERFACES.validate_json(said) for name, said in text.items()}
        return parts.interconnect("host" if kind == "host" else "vxlan", uplinks(known, {}))

    def site(self, machine: str) -> Site:
        label = self.labels[machine]
        place = self.runtime[machine] / label
        return Site(label, place / "c", self.image, place / "keys", link=self.links[machine])

    def create(self, spec: EnvironmentSpec, shape: ClusterShape) -> Cluster:
        made: dict[str, Cluster] = {}
        keys = next(iter(self.runtime.values())).parent / "keys"
        make_keys(keys, [node.name for node in shape.nodes])
        for name in self.names:
            site, mine = self.site(name), shape.on(name)
            self._carry(keys, site.keys, [node.name for node in mine.nodes])
            order = {
                "runtime": str(self.runtime[name]),
                "label": site.campaign,
                "place": str(site.keys.parent),
                "spec": spec.model_dump(mode="json"),
                "shape": mine.model_dump(mode="json"),
                "image": self.image.model_dump(mode="json"),
                "link": self.links[name].model_dump(mode="json"),
            }
            self.on(name, sys.executable, PROGRAM, given=json.dumps(order))
            there = provider(spec.provider, self.runtime[name]).connect(spec, mine, "/shared", site)
            made[name] = replace(there, nodes=tuple(self._reached(name, node) for node in there.nodes))
        some = next(iter(made.values()))
        return parts.joined(spec, shape, made, self.links, some.capabilities, some.launcher)

    def _reached(self, machine: str, node: Node) -> Node:
        """A node whose commands begin on its machine, as those of every process there do."""
        assert isinstance(node.transport, LocalTransport)
        entered = ("nsenter", f"--net=/run/netns/{self.namespaces[machine]}")
        wrap = node.transport.wrap
        return replace(node, transport=LocalTransport(lambda place, argv: (*entered, *wrap(place, argv))))

    @staticmethod
    def _carry(keys: Path, to: Path, mine: Sequence[str]) -> None:
        """What a machine gets of the keys: all public ones, and the private ones of its own nodes and of the user."""
        to.mkdir(parents=True)
        for file in keys.glob("*"):
            if file.suffix == ".pub" or file.name in (USER, *mine):
                shutil.copy2(file, to)

    def destroy(self, supplier: str) -> None:
        for name in self.names:
            provider(supplier, self.runtime[name]).destroy(self.labels[name])

    def left(self, supplier: str) -> list[str]:
        return [
            f"{one.kind} {one.name}"
            for name in self.names
            for one in provider(supplier, self.runtime[name]).leftovers()
            if one.campaign in self.labels.values()
        ]


@pytest.fixture
def wired(places: Paths, image: Image) -> Iterator[Wired]:
    found = Wired(places, image)
    found.connect()
    yield found
    found.disconnect()


def test_one_node_on_each_machine_uses_the_machines_own_network(wired: Wired, places: Paths) -> None:
    spec = spec_for("host", provider("host", places.runtime), network="host")
    first, second, *_ = shape_for("host").nodes
    shape = on_machines(ClusterShape(nodes=(first, second)), {"master": "left", "worker1": "right"})
    wired.links = parts.links(shape, wired.interconnect("host"), {})
    try:
        cluster = wired.create(spec, shape)
        _, checks = verify(cluster, parallel_targets(cluster, [Scope.CLUSTER]))
        said = "\n".join(checks)
        assert "names and SSH between all 2 pairs of nodes" in said
        assert "mpi placement cluster: master=1 worker1=1" in said
        assert f"packets of {WIRE_MTU} bytes cross unfragmented: master to worker1, worker1 to master" in said
        assert [node.address for node in cluster.nodes] == ["10.99.0.1", "10.99.0.2"]
        assert wired.on("right", "ip", "-j", "link", "show", "type", "vxlan").strip() in ("", "[]", "[{}]")
    finally:
        wired.destroy("host")
    assert wired.left("host") == []


def on_machines(shape: ClusterShape, where: dict[str, str]) -> ClusterShape:
    return ClusterShape(nodes=tuple(node.model_copy(update={"machine": where[node.name]}) for node in shape.nodes))


def test_a_cluster_of_two_parts_is_verified_like_any_other(wired: Wired, places: Paths, tmp_path: Path) -> None:
    """Master and worker1 on one machine, worker2 on the other: names, SSH, MTU and MPI across, nothing left behind."""
    spec = spec_for("host", provider("host", places.runtime), network="bridge")
    shape = on_machines(shape_for("host"), {"master": "left", "worker1": "left", "worker2": "right"})
    between = wired.interconnect()
    assert (between.kind, between.mtu) == ("vxlan", INSIDE_MTU)
    wired.links = parts.links(shape, between, {})
    try:
        cluster = wired.create(spec, shape)
        facts, checks = verify(cluster, parallel_targets(cluster, [Scope.WORKERS, Scope.CLUSTER]))
        said = "\n".join(checks)
        assert "names and SSH between all 6 pairs of nodes" in said
        assert "mpi placement workers: worker1=1 worker2=1" in said
        assert "packets of 1350 bytes cross unfragmented: master to worker2, worker1 to worker2, worker2 to" in said
        assert "/shared is not shared between machines, and nothing uses it" in said
        assert {one.node: mtu_of(one.values) for one in facts} == dict.fromkeys(("master", "worker1", "worker2"), 1350)
        assert cluster.facts["worker2"]["on_machine"] == "right"
        assert cluster.facts["worker2"]["uplink"]["mtu"] == WIRE_MTU
        too_large = cluster.node("master").transport.run(
            ("ping", "-c", "1", "-W", "1", "-M", "do", "-s", str(INSIDE_MTU - 27), "worker2"), timeout_s=10
        )
        assert "Message too long" in too_large.stderr
        assert rate_between(cluster, "master", "worker2", tmp_path) > 0
        assert {"network namespace vtax-" + wired.labels["right"] + ".worker2"} < set(wired.left("host"))
        wired.on("left", "ip", "link", "set", "wire0", "mtu", "1300")  # the network carries less than it said
        _, wrong = crosses(cluster, facts, lost_between(cluster))
        assert [line.partition(":")[0] for line in wrong][:1] == [
            "packets of 1350 bytes from master do not reach worker2"
        ]
    finally:
        wired.destroy("host")
    assert wired.left("host") == []
    wired.destroy("host")  # twice is fine


def mtu_of(facts: object) -> int:
    assert isinstance(facts, dict)
    return next(int(link["mtu"]) for link in facts["interfaces"] if link["name"] == "eth0")


def rate_between(cluster: Cluster, client: str, server: str, place: Path) -> float:
    """What iperf3 measures in a second, in bit/s."""
    serving = cluster.node(server).transport.start(
        ("iperf3", "-s", "-1", "--forceflush"), timeout_s=20, stdout=place / "iperf3.out", stderr=place / "iperf3.err"
    )
    assert serving.wait_for(re.compile("Server listening"), 10)
    done = cluster.node(client).transport.run(("iperf3", "-c", server, "-t", "1", "-J"), timeout_s=20)
    assert done.exit_code == 0, done.stdout
    serving.stop()
    return float(json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"])
