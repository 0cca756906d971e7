"""Whether a stored campaign may be run: its plan is a file, and somebody may have written other commands into it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from vtax import __version__, files
from vtax.errors import NotMatched, StoreError, UsageError
from vtax.model.nodes import HostCapacity
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.planning.placement import shape_in
from vtax.planning.plan import make_plan
from vtax.planning.study import existing_nodes
from vtax.providers.base import Provider
from vtax.store import Campaign, written
from vtax.tools import benchmarks

MADE = "made"  # below the state directory: a file for each campaign with own commands or machines, by its id
TRUST = "if you trust whoever wrote it: --trust, which runs the commands in its plan.json as they are"


def note_made(campaign: Campaign, state: Path) -> None:
    """Remember, in this user's state directory, which plan a campaign began with."""
    try:
        files.write(
            state, f"{MADE}/{campaign.about()['id']}", hashlib.sha256(campaign.plan_bytes()).hexdigest().encode()
        )
    except OSError as error:
        raise StoreError(f"{state / MADE} cannot be written: {error.strerror}", remedy="free some space") from error


def was_made(campaign: Campaign, state: Path) -> bool:
    """Whether a campaign began with its present plan, by a vtax with this state directory."""
    try:
        noted = files.read(state, f"{MADE}/{campaign.about()['id']}", 64)
    except OSError:
        return False
    return noted == hashlib.sha256(campaign.plan_bytes()).hexdigest().encode()


def refuse_stranger(campaign: Campaign, plan: Plan, state: Path) -> None:
    """Raise for a campaign that only `--trust` resumes, before any machine is asked anything: one of another user or
    another version of vtax, and one that was not made by a vtax with this `state` directory, where its author chose
    commands, or machines to log in to."""
    if others := foreign(campaign.directory):
        raise UsageError(
            f"{others[0]} belongs to another user, and resuming runs what it says",
            remedy=f"start a campaign from the study; {TRUST}",
        )
    if not was_made(campaign, state):
        refuse_chosen(campaign.directory, plan)
    if plan.vtax_version != __version__:
        raise UsageError(
            f"the campaign was planned by vtax {plan.vtax_version}, so that vtax {__version__} cannot check its plan",
            remedy=f"resume it with that version; {TRUST}",
        )


def refuse_chosen(directory: Path, plan: Plan) -> None:
    """Raise for what the author of a study chose, and what would be done to the user's machines."""
    if entry := next(iter(with_own_code(plan)), None):
        raise UsageError(
            f"{directory} was not made here, and its {entry} runs commands that the study's author wrote",
            detail="its study is code: resuming it does whatever these commands do",
            remedy=f"look at them (plan.json, `vtax plan` of its study.toml); {TRUST}",
        )
    if machines := reached(plan.study):
        raise UsageError(
            f"{directory} was not made here, and uses machines: {', '.join(machines.values())}",
            detail="resuming it logs in to them, or submits a job, with what you may do there",
            remedy=f"look at [machines] of its study.toml; {TRUST}",
        )


def refuse_changed(campaign: Campaign, plan: Plan, providers: Mapping[str, Provider]) -> None:
    """Raise unless the plan is what this version of vtax makes of its study; one of another version is that of a
    campaign that is trusted. A hash next to the plan would prove nothing: who changes one file changes both."""
    if plan.vtax_version != __version__:
        return
    again = made_again(plan, providers)
    if campaign.plan_bytes() != written(again):
        different = [name for name in Plan.model_fields if getattr(plan, name) != getattr(again, name)]
        raise NotMatched(
            f"{campaign.directory / 'plan.json'} is not the plan that its study gives here",
            detail=f"it differs in {', '.join(different) or 'how it is written'}",
            remedy="start a new campaign from the study; when the file was changed by hand, restore it",
        )


def with_own_code(plan: Plan) -> tuple[str, ...]:
    """The entries of a plan whose commands its author wrote."""
    known = benchmarks()
    own = (work.label for work in plan.work if getattr(known.get(work.benchmark), "own_code", False))
    return tuple(dict.fromkeys(own))


def reached(study: Study) -> dict[str, str]:
    """The machines that a study uses besides this one, by name, and how each is reached."""
    return {name: one.words for name, one in {**study.machines, **existing_nodes(study)}.items()}


def made_again(plan: Plan, providers: Mapping[str, Provider]) -> Plan:
    """The plan that this version of vtax makes of the study and the capacity that are recorded in `plan`."""
    make = partial(make_plan, plan.study, plan.capacity, providers, capacities=plan.capacities)
    again = make()
    known = len(plan.left_out) - len(again.left_out)  # what was missing on the machine comes first
    return make(left_out=plan.left_out[:known]) if known > 0 else again


def foreign(directory: Path) -> tuple[Path, ...]:
    """What of a campaign decides what is run and does not belong to this user."""
    deciding = (directory, directory / "plan.json", directory / "campaign.json")
    return tuple(path for path in deciding if path.lstat().st_uid != os.geteuid())


def refuse_other_cpus(plan: Plan, rooms: Mapping[str, HostCapacity]) -> None:
    """Raise NotMatched for a plan with CPUs that cannot be used now, on this machine or on those of the study."""
    for cell in plan.cells:
        missing = {
            (node.machine, cpu)
            for node in shape_in(plan, cell).nodes
            for cpu in set(node.cpu_ids) - set(rooms[node.machine].cpu_ids)
        }
        if missing:
            where = " ".join(sorted({machine for machine, _ in missing}))
            raise NotMatched(
                f"the plan uses CPUs {sorted(cpu for _, cpu in missing)}"
                + (f" of {where}, which cannot be used now" if where else ", which this process may not use now"),
                remedy="resume on the machine, and with the CPUs, that the campaign was started with",
            )
