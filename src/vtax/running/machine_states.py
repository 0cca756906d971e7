"""The machines of a study, looked at and cleaned up one by one: one that cannot be used does not hide the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from vtax.errors import VtaxError
from vtax.machines.agent import Agent, understood
from vtax.machines.sharing import refusals
from vtax.machines.slurm import leftover
from vtax.machines.slurm.allocation import Allocation
from vtax.machines.slurm.srun import Srun
from vtax.machines.ways import allocations, way
from vtax.model.record import Record
from vtax.model.study import Study
from vtax.paths import Paths
from vtax.planning.on_machines import refuse_wrong_clock
from vtax.planning.study import existing_nodes, in_clusters
from vtax.providers import built_in, provider
from vtax.providers.base import Leftover
from vtax.running import kept
from vtax.running.doctor import Diagnosis
from vtax.running.leftovers import clean, leftovers
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
    nfs: Mapping[str, str] | None = None  # why it cannot serve or mount the shared directory, where that is asked for
    found: Diagnosis | None = None


def diagnose_machines(study: Study, paths: Paths, say: Callable[[str], None]) -> tuple[MachineState, ...]:
    """What each machine of a study is, and what is missing there. Changes nothing but vtax's own files; an allocation
    of Slurm is asked for, and `say` is told of its state."""

    def look(agent: Agent) -> MachineState:
        refuse_wrong_clock(agent)
        with understood(agent):
            said: dict[str, Any] = dict(agent.ask("diagnose").content)
            owner = str(said.pop("owner"))
            found = Diagnosis.model_validate(said)
        usable = any(one.works for one in found.providers)
        return MachineState(
            name=agent.name,
            ssh=agent.machine.spec.words,
            works=usable,
            reason="" if usable else "no provider works there",
            remedy="" if usable else "see its providers",
            clock_offset_s=agent.offset_s,
            directory=agent.directory,
            owner=owner,
            nfs=refusals(agent) if _may_share(study, agent) else None,
            found=found,
        )

    def fault(agent: Agent, error: VtaxError) -> MachineState:
        reason = "\n".join((error.message, *error.detail.splitlines()))
        ssh = agent.machine.spec.words
        return MachineState(name=agent.name, ssh=ssh, works=False, reason=reason, remedy=error.remedy)

    return _on_each(study, paths, look, fault, say)


def _may_share(study: Study, agent: Agent) -> bool:
    """Whether a machine may have to serve or mount the shared directory."""
    if study.apart:
        return study.nfs and not study.one_directory
    spec = agent.machine.spec
    return study.nfs and agent.name in existing_nodes(study) and not spec.shared and spec.kubernetes is None


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


def clean_machines(
    study: Study, paths: Paths, *, check: bool, everything: bool, images: bool = False
) -> tuple[Cleaned, ...]:
    """Remove what runs left behind on each machine, with `images` also what is there for the next one; only list it to
    `check`."""

    def one(agent: Agent) -> Cleaned:
        there = agent.machine.images() if images else ()
        with understood(agent):
            found = [tuple(item) for item in agent.ask("leftovers", everything=everything, images=images).content]
            found += [("machine", kept.IMAGE, name, "", "") for name in there]
            listed = Cleaned(name=agent.name, found=tuple(found))
            if check or not found:
                return listed
            said = agent.ask("clean", everything=everything, images=images).content
            agent.machine.remove_images(there)
            removed = said["removed"] + len(there)
            return Cleaned(name=agent.name, found=tuple(found), removed=removed, kept=tuple(said["kept"]))

    cleaned = _on_each(study, paths, one, lambda agent, error: Cleaned(name=agent.name, reason=str(error)))
    jobs = _clean_jobs(study, check=check, everything=everything)
    clusters = _clean_clusters(study, paths, check=check, everything=everything)
    return (*cleaned, *jobs, *clusters, *(_clean_registries(study, paths, check=check) if images else ()))


def _clean_registries(study: Study, paths: Paths, *, check: bool) -> tuple[Cleaned, ...]:
    """Remove from registries of the study what vtax pushed."""
    found: tuple[tuple[str, str, str, str, str], ...] = ()
    try:
        items = kept.published(study, paths)
        found = tuple((one.provider, one.kind, one.name, "", "") for one in items)
        if not check:
            kept.withdraw(items, paths)
    except VtaxError as error:
        return (Cleaned(name="registry", found=found, reason=str(error)),)
    return (Cleaned(name="registry", found=found, removed=0 if check else len(found)),) if found else ()


def _clean_clusters(study: Study, paths: Paths, *, check: bool, everything: bool) -> tuple[Cleaned, ...]:
    """Remove what is left in a cluster of Kubernetes, which is found from here."""
    if not in_clusters(study):
        return ()
    making = [name for name, one in built_in().items() if one.capabilities.elsewhere]
    there = [item for name in making for item in provider(name, paths.runtime).leftovers()]
    labels = {item.campaign for item in there}
    found = [one for one in leftovers(paths, everything=everything, among=there) if one.campaign in labels]
    listed = tuple((one.provider, one.kind, one.name, one.campaign, one.origin) for one in found)
    if check or not found:
        return (Cleaned(name="kubernetes", found=listed),)
    try:
        used = clean(found, paths, everything=everything)
    except VtaxError as error:
        return (Cleaned(name="kubernetes", found=listed, reason=str(error)),)
    names = tuple(one.name for one in used)
    return (Cleaned(name="kubernetes", found=listed, removed=len(found) - len(used), kept=names),)


def _clean_jobs(study: Study, *, check: bool, everything: bool) -> tuple[Cleaned, ...]:
    """Cancel the jobs of this user that a vtax asked for whose process is gone. What ran on their nodes ends with
    them; nothing is asked for to look there."""
    if not allocations(study):
        return ()
    try:
        found = leftover.jobs()
        wanted = [job for job in found if everything or not job.in_use]
        listed = tuple(("slurm", f"{job.state.lower()} job", job.number, job.name, job.elsewhere) for job in wanted)
        if check or not wanted:
            return (Cleaned(name="slurm", found=listed),)
        left = leftover.cancel(wanted)
    except VtaxError as error:
        return (Cleaned(name="slurm", reason=str(error)),)
    kept = tuple(f"job {job.number}" for job in left)
    return (Cleaned(name="slurm", found=listed, removed=len(wanted) - len(left), kept=kept),)


def _on_each(
    study: Study,
    paths: Paths,
    function: Callable[[Agent], R],
    fault: Callable[[Agent, VtaxError], R],
    say: Callable[[str], None] | None = None,
) -> tuple[R, ...]:
    """Of each machine. Those of Slurm are asked for with `say`, and left out without."""

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
    ssh = [Agent(way(name, spec, paths.runtime)) for name, spec in named.items() if spec.slurm is None]
    found = list(each(one, ssh))
    for slurm in allocations(study).values():
        if say is None:
            break
        with ExitStack() as stack:
            held = Allocation(slurm)
            stack.callback(held.release)
            nodes = [Agent(Srun(name, study.machines[name], held, place)) for place, name in enumerate(slurm.machines)]
            try:
                held.request(say)
            except VtaxError as error:
                found += [fault(agent, error) for agent in nodes]
            else:
                found += each(one, nodes)
    return tuple(found)
