"""When a running campaign ends: at an interim analysis, at the last round, or with its budget.

Results are analysed after the planned numbers of rounds and never in between, because every look has its share of the
5 %. Each is recorded with its decision. The end of a budget is not an analysis: it says nothing about the results.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from vtax.evaluation.interim import InterimAnalysis
from vtax.events import Listener, LookTaken
from vtax.model.look import Decision, Look
from vtax.model.plan import Plan
from vtax.store import Campaign
from vtax.units import format_seconds

Left = Callable[[int], float]  # a round -> s that are left of the plan up to and with it


class Looks:
    """The planned looks of one run of a campaign, and its budget.

    Without `interim` no verdict ends the campaign. The budget counts what the campaign's clusters and trials took,
    in earlier runs by their records: time between an interruption and a resumption is not spent.
    """

    def __init__(
        self,
        campaign: Campaign,
        plan: Plan,
        interim: InterimAnalysis | None,
        left: Left,
        budget_s: float | None,
        listener: Listener,
    ) -> None:
        self.campaign, self.plan, self.interim, self.left = campaign, plan, interim, left
        self.budget_s, self.listener = budget_s, listener
        self.spent_s = spent_s(campaign, plan) if budget_s is not None else 0.0
        self.started = time.monotonic()

    def ended_before(self, number: int, waiting: bool) -> bool:
        """Whether the campaign is over before round `number`; `waiting` says whether that has anything left to run."""
        log = self.campaign.look_log()
        if log is not None and log.ended is not None and log.ended.rounds < number:
            return True
        if self.budget_s is None or not waiting:
            return False
        spent_s, needed_s = self.spent_s + time.monotonic() - self.started, self.left(number)
        if spent_s + needed_s <= self.budget_s:
            return False
        self._note(
            number - 1,
            Decision.BUDGET,
            f"{format_seconds(spent_s)} of {format_seconds(self.budget_s)} have been used, "
            f"and round {number} takes about {format_seconds(needed_s)}",
        )
        return True

    def ended_after(self, number: int) -> bool:
        """Whether the campaign is over now that round `number` is; analyses the results when that was planned."""
        looks = self.plan.study.looks
        log = self.campaign.look_log()
        if number not in looks or (log is not None and any(_is_look(look, number) for look in log.looks)):
            return False
        settled, words = self.interim.settled(number) if self.interim is not None else (False, "")
        if number == looks[-1]:
            self._note(number, Decision.LAST, words or f"{number} of {number} planned rounds")
        else:
            self._note(number, Decision.SETTLED if settled else Decision.GO_ON, words)
        return settled

    def _note(self, rounds: int, decision: Decision, reason: str) -> None:
        self.campaign.note_look(
            Look(rounds=rounds, decision=decision, reason=reason, at=time.time(), plan_sha256=self.plan.sha256)
        )
        self.listener(LookTaken(rounds, decision is not Decision.GO_ON, f"{decision}: {reason}"))


def _is_look(look: Look, number: int) -> bool:
    return look.rounds == number and look.decision is not Decision.BUDGET


def spent_s(campaign: Campaign, plan: Plan) -> float:
    """What clusters and trials of a campaign have taken so far, by their records."""
    cells = campaign.cells()
    trials = campaign.trials(texts=False)
    settled_s = plan.study.settle_s * sum(cell.provision_s > 0 for cell in cells)
    paused_s = sum(trial.pause.pause_s + trial.pause.resume_s for trial in trials if trial.pause is not None)
    return settled_s + sum(cell.provision_s for cell in cells) + sum(trial.elapsed_s for trial in trials) + paused_s
