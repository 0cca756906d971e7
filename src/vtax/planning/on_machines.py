"""A study for machines of its own, prepared: what each of them has, and whether the environments work on all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from vtax.errors import EnvironmentMissing, UsageError
from vtax.events import Listener, Notice, ignore
from vtax.machines import parcel
from vtax.machines.agent import Agent, understood
from vtax.machines.provider import RemoteProvider
from vtax.machines.ways import connections
from vtax.model.facts import of_their_kinds
from vtax.model.finding import Problem
from vtax.model.nodes import HostCapacity
from vtax.model.study import EnvironmentSpec, Study
from vtax.paths import Paths
from vtax.planning.placement import placed
from vtax.transport.parallel import each
from vtax.wording import listed

MOST_OFFSET_S = 60.0  # of a clock: more is a fault of the machine, and logs and certificates go wrong by it
Agents = Mapping[str, Agent]


@contextmanager
def connected(study: Study, paths: Paths, listener: Listener = ignore) -> Iterator[Agents]:
    """An agent on each machine of a study. Raises EnvironmentMissing for all that cannot be used, at once; UsageError
    for an allocation that Slurm cannot give."""
    if study.machines:
        parcel.digest()  # reads all that is sent: not while a machine waits, and not once for each of them
    with ExitStack() as stack:
        ways = stack.enter_context(connections(study, paths, lambda said: listener(Notice(said))))
        agents = {name: Agent(way) for name, way in ways.items()}
        for agent in agents.values():
            stack.callback(agent.close)
        found = each(_started, agents.values())
        failed = [error for error in found if error is not None]
        if len(failed) == 1:
            raise failed[0]
        if failed:
            raise EnvironmentMissing(
                f"{len(failed)} of {len(agents)} machines cannot be used",
                detail="\n".join(str(error) for error in failed),
                remedy="fix each as its line says, or remove it from [machines]",
            )
        yield agents


def _started(agent: Agent) -> EnvironmentMissing | None:
    try:
        agent.start()
        refuse_wrong_clock(agent)
    except EnvironmentMissing as error:
        return error
    return None


def refuse_wrong_clock(agent: Agent) -> None:
    """Raise EnvironmentMissing for a machine whose clock is far from this one's."""
    if abs(agent.offset_s) > MOST_OFFSET_S:
        way = "ahead of" if agent.offset_s > 0 else "behind"
        raise EnvironmentMissing(
            f"the clock of {agent.machine} is {abs(agent.offset_s):.0f} s {way} this machine's",
            remedy="set it, for instance with chrony or `timedatectl set-ntp true`, on whichever of them is wrong",
        )


def described(agents: Agents) -> tuple[dict[str, dict[str, Any]], dict[str, HostCapacity]]:
    """What each machine says of itself, and what it has for nodes."""

    def one(agent: Agent) -> tuple[dict[str, Any], HostCapacity]:
        given = {"clock_offset_s": agent.offset_s, **agent.machine.facts()}
        with understood(agent):
            said = agent.ask("facts").content
            facts = {**of_their_kinds(dict(said["facts"])), **given}
            return facts, HostCapacity.model_validate(said["capacity"])

    found = dict(zip(agents, each(one, agents.values()), strict=True))
    return {name: facts for name, (facts, _) in found.items()}, {name: room for name, (_, room) in found.items()}


def refuse_one_machine_twice(facts: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise UsageError for two names of one machine, by what identifies its system."""
    seen: dict[tuple[str, str], str] = {}
    for name, one in facts.items():
        identity = (str(one.get("machine_id") or ""), str(one.get("boot_id") or ""))
        if identity[0] and seen.setdefault(identity, name) != name:
            raise UsageError(
                f"machines {seen[identity]} and {name} are the same machine: they have one machine id and one boot id",
                remedy="remove one of them; where a machine was cloned, give it an id: `systemd-machine-id-setup`",
            )


def providers_on(
    agents: Agents, environments: Sequence[EnvironmentSpec], study: Study
) -> dict[str, dict[str, RemoteProvider]]:
    """Environment -> machine -> its provider there."""

    def on(agent: Agent) -> dict[str, RemoteProvider]:
        return {spec.name: RemoteProvider(agent, spec, study.shared_path, study.image.kernel) for spec in environments}

    found = dict(zip(agents, each(on, agents.values()), strict=True))
    return {spec.name: {name: found[name][spec.name] for name in agents} for spec in environments}


def unlike(name: str, on: Mapping[str, RemoteProvider]) -> tuple[Problem, ...]:
    """An environment that is one thing on one machine and another elsewhere: one plan cannot have both."""
    first, *others = on
    different = [machine for machine in others if not on[first].alike(on[machine])]
    if not different:
        return ()
    what = f"{name} is not the same on {listed([first, *different])}: engine, limits or emulation differ"
    return (Problem.blocker(what, "`vtax doctor --machines STUDY` shows what works where; make them alike"),)


def problems_on(
    agents: Agents,
    on: Mapping[str, RemoteProvider],
    spec: EnvironmentSpec,
    shape: Any,
    capacities: Mapping[str, HostCapacity],
) -> tuple[Problem, ...]:
    """What keeps an environment from working on each machine."""

    def one(name: str) -> Sequence[Problem]:
        nodes = placed(shape, dict.fromkeys((node.name for node in shape.nodes), name), capacities)
        unmatched = agents[name].machine.unmatched(spec.name, limits_memory=on[name].with_options.limits_memory)
        return (*on[name].check(spec, nodes, capacities[name]), *unmatched)

    return tuple(problem for several in each(one, agents) for problem in several)
