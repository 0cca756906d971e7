"""When a campaign ends: looks are taken where they were planned and nowhere else, and each is noted."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.small import IMAGE, PRINTED, new_campaign
from fakes.cluster import FakeProvider, telling
from vtax.evaluation.interim import InterimAnalysis, Settled
from vtax.events import Event, LookTaken
from vtax.model.look import Decision
from vtax.running import stopping
from vtax.running.campaign import execute
from vtax.running.stopping import spent_s
from vtax.store import Campaign


class Scripted(InterimAnalysis):
    """An interim analysis whose answer a test gives."""

    def __init__(self, campaign: Campaign, judge: Callable[[int], tuple[bool, str]]) -> None:
        super().__init__(campaign, lambda event: None)
        self.judge = judge

    def settled(self, rounds: int) -> Settled:
        return Settled(*self.judge(rounds))

    def report(self, rounds: int) -> None:
        pass


class Sequential:
    """A campaign with looks after 2, 4 and 6 rounds on fakes; verdicts are there from `settles` rounds on."""

    def __init__(self, top: Path, *, settles: int = 99, iterations: int = 1) -> None:
        self.top, self.settles = top, settles
        names = ("host", "box")
        self.providers = {name: FakeProvider(name, top / "run", script=telling(sysbench=PRINTED)) for name in names}
        self.campaign = new_campaign(top / "c", self.providers, iterations=iterations, looks=(2, 4, 6))
        self.asked: list[int] = []
        self.events: list[Event] = []

    def judge(self, rounds: int) -> tuple[bool, str]:
        self.asked.append(rounds)
        return rounds >= self.settles, f"looked at {rounds}"

    @property
    def interim(self) -> InterimAnalysis:
        return Scripted(self.campaign, self.judge)

    def run(self, budget_s: float | None = None) -> None:
        execute(self.campaign, self.providers, IMAGE, self.top / "run", self.events.append, self.interim, budget_s)

    @property
    def log(self) -> list[tuple[int, Decision]]:
        log = self.campaign.look_log()
        return [(look.rounds, look.decision) for look in log.looks] if log is not None else []

    @property
    def over(self) -> int:
        """Rounds, from the first on, that have a record of every trial."""
        done = {trial.id for trial in self.campaign.trials(texts=False)}
        missing = [cell.round for cell in self.campaign.plan().cells if {trial.id for trial in cell.trials} - done]
        return min(missing, default=self.campaign.plan().study.rounds + 1) - 1


def test_it_ends_at_the_look_at_which_everything_is_settled(tmp_path: Path) -> None:
    one = Sequential(tmp_path, settles=4)
    one.run()
    assert one.over == 4
    assert one.log == [(2, Decision.GO_ON), (4, Decision.SETTLED)]
    said = [event for event in one.events if isinstance(event, LookTaken)]
    assert [(look.rounds, look.ends) for look in said] == [(2, False), (4, True)]
    assert said[1].reason == "no primary metric waits for its verdict: looked at 4"
    log = one.campaign.look_log()
    assert log is not None
    assert {look.plan_sha256 for look in log.looks} == {one.campaign.plan().sha256}
    assert all(abs(look.at - time.time()) < 60 for look in log.looks)


def test_a_verdict_between_two_looks_waits_for_the_next_one(tmp_path: Path) -> None:
    one = Sequential(tmp_path, settles=3)
    one.run()
    assert (one.over, one.asked) == (4, [2, 4])


def test_without_a_verdict_it_ends_with_its_last_round(tmp_path: Path) -> None:
    one = Sequential(tmp_path)
    one.run()
    assert one.over == 6
    assert one.log == [(2, Decision.GO_ON), (4, Decision.GO_ON), (6, Decision.LAST)]


def test_one_that_has_ended_runs_nothing_more(tmp_path: Path) -> None:
    one = Sequential(tmp_path, settles=2)
    one.run()
    created = one.providers["box"].created
    one.settles = 99
    one.run()
    assert one.providers["box"].created == created
    assert one.log == [(2, Decision.SETTLED)]
    assert one.asked == [2]


def test_a_campaign_that_is_killed_before_its_look_takes_it_first_when_it_goes_on(tmp_path: Path) -> None:
    """The round is over, the look is not noted: no further round may run before it."""

    class Killed(BaseException):
        pass

    one = Sequential(tmp_path, settles=2)
    good = one.judge

    def killed(rounds: int) -> tuple[bool, str]:
        raise Killed

    one.judge = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        one.run()
    assert (one.over, one.log) == (2, [])
    one.judge = good  # type: ignore[method-assign]
    one.run()
    assert (one.over, one.log) == (2, [(2, Decision.SETTLED)])


def test_a_look_that_was_taken_is_not_taken_again(tmp_path: Path) -> None:
    one = Sequential(tmp_path)

    def listener(event: Event) -> None:
        if isinstance(event, LookTaken):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(one.campaign, one.providers, IMAGE, tmp_path / "run", listener, one.interim)
    assert (one.over, one.log) == (2, [(2, Decision.GO_ON)])
    one.run()
    assert one.asked == [2, 4, 6]


class Hours:
    """A clock that a test moves; the time of day goes on as it is."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return time.time()


def test_a_budget_ends_before_the_round_that_it_does_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round is two clusters of 1 s and two trials of 1.65 s: 5.3 s. Five minutes go by in the third round."""
    clock = Hours()
    monkeypatch.setattr(stopping, "time", clock)
    one = Sequential(tmp_path)

    def moved(number: int) -> None:
        clock.now = 300.0 if number == 3 else clock.now

    one.providers["box"].before_create = moved
    one.run(budget_s=300.0)
    assert one.over == 3
    assert one.log == [(2, Decision.GO_ON), (3, Decision.BUDGET)]
    log = one.campaign.look_log()
    assert log is not None
    assert log.looks[1].reason == "5 min 0 s of 5 min 0 s have been used, and round 4 takes about 4 s"
    assert log.ended is None, "with more time it may go on"
    assert one.asked == [2], "the end of a budget is no reason to look"
    one.run(budget_s=4000.0)
    assert one.log[2:] == [(4, Decision.GO_ON), (6, Decision.LAST)]


def test_what_was_spent_before_an_interruption_counts(tmp_path: Path) -> None:
    """Fake trials take no time by their records; the real sum is provisioning and trials."""
    one = Sequential(tmp_path, settles=2)
    one.run()
    stored = Campaign.open(one.campaign.directory)
    wanted = sum(cell.provision_s for cell in stored.cells()) + sum(t.elapsed_s for t in stored.trials(texts=False))
    assert spent_s(stored, stored.plan()) == pytest.approx(wanted)


def test_a_plan_until_a_round_keeps_its_hash(tmp_path: Path) -> None:
    plan = Sequential(tmp_path).campaign.plan()
    assert plan.until(2).sha256 == plan.sha256
    assert {cell.round for cell in plan.until(2).cells} == {1, 2}
