"""What must have been recorded before a row of the audit can be looked at, and where it was."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from vtax.evidence.campaign import Evidence, observed
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord

Scope = tuple[str, str]  # environment and entry; "" is all of them


@dataclass(frozen=True)
class Needs:
    """Facts of one kind or of several. Of every kind that is named, at least one fact must be there; where none is
    named, the row needs no more than a campaign of that origin.

    Facts of nodes and of cells are recorded for an environment, facts of the machine alone for the campaign, and all
    others for an entry. Of imported logs it is enough that one environment has them, or, where the row `compares`,
    the baseline and another.
    """

    what: str  # in words: "not recorded: {what}"
    node: tuple[str, ...] = ()  # facts of nodes
    host: tuple[str, ...] = ()  # facts of the machine that vtax ran on
    idle: tuple[str, ...] = ()  # counted on the machine while a new cluster settled
    commands: bool = False  # those that made a cluster
    checks: str = ""  # how a check of a new cluster begins
    programs: tuple[str, ...] = ()  # in the command of a step
    facts: tuple[str, ...] = ()  # facts in the output of a run
    metrics: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()  # counted on a node, or on the machine, during a trial
    each: Literal["", "environment", "entry"] = ""  # what must have them, where that is not as above
    compares: bool = False
    origin: Origin | None = None  # only of campaigns that vtax ran, or only of imported logs

    @property
    def of_campaign(self) -> bool:
        others = self.node or self.idle or self.commands or self.checks or self.of_entries
        return bool(self.host) and not (self.each or others)

    @property
    def of_entries(self) -> bool:
        of_runs = bool(self.programs or self.facts or self.metrics or self.counters)
        return self.each == "entry" or (not self.each and of_runs)

    def met(self, evidence: Evidence, scope: Scope, trials: Sequence[TrialRecord]) -> bool:
        """Whether the facts are known of an environment, or of an entry in it, and its runs."""
        environment, _ = scope
        cells = [cell for cell in evidence.provisioned if cell.environment == environment]
        return (
            (not self.node or any(_any(self.node, values) for _, values in observed(evidence, environment)))
            and (not self.host or _any(self.host, evidence.host_facts(environment)))
            and (not self.idle or any(_any(self.idle, cell.idle) for cell in cells))
            and (not self.commands or any(cell.commands for cell in cells))
            and (not self.checks or any(text.startswith(self.checks) for text in evidence.checks(environment)))
            and (not self.programs or any(_any(self.programs, step.argv) for one in trials for step in one.steps))
            and (not self.facts or any(_any(self.facts, said) for one in trials for said in evidence.facts_of(one)))
            and (not self.metrics or any(_any(self.metrics, evidence.metrics(one)) for one in trials))
            and (not self.counters or any(_any(self.counters, evidence.counted(one)) for one in trials))
        )

    def comparable(self, evidence: Evidence, known: Collection[Scope]) -> bool:
        """Whether the baseline and another environment are known, where the row compares them."""
        environments = {environment for environment, _ in known}
        return not self.compares or (evidence.reference in environments and len(environments) > 1)


def _any(names: tuple[str, ...], there: Collection[str]) -> bool:
    return any(name in there for name in names)


def scopes_of(needs: Sequence[Needs], evidence: Evidence) -> tuple[tuple[Scope, ...], tuple[Scope, ...]]:
    """Where any of `needs` is recorded, and where not: environments, or entries in them."""
    every: dict[Scope, list[TrialRecord]] = {}
    if needs[0].of_entries:
        every = dict(evidence.entries())
    elif needs[0].of_campaign:
        every = {("", ""): []}
    else:
        every = {(name, ""): [] for name in evidence.environments}
        for one in evidence.runs():
            every.setdefault((one.environment, ""), []).append(one)
    known = tuple(scope for scope, trials in every.items() if any(one.met(evidence, scope, trials) for one in needs))
    return known, tuple(scope for scope in every if scope not in known)
