"""Cells whose nodes are on several machines, one of which is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.small import FACTS, IMAGE, MACHINE, PRINTED, study
from fakes.cluster import FakeProvider, telling
from fakes.machine import FakeAgent
from unit.running.test_lent_machines import Lent
from vtax.errors import AllocationEnded, MachineGone, TrialsFailed
from vtax.events import Event, Notice, ignore
from vtax.machines.agent import Agent
from vtax.model.study import MachineSpec
from vtax.model.trial import Status
from vtax.planning.plan import make_plan
from vtax.running.campaign import execute
from vtax.store import Campaign


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.running.cell.IDLE_S", 0.0)


def made(tmp_path: Path) -> tuple[Campaign, dict[str, FakeProvider]]:
    """Two rounds of two environments, two trials in each cell, the nodes on machines a, b and c."""
    script = telling(sysbench=PRINTED)
    providers = {name: FakeProvider(name, tmp_path / "p" / name, script=script) for name in ("host", "box")}
    machines = {name: MachineSpec(ssh=name) for name in "abc"}
    wanted = study().model_copy(update={"machines": machines, "place": "spread"})
    plan = make_plan(wanted, MACHINE, providers, capacities=dict.fromkeys("abc", MACHINE))
    about = {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": FACTS}
    return Campaign.create(tmp_path / "campaign", b"name = 'small'\n", plan, about), providers


def test_a_machine_lost_during_a_trial_costs_that_trial_and_its_cluster(tmp_path: Path) -> None:
    """Whatever the trial came to: its nodes on the other machines may have answered to the end."""
    campaign, providers = made(tmp_path)
    host = providers["host"]
    said = iter(["machine b is gone", *[""] * 9])
    host.lost = lambda: next(said)  # type: ignore[method-assign]
    with pytest.raises(TrialsFailed, match="1 of 8 trials failed"):
        execute(campaign, providers, IMAGE, tmp_path / "run", ignore)
    bad = [one for one in campaign.trials(texts=False) if one.status is not Status.OK]
    assert [(one.status, one.failure) for one in bad] == [(Status.FAILED, "machine b is gone, during this trial")]
    cells = [cell for cell in campaign.cells() if cell.environment == "host"]
    assert sorted((cell.instance, cell.status) for cell in cells if cell.cell == bad[0].cell) == [
        (1, Status.FAILED),
        (2, Status.OK),
    ]
    assert host.live == {} and host.created == 3


def test_a_machine_that_is_gone_ends_the_campaign_which_is_resumed(tmp_path: Path) -> None:
    campaign, providers = made(tmp_path)
    box = providers["box"]

    def gone(number: int) -> None:
        raise MachineGone("machine b did not come back", remedy="vtax run --resume DIR")

    box.before_create = gone
    with pytest.raises(MachineGone):
        execute(campaign, providers, IMAGE, tmp_path / "run", ignore)
    assert [one.live for one in providers.values()] == [{}, {}]
    assert all(one.status is Status.OK for one in campaign.trials(texts=False))
    box.before_create = None
    execute(campaign, providers, IMAGE, tmp_path / "run", ignore)
    assert [one.status for one in campaign.trials(texts=False)] == [Status.OK] * 8


def test_the_allocation_of_its_machines_ends_the_campaign_and_drops_the_round(tmp_path: Path) -> None:
    """In the second cell of the first round: the next allocation begins with the second round."""
    campaign, providers = made(tmp_path)
    second = campaign.plan().cells[1].environment

    def ended(number: int) -> None:
        raise AllocationEnded("Slurm's job 7 ended: it was preempted")

    providers[second].before_create = ended
    with pytest.raises(AllocationEnded, match="preempted"):
        execute(campaign, providers, IMAGE, tmp_path / "run", ignore, agents=agents(tmp_path))
    assert [one.id.partition("-")[0] for one in campaign.trials(texts=False)] == ["r001"] * 2
    assert [one.live for one in providers.values()] == [{}, {}]

    providers[second].before_create = None
    said: list[Event] = []
    with pytest.raises(TrialsFailed, match="2 of 8 trials failed"):
        execute(campaign, providers, IMAGE, tmp_path / "run", said.append, agents=agents(tmp_path))
    bad = {one.id: one for one in campaign.trials(texts=False) if one.status is not Status.OK}
    assert {one.status for one in bad.values()} == {Status.NOT_RUN} and set(bad) == {
        trial.id for trial in campaign.plan().cells[1].trials
    }
    assert any(one.message.startswith("round 1 is dropped") for one in said if isinstance(one, Notice))


def agents(tmp_path: Path) -> dict[str, Agent]:
    """Machines that are lent for a while."""
    lent: dict[str, Agent] = {name: FakeAgent(name, {}, tmp_path / name) for name in "abc"}
    for name, agent in lent.items():
        agent.machine = Lent(name, MachineSpec(ssh=name), Path("/s"))
    return lent
