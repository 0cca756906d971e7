"""A campaign on several machines: each runs its cells of the plan in order, at the same time as the others.

Between two planned looks no machine waits for another. Everything is stored here as soon as a trial is over, before the
machine begins the next one. A connection that is lost costs the trial that was running; a machine that does not come
back costs its remaining trials.
"""

from __future__ import annotations

import getpass
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby

from vtax.errors import AllocationEnded, EnvironmentMissing, Interrupted, MachineGone, MachineLost
from vtax.evaluation.interim import InterimAnalysis
from vtax.evaluation.readings import Readings
from vtax.events import Listener, Notice, ignore
from vtax.machines.agent import REJOIN_S, Agent
from vtax.model.cluster import Image
from vtax.model.plan import Cell, Plan, PlannedTrial
from vtax.planning.placement import plan_on
from vtax.running.clock import Clock
from vtax.running.receiving import Receiver
from vtax.running.sending import send_image
from vtax.running.stopping import Looks
from vtax.running.wall import Wall
from vtax.store import Campaign

GONE_S = 180.0  # a machine that does not come back in this time is given up
AGAIN_S = 5.0
LOSSES = 3  # of the connection, without one trial between them: then the machine is given up
Pending = Mapping[str, list[PlannedTrial]]


class Fleet:
    """The machines of a running campaign."""

    def __init__(
        self,
        campaign: Campaign,
        plan: Plan,
        agents: Mapping[str, Agent],
        image: Image,
        readings: Readings,
        clock: Clock,
        listener: Listener,
        wall: Wall,
    ) -> None:
        self.campaign, self.plan, self.agents, self.image = campaign, plan, agents, image
        self.readings, self.clock, self.wall = readings, clock, wall
        self.together = threading.RLock()  # what several machines do here, one at a time
        self.listener = self._one_at_a_time(listener)
        self.seen = listener is not ignore
        self.gone: dict[str, str] = {}  # machine -> why it is given up
        self.stopped = threading.Event()

    def _one_at_a_time(self, listener: Listener) -> Listener:
        def passed_on(event: object) -> None:
            with self.together:
                listener(event)  # type: ignore[arg-type]  # every event goes through here

        return passed_on

    def hold(self) -> None:
        """Hold all machines for clusters that have nodes on several of them, and send what they need. One whose
        connection is lost is held again before the next cluster; where that fails, the campaign ends."""
        members = [Member(self, agent, ()) for agent in self.agents.values()]
        self.at_once([member.hold for member in members])
        for member in members:
            member.agent.rejoin = member.rejoin
        if any(member.agent.machine.lent for member in members):
            drop_begun(self.plan.cells, Receiver(self, ""), "")

    def run(self, pending: Pending, looks: Looks, interim: InterimAnalysis | None) -> None:
        """Run what is pending of clusters that are each on one machine. Between looks the machines are on their own."""
        members = {
            name: Member(self, agent, [cell for cell in self.plan.cells if cell.machine == name])
            for name, agent in self.agents.items()
        }
        self.at_once([member.join for member in members.values()])
        for member in members.values():
            if member.agent.machine.lent:
                drop_begun(member.cells, member.receiver, f" on {member.agent.name}")
        for rounds in self._stretches(looks):
            waiting = any(pending[cell.id] for cell in self.plan.cells if cell.round in rounds)
            if looks.ended_before(rounds[0], waiting):
                return
            self.at_once([partial(one.run, rounds, pending) for one in members.values()])
            if waiting and interim is not None and self.seen:
                interim.report(rounds[-1])
            if looks.ended_after(rounds[-1]):
                return

    def _stretches(self, looks: Looks) -> list[list[int]]:
        """The rounds up to each look; single rounds where a budget may end the campaign before any of them."""
        numbers = sorted({cell.round for cell in self.plan.cells})
        if looks.budget_s is not None:
            return [[number] for number in numbers]
        planned = self.plan.study.looks
        return [list(some) for _, some in groupby(numbers, key=lambda n: next(look for look in planned if look >= n))]

    def at_once(self, todo: Sequence[Callable[[], None]]) -> None:
        """Do several things at the same time. After Ctrl-C, or an error that is not one machine's, all agents end
        before this one does: they remove what they made."""
        failures: list[BaseException] = []

        def one(function: Callable[[], None]) -> None:
            try:
                function()
            except BaseException as error:  # noqa: BLE001  # raised again by the main thread
                failures.append(error)
                self.stopped.set()

        threads = [threading.Thread(target=one, args=(function,), daemon=True) for function in todo]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.5)
                    if self.stopped.is_set():
                        raise next(iter(failures), Interrupted("interrupted"))
        except BaseException:
            self.stopped.set()
            self._end_agents()
            raise
        if failures:
            raise failures[0]

    def _end_agents(self) -> None:
        closing = [threading.Thread(target=agent.close, daemon=True) for agent in self.agents.values()]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()


class Member:
    """One machine of the campaign, and its cells."""

    def __init__(self, fleet: Fleet, agent: Agent, cells: Sequence[Cell]) -> None:
        self.fleet, self.agent, self.cells = fleet, agent, tuple(cells)
        self.receiver = Receiver(fleet, agent.name)
        self.plan = plan_on(fleet.plan, agent.name)

    def hold(self) -> None:
        """Hold the machine, and send the root file system. Raises EnvironmentMissing."""
        place = self.fleet.campaign.directory.resolve()
        owner = f"{getpass.getuser()}@{socket.gethostname()}, {place}, process {os.getpid()}"
        self.agent.ask("lock", owner=owner, wait_s=self.lock_s)
        send_image(self.agent, self.fleet.image, lambda text: self.fleet.listener(Notice(text)))

    def join(self) -> None:
        """Hold the machine, send what it needs, and let its providers prepare. Raises EnvironmentMissing."""
        campaign, image = self.fleet.campaign, self.fleet.image
        self.hold()
        for sha256 in sorted({one.sha256 for work in self.plan.work for step in work.steps for one in step.inputs}):
            if sha256:
                self.agent.ask("keep", campaign.kept(sha256), sha256=sha256)
        about = {
            "recipe": image.recipe,
            "directory": str(campaign.directory.resolve()),
            "instances": {cell.id: campaign.instances(cell.id) for cell in self.cells},
            "after": self.fleet.wall() + self.agent.offset_s,
            "offset_s": self.agent.offset_s,
            "given": dict(self.agent.machine.facts()),
        }
        plan = self.plan.model_dump(mode="json")
        self.agent.ask("begin", plan=plan, campaign=self.label, about=about)
        due = {cell.environment for cell in self.cells if any(not campaign.has(one.id) for one in cell.trials)}
        self.agent.ask("prepare", environments=sorted(due))

    lock_s = 0.0  # how long to wait for it

    @property
    def label(self) -> str:
        """What the labels on this machine are made of. Not those of another machine: two may share a kernel, and with
        it control groups, as containers do."""
        return f"{self.fleet.campaign.about()['id']}@{self.agent.name}"

    def run(self, rounds: Sequence[int], pending: Pending) -> None:
        """Run what is pending of its cells in some rounds, through losses of the connection."""
        for number in rounds:
            cells = [cell for cell in self.cells if cell.round == number]
            losses = 0
            while not self.fleet.stopped.is_set() and (todo := self._todo(cells, pending)):
                if self.agent.name in self.fleet.gone:
                    self._give_up(cells, pending)
                    break
                stored = self.receiver.stored
                try:
                    self.agent.ask("round", heard=self.receiver.heard, cells=[cell.id for cell in cells], pending=todo)
                except MachineLost as error:
                    if self.fleet.stopped.is_set():
                        return
                    losses = 1 if self.receiver.stored > stored else losses + 1
                    self._refuse_ended(error)
                    self._lost(error)
                    if losses >= LOSSES:
                        self.fleet.gone[self.agent.name] = f"its connection was lost {losses} times in a row: {error}"

    def _todo(self, cells: Sequence[Cell], pending: Pending) -> dict[str, list[str]]:
        left = {cell.id: [one.id for one in pending[cell.id] if not self.fleet.campaign.has(one.id)] for cell in cells}
        return {name: trials for name, trials in left.items() if trials}

    def _refuse_ended(self, error: MachineLost) -> None:
        """Raise AllocationEnded for a machine that is no longer this user's."""
        if why := self.agent.machine.ended():
            self.fleet.listener(Notice(f"{error.message}; {self.receiver.lose(why)}"))
            raise self._ended(why)

    def _ended(self, why: str) -> AllocationEnded:
        again = f"vtax run --resume {self.fleet.campaign.directory}"
        return AllocationEnded(why, remedy=f"`{again}` goes on in the next allocation, with the next round")

    def _lost(self, error: MachineLost) -> None:
        """Record what was lost, and connect again."""
        self.fleet.listener(Notice(f"{error.message}; {self.receiver.lose(error.message)}"))
        self._connect_again(self.join)

    def rejoin(self) -> None:
        """Connect again, and hold the machine. Raises MachineGone, AllocationEnded."""
        if why := self.agent.machine.ended():
            raise self._ended(why)
        self.fleet.listener(Notice(f"machine {self.agent.name} is lost, and every cluster needs it: waiting for it"))
        self._connect_again(self.hold)
        if reason := self.fleet.gone.get(self.agent.name):
            directory = self.fleet.campaign.directory
            raise MachineGone(
                f"machine {self.agent.name} did not come back, and every cluster needs it",
                detail=reason,
                remedy=f"when it is back: vtax run --resume {directory}",
            )

    def _connect_again(self, enter: Callable[[], None]) -> None:
        """Connect and `enter` again, until that works, or the machine is given up."""
        deadline = time.monotonic() + GONE_S
        while not self.fleet.stopped.wait(AGAIN_S):
            try:
                self.agent.start()
                self.lock_s = REJOIN_S  # the agent that was cut off may not have noticed it yet
                enter()
            except AllocationEnded:
                self.agent.drop()
                raise
            except EnvironmentMissing as again:
                self.agent.drop()
                if time.monotonic() > deadline:
                    self.fleet.gone[self.agent.name] = str(again).splitlines()[0]
                    self.fleet.listener(Notice(f"machine {self.agent.name} is given up: {again.message}"))
                    return
            else:
                self.fleet.listener(Notice(f"machine {self.agent.name} is back"))
                return

    def _give_up(self, cells: Sequence[Cell], pending: Pending) -> None:
        reason = f"machine {self.agent.name} is gone: {self.fleet.gone[self.agent.name]}"
        for cell in cells:
            for trial in pending[cell.id]:
                if not self.fleet.campaign.has(trial.id):
                    self.receiver.not_run(cell, trial, reason)


def drop_begun(cells: Sequence[Cell], receiver: Receiver, where: str) -> None:
    """Record what is left of rounds that an earlier allocation began as not run: a round is of one."""
    fleet = receiver.fleet
    for number, group in groupby(cells, key=lambda cell: cell.round):
        trials = [(cell, trial) for cell in group for trial in cell.trials]
        left = [(cell, trial) for cell, trial in trials if not fleet.campaign.has(trial.id)]
        if 0 < len(left) < len(trials):
            why = f"round {number}{where} is dropped: the allocation that began it has ended"
            fleet.listener(Notice(why))
            for cell, trial in left:
                receiver.not_run(cell, trial, why)
