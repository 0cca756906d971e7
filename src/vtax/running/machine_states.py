"""The machines of a study, looked at and cleaned up one by one: one that cannot be used does not hide the others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from vtax.errors import VtaxError
from vtax.machines.agent import Agent
from vtax.machines.provider import sockets
from vtax.machines.ssh import Ssh
from vtax.model.record import Record
from vtax.model.study import Study
from vtax.paths import Paths
from vtax.planning.on_machines import refuse_wrong_clock
from vtax.planning.study import existing_nodes
from vtax.providers.base import Leftover
from vtax.running.doctor import Diagnosis
from vtax.transport.parallel import each

R = TypeVar("R")


class MachineState(Record):
    """One machine: why it cannot be used, or what it is and what works there. `owner` is who uses it now."""

    name: str
    ssh: str
    works: bool
    reason: str = ""
    remedy: str = ""
    clock_offset_s: float | None = None
    directory: str = ""
    owner: str = ""
    found: Diagnosis | None = None


def diagnose_machines(study: Study, paths: Paths) -> tuple[MachineState, ...]:
    """What each machine of a study is, and what is missing there. Changes nothing but vtax's own files."""

    def look(agent: Agent) -> MachineState:
        refuse_wrong_clock(agent)
        said: dict[str, Any] = dict(agent.ask("diagnose").content)
        owner = str(said.pop("owner"))
        found = Diagnosis.model_validate(said)
        usable = any(one.works for one in found.providers)
        return MachineState(
            name=agent.name,
            ssh=agent.machine.spec.ssh,
            works=usable,
            reason="" if usable else "no provider works there",
            remedy="" if usable else "see its providers",
            clock_offset_s=agent.offset_s,
            directory=agent.directory,
            owner=owner,
            found=found,
        )

    def fault(agent: Agent, error: VtaxError) -> MachineState:
        reason = "\n".join((error.message, *error.detail.splitlines()))
        ssh = agent.machine.spec.ssh
        return MachineState(name=agent.name, ssh=ssh, works=False, reason=reason, remedy=error.remedy)

    return _on_each(study, paths, look, fault)


class Cleaned(Record):
    """What was left behind on a machine, how much of it was removed, and what is in use; or why that is not known."""

    name: str
    reason: str = ""
    found: tuple[tuple[str, str, str, str, str], ...] = ()  # provider, kind, name, label, campaign
    removed: int = 0
    kept: tuple[str, ...] = ()

    @property
    def leftovers(self) -> tuple[Leftover, ...]:
        return tuple(Leftover(*one[:4], origin=one[4]) for one in self.found)


def clean_machines(study: Study, paths: Paths, *, check: bool, everything: bool) -> tuple[Cleaned, ...]:
    """Remove what runs left behind on each machine; only list it to `check`."""

    def one(agent: Agent) -> Cleaned:
        found = tuple(tuple(item) for item in agent.ask("leftovers", everything=everything).content)
        if check or not found:
            return Cleaned(name=agent.name, found=found)
        said = agent.ask("clean", everything=everything).content
        return Cleaned(name=agent.name, found=found, removed=said["removed"], kept=tuple(said["kept"]))

    return _on_each(study, paths, one, lambda agent, error: Cleaned(name=agent.name, reason=str(error)))


def _on_each(
    study: Study, paths: Paths, function: Callable[[Agent], R], fault: Callable[[Agent, VtaxError], R]
) -> tuple[R, ...]:
    def one(agent: Agent) -> R:
        try:
            agent.start()
            return function(agent)
        except VtaxError as error:
            return fault(agent, error)
        finally:
            with suppress(VtaxError, OSError):
                agent.close()

    named = {**study.machines, **existing_nodes(study)}
    agents = [Agent(Ssh(name, spec, sockets(paths.state))) for name, spec in named.items()]
    return tuple(each(one, agents))
