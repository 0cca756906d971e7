"""Intervals after a round: from the third on, made once, and only as long as they cost next to nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from builders.small import IMAGE, PRINTED, new_campaign
from builders.synthetic import campaign
from fakes.cluster import FakeProvider, telling
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis
from vtax.errors import UsageError
from vtax.evaluation import interim
from vtax.evaluation.interim import InterimAnalysis, Settled
from vtax.events import Event, IntervalsNow, Notice
from vtax.running.campaign import execute
from vtax.store import Campaign


class Evaluated(NamedTuple):
    analysis: Analysis


@dataclass
class Clock:
    """Every analysis takes `cost` s."""

    now: float = 0.0
    cost: float = 0.0
    asked: list[int] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def evaluate(self, _campaign: Campaign, rounds: int, *_: object) -> Evaluated:
        self.asked.append(rounds)
        self.now += self.cost
        made = campaign(rounds=3)
        return Evaluated(analyse(made.measurements, plan=made.plan, findings=(), trials=made.trials))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(interim, "evaluate", made.evaluate)
    return made


def test_it_is_told_from_the_third_round_on_and_made_once_for_a_look_too(clock: Clock) -> None:
    heard: list[Event] = []
    now = InterimAnalysis(Campaign(Path()), heard.append, clock=clock.monotonic)
    for rounds in (1, 2, 3, 4):
        clock.now += 60
        now.report(rounds)
    now.after(4)
    assert clock.asked == [3, 4]
    assert [event.rounds for event in heard if isinstance(event, IntervalsNow)] == [3, 4]
    first = heard[0]
    assert isinstance(first, IntervalsNow)
    assert first.baseline == "host"
    assert "primary comparisons have their verdict after" in first.summary
    assert {one.environment for one in first.intervals} == {"container"}
    (hpl,) = [one for one in first.intervals if one.name == "hpcc HPL workers"]
    assert hpl.low is not None
    assert hpl.high is not None
    assert hpl.low < hpl.ratio < hpl.high


def test_all_analyses_together_take_two_percent_of_the_time_and_one_more_at_most(clock: Clock) -> None:
    clock.cost = 5.0  # each pays for itself after 250 s: four rounds of 60 s are not enough, with the first two are
    heard: list[Event] = []
    now = InterimAnalysis(Campaign(Path()), heard.append, clock=clock.monotonic)
    for rounds in range(1, 11):
        clock.now += 60
        now.report(rounds)
    assert clock.asked == [3, 5, 9]


def test_what_cannot_be_analysed_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_campaign: Campaign, rounds: int, *_: object) -> Evaluated:
        raise UsageError(f"nothing in {rounds}", remedy="wait")

    monkeypatch.setattr(interim, "evaluate", fails)
    heard: list[Event] = []
    InterimAnalysis(Campaign(Path()), heard.append).report(3)
    assert heard == [Notice("no intervals after round 3: nothing in 3")]


def test_it_is_called_after_every_round_that_ran_and_not_after_those_before_a_resumption(tmp_path: Path) -> None:
    providers = {
        name: FakeProvider(name, tmp_path / "run", script=telling(sysbench=PRINTED)) for name in ("host", "box")
    }
    made = new_campaign(tmp_path / "c", providers, rounds=3, iterations=1)
    seen: list[tuple[int, int]] = []

    class Reporting(InterimAnalysis):
        def report(self, rounds: int) -> None:
            seen.append((rounds, len(made.trials(texts=False))))
            if rounds == 2 and len(seen) == 2:
                raise KeyboardInterrupt

        def settled(self, rounds: int) -> Settled:
            return Settled(False, "")

    def run() -> None:
        execute(made, providers, IMAGE, tmp_path / "run", lambda event: None, Reporting(made, lambda event: None))

    with pytest.raises(KeyboardInterrupt):
        run()
    run()
    assert seen == [(1, 2), (2, 4), (3, 6)]
