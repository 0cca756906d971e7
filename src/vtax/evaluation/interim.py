"""The analysis between two rounds of a running campaign: for the decision to stop, and for the progress display."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vtax.errors import VtaxError
from vtax.evaluation.evaluate import evaluate
from vtax.evaluation.readings import Readings
from vtax.events import IntervalsNow, Listener, Notice
from vtax.store import Campaign

if TYPE_CHECKING:
    from vtax.analysis.records import Analysis

FROM = 3  # rounds: below, no interval exists
SHARE = 0.02  # of a campaign's time that intervals for a listener may take


class Settled(NamedTuple):
    """Whether every primary metric has its verdict, and how many have, in words."""

    settled: bool
    words: str


class InterimAnalysis:
    """The analysis of the rounds so far, made at most once per round, as if the campaign had ended with that round."""

    def __init__(
        self,
        campaign: Campaign,
        listener: Listener,
        ignoring: frozenset[str] = frozenset(),
        cache: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.campaign, self.listener, self.ignoring, self.cache = campaign, listener, ignoring, cache
        self.readings = Readings(campaign)
        self.clock = clock
        self.made: tuple[int, Analysis] | None = None
        self.spent_s, self.started = 0.0, clock()

    def after(self, rounds: int) -> Analysis:
        """The analysis of the first `rounds` rounds."""
        if self.made is None or self.made[0] != rounds:
            began = self.clock()
            found = evaluate(self.campaign, rounds, self.ignoring, self.cache, self.readings)
            self.made = (rounds, found.analysis)
            self.spent_s += self.clock() - began
        return self.made[1]

    def settled(self, rounds: int) -> Settled:
        """Whether the campaign has its answer after `rounds` rounds."""
        from vtax.analysis.records import settled, waiting

        analysis = self.after(rounds)
        return Settled(settled(analysis), waiting(analysis))

    def report(self, rounds: int) -> None:
        """Report the intervals, from the third round on, unless that has taken too much time so far."""
        from vtax.analysis.estimate.intervals import interim_intervals
        from vtax.analysis.records import waiting

        if rounds < FROM or self.spent_s > SHARE * (self.clock() - self.started):
            return
        try:
            made = self.after(rounds)
        except VtaxError as error:  # the decision to stop and the report show it in full
            self.listener(Notice(f"no intervals after round {rounds}: {str(error).splitlines()[0]}"))
            return
        self.listener(IntervalsNow(rounds, made.baseline, interim_intervals(made), waiting(made)))
