"""Runs without a result: how often, whether one environment fails more, and what timeouts bound. Pure.

A failed run is data. Nothing replaces it: its round has no pair for that metric, and is counted. A run that hit its
time limit is known to be slow, so it bounds the effect although it has no value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from vtax.analysis.estimate.blocks import ONE_MACHINE, Blocks
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.records import Failure, FailureRate
from vtax.model.metric import Kind
from vtax.model.nodes import target_label
from vtax.model.trial import Status, TrialRecord

FAILING = 0.1  # share of failed trials from which a verdict is said to be about the successful ones

SPEEDS = frozenset({Kind.COST, Kind.RATE_FIXED_WORK, Kind.RATE_FIXED_TIME})  # say how fast something was

Place = tuple[str, str, str]  # environment, label, target
Timeouts = Mapping[Place, Mapping[int, Sequence[int]]]  # -> block -> iterations that hit their time limit
Lost = Mapping[Place, Mapping[Status, int]]  # -> how many measured runs ended without a result, by how they ended


def failures(trials: Iterable[TrialRecord]) -> tuple[Failure, ...]:
    return tuple(
        Failure(
            trial=trial.id,
            environment=trial.environment,
            round=trial.round,
            benchmark=trial.benchmark,
            label=trial.label,
            warmup=trial.warmup,
            status=trial.status,
            reason=trial.failure,
        )
        for trial in sorted(trials, key=lambda trial: (trial.round, trial.id))
        if trial.status is not Status.OK
    )


def failure_rates(
    trials: Sequence[TrialRecord], baseline_of: Callable[[str], str], blocks: Blocks = ONE_MACHINE
) -> tuple[FailureRate, ...]:
    """Every environment and entry of which a measured trial failed, with Wilson's interval and McNemar's exact test.

    `baseline_of` an entry's label is what it is compared with.
    """
    outcomes: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    rounds: dict[tuple[str, str], dict[int, bool]] = defaultdict(dict)
    for trial in trials:
        if not trial.warmup:
            failed, key = trial.status is not Status.OK, (trial.label, trial.environment)
            outcomes[key][failed] += 1
            block = blocks.number(trial.round, trial.cell)
            rounds[key][block] = rounds[key].get(block, False) or failed
    found = []
    for (label, environment), count in sorted(outcomes.items()):
        baseline = baseline_of(label)
        against = environment != baseline and (label, baseline) in rounds
        p = _mcnemar(rounds[label, environment], rounds[label, baseline]) if against else None
        if count[True]:
            from scipy.stats import binomtest  # takes a while to load, and most campaigns have no failure

            interval = binomtest(count[True], count.total()).proportion_ci(method="wilson")
            found.append(
                FailureRate(
                    environment=environment,
                    label=label,
                    failed=count[True],
                    trials=count.total(),
                    low=float(interval.low),
                    high=float(interval.high),
                    p_mcnemar=p,
                )
            )
    return tuple(found)


def _mcnemar(mine: Mapping[int, bool], theirs: Mapping[int, bool]) -> float | None:
    """Exact p of "fails in as many rounds", from the rounds in which only one of both failed."""
    both = mine.keys() & theirs.keys()
    only_mine = sum(mine[r] and not theirs[r] for r in both)
    only_theirs = sum(theirs[r] and not mine[r] for r in both)
    if not only_mine + only_theirs:
        return None
    return _p_even(only_mine, only_theirs)


def _p_even(one: int, other: int) -> float:
    """The exact two-sided p of "one as often as the other"."""
    from scipy.stats import binomtest

    return float(binomtest(one, one + other).pvalue)


def failing(rates: Sequence[FailureRate]) -> frozenset[tuple[str, str]]:
    """Environment and label of which a tenth or more of the measured trials failed, or in which all failures of the
    entry are."""
    several = Counter(rate.label for rate in rates)
    return frozenset(
        (rate.environment, rate.label)
        for rate in rates
        if rate.failed >= FAILING * rate.trials or several[rate.label] == 1
    )


def timeouts(trials: Iterable[TrialRecord], blocks: Blocks = ONE_MACHINE) -> Timeouts:
    """Which measured trials of each block hit their time limit."""
    found: dict[Place, dict[int, list[int]]] = defaultdict(dict)
    for trial in trials:
        if trial.status is Status.TIMED_OUT and not trial.warmup:
            found[place_of(trial)].setdefault(blocks.number(trial.round, trial.cell), []).append(trial.iteration)
    return found


def lost(trials: Iterable[TrialRecord]) -> Lost:
    """How many measured trials ended without a result, and how they ended."""
    found: dict[Place, Counter[Status]] = defaultdict(Counter)
    for trial in trials:
        if trial.status is not Status.OK and not trial.warmup:
            found[place_of(trial)][trial.status] += 1
    return found


def endings_text(counts: Mapping[Status, int]) -> str:
    """` (8 timed out, 2 failed)`; "" when no run is known to have ended without a result."""
    words = ", ".join(f"{counts[status]} {status}" for status in Status if counts.get(status))
    return f" ({words})" if words else ""


def place_of(trial: TrialRecord) -> Place:
    return trial.environment, trial.label, target_label(trial.scope, trial.nodes)


def with_censored(differences: Floats, slow_mine: int, slow_theirs: int) -> Floats:
    """Differences of shape (..., n), and one without bound for each round in which one of the two hit its time
    limit."""
    if not slow_mine + slow_theirs:
        return differences
    more = np.concatenate((np.full(slow_mine, -np.inf), np.full(slow_theirs, np.inf)))
    return np.concatenate((differences, np.broadcast_to(more, (*differences.shape[:-1], more.size))), axis=-1)


def p_sign(differences: Floats) -> float:
    """The sign test: exact p of "better as often as worse"."""
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    return _p_even(better, worse) if better + worse else 1.0
