"""What to do next: rounds until a verdict, the cause of noise, iterations for the next campaign."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from vtax.analysis.estimate import diagnostics
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.context import PairingContext
from vtax.analysis.estimate.pairs import Pair
from vtax.analysis.estimate.summary import Runs, within_machines
from vtax.analysis.records import VERDICT_FROM, Level, Verdict
from vtax.analysis.sequential.forecast import NEW_CAMPAIGN_MAX, best_iterations, best_pairs, more_rounds, rounds_needed
from vtax.model.plan import Plan
from vtax.model.trial import Status, TrialRecord

# Counters that go with the length of a run, or with its work: they follow a result and explain none.
OF_THE_RUN = frozenset(
    {
        *("clock_s", "host_clock_s", "uptime_s", "clock_offset_s", "clock_doubt_s", "collector_cpu_s"),
        *("cpu_ticks", "busy_ticks", "cpu_periods", "node_cpu_s", "group_cpu_s"),
        *("network_received_bytes", "network_sent_bytes", "loopback_bytes"),
    }
)
Counters = Mapping[tuple[str, str, int], Mapping[str, float]]  # environment, label, round -> counter -> sum over nodes


@dataclass(frozen=True)
class Advice:
    """`round_s` is how long a round took; `counters` are what may explain noise; `sentences` are for the campaign."""

    context: PairingContext
    round_s: float | None
    counters: Counters
    sentences: tuple[str, ...] = field(default=())

    def remark(self, one: Pair, word: Verdict, family: int) -> str:
        """What the verdict needs to be understood: what did not confirm it, or how many rounds could decide."""
        if word is Verdict.UNADJUSTED:
            return f"not confirmed after correction for {family} comparisons"
        if one.contradicted:
            return "the machines contradict each other, which no number of rounds changes: see each of them"
        if word is not Verdict.INCONCLUSIVE or one.effect is None or one.effect.sd is None or any(one.slow):
            return ""  # rounds at infinity have no noise to forecast from
        n, planned = one.effect.n, self._planned(one)
        if planned:
            found = self._needed(one, planned)
            return more_rounds(found, n, self.round_s) if found[0] is not None else self._out_of_reach(one, planned[-1])
        few, many = self._needed(one, _new_campaign(one))
        if few is None:
            return self._out_of_reach(one, NEW_CAMPAIGN_MAX)
        if many is None:
            return f"a new campaign needs {few} rounds or more"
        return (
            f"a new campaign needs about {few} rounds"
            if few == many
            else f"a new campaign needs {few} to {many} rounds"
        )

    def more_rounds(self, one: Pair, word: Verdict) -> tuple[int, int | None] | None:
        """Rounds until a verdict at best and at worst; None when there is one, or none within the plan."""
        if word is not Verdict.INCONCLUSIVE or one.effect is None or any(one.slow) or one.contradicted:
            return None
        if not (planned := self._planned(one)):
            return None
        few, many = self._needed(one, planned)
        return None if few is None else (few - one.effect.n, None if many is None else many - one.effect.n)

    def new_campaign(self, one: Pair, word: Verdict) -> tuple[int, int | None] | None:
        """Rounds of a new campaign that could decide, at best and at worst; None when there is a verdict, or none in
        sight. A frozen plan cannot be extended."""
        open_ = word in (Verdict.INCONCLUSIVE, Verdict.UNADJUSTED) and not one.contradicted
        if not open_ or one.effect is None or any(one.slow):
            return None
        few, many = self._needed(one, _new_campaign(one))
        return None if few is None else (few, many)

    def _planned(self, one: Pair) -> tuple[int, ...]:
        """The planned looks that are still to come for this pair, in its own pairs."""
        if one.effect is None:
            return ()
        looks, environment = self.context.study.looks, one.level.environment
        return tuple(look for look in looks if look > one.rounds[-1] and self.context.takes_part(environment, look))

    def _needed(self, one: Pair, candidates: Sequence[int]) -> tuple[int | None, int | None]:
        if one.effect is None or one.effect.sd is None or one.interim is None:
            return None, None
        made = one.interim.fit
        delta = self.context.study.equivalence.delta
        parameters = made.n - made.df
        width = partial(one.calibration.critical, parameters=parameters)
        return rounds_needed(one.effect.theta, one.effect.sd, made.df, delta, width, candidates)

    def _out_of_reach(self, one: Pair, rounds: int) -> str:
        culprit = self.correlate(one)
        fix = f"fix {culprit} first" if culprit else "no recorded counter explains it"
        return f"not reachable within {rounds} rounds with this noise; {fix}"

    def correlate(self, one: Pair) -> str | None:
        """The counter whose difference between the two goes most with that of the metric, if any does (p < .05)."""
        label = one.level.label
        rows = [
            (self.counters.get((one.level.environment, label, r)), self.counters.get((one.baseline, label, r)))
            for r in one.rounds.tolist()
        ]
        names = set.intersection(*({*(mine or ()), *(theirs or ())} for mine, theirs in rows)) if rows else set()
        names -= OF_THE_RUN
        found: list[tuple[float, str]] = []
        for name in sorted(names):
            change = np.array([(mine or {}).get(name, 0.0) - (theirs or {}).get(name, 0.0) for mine, theirs in rows])
            if len(rows) >= diagnostics.RANKS_FROM and np.ptp(change) > 0:
                rho, p = diagnostics.spearman(one.differences, change)
                if float(p) < 0.05:
                    found.append((abs(float(rho)), name))
        return max(found)[1] if found else None


def _new_campaign(one: Pair) -> range:
    """The rounds that a new campaign may have: more than were not enough in this one."""
    done = one.effect.n if one.effect else 0
    return range(max(VERDICT_FROM, done + 1), NEW_CAMPAIGN_MAX + 1)


def advice_of(
    pairs: Sequence[Pair], plan: Plan, trials: Sequence[TrialRecord], context: PairingContext, runs: Runs
) -> Advice:
    sentences = (*_iterations(pairs, plan, trials, runs), *_few_runs(pairs))
    return Advice(context, _round_s(plan, trials, context.finished), _counters(trials), sentences)


def _round_s(plan: Plan, trials: Sequence[TrialRecord], finished: int) -> float | None:
    """How long a round took so far; before that, how long it is planned to take."""
    mine = [trial for trial in trials if trial.round <= finished]
    if mine:
        took = max(trial.started + trial.elapsed_s for trial in mine) - min(trial.started for trial in mine)
        return took / finished
    return plan.estimate_s / plan.study.rounds if plan.estimate_s else None


def _counters(trials: Sequence[TrialRecord]) -> dict[tuple[str, str, int], Counter[str]]:
    found: dict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)
    for trial in trials:
        if not trial.warmup and trial.status is Status.OK:
            for counted in trial.counters.values():
                found[trial.environment, trial.label, trial.round].update(counted)
    return found


def _iterations(pairs: Sequence[Pair], plan: Plan, trials: Sequence[TrialRecord], runs: Runs) -> list[str]:
    """m*, for each entry that is repeated in a cell: from six rounds on, of its primary metrics the largest."""
    planned = {spec.label: spec.iterations for spec in plan.study.benchmarks}
    cost = _costs(plan, trials, by_trial=any(one.interleave == "trial" for one in pairs))
    best: dict[str, int] = {}
    for one in pairs:
        level = one.level
        if not level.primary or not one.has_ratio or one.interim is None or level.label not in cost:
            continue
        if one.interleave == "trial":
            found = best_pairs(_pairs(one), *cost[level.label])
        else:
            found = best_iterations(_cells(level, runs), *cost[level.label])
        if found is not None:
            best[level.label] = max(found, best.get(level.label, 1))
    return [
        f"{label}: {count} iterations per cell would give the most precision in the same time (now {planned[label]})"
        for label, count in sorted(best.items())
        if label in planned and count != planned[label]
    ]


def _cells(level: Level, runs: Runs) -> list[Floats]:
    """The logarithms of the iterations of each cell, without how machines differ."""
    cells = runs[level.environment, level.series][0]
    logs = within_machines(np.log(np.concatenate(cells)), level.cells, [len(cell) for cell in cells])
    return np.split(logs, np.cumsum([len(cell) for cell in cells])[:-1])


def _pairs(one: Pair) -> list[Floats]:
    """The paired log differences of each round; none where a run has no end."""
    if one.by_round.values is None or one.late:
        return []
    return [np.log(mine) - np.log(theirs) for mine, theirs in zip(*one.by_round.values, strict=True)]


def _costs(plan: Plan, trials: Sequence[TrialRecord], *, by_trial: bool) -> dict[str, tuple[float, float]]:
    """For each entry: what a new cell costs before its first trial, and what one more iteration costs, s.

    `by_trial`, where trials alternate: a new round, with the clusters of all environments, and one more iteration in
    each of them.
    """
    units: dict[str, list[TrialRecord]] = defaultdict(list)
    for trial in trials:
        units[str(trial.round) if by_trial else trial.cell].append(trial)
    ends = sorted((min(t.started for t in own), max(t.started + t.elapsed_s for t in own)) for own in units.values())
    gaps = [max(0.0, start - end) for (_, end), (start, _) in pairwise(ends)]
    between = float(np.median(gaps)) if gaps else 0.0
    elapsed: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        if not trial.warmup and trial.status is Status.OK:
            elapsed[trial.label].append(trial.elapsed_s)
    each = len(plan.environments) if by_trial else 1
    return {label: (between, each * float(np.mean(seconds))) for label, seconds in elapsed.items()}


def _few_runs(pairs: Sequence[Pair]) -> list[str]:
    runs = [one.level.runs for one in pairs if one.interim is not None and one.has_ratio]
    if runs and min(runs) < diagnostics.MODES_FROM:
        return [
            f"two modes of performance cannot be ruled out with fewer than {diagnostics.MODES_FROM} runs of a metric"
        ]
    return []
