"""What a comparison says besides its verdict, each note under a fixed name.

They are explained in docs/method.md, "Notes on the numbers".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from vtax.analysis.estimate import diagnostics
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.failures import p_sign, with_censored
from vtax.analysis.estimate.paired import exponential
from vtax.analysis.estimate.pairs import Pair
from vtax.analysis.estimate.randomisation import disagreement
from vtax.analysis.estimate.signed_rank import hodges_lehmann
from vtax.analysis.estimate.summary import Runs, cell_mean, within_machines
from vtax.analysis.records import VERDICT_FROM, Level, Note, Randomisation, TimeoutBounds
from vtax.analysis.verdict import signed
from vtax.model.metric import Direction, Kind

DIVERGES = 0.25  # share of the margin by which typical and mean performance may differ


def notes(
    pair: Pair, runs: Runs, delta: float, test: Randomisation | None, means: tuple[float, float] | None
) -> tuple[Note, ...]:
    """All notes of one pair; few rounds have only those that do not need more. `means` is the interval of its ratio of
    total work over total time."""
    if not pair.has_ratio or pair.base is None:
        return ()
    found = [*_timeouts(pair)]
    if pair.effect is not None and pair.effect.n >= VERDICT_FROM:
        found += [*_agreement(pair, delta, test, means), *_course(pair, runs), *_tails(pair, runs), *_shape(pair, runs)]
    return tuple(found)


def mean_effect(pair: Pair) -> float | None:
    """The log ratio from total work over total time, over the common rounds; above zero is better. None where a run of
    them has no end."""
    if pair.base is None or pair.effect is None or not pair.has_ratio or pair.late:
        return None
    if pair.alone:  # the mean over the machines, as the effect is
        each = [mean_effect(one) for one in pair.alone.values()]
        known = [one for one in each if one is not None]
        return float(np.mean(known)) if len(known) == len(each) else None
    kind = pair.level.kind
    mine, theirs = _means(pair)
    if kind is Kind.RATE_FIXED_WORK:
        change = math.log((1 / theirs).sum()) - math.log((1 / mine).sum())
    elif kind is Kind.RATIO:
        change = float(np.log(mine).mean() - np.log(theirs).mean())
    else:
        change = math.log(mine.sum()) - math.log(theirs.sum())
    return change if pair.level.direction is Direction.HIGHER else -change


def _means(pair: Pair) -> tuple[Floats, Floats]:
    """Total work over total time of each common round, in both environments: of what the differences are of."""
    if pair.by_round.values is not None:
        mine, theirs = (np.array([cell_mean(one, pair.level.kind) for one in side]) for side in pair.by_round.values)
        return mine, theirs
    rounds, levels = set(pair.rounds.tolist()), (pair.level, pair.base)
    cells = [[cell for cell in level.cells if cell.round in rounds] for level in levels if level is not None]
    mine, theirs = (np.array([one.value if one.mean is None else one.mean for one in side]) for side in cells)
    return mine, theirs


def _agreement(
    pair: Pair, delta: float, test: Randomisation | None, means: tuple[float, float] | None
) -> Iterator[Note]:
    """Whether the companion, the randomisation test and the mean say the same as the estimate, and all machines."""
    if pair.spread is not None and pair.spread.differ:
        yield Note(id="MACHINES_DIFFER", message=_machines(pair))
    if pair.interim is not None and not bool(pair.interim.robust):
        message = (
            "the t interval and the Hodges-Lehmann interval do not support the same verdict; the weaker one is given"
        )
        yield Note(id="ROBUSTNESS", message=message)
    if test is not None and (message := disagreement(pair, test)):
        yield Note(id="RANDOMISATION", message=message)
    mean, effect = mean_effect(pair), pair.effect
    if mean is not None and effect is not None and abs(mean - float(pair.differences.mean())) > DIVERGES * delta:
        interval = "" if means is None else f" [{means[0]:.4g}, {means[1]:.4g}]"
        message = (
            f"typical and mean performance disagree: the typical ratio is {exponential(effect.theta):.4g}, that of "
            f"total work over total time {exponential(mean):.4g}{interval}"
        )
        yield Note(id="ESTIMAND_DIVERGES", message=message)


def _machines(pair: Pair) -> str:
    """How the machines differ, from the one that is best to the other end."""
    parts = {name: one.effect for name, one in pair.alone.items() if one.effect is not None}
    ordered = sorted(parts, key=lambda name: -parts[name].theta)
    shown = ", ".join(f"{signed(exponential(parts[name].theta), parts[name].bounds)} on {name}" for name in ordered)
    better = any(one.low is not None and one.low > 0 for one in parts.values())
    worse = any(one.high is not None and one.high < 0 for one in parts.values())
    ways = ", in opposite directions" if better and worse else ""
    return f"the effect is not the same on all machines{ways}: {shown}; the number is their mean"


def _course(pair: Pair, runs: Runs) -> Iterator[Note]:
    """What changed over the campaign."""
    trend = trend_of(pair)
    if trend is not None and trend.found and trend.per_hour is not None:
        message = (
            f"drift of {100 * trend.change:+.2g} % over the campaign in both environments, removed by comparing within "
            "rounds"
        )
        yield Note(id="DRIFT", message=message)
    carried = pair.interim.fit.carry_over if pair.interim is not None else None
    differences = pair.differences if carried is None or pair.first is None else pair.differences - carried * pair.first
    drifts, _, rho = diagnostics.effect_drifts(differences, pair.rounds.astype(float))
    if bool(drifts):
        message = (
            f"the effect itself changed over the rounds (lag-1 correlation {rho:+.2f}): it holds for this period only"
        )
        yield Note(id="EFFECT_DRIFTS", message=message)
    for level in (pair.level, pair.base):
        cells, _ = runs.get((level.environment, level.series), ((), None)) if level else ((), None)
        p = diagnostics.p_warmup([_improving(cell, level) for cell in cells]) if level else None
        if level and p is not None and p < diagnostics.ALPHA:
            message = (
                f"in {level.environment} the first measured iteration differs from the later ones: one more warm-up"
            )
            yield Note(id="WARMUP_SHORT", message=message)


def trend_of(pair: Pair) -> diagnostics.Trend | None:
    """What both environments drift together, where it is known when trials began."""
    logs, times = [], []
    for level in (side for one in (pair.alone.values() or (pair,)) for side in (one.level, one.base)):
        if level is None or any(cell.started is None for cell in level.cells):
            return None
        logs.append(_improving(np.array([cell.value for cell in level.cells]), level))
        times.append(np.array([cell.started for cell in level.cells], float))
    return diagnostics.drift(logs, times)


def _improving(values: Floats, level: Level) -> Floats:
    """Logarithms, of which more is better."""
    return np.asarray(np.log(values) if level.direction is Direction.HIGHER else -np.log(values))


def _tails(pair: Pair, runs: Runs) -> Iterator[Note]:
    """Outliers: kept, counted, and what they do to the interval."""
    counts = []
    for level in (pair.level, pair.base):
        logs = _run_logs(level, runs) if level is not None else np.empty(0)
        counts.append((int(diagnostics.outliers(logs).sum()), logs.size))
    (mine, of_mine), (theirs, of_theirs) = counts
    if not mine + theirs:
        return
    p = diagnostics.p_outliers(mine, of_mine, theirs, of_theirs)
    if p < diagnostics.ALPHA:
        tails = "tails differ"
    elif min(of_mine, of_theirs) < diagnostics.TAILS_FROM:
        tails = f"tail behaviour is not resolved by fewer than {diagnostics.TAILS_FROM} runs of each"
    else:
        tails = "both have about as many"
    message = (
        f"{mine} of {of_mine} runs in {pair.level.environment} and {theirs} of {of_theirs} in {pair.against} are "
        f"outliers (kept in the analysis); {tails} (Fisher's p {p:.2g}). If only one of the two has tails, a "
        "95 % t interval covers its mean in only 80 to 86 % of campaigns"
    )
    yield Note(id="OUTLIERS", message=message)


def _shape(pair: Pair, runs: Runs) -> Iterator[Note]:
    """Two modes, and unequal spread."""
    for level in (pair.level, pair.base):
        two = diagnostics.modes(_run_logs(level, runs)) if level is not None else None
        if level is not None and two is not None:
            apart = 100 * math.expm1(two[1] - two[0])
            message = f"two performance modes in {level.environment}, {apart:.1f} % apart: examine the individual runs"
            yield Note(id="BIMODAL", message=message)
    mine, theirs = _paired_cells(pair)
    if mine.size >= VERDICT_FROM and float(diagnostics.p_equal_spread(mine, theirs)) < diagnostics.ALPHA:
        more, less = mine.std(ddof=1), theirs.std(ddof=1)
        word = "less" if more > less else "more"
        by, other = f"{100 * more:.2g} %", f"{100 * less:.2g} %"
        message = f"{word} predictable than {pair.against}: it varies by {by}, {pair.against} by {other}"
        yield Note(id="PREDICTABILITY", message=message)


def _run_logs(level: Level, runs: Runs) -> Floats:
    """Logarithms of all iterations; of several machines, as far as they are from the mean of theirs."""
    cells = runs[level.environment, level.series][0]
    return within_machines(np.log(np.concatenate(cells)), level.cells, [len(cell) for cell in cells])


def _paired_cells(pair: Pair) -> tuple[Floats, Floats]:
    """Logarithms of the cells of both environments, in the common rounds in which both cells have a number; of several
    machines, as far as they are from the mean of theirs."""
    if pair.alone:
        each = zip(*(_paired_cells(part) for part in pair.alone.values()), strict=True)
        ours, others = (np.concatenate([one - one.mean() for one in side if one.size]) for side in each)
        return ours, others
    mine, theirs = ({cell.round: cell.value for cell in one.cells} if one else {} for one in (pair.level, pair.base))
    both = [number for number in pair.rounds.tolist() if number in mine and number in theirs]
    return np.log([mine[number] for number in both]), np.log([theirs[number] for number in both])


def _timeouts(pair: Pair) -> Iterator[Note]:
    """What the rounds bound in which one of the two hit its time limit."""
    found = timeout_bounds(pair)
    if found is None:
        return
    values = _with_slow(pair)
    low, high = _bounds(values)
    message = (
        f"{found.environment} rounds of {pair.level.environment} and {found.baseline} of {pair.against} hit their time "
        f"limit; counted as slower by an unknown factor: {_bounded(low, high, values.size)}; "
        f"sign test p {found.p_sign:.2g}"
    )
    yield Note(id="TIMEOUTS", message=message)


def timeout_bounds(pair: Pair) -> TimeoutBounds | None:
    """The rounds in which one of the two hit its time limit, and what they leave of the interval; None without."""
    if not any(pair.slow):
        return None
    values = _with_slow(pair)
    low, high = -math.inf, math.inf
    if pair.interim is not None:
        _, lowest, highest = pair.interim.companion
        low, high = min(float(pair.interim.low), float(lowest)), max(float(pair.interim.high), float(highest))
    return TimeoutBounds(
        environment=len(pair.slow[0]),
        baseline=len(pair.slow[1]),
        low=exponential(low) if math.isfinite(low) else None,
        high=exponential(high) if math.isfinite(high) else None,
        p_sign=p_sign(values),
    )


def _with_slow(pair: Pair) -> Floats:
    return with_censored(pair.differences, len(pair.slow[0]), len(pair.slow[1]))


def _bounds(values: Floats) -> tuple[float, float]:
    """Hodges-Lehmann bounds of the log ratio, six values or more."""
    if values.size < VERDICT_FROM:
        return -math.inf, math.inf
    _, low, high = hodges_lehmann(values)
    return float(low), float(high)


def _bounded(low: float, high: float, n: int) -> str:
    """What bounds of a log ratio say; one at the far infinity is that of a time limit, not of a number."""
    if n < VERDICT_FROM:
        return "too few rounds for bounds of the ratio"
    if high == -math.inf or low == math.inf:
        return f"{'slower' if high < 0 else 'faster'} by more than the time limit can show"
    ends = [("at least", low), ("at most", high)]
    known = " and ".join(f"{word} {exponential(end):.3g}" for word, end in ends if math.isfinite(end))
    return f"the ratio is {known or 'not bounded'} (Hodges-Lehmann)"
