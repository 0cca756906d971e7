"""What is recorded of the machines of a cluster that is spread over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from fakes.cluster import FakeProvider
from vtax.errors import MachineLost
from vtax.machines.agent import Agent
from vtax.machines.channel import Message
from vtax.machines.provider import RemoteProvider
from vtax.machines.spread import SpreadProvider


class Answering:
    """An agent that knows its facts, or that is gone."""

    def __init__(self, hostname: str, offset_s: float) -> None:
        self.hostname, self.offset_s = hostname, offset_s

    def ask(self, what: str, **_: Any) -> Message:
        if not self.hostname:
            raise MachineLost("gone")
        assert what == "facts"
        return Message({"facts": {"hostname": self.hostname}, "capacity": {}}, b"")


def test_each_machine_that_answers_has_its_facts(tmp_path: Path) -> None:
    agents = {"a": Answering("node17", -0.25), "b": Answering("node18", 2.0), "c": Answering("", 0.0)}
    on = {name: cast(RemoteProvider, FakeProvider("box", tmp_path / name)) for name in agents}
    made = SpreadProvider({name: cast(Agent, one) for name, one in agents.items()}, on, {})
    assert made.machine_facts() == {
        "a": {"hostname": "node17", "clock_ahead_s": -0.25},
        "b": {"hostname": "node18", "clock_ahead_s": 2.0},
    }
    assert FakeProvider("box", tmp_path).machine_facts() == {}
