"""How intervals narrow while a campaign runs: told after a round, while nothing runs, and never at a trial's cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from vtax.errors import VtaxError
from vtax.events import IntervalsNow, Listener, Notice

if TYPE_CHECKING:
    from vtax.analysis.records import Analysis

FROM = 3  # rounds: below, no interval exists
SHARE = 0.02  # of a campaign's time, that this may take


class Narrowing:
    """The analysis of the rounds so far, made at most once a round: for a look, and for who listens.

    `analyse` makes it as if the campaign had ended with that round.
    """

    def __init__(self, analyse: Callable[[int], Analysis], listener: Listener) -> None:
        self.analyse, self.listener = analyse, listener
        self.made: tuple[int, Analysis] | None = None
        self.spent_s, self.started = 0.0, time.monotonic()

    def after(self, rounds: int) -> Analysis:
        """The analysis of the first `rounds` rounds."""
        if self.made is None or self.made[0] != rounds:
            began = time.monotonic()
            self.made = (rounds, self.analyse(rounds))
            self.spent_s += time.monotonic() - began
        return self.made[1]

    def tell(self, rounds: int) -> None:
        """Say where the intervals stand, from the third round on, unless that has cost too much so far."""
        from vtax.analysis.estimate.intervals import interim_intervals
        from vtax.analysis.records import waiting

        if rounds < FROM or self.spent_s > SHARE * (time.monotonic() - self.started):
            return
        try:
            made = self.after(rounds)
        except VtaxError as error:  # a look and the report tell it in full
            self.listener(Notice(f"no intervals after round {rounds}: {str(error).splitlines()[0]}"))
            return
        self.listener(IntervalsNow(rounds, made.baseline, interim_intervals(made), waiting(made)))
