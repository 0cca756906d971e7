"""A provider on another machine, as the planner sees it: what the agent there says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vtax.errors import EnvironmentMissing
from vtax.launchers import restored
from vtax.launchers.base import Launcher
from vtax.machines.agent import Agent, understood
from vtax.model.capabilities import Capabilities
from vtax.model.cluster import Image
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.study import EnvironmentSpec
from vtax.providers import built_in
from vtax.providers.base import Cluster, Commands, Leftover, Provider, Site

HERE = "clusters on another machine are made by vtax's agent there"


class RemoteProvider(Provider):
    """The provider of one environment on one machine. What creates clusters is the same code, run by the agent."""

    runners = ()

    def __init__(self, agent: Agent, spec: EnvironmentSpec, shared_path: str = "/shared", kernel: str = "") -> None:
        self.shared_path, self.kernel = shared_path, kernel
        self.planned: Commands = ()  # known when it was checked: the plan is shown when nobody can be asked any more
        self.agent = agent
        with understood(agent):
            self._described(agent.ask("describe", spec=spec.model_dump(mode="json")).content)

    def _described(self, said: Mapping[str, Any]) -> None:
        self.name = str(said["provider"])
        if self.name not in built_in():
            raise EnvironmentMissing(
                f"provider {self.name!r} is a plug-in, and vtax sends only itself to machines",
                remedy="use a provider of vtax's own in a study with [machines]",
            )
        self.options, self.makes_parts = built_in()[self.name].options, built_in()[self.name].in_parts
        self.capabilities = Capabilities.model_validate(said["capabilities"])
        self.with_options = Capabilities.model_validate(said["capabilities_with"])
        self.factor, self.emulated = float(said["slowdown"]), bool(said["emulates"])
        self.started_by = restored(said["launcher"])
        self.install_hint, self.estimate_s = str(said["install_hint"]), float(said["provision_estimate_s"])

    @property
    def provision_estimate_s(self) -> float:
        return self.estimate_s

    def capabilities_with(self, options: Any) -> Capabilities:
        return self.with_options

    def slowdown(self, options: Any) -> float:
        return self.factor

    def emulates(self, options: Any) -> bool:
        return self.emulated

    def launcher(self, options: Any) -> Launcher:
        return self.started_by

    def alike(self, other: RemoteProvider) -> bool:
        """Whether plans for one machine suit the other."""
        mine, its = (
            (one.name, one.capabilities, one.with_options, one.emulated, one.started_by) for one in (self, other)
        )
        return mine == its

    def commands(
        self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, kernel: str, workload: bool = False
    ) -> Commands:
        return self.planned

    def unavailable(self) -> str:
        return ""  # `check` says it

    def check(self, spec: EnvironmentSpec, shape: ClusterShape, capacity: HostCapacity) -> Sequence[Problem]:
        with understood(self.agent):
            said: Mapping[str, Any] = self.agent.ask(
                "check",
                spec=spec.model_dump(mode="json"),
                shape=shape.model_dump(mode="json"),
                room=capacity.model_dump(mode="json"),
                kernel=self.kernel,
                shared_path=self.shared_path,
            ).content
            self.planned = tuple(tuple(map(str, line)) for line in said["commands"])
            return [_on(Problem.model_validate(one), self.agent.name) for one in said["problems"]]

    def workload_problems(self, spec: EnvironmentSpec) -> Sequence[Problem]:
        return [
            Problem.blocker("a study with [machines] cannot have an image of its own", "leave [image.workload] out")
        ]

    def create(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        raise EnvironmentMissing(HERE)

    def connect(self, spec: EnvironmentSpec, shape: ClusterShape, shared_path: str, site: Site) -> Cluster:
        raise EnvironmentMissing(HERE)

    def remove_image(self, image: Image) -> None:
        raise EnvironmentMissing(HERE)

    def destroy(self, campaign: str) -> None:
        raise EnvironmentMissing(HERE)

    def leftovers(self) -> Sequence[Leftover]:
        return ()


def _on(problem: Problem, machine: str) -> Problem:
    return problem.model_copy(update={"message": f"machine {machine}: {problem.message}"})


def sockets(state: Path) -> Path:
    """Where the sockets of connections are."""
    return state / "ssh"
