"""The loop over rounds: fresh clusters for every cell, a record for every trial, nothing left behind."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from vtax.errors import TrialsFailed
from vtax.evaluation.interim import InterimAnalysis
from vtax.evaluation.readings import Readings
from vtax.events import CampaignStarted, Listener, Notice, ignore
from vtax.machines.agent import Agent
from vtax.model.cluster import Image
from vtax.model.plan import Plan, PlannedTrial
from vtax.model.trial import Status
from vtax.planning.placement import shape_in
from vtax.providers.base import Provider
from vtax.running.cell import Running
from vtax.running.clock import Clock
from vtax.running.fleet import Fleet
from vtax.running.provision import prepare
from vtax.running.rounds import Rounds
from vtax.running.sites import sites
from vtax.running.stopping import Looks
from vtax.running.wall import Wall
from vtax.store import Campaign
from vtax.units import format_seconds

GOES_ON = "the times of the next trials go on from there"


def execute(
    campaign: Campaign,
    providers: Mapping[str, Provider],
    image: Image,
    runtime: Path,
    listener: Listener,
    interim: InterimAnalysis | None = None,
    budget_s: float | None = None,
    agents: Mapping[str, Agent] | None = None,
) -> None:
    """Run every trial of the plan that has no record yet, until all is settled at a planned interim analysis, the
    budget does not hold another round, or the plan is done. `interim` also reports intervals when a round is over
    and nothing runs; without it nothing but the budget ends a campaign early.

    With `agents`, the plan is for these machines, which work at the same time, each in the order of the plan.

    Raises TrialsFailed at the end when some failed.
    """
    plan = campaign.plan()
    pending = {cell.id: [trial for trial in cell.trials if not campaign.has(trial.id)] for cell in plan.cells}
    clock = Clock(plan, providers, pending)
    listener(_started(campaign, plan, pending, clock))
    wall = Wall(after=max((one.started + one.elapsed_s for one in campaign.trials(texts=False)), default=0.0))
    if wall.behind_s:
        listener(Notice(f"this machine's clock is {format_seconds(wall.behind_s)} behind the last trial; {GOES_ON}"))
    looks = Looks(campaign, plan, interim, clock.remaining_s, budget_s, listener)
    readings = interim.readings if interim is not None else Readings(campaign)
    if agents:
        fleet = Fleet(campaign, plan, agents, image, readings, clock, listener, wall)
        if not plan.study.apart:
            fleet.run(pending, looks, interim)
            _finish(campaign, readings)
            return
        fleet.hold()  # the cells are run from here, one after the other
        pending = {name: [one for one in left if not campaign.has(one.id)] for name, left in pending.items()}
    with sites(campaign.directory, str(campaign.about()["id"]), plan, runtime, image) as places:
        due = {cell.environment for cell in plan.cells if pending[cell.id]}
        shape = shape_in(plan, plan.cells[0]) if agents else plan.shape
        prepare([spec for spec in plan.environments if spec.name in due], providers, shape, image)
        rounds = Rounds(Running(plan, readings, providers, places, clock, listener, wall))
        for number, group in groupby(plan.cells, key=lambda cell: cell.round):
            cells = list(group)
            waiting = any(pending[cell.id] for cell in cells)
            if looks.ended_before(number, waiting):
                break
            rounds.run(cells, pending)
            if waiting and interim is not None and listener is not ignore:
                interim.report(number)
            if looks.ended_after(number):
                break
    _finish(campaign, readings)


def _started(
    campaign: Campaign, plan: Plan, pending: Mapping[str, list[PlannedTrial]], clock: Clock
) -> CampaignStarted:
    """What a campaign begins with: what is to be done, and what an earlier run of it did."""
    planned = sum(len(cell.trials) for cell in plan.cells)
    todo = sum(map(len, pending.values()))
    return CampaignStarted(
        directory=str(campaign.directory),
        rounds=plan.study.rounds,
        cells=sum(bool(trials) for trials in pending.values()),
        trials=todo,
        done_trials=planned - todo,
        estimate_s=clock.remaining_s(),
        looks=plan.study.looks,
    )


def _finish(campaign: Campaign, readings: Readings) -> None:
    trials = [one.record for one in readings.all(campaign.trials(texts=False))]
    bad = [trial for trial in trials if trial.status is not Status.OK]
    if bad:
        raise TrialsFailed(
            f"{len(bad)} of {len(trials)} trials failed",
            detail="\n".join(f"{trial.id}: {trial.status}: {first_line(trial.failure)}" for trial in bad[:20]),
            remedy=f"their logs are under {campaign.directory / 'trials'}; the report counts them",
        )


def first_line(text: str) -> str:
    return text.partition("\n")[0]
