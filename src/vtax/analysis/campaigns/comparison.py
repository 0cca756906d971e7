"""Two campaigns against each other (a kernel upgrade, two machines), pure.

Rounds of different campaigns share neither the time nor the boot of the machine, so they cannot be paired: the interval
is Welch's on the logarithms of the cells, wider than a paired one, and it covers the noise of rounds only. What else
changed between the campaigns moves all rounds of one of them together, and no number of rounds averages that out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from vtax.analysis import verdict
from vtax.analysis.campaigns.change import InBoth, change, improving_logs
from vtax.analysis.campaigns.missing_runs import MissingRuns
from vtax.analysis.campaigns.records import CampaignComparison, SetupDifference, Side
from vtax.analysis.campaigns.setup_differences import Recorded, setup_differences
from vtax.analysis.estimate.machines import by_rounds
from vtax.analysis.estimate.paired import INTERVAL_FROM
from vtax.analysis.estimate.summary import Key, place_of_level
from vtax.analysis.estimate.welch import WelchEstimate, welch
from vtax.analysis.records import Level
from vtax.analysis.sequential.sequential_test import benjamini_hochberg, holm
from vtax.errors import UsageError
from vtax.model.finding import Severity
from vtax.model.metric import Direction

CAUTION = (
    "Rounds of different campaigns are not paired: drift, temperature, neighbours and the boot of the machine are part "
    "of every difference below, whatever the intervals say. Those cover only the noise between rounds of one campaign.",
    "So a difference is stated and never attributed. To attribute it, put both variants into one study as two "
    "environments; where that is impossible (two kernels), repeat the campaigns in the order A, B, B, A.",
    "The change of the tax compares each environment with its own baseline, paired inside its campaign: what moved "
    "the whole machine is not in it.",
)


def compare_campaigns(a: Recorded, b: Recorded, environment: str = "") -> CampaignComparison:
    """Campaign B against campaign A in the environments that both have, or in one of them.

    Raises UsageError when there is none.
    """
    names = common_environments(a, b, environment)
    differences = setup_differences(a, b, names)
    levels = [{(level.environment, level.series): level for level in side.analysis.levels} for side in (a, b)]
    alternated = [alternated_differences(side) for side in (a, b)]
    missing = (MissingRuns.of(a), MissingRuns.of(b))
    both: dict[Key, InBoth] = {}
    for key, like in _shared((a, b), levels, names).items():
        mine, other = levels[0].get(key), levels[1].get(key)
        known = (mine, other) if like.kind.has_ratio and mine is not None and other is not None else None
        both[key] = InBoth(
            like=like,
            a=mine,
            b=other,
            missing=missing,
            estimate=welch(*map(improving_logs, known)) if known else None,
            tax=_tax(a, b, key, levels, alternated),
            block=_blocker(a, b, like, differences),
        )
    adjusted, margin = _adjusted(both), max(a.plan.study.margin, b.plan.study.margin)
    return CampaignComparison(
        a=_side(a),
        b=_side(b),
        margin=margin,
        unlike=differences,
        caution=CAUTION,
        pairing_gain=pairing_gain(a, b),
        family=sum(both[key].like.primary for key in adjusted),
        changes=tuple(change(one, adjusted.get(key), margin) for key, one in both.items()),
    )


def _adjusted(both: Mapping[Key, InBoth]) -> dict[Key, float]:
    """Adjusted p of every change that makes a claim: Holm over the primary ones, Benjamini-Hochberg over the others."""
    adjusted: dict[Key, float] = {}
    for primary, adjust in ((True, holm), (False, benjamini_hochberg)):
        family = {key: one.p_value for key, one in both.items() if one.claims and one.like.primary is primary}
        p_values = adjust(np.array([p for p in family.values() if p is not None]))
        adjusted |= dict(zip(family, p_values.tolist(), strict=True))
    return adjusted


def _shared(
    sides: tuple[Recorded, Recorded], levels: Sequence[Mapping[Key, Level]], names: Sequence[str]
) -> dict[Key, Level]:
    """Every series that both campaigns have, or one of them while the other's plan has it too; with a level of it."""
    planned = [{(work.environment, work.label, work.target.label) for work in side.plan.work} for side in sides]
    found: dict[Key, Level] = {}
    for mine, other in ((0, 1), (1, 0)):
        for key, level in levels[mine].items():
            expected = key in levels[other] or place_of_level(level) in planned[other]
            if expected and key[0] in names and level.direction is not Direction.NONE:
                found.setdefault(key, level)
    return found


def common_environments(a: Recorded, b: Recorded, environment: str) -> tuple[str, ...]:
    """The environments that both campaigns have, in the order of A's, or the one that is asked for."""
    names = [tuple(spec.name for spec in side.plan.environments) for side in (a, b)]
    both = tuple(name for name in names[0] if name in names[1])
    have = f"A has {', '.join(names[0])}; B has {', '.join(names[1])}"
    if environment and environment not in both:
        raise UsageError(f"environment {environment!r} is not in both campaigns", remedy=have)
    if not both:
        raise UsageError("the campaigns have no environment in common", remedy=have)
    return (environment,) if environment else both


def pairing_gain(a: Recorded, b: Recorded) -> float | None:
    """How many times wider the intervals of these campaigns were, had their rounds not been paired: the median."""
    gains = []
    for side in (a, b):
        levels = {(level.environment, level.series): level for level in side.analysis.levels}
        baselines = _baselines(side)
        alternated = alternated_differences(side)
        for (name, series), level in levels.items():
            other = levels.get((baselines.get((name, series), ""), series))
            if other is None or not level.kind.has_ratio:
                continue
            paired = alternated.get((name, series)) or paired_differences(level, other)
            if len(paired) >= INTERVAL_FROM and (sd := statistics.stdev(paired)) > 0:
                apart = math.hypot(statistics.stdev(improving_logs(level)), statistics.stdev(improving_logs(other)))
                gains.append(apart / sd)
    return float(statistics.median(gains)) if gains else None


def paired_differences(level: Level, other: Level) -> tuple[float, ...]:
    """One difference of logarithms for each round that both have, above zero for better."""
    sign = 1.0 if level.direction is Direction.HIGHER else -1.0
    mine, theirs = (
        {(cell.machine, cell.round): sign * math.log(cell.value) for cell in one.cells} for one in (level, other)
    )
    apart = {block: mine[block] - theirs[block] for block in sorted(mine.keys() & theirs.keys())}
    return by_rounds(apart) if any(machine for machine, _ in apart) else tuple(apart.values())


def alternated_differences(side: Recorded) -> dict[Key, tuple[float, ...]]:
    """The differences from the baseline of series whose trials alternated within rounds, as they were analysed."""
    return {
        (one.environment, one.series): tuple(each.difference for each in one.by_round)
        for one in side.analysis.comparisons
        if one.interleave == "trial" and one.baseline == side.analysis.baseline
    }


def _side(side: Recorded) -> Side:
    return Side(
        directory=side.directory,
        campaign=side.analysis.campaign,
        plan_sha256=side.plan.sha256,
        created=str(side.about.get("created", "")),
        rounds_complete=side.analysis.rounds_complete,
    )


def _blocker(a: Recorded, b: Recorded, level: Level, differences: Sequence[SetupDifference]) -> str:
    """Why the two do not compare: other work, other units, or a blocker of the audit in either; "" when nothing."""
    for item in differences:
        touches = item.environment in ("", level.environment) and item.label in ("", level.label)
        if item.severity is Severity.BLOCKER and touches:
            return f"{item.what} is {item.a} in A and {item.b} in B"
    for name, side in (("A", a), ("B", b)):
        if level.environment in side.analysis.emulated:
            return f"{level.environment} ran in software emulation in {name}"
        found = verdict.blocker(side.analysis.findings, (level.environment, level.environment), level, side.plan)
        if found is not None:
            return f"{found.id} in {name}: {found.message}"
    return ""


def _tax(
    a: Recorded,
    b: Recorded,
    key: Key,
    levels: Sequence[Mapping[Key, Level]],
    alternated: Sequence[Mapping[Key, tuple[float, ...]]],
) -> WelchEstimate | None:
    baselines = [_baselines(side).get(key) for side in (a, b)]
    if baselines[0] is None or baselines[0] != baselines[1]:
        return None
    other = (baselines[0], key[1])
    sides = []
    for side, by_trials in zip(levels, alternated, strict=True):
        if key not in side or other not in side or not side[key].kind.has_ratio:
            return None
        sides.append(by_trials.get(key) or paired_differences(side[key], side[other]))
    return welch(sides[0], sides[1]) if all(sides) else None


def _baselines(side: Recorded) -> Mapping[Key, str]:
    """What each series of each environment is compared with."""
    return {(one.environment, one.series): one.baseline for one in side.analysis.comparisons}
