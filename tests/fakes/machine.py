"""A machine in memory: the agent's side of a campaign on fake clusters, reached by a call instead of by SSH.

What is said goes through JSON, as between two processes. A connection can be cut when a trial begins, or for good.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from builders.small import IMAGE
from fakes.cluster import FakeProvider
from vtax.errors import MachineLost
from vtax.machines.agent import Agent
from vtax.machines.channel import Message
from vtax.machines.ssh import Ssh
from vtax.model.plan import Plan
from vtax.model.study import MachineSpec
from vtax.running.block import Block

CUT = "the connection to machine was lost: it was cut"


class FakeAgent(Agent):
    """An agent that is always sent already. `cut` says of a trial that begins whether the connection ends there; with
    `gone`, nothing brings it back. `meanwhile` happens in each round."""

    def __init__(
        self,
        name: str,
        providers: Mapping[str, FakeProvider],
        runtime: Path,
        *,
        cut: Callable[[str], bool] = lambda _: False,
        gone: bool = False,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(Ssh(name, MachineSpec(ssh=name), Path("/s")))
        self.providers, self.runtime = providers, runtime
        self.cut, self.gone, self.meanwhile = cut, gone, meanwhile
        self.asked: list[str] = []
        self.starts = 0
        self.stack = ExitStack()
        self.block: Block | None = None
        self.heard: Callable[[Message], None] | None = None

    def start(self) -> None:
        self.starts += 1
        if self.gone:
            raise MachineLost("machine cannot be reached")

    def drop(self) -> None:
        self.stack.close()  # as an agent that is cut off: what it made is removed

    def close(self) -> None:
        self.stack.close()

    def tell(self, content: Mapping[str, Any]) -> None:
        self.told = content

    def ask(
        self, what: str, payload: bytes = b"", heard: Callable[[Message], None] | None = None, **arguments: Any
    ) -> Message:
        self.asked.append(what)
        given = json.loads(json.dumps(arguments))
        if what == "has_image":
            return Message({"there": True, "directory": str(self.runtime)})
        if what == "begin":
            plan = Plan.model_validate(given["plan"])
            self.block = Block(plan, given["campaign"], self.providers, IMAGE, self.runtime, given["about"], {}, self)
            self.block.enter(self.stack)
        if what == "round":
            assert self.block is not None
            self.heard = heard
            self.meanwhile()
            try:
                self.block.run(given["cells"], given["pending"])
            except MachineLost:
                with suppress(Exception):
                    self.drop()
                raise
        return Message({})

    def say(self, content: Mapping[str, Any], payload: bytes = b"") -> None:
        message = json.loads(json.dumps(content))
        assert self.heard is not None
        self.heard(Message(message, payload))
        if message.get("event") == "TrialStarted" and self.cut(message["fields"]["trial"]):
            raise MachineLost(CUT)

    def confirmed(self) -> None:
        assert "stored" in self.told
