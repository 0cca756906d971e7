"""What is recorded of the machines of a cluster that is spread over them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fakes.cluster import FakeProvider, node_shape
from vtax.errors import MachineLost, PauseError
from vtax.machines.agent import Agent
from vtax.machines.channel import Message
from vtax.machines.provider import RemoteProvider
from vtax.machines.spread import PartPausing, SpreadProvider, label_on
from vtax.model.names import is_campaign_id
from vtax.model.nodes import ClusterShape
from vtax.model.study import MachineSpec
from vtax.providers.base import Cluster, Site


class Answering:
    """An agent that knows its facts, or that is gone."""

    def __init__(self, hostname: str, offset_s: float, given: Mapping[str, Any] | None = None, why: str = "") -> None:
        self.hostname, self.offset_s = hostname, offset_s
        self.machine = SimpleNamespace(facts=lambda: given or {}, ended=lambda: why)

    def ask(self, what: str, **_: Any) -> Message:
        if not self.hostname:
            raise MachineLost("gone")
        assert what in ("facts", "hello")
        return Message({"facts": {"hostname": self.hostname}, "capacity": {}}, b"")


def spread(tmp_path: Path, **agents: Answering) -> SpreadProvider:
    on = {name: cast(RemoteProvider, FakeProvider("box", tmp_path / name)) for name in agents}
    return SpreadProvider({name: cast(Agent, one) for name, one in agents.items()}, on, {})


def test_a_machine_is_lost_for_the_reason_that_its_owner_has(tmp_path: Path) -> None:
    """All machines of an allocation are lost for one reason, which is said once."""
    over = "Slurm's job 7 ended: it was preempted"
    assert spread(tmp_path, a=Answering("", 0, why=over), b=Answering("", 0, why=over)).lost() == over
    assert spread(tmp_path, a=Answering("node17", 0), b=Answering("", 0)).lost() == "gone"
    assert spread(tmp_path, a=Answering("node17", 0, why=over)).lost() == ""


def test_every_machine_is_told_how_ranks_join_all_nodes(tmp_path: Path) -> None:
    """Whichever of them has the first node of an entry starts the ranks."""
    told: dict[str, dict[str, Any]] = {}

    def agent(name: str, node: str) -> Any:
        asked = lambda what, **given: told.setdefault(name, {"asked": what, **given})  # noqa: E731
        return SimpleNamespace(ask=asked, machine=SimpleNamespace(node=node, job="7"))

    made = spread(tmp_path, a=agent("a", "c1"), b=agent("b", "c2"))
    joins = {"a": {"worker1": ("join", "5")}, "b": {"master": ("join", "9")}}
    clusters = {name: cast(Cluster, SimpleNamespace(joins=one)) for name, one in joins.items()}
    made._relay(clusters, cast(Site, SimpleNamespace(campaign="0123abcd")))
    assert {name: one.pop("label") for name, one in told.items()} == {
        name: label_on("0123abcd", name) for name in joins
    }
    every = {"worker1": ("c1", ("join", "5")), "master": ("c2", ("join", "9"))}
    assert told == {name: {"asked": "relay", "job": "7", "nodes": every} for name in joins}


def test_each_machine_that_answers_has_its_facts(tmp_path: Path) -> None:
    slurm = {"slurm": {"job": "7", "node": "c1"}}
    made = spread(tmp_path, a=Answering("node17", -0.25, slurm), b=Answering("node18", 2.0), c=Answering("", 0.0))
    assert made.machine_facts() == {
        "a": {"hostname": "node17", "clock_ahead_s": -0.25, **slurm},
        "b": {"hostname": "node18", "clock_ahead_s": 2.0},
    }
    assert FakeProvider("box", tmp_path).machine_facts() == {}


class Sharing:
    """An agent of a machine on which a directory is another one's too, or not."""

    def __init__(self, files: dict[str, str] | None, writable: bool = True) -> None:
        self.files, self.writable = files, writable

    def ask(self, what: str, place: str, token: str) -> Message:
        if what == "remove_shared":
            (self.files or {}).pop(place, None)
        elif what == "read_shared":
            return Message({"found": None if self.files is None else self.files.get(place, "")}, b"")
        elif not self.writable or self.files is None:
            return Message({"wrong": f"it cannot write to {place}: Read-only file system"}, b"")
        else:
            self.files[place] = token
        return Message({"wrong": ""}, b"")


def problems(tmp_path: Path, shared: str, **agents: Sharing) -> list[str]:
    on = {name: cast(RemoteProvider, FakeProvider("box", tmp_path / name)) for name in agents}
    machines = {name: MachineSpec(ssh=name, shared=shared) for name in agents}
    made = SpreadProvider({name: cast(Agent, one) for name, one in agents.items()}, on, machines)
    nodes = (node_shape("master", (0,)), node_shape("worker1", (1,)), node_shape("worker2", (2,)))
    shape = ClusterShape(
        nodes=tuple(node.model_copy(update={"machine": name}) for node, name in zip(nodes, agents, strict=False))
    )
    return [one.message for one in made._unshared(shape)]


def test_a_shared_directory_is_tried_before_the_start(tmp_path: Path) -> None:
    common: dict[str, str] = {}
    one, two = Sharing(common), Sharing(common)
    assert problems(tmp_path, "/srv/lab", a=one, b=two) == []
    assert common == {}  # nothing stays there
    found = problems(tmp_path, "/srv/lab", a=one, b=Sharing({}), c=Sharing(None))
    assert found == [
        "a and b do not share /srv/lab: one does not see what the other writes",
        "machine c: it has no directory /srv/lab",
    ]
    refused = problems(tmp_path, "/srv/lab", a=Sharing({}, writable=False), b=two)
    assert refused == ["machine a: it cannot write to /srv/lab: Read-only file system"]
    assert problems(tmp_path, "", a=one, b=two) == []


def test_the_parts_of_a_cluster_have_labels_of_their_own() -> None:
    """Machines of a lab may share control groups, in which labels are names."""
    labels = {label_on("0123abcd", name) for name in "abc"}
    assert len(labels) == 3 and all(is_campaign_id(label) for label in labels)
    assert label_on("0123abcd", "a") in labels


def test_a_lost_machine_is_a_cluster_that_does_not_resume() -> None:
    with pytest.raises(PauseError, match="gone"):
        PartPausing(cast(Agent, Answering("", 0.0)), "0123abcd", "").resume()


class Counting:
    def __init__(self, **ticks: float) -> None:
        self.ticks = ticks

    def ask(self, what: str) -> Message:
        if not self.ticks:
            raise MachineLost("gone")
        return Message(self.ticks, b"")


def test_the_cpu_time_of_all_machines_is_added(tmp_path: Path) -> None:
    def made(*agents: Counting) -> dict[str, float]:
        on = {"a": cast(RemoteProvider, FakeProvider("box", tmp_path / "a"))}
        known = {str(number): cast(Agent, one) for number, one in enumerate(agents)}
        return dict(SpreadProvider(known, on, {}).machine_ticks())

    busy = Counting(cpu_ticks=100.0, busy_ticks=30.0)
    assert made(busy, Counting(cpu_ticks=50.0, busy_ticks=1.0)) == {"cpu_ticks": 150.0, "busy_ticks": 31.0}
    assert made(busy, Counting()) == {}  # not half of them
