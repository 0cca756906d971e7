"""Nodes that exist already: what a study may say of them, and what is found on them before anything is created."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fakes.cluster import node_shape
from vtax.errors import EnvironmentMissing, MachineInUse, MachineLost, StudyError, UsageError
from vtax.launchers import written
from vtax.machines.agent import Agent
from vtax.machines.channel import Message
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.study import EnvironmentSpec
from vtax.planning.study import existing_nodes, parse
from vtax.providers.host.provider import Host, HostOptions
from vtax.running import existing
from vtax.running.existing import Existing, Held, _entered

GIB = 2**30
SHAPE = ClusterShape(nodes=(node_shape("master", (0,), GIB), node_shape("worker1", (1,), GIB)))
ROOM = HostCapacity(cpu_ids=(8, 9), memory_bytes=2 * GIB)
IMAGE = Image(recipe="r", digest="d", directory="/i", archive="/a")
STUDY = """\
name = "test"
baseline = "host"
[environments.host]
provider = "host"
network = "bridge"
[environments.cloud]
provider = "ssh"
{options}
[nodes]
workers = 1
[[benchmarks]]
name = "sysbench-cpu"
"""
NODES = 'nodes = { master = "lab@vm1", worker1 = "vm2" }'


class Node:
    """An agent on a machine that is written here."""

    def __init__(self, name: str, room: HostCapacity = ROOM, root: bool = True, owner: str = "") -> None:
        self.name, self.room, self.root, self.owner = name, room, root, owner
        self.offset_s, self.identity = 0.0, name
        self.channel: object = self
        self.machine = SimpleNamespace(facts=dict)
        self.asked: list[str] = []
        self.nfs = {"serve": "", "mount": ""}
        self.away = 0  # how often connecting fails from now on

    def start(self) -> None:
        if self.away:
            self.away -= 1
            raise EnvironmentMissing(f"machine {self.name} cannot be reached", remedy="is it on?")
        self.channel = self

    def drop(self) -> None:
        self.channel = None

    def ask(self, what: str, **_: Any) -> Message:
        self.asked.append(what)
        if what == "lock" and self.owner:
            raise EnvironmentMissing(f"{self.name}: it is being used by another campaign: {self.owner}")
        return Message(self.answers(what))

    def answers(self, what: str) -> Mapping[str, Any]:
        able = Host.capabilities.model_copy(update={"limits_memory": self.root}).model_dump(mode="json")
        known: dict[str, Mapping[str, Any]] = {
            "facts": {
                "facts": {"machine_id": self.identity, "boot_id": "x"},
                "capacity": self.room.model_dump(mode="json"),
            },
            "describe": {
                "provider": "host",
                "capabilities": able,
                "capabilities_with": {**able, "separate_nodes": True},
                "slowdown": 1,
                "emulates": False,
                "provision_estimate_s": 1,
                "launcher": written(Host(Path("run")).launcher(HostOptions(network="host"))),
                "install_hint": "",
            },
            "check": {"problems": [], "commands": []},
            "nfs": self.nfs,
            "has_image": {"there": True, "directory": "/images"},
        }
        return known.get(what, {})


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(existing, "_held", {})
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    yield


def spec_of(more: str = NODES) -> EnvironmentSpec:
    return next(one for one in parse(STUDY.format(options=more), "t.toml").environments if one.name == "cloud")


def messages(*nodes: Node, tmp_path: Path) -> list[str]:
    """What keeps an environment with these machines as nodes from working."""
    return [problem.message for problem in made_of(*nodes, tmp_path=tmp_path).check(spec_of(), SHAPE, ROOM)]


def made_of(*nodes: Node, tmp_path: Path) -> Existing:
    made = Existing(tmp_path)
    for (node, to), one in zip((("master", "lab@vm1"), ("worker1", "vm2")), nodes, strict=True):
        existing._held[to, ""] = Held(cast(Agent, one))
        one.name = f"cloud-{node}"
    return made


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "it names no machine for master and worker1"),
        ('nodes = { master = "a" }', "it names no machine for worker1"),
        ('nodes = { master = "a", worker1 = "b", worker2 = "c" }', "the study has no node worker2"),
        ('nodes = { master = "a", worker1 = "a" }', "two nodes have the same destination"),
        ('nodes = { master = "-oProxyCommand=x", worker1 = "a" }', "master"),
        (f'{NODES}\naddresses = {{ worker2 = "10.0.0.1" }}', "the study has no node worker2"),
        (f'{NODES}\n[machines.x]\nssh = "x"', "the study has others in [machines]"),
    ],
)
def test_a_study_that_cannot_work(options: str, said: str) -> None:
    with pytest.raises(StudyError) as raised:
        parse(STUDY.format(options=options), "t.toml")
    assert said in str(raised.value) and raised.value.exit_code == 2


def test_without_a_shared_directory_no_study_uses_one() -> None:
    apart, shared = (parse(STUDY.format(options=NODES + more), "t.toml") for more in ("", '\nshared = "/srv"'))
    assert (apart.one_directory, shared.one_directory) == (False, True)
    assert {name: one.ssh for name, one in existing_nodes(apart).items()} == {
        "cloud-master": "lab@vm1",
        "cloud-worker1": "vm2",
    }


def test_the_masters_machine_has_to_serve_and_the_others_to_mount(tmp_path: Path) -> None:
    first, second = Node("a"), Node("b")
    made = made_of(first, second, tmp_path=tmp_path)
    assert made.cannot_share(spec_of(), SHAPE) == "the machines of cloud could not be asked"
    made.check(spec_of(), SHAPE, ROOM)
    first.nfs["mount"], second.nfs["serve"] = "no program", "no module"  # neither has to
    assert made.cannot_share(spec_of(), SHAPE) == ""
    first.nfs["serve"], second.nfs["mount"] = "no program", "no module"
    said = "machine cloud-master cannot serve: no program; machine cloud-worker1 cannot mount: no module"
    assert made.cannot_share(spec_of(), SHAPE) == said


def test_a_plan_with_a_directory_is_refused_where_there_can_be_none_any_more(tmp_path: Path) -> None:
    first, second = Node("a"), Node("b")
    made, planned = made_of(first, second, tmp_path=tmp_path), spec_of().model_copy(update={"one_directory": True})
    assert made.check(planned, SHAPE, ROOM) == [] and made.spread is not None and made.spread.nfs
    second.nfs["mount"] = "no module"
    (problem,) = made.check(planned, SHAPE, ROOM)
    assert problem.message == "the shared directory: machine cloud-worker1 cannot mount: no module"
    named = spec_of(NODES + '\nshared = "/srv"')
    assert named.one_directory and not existing._by_nfs(named, made._options(named)), "it is the nodes' own"


def test_machines_that_fit(tmp_path: Path) -> None:
    assert messages(Node("a"), Node("b"), tmp_path=tmp_path) == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Node("b", HostCapacity(cpu_ids=(), memory_bytes=GIB)), "worker1 has 0 CPUs, and the plan wants 1"),
        (
            Node("b", HostCapacity(cpu_ids=(0,), memory_bytes=GIB // 2)),
            "has 512 MiB of memory, and the plan wants 1 GiB",
        ),
        (Node("b", root=False), "a node needs root and a memory controller"),
    ],
)
def test_a_machine_that_does_not_fit_is_named(other: Node, said: str, tmp_path: Path) -> None:
    (message,) = messages(Node("a"), other, tmp_path=tmp_path)
    assert said in message and "cloud" in message


def test_a_machine_that_is_away(tmp_path: Path) -> None:
    away = Node("b")
    away.channel, away.away = None, 1
    assert messages(Node("a"), away, tmp_path=tmp_path) == ["machine cloud-worker1 cannot be reached"]


def test_one_machine_as_two_nodes(tmp_path: Path) -> None:
    twice = Node("b")
    twice.identity = "a"
    with pytest.raises(UsageError, match="are the same machine"):
        messages(Node("a"), twice, tmp_path=tmp_path)


def test_a_machine_is_locked_once_by_whatever_uses_it(tmp_path: Path) -> None:
    node = Node("a")
    held = Held(cast(Agent, node))
    for _ in range(2):
        _entered(held, IMAGE, tmp_path)
    assert node.asked == ["lock", "has_image"]


def test_a_machine_of_another_campaign_ends_this_one(tmp_path: Path) -> None:
    with pytest.raises(MachineInUse, match="used by another campaign: eve") as raised:
        _entered(Held(cast(Agent, Node("a", owner="eve"))), IMAGE, tmp_path)
    assert raised.value.exit_code == 3


def test_a_machine_that_comes_back_is_held_again(tmp_path: Path) -> None:
    node = Node("a")
    held = Held(cast(Agent, node))
    _entered(held, IMAGE, tmp_path)
    node.channel, node.away = None, 3
    _entered(held, IMAGE, tmp_path)
    assert node.asked == ["lock", "has_image", "lock"]


def test_a_machine_that_is_gone_for_good_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node("a")
    waited: list[object] = []
    held = Held(cast(Agent, node))
    _entered(held, IMAGE, tmp_path)
    node.channel, node.away = None, 10**6
    monkeypatch.setattr(existing, "BACK_S", 0.05)
    monkeypatch.setattr("time.sleep", waited.append)
    for _ in range(3):
        with pytest.raises(EnvironmentMissing, match="cannot be reached"):
            _entered(held, IMAGE, tmp_path)
        waited.append("|")
    assert waited[0] == existing.AGAIN_S and waited[-2:] == ["|", "|"]


def test_names_of_machines_are_those_of_a_study() -> None:
    long = "e" * 31
    names = {existing._machine(one, "worker64") for one in (long, f"{long[:-1]}f", "cloud")}
    assert len(names) == 3 and max(map(len, names)) <= 31


def test_nothing_is_kept_for_a_later_command(tmp_path: Path) -> None:
    with pytest.raises(MachineLost), contextlib.ExitStack():
        Existing(tmp_path).connect(spec_of(), SHAPE, "/shared", cast(Any, None))
