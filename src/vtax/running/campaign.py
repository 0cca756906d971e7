"""The loop over rounds: fresh clusters for every cell, a record for every trial, nothing left behind."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from vtax.errors import TrialsFailed
from vtax.evaluation.interim import InterimAnalysis
from vtax.evaluation.readings import Readings
from vtax.events import CampaignStarted, Listener, ignore
from vtax.model.cluster import Image
from vtax.model.trial import Status
from vtax.providers.base import Provider
from vtax.running.cell import Running
from vtax.running.clock import Clock
from vtax.running.provision import prepare
from vtax.running.rounds import Rounds
from vtax.running.sites import sites
from vtax.running.stopping import Looks
from vtax.store import Campaign


def execute(
    campaign: Campaign,
    providers: Mapping[str, Provider],
    image: Image,
    runtime: Path,
    listener: Listener,
    interim: InterimAnalysis | None = None,
    budget_s: float | None = None,
) -> None:
    """Run every trial of the plan that has no record yet, until all is settled at a planned interim analysis, the
    budget does not hold another round, or the plan is done. `interim` also reports intervals when a round is over
    and nothing runs; without it nothing but the budget ends a campaign early.

    Raises TrialsFailed at the end when some failed.
    """
    plan = campaign.plan()
    pending = {cell.id: [trial for trial in cell.trials if not campaign.has(trial.id)] for cell in plan.cells}
    clock = Clock(plan, providers, pending)
    planned = sum(len(cell.trials) for cell in plan.cells)
    todo = sum(map(len, pending.values()))
    listener(
        CampaignStarted(
            directory=str(campaign.directory),
            rounds=plan.study.rounds,
            cells=sum(bool(trials) for trials in pending.values()),
            trials=todo,
            done_trials=planned - todo,
            estimate_s=clock.remaining_s(),
            looks=plan.study.looks,
        )
    )
    looks = Looks(campaign, plan, interim, clock.remaining_s, budget_s, listener)
    readings = interim.readings if interim is not None else Readings(campaign)
    with sites(campaign.directory, str(campaign.about()["id"]), plan, runtime, image) as places:
        due = {cell.environment for cell in plan.cells if pending[cell.id]}
        prepare([spec for spec in plan.environments if spec.name in due], providers, plan.shape, image)
        rounds = Rounds(Running(plan, readings, providers, places, clock, listener))
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
