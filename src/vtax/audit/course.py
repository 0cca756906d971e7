"""R04, R05, R08: what the numbers themselves say of the campaign: drift, two modes, and the control arm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vtax.analysis.estimate import diagnostics
from vtax.analysis.estimate.columns import Floats
from vtax.analysis.estimate.summary import Key, Runs, within_machines
from vtax.analysis.multiplicity import CONTROL_ROW
from vtax.analysis.records import VERDICT_FROM, Level
from vtax.evidence.campaign import Evidence
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.units import format_quantity

TAIL = 0.05  # share of outliers from which an environment has a tail


def primary(evidence: Evidence) -> tuple[dict[Key, Level], Runs]:
    """Levels and runs of the primary metrics that have logarithms."""
    numbers = evidence.numbers
    levels = {
        key: one
        for key, one in numbers.levels.items()
        if one.primary and one.kind.has_ratio and key[0] not in numbers.context.emulated
    }
    return levels, numbers.runs


def name_of(level: Level) -> str:
    where = " ".join(f"{name}={text}" for name, text in sorted(level.labels.items()))
    return f"{level.label} {level.metric}" + (f" ({where})" if where else "")


@row(
    "R04",
    Severity.WARNING,
    "performance drifts over the campaign, or the difference itself does",
    short="drift",
    why="drift that all environments share is removed by comparing within rounds; a difference that changes holds for "
    "this period only",
    remedy="check heat, other load and full disks; a campaign at another time shows whether the difference is the same",
    source="the primary metrics, six rounds or more, each test at 1 % over all of them; of imported runs only where it "
    "is known when they began",
    note="each test is at 1 % divided by the number of primary metrics; notes at each comparison say more",
)
def drift(evidence: Evidence) -> Iterator[Result]:
    """R04: Spearman's correlation with time, of values that are centred by environment, and of the differences."""
    levels, runs = primary(evidence)
    bases = {key: (evidence.numbers.baseline_of(level), key[1]) for key, level in levels.items()}
    pairs = [(key, base) for key, base in bases.items() if key != base and base in levels]
    tested = 0
    for key, other in pairs:
        level, base = levels[key], levels[other]
        apart = evidence.numbers.context.differences(level, base)
        times = np.concatenate([runs[key][1], runs[other][1]])
        if apart.rounds.size < VERDICT_FROM or np.isnan(times).any():
            continue
        tested += 1
        where, metrics = (level.environment, level.label), (level.metric,)
        trend = diagnostics.drift([logs(level, runs[key]), logs(base, runs[other])], [runs[key][1], runs[other][1]])
        if trend is not None and trend.per_hour is not None and trend.p_value < diagnostics.ALPHA / len(pairs):
            both = f"{level.environment} and {base.environment}"
            message = f"{name_of(level)}: {100 * trend.change:+.2g} % over the campaign in {both}, "
            yield Failed(f"{message}removed by comparing within rounds", *where, Severity.INFO, metrics=metrics)
        _, p_value, _ = diagnostics.effect_drifts(apart.differences, apart.rounds.astype(float))
        if float(p_value) < diagnostics.ALPHA / len(pairs):
            message = f"{name_of(level)}: the difference of {level.environment} changes over the rounds"
            yield Failed(f"{message}, and holds for this period only", *where, metrics=metrics)
    if tested:
        yield f"{tested} primary series were tested"
    elif evidence.trials:
        yield Undecided("fewer than six rounds, or not recorded: when runs began")


def logs(level: Level, found: tuple[tuple[Floats, ...], Floats]) -> Floats:
    """The logarithms of all runs of one series; of several machines, as if all were as fast as their mean."""
    values = np.log(np.concatenate(found[0]))
    apart = within_machines(values, level.cells, [one.size for one in found[0]])
    return np.asarray(values if apart is values else apart + values.mean())


@row(
    "R05",
    Severity.WARNING,
    "two performance modes, or a tail",
    short="two modes or a tail",
    why="a mean between two modes is a value that never occurs, and a tail makes the interval of the mean too short",
    remedy="check placement, caches and frequency for what differs between the modes; outliers stay in the data",
    source="the primary metrics, twenty runs or more for modes and five for outliers",
    note="primary metrics only; notes at each comparison say more",
)
def modes(evidence: Evidence) -> Iterator[Result]:
    """R05: the best split into two modes, and outliers beyond five deviations."""
    levels, runs = primary(evidence)
    few = 0
    for key, level in levels.items():
        values = logs(level, runs[key])
        where, metrics = (level.environment, level.label), (level.metric,)
        few += values.size < diagnostics.MODES_FROM
        if found := diagnostics.modes(values):
            low, high = (format_quantity(float(np.exp(each)), level.unit) for each in found)
            message = f"{name_of(level)} in {level.environment} has two modes, about {low} and {high}"
            yield Failed(message, *where, metrics=metrics)
            continue
        away = int(diagnostics.outliers(values).sum())
        if away > 1 and away > TAIL * values.size:
            message = f"{name_of(level)} in {level.environment} has {away} outliers in {values.size} runs"
            yield Failed(message, *where, metrics=metrics)
    if few:
        yield Undecided(f"{few} of {len(levels)} primary series have too few runs to rule out two modes")
    elif levels:
        yield f"{len(levels)} primary series have one mode each"
    elif evidence.trials:
        yield Undecided("there is no primary metric")


def has_control(evidence: Evidence) -> str:
    return "" if evidence.plan.study.control_name else "the study has no control arm (`control = true`)"


@row(
    CONTROL_ROW,
    Severity.BLOCKER,
    "the instrument sees a difference between two identical environments",
    short="a difference between identical environments",
    why="what distinguishes the baseline from itself may find any difference: the campaign is invalid",
    remedy="find what differs by position in the round (heat, caches, other load), and run a new campaign",
    source="the control arm: the baseline twice in every round, tested over its primary metrics at 1 %",
    applies=has_control,
)
def control(evidence: Evidence) -> Iterator[Result]:
    """R08: the baseline against itself."""
    arm = evidence.numbers.control
    if not arm.tested:
        yield Undecided("the control arm has too few rounds for a test")
    elif arm.excluded:
        yield Failed(arm.excluded)
    else:
        resolution = "" if arm.resolution is None else f"; the widest interval is ± {arm.resolution:.1%}"
        yield f"{arm.tested} primary metrics of the control arm agree with the baseline{resolution}"
