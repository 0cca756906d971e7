"""Machines that are lent, as nodes of Slurm are: they are taken back, and the next ones begin with the next round."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.running.test_fleet import Lab
from vtax.errors import AllocationEnded, TrialsFailed
from vtax.events import Notice
from vtax.machines.ssh import Ssh
from vtax.model.study import MachineSpec
from vtax.model.trial import Status


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.running.cell.IDLE_S", 0.0)
    monkeypatch.setattr("vtax.running.fleet.AGAIN_S", 0.0)


class Lent(Ssh):
    """A machine that is the user's until `why` says why it no longer is."""

    why = ""

    @property
    def lent(self) -> bool:
        return True

    def ended(self) -> str:
        return self.why


def lend(lab: Lab, why: str = "") -> None:
    for name, agent in lab.agents.items():
        agent.machine = Lent(name, MachineSpec(ssh=name), Path("/s"))
        agent.machine.why = why


def test_a_round_is_dropped_when_the_allocation_ends_in_it(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "a")
    second = lab.campaign.plan().cells[0].trials[1].id
    lab.agents["a"].cut = lambda trial: trial == second
    lend(lab, "Slurm's job 7 ended: its time limit was reached")
    with pytest.raises(AllocationEnded, match="its time limit was reached") as raised:
        lab.run()
    assert raised.value.exit_code == 3 and "--resume" in raised.value.remedy
    recorded = {one.id: one.status for one in lab.campaign.trials(texts=False)}
    assert [name for name, status in recorded.items() if status is Status.FAILED] == [second]
    assert "time limit" in next(iter(lab.failures().values()))
    assert len(recorded) < sum(len(cell.trials) for cell in lab.campaign.plan().cells)  # nothing is given up
    again = dict(recorded)

    lab.agents["a"].cut = lambda _: False
    lend(lab)
    with pytest.raises(TrialsFailed):
        lab.run()
    statuses = lab.statuses("a")
    assert {name: statuses[name] for name in again} == again
    begun = {name: status for name, status in statuses.items() if name.startswith("r001") and name not in again}
    assert set(begun.values()) == {Status.NOT_RUN}
    assert {status for name, status in statuses.items() if name.startswith("r002")} == {Status.OK}
    assert any("round 1 on a is dropped" in one.message for one in lab.events if isinstance(one, Notice))
    lab.assert_nothing_is_left()


def test_a_connection_that_is_lost_in_an_allocation_that_goes_on_costs_one_trial(tmp_path: Path) -> None:
    cut = ["r001-a-box/sysbench-cpu.worker1.2"]
    lab = Lab(tmp_path, "a", cut=lambda trial: trial in cut and cut.pop() == trial)
    lend(lab)
    with pytest.raises(TrialsFailed):
        lab.run()
    assert sorted(lab.statuses("a").values()).count(Status.FAILED) == 1
    assert Status.NOT_RUN not in lab.statuses("a").values()
