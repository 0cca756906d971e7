"""A campaign on several machines: at the same time, each in the plan's order, and only a machine's own loss is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.small import FACTS, IMAGE, MACHINE, PRINTED, study
from fakes.cluster import FakeProvider, telling
from fakes.machine import CUT, FakeAgent
from vtax.errors import MachineGone, MachineLost, TrialsFailed
from vtax.evaluation.readings import Readings
from vtax.events import Event, Notice, TrialFinished, TrialStarted
from vtax.machines.channel import Message
from vtax.model.study import MachineSpec
from vtax.model.trial import Status
from vtax.planning.placement import common_capacity
from vtax.planning.plan import make_plan
from vtax.running.campaign import execute
from vtax.running.clock import Clock
from vtax.running.fleet import Fleet
from vtax.running.wall import Wall
from vtax.store import Campaign

WAIT_S = 60.0


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.running.cell.IDLE_S", 0.0)
    monkeypatch.setattr("vtax.running.fleet.AGAIN_S", 0.0)


class Lab:
    """A campaign for machines in memory, and what it says."""

    def __init__(self, top: Path, names: str, interleave: str = "cell", **faults: Any) -> None:
        self.providers = {
            machine: {
                name: FakeProvider(name, top / machine, script=telling(sysbench=PRINTED)) for name in ("host", "box")
            }
            for machine in names
        }
        self.agents = {
            name: FakeAgent(name, self.providers[name], top / name, **(faults if name == "a" else {})) for name in names
        }
        machines = {name: MachineSpec(ssh=name) for name in names}
        wanted = study(interleave=interleave).model_copy(update={"machines": machines})
        capacities = dict.fromkeys(names, MACHINE)
        plan = make_plan(wanted, common_capacity(capacities), self.providers[names[0]], capacities=capacities)
        about = {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": FACTS}
        self.campaign = Campaign.create(top / "campaign", b"name = 'small'\n", plan, about)
        self.top, self.events = top, list[Event]()

    def run(self) -> None:
        first = next(iter(self.providers.values()))
        try:
            execute(self.campaign, first, IMAGE, self.top / "run", self.events.append, agents=self.agents)
        finally:
            for agent in self.agents.values():
                agent.close()

    def statuses(self, machine: str) -> dict[str, Status]:
        found = {one.id: one.status for one in self.campaign.trials(texts=False)}
        cells = [cell for cell in self.campaign.plan().cells if cell.machine == machine]
        return {trial.id: found[trial.id] for cell in cells for trial in cell.trials}

    def failures(self) -> dict[str, str]:
        return {one.id: one.failure for one in self.campaign.trials(texts=False) if one.failure}

    def started(self, machine: str) -> list[str]:
        found = [one.trial for one in self.events if isinstance(one, TrialStarted)]
        return [name for name in found if f"-{machine}-" in name]

    def assert_nothing_is_left(self) -> None:
        for machine, providers in self.providers.items():
            assert [one.leftovers() for one in providers.values()] == [[], []]
            assert list((self.top / machine).iterdir()) == []


@pytest.mark.parametrize("interleave", ["cell", "trial"])
def test_every_machine_runs_its_cells_in_the_order_of_the_plan(tmp_path: Path, interleave: str) -> None:
    lab = Lab(tmp_path, "ab", interleave)
    lab.run()
    plan = lab.campaign.plan()
    assert len(lab.campaign.trials()) == 2 * 2 * 2 * 2  # machines, rounds, environments, iterations
    for machine in "ab":
        assert set(lab.statuses(machine).values()) == {Status.OK}
        planned = [trial.id for cell in plan.cells if cell.machine == machine for trial in cell.trials]
        if interleave == "cell":
            assert lab.started(machine) == planned
        assert sorted(lab.started(machine)) == sorted(planned)
    assert {cell.cell for cell in lab.campaign.cells()} == {cell.id for cell in plan.cells}
    assert {one.plan_sha256 for one in lab.campaign.trials(texts=False)} == {plan.sha256}
    finished = [one for one in lab.events if isinstance(one, TrialFinished)]
    assert finished[-1].remaining_s == 0.0
    lab.assert_nothing_is_left()


def test_records_name_the_machine_and_how_far_its_clock_is(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "ab")
    lab.agents["b"].offset_s = 1.5
    lab.run()
    cells = {cell.id: cell.machine for cell in lab.campaign.plan().cells}
    assert {one.machine == cells[one.cell] for one in lab.campaign.trials(texts=False)} == {True}
    ahead = {cells[one.cell]: one.host_facts["clock_ahead_s"] for one in lab.campaign.cells()}
    assert ahead == {"a": lab.agents["a"].offset_s, "b": lab.agents["b"].offset_s}


@pytest.mark.parametrize("count", [2, 4, 8])
def test_machines_work_at_the_same_time(tmp_path: Path, count: int) -> None:
    """In each round every machine waits for all others: one after the other they would wait for ever."""
    lab = Lab(tmp_path, "abcdefgh"[:count])
    meeting = threading.Barrier(count, timeout=WAIT_S)
    for agent in lab.agents.values():
        agent.meanwhile = meeting.wait
    lab.run()
    assert len(lab.campaign.trials(texts=False)) == 8 * count


def test_a_trial_whose_output_is_refused_here_is_not_called_ok(tmp_path: Path) -> None:
    """The machine that ran it cannot know: outputs are read where the campaign is."""
    lab = Lab(tmp_path, "ab")
    lab.providers["a"]["box"].script = telling(sysbench="no number\n")
    with pytest.raises(TrialsFailed, match="4 of 16 trials failed"):
        lab.run()
    finished = {one.trial: one for one in lab.events if isinstance(one, TrialFinished)}
    failed = {name for name, one in finished.items() if one.status == Status.FAILED}
    assert failed == {name for name in finished if name.endswith(("1", "2")) and "-a-box/" in name}
    assert len(failed) == 4
    assert all(finished[name].failure for name in failed)


def once(name: str) -> Callable[[str], bool]:
    """Whether this trial begins for the first time."""
    begun: list[str] = []

    def cut(trial: str) -> bool:
        begun.append(trial)
        return trial == name and begun.count(name) == 1

    return cut


def test_a_lost_connection_costs_the_trial_that_was_running(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "ab")
    lost = [trial.id for cell in lab.campaign.plan().cells if cell.machine == "a" for trial in cell.trials][1]
    lab.agents["a"].cut = once(lost)
    with pytest.raises(TrialsFailed, match="1 of 16 trials failed"):
        lab.run()
    assert lab.failures() == {lost: CUT}
    assert lab.statuses("a")[lost] is Status.FAILED
    assert lab.agents["a"].starts == 1  # once again; the first time was before the campaign
    assert set(lab.statuses("b").values()) == {Status.OK}
    instances = {cell.cell: cell.instance for cell in lab.campaign.cells() if cell.cell == lost.partition("/")[0]}
    assert list(instances.values()) == [1]  # the lost one was the last of its cell, so no second cluster was made
    lab.assert_nothing_is_left()


def test_a_machine_that_is_gone_costs_its_remaining_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.running.fleet.GONE_S", 0.0)
    lab = Lab(tmp_path, "ab", cut=lambda trial: trial.startswith("r002"), gone=True)
    with pytest.raises(TrialsFailed):
        lab.run()
    mine = lab.statuses("a")
    assert [mine[name] for name in mine if name.startswith("r001")] == [Status.OK] * 4
    second = [name for name in mine if name.startswith("r002")]
    assert [mine[name] for name in second] == [Status.FAILED, *[Status.NOT_RUN] * 3]
    assert {lab.failures()[name] for name in second[1:]} == {"machine a is gone: machine cannot be reached"}
    assert set(lab.statuses("b").values()) == {Status.OK}
    assert any("machine a is given up" in one.message for one in lab.events if isinstance(one, Notice))


def test_a_machine_that_never_holds_a_connection_is_given_up(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "ab", cut=lambda _: True)
    with pytest.raises(TrialsFailed):
        lab.run()
    found = list(lab.statuses("a").values())
    assert found == [Status.FAILED] * 3 + [Status.NOT_RUN] * 5
    assert set(lab.statuses("b").values()) == {Status.OK}


def test_resuming_runs_what_is_missing(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "ab")
    lab.run()
    first = next(iter(lab.statuses("b")))
    for path in (lab.campaign.directory / "trials" / first).iterdir():
        path.unlink()
    (lab.campaign.directory / "trials" / first).rmdir()
    lab.events.clear()
    lab.run()
    assert [one.trial for one in lab.events if isinstance(one, TrialStarted)] == [first]


@pytest.mark.parametrize(
    "content",
    [
        {"trial": "r001-b-host/sysbench-cpu.worker1.1", "files": {}},  # of another machine
        {"trial": "../x", "files": {}},
        {"file": "cells/../../x"},
        {"file": "plan.json"},
        {"event": "getattr", "fields": {}},
        {"cell": {"cell": "r001-b-host"}},
    ],
)
def test_a_machine_writes_only_what_it_was_asked_for(tmp_path: Path, content: dict[str, Any]) -> None:
    lab = Lab(tmp_path, "ab")

    def lie() -> None:
        heard = lab.agents["a"].heard
        assert heard is not None
        with pytest.raises(ValueError):
            heard(Message(content, b"x"))

    lab.agents["a"].meanwhile = lie
    before = (lab.campaign.directory / "plan.json").read_bytes()
    lab.run()
    assert (lab.campaign.directory / "plan.json").read_bytes() == before
    assert not (tmp_path / "x").exists()


def held(lab: Lab) -> Fleet:
    """All machines, held for clusters that have nodes on each."""
    campaign, plan = lab.campaign, lab.campaign.plan()
    clock = Clock(plan, next(iter(lab.providers.values())), {cell.id: list(cell.trials) for cell in plan.cells})
    fleet = Fleet(campaign, plan, lab.agents, IMAGE, Readings(campaign), clock, lab.events.append, Wall(after=0.0))
    fleet.hold()
    return fleet


def cut_off(agent: FakeAgent) -> None:
    """Its connection is lost, and nobody has noticed."""
    ask, cut = agent.ask, [True]

    def lost(what: str, payload: bytes = b"", heard: Any = None, **arguments: Any) -> Message:
        if what == "hello" and cut:
            cut.clear()
            raise MachineLost("the connection was lost")
        return ask(what, payload, heard, **arguments)

    agent.ask = lost  # type: ignore[method-assign]


def test_a_machine_that_every_cluster_needs_is_held_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "ab")
    held(lab)
    agent = lab.agents["a"]
    agent.again()  # as before each cluster
    assert agent.starts == 0
    before = len(agent.asked)
    cut_off(agent)
    agent.again()
    assert agent.starts == 1 and "lock" in agent.asked[before:]
    assert "machine a is back" in [one.message for one in lab.events if isinstance(one, Notice)]


def test_a_machine_that_does_not_come_back_ends_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.running.fleet.GONE_S", 0.0)
    lab = Lab(tmp_path, "ab")
    fleet = held(lab)
    lab.agents["a"].gone = True
    cut_off(lab.agents["a"])
    with pytest.raises(MachineGone, match="machine a did not come back, and every cluster needs it") as raised:
        lab.agents["a"].again()
    assert raised.value.exit_code == 3 and "--resume" in raised.value.remedy
    assert "a" in fleet.gone
    for agent in lab.agents.values():
        agent.close()
