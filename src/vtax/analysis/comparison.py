"""One pair as the analysis tells it: its numbers, its verdict in words, what has to stand beside them (METHOD 1.9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vtax.analysis import verdict
from vtax.analysis.advice import Advice
from vtax.analysis.estimate.bootstrap import LATE, TOO_FEW, mean_interval
from vtax.analysis.estimate.failures import told
from vtax.analysis.estimate.paired import exponential
from vtax.analysis.estimate.pairs import Frame, Pair
from vtax.analysis.estimate.randomisation import randomised
from vtax.analysis.estimate.summary import Runs, place_of_level
from vtax.analysis.multiplicity import INVALID, Claim
from vtax.analysis.notes import mean_effect, notes, timeouts_of
from vtax.analysis.records import CONCLUSIVE, Companion, Comparison, Timeouts, Verdict
from vtax.model.finding import Finding
from vtax.model.plan import Plan


@dataclass(frozen=True)
class Surroundings:
    """What of a campaign its comparisons need beside the pairs. `invalid` is why nothing of it compares, or ""."""

    frame: Frame
    plan: Plan
    findings: Sequence[Finding]
    advice: Advice
    runs: Runs
    failing: frozenset[tuple[str, str]]  # environment and label whose verdicts are about the runs that succeeded
    one_boot: frozenset[str]
    invalid: str


def comparison(one: Pair, claim: Claim | None, around: Surroundings) -> Comparison:
    """What is said of one pair; `claim` is None where it makes none."""
    level, study = one.level, around.frame.study
    word, sentence = _judgement(one, claim, around)
    test = randomised(one, around.frame, len(around.plan.environments))
    means = mean_interval(one, around.runs, study.seed)
    noted = notes(one, around.runs, math.log1p(study.margin), test, means)
    late = timeouts_of(one)
    caveat = verdict.caveat(around.findings, (level.environment, study.baseline))
    drifts = any(note.id == "EFFECT_DRIFTS" for note in noted) and word in CONCLUSIVE
    remarks = (
        around.advice.remark(one, word, claim.family if claim else 0),
        "" if late is None or one.effect is None else _late(one, late, study.baseline),
        "among successful runs" if one.effect is not None and _fails(one, around) else "",
        caveat,
        "for the observed period only" if drifts else "",
    )
    return Comparison(
        environment=level.environment,
        baseline=study.baseline,
        benchmark=level.benchmark,
        label=level.label,
        metric=level.metric,
        unit=level.unit,
        kind=level.kind,
        direction=level.direction,
        primary=level.primary,
        labels=level.labels,
        verdict=word,
        ruled_out_by=_ruled_out_by(one, word),
        sentence=sentence if level.primary else f"{sentence} (exploratory)",
        remark="; ".join(remark for remark in remarks if remark),
        caveat=caveat,
        dropped=one.dropped,
        companion=_companion(one),
        randomisation=test,
        more_rounds=around.advice.more_rounds(one, word),
        control=one.control,
        planned=one.planned,
        timeouts=late,
        notes=noted,
        **_estimated(one),
        **_tested(one, claim),
        **_of_means(one, means),
    )


def _ruled_out_by(one: Pair, word: Verdict) -> str:
    """The id of what makes a pair not comparable: a finding, or the control arm; "" where nothing does."""
    if word is not Verdict.NOT_COMPARABLE:
        return ""
    return one.blocker.id if one.blocker is not None else INVALID


def _estimated(one: Pair) -> dict[str, Any]:
    """The effect as a ratio with its interval, or as a difference where there are no logarithms."""
    found = one.effect
    if found is None:
        return {"n": 0}
    if not one.logged:
        ends = {"difference_low": found.low, "difference_high": found.high}
        return {"n": found.n, "sd": found.sd, "difference": found.theta, **ends}
    numbers = {"n": found.n, "sd": found.sd, "effect": found.theta, "ratio": exponential(found.theta)}
    if found.bounds is None:
        return numbers
    return {**numbers, "low": found.bounds[0], "high": found.bounds[1], "a_look": one.calibration.a_look}


def _tested(one: Pair, claim: Claim | None) -> dict[str, Any]:
    """The last look: the order that it adjusts for, and the p values of a claim."""
    if one.look is None:
        return {}
    carried = one.look.fit.carry_over
    order = {"order_adjusted": one.adjusted, "carry_over": None if carried is None else float(carried)}
    if claim is None:
        return order
    return {
        **order,
        "p_value": float(one.calibration.p_difference(one.look.fit)),
        "p_sequential": float(one.look.p_sequential),
        "p_adjusted": claim.p_adjusted,
    }


def _of_means(one: Pair, interval: tuple[float, float] | None) -> dict[str, Any]:
    """The ratio from total work over total time."""
    mean = mean_effect(one)
    if mean is None:
        return {"mean_without": LATE if one.late else ""}
    if interval is None:
        return {"mean_ratio": exponential(mean), "mean_without": TOO_FEW}
    return {"mean_ratio": exponential(mean), "mean_low": interval[0], "mean_high": interval[1]}


def _companion(one: Pair) -> Companion | None:
    if one.look is None:
        return None
    ratio, low, high = (exponential(part) if math.isfinite(part) else None for part in map(float, one.look.companion))
    return Companion(ratio=ratio, low=low, high=high)


def _fails(one: Pair, around: Surroundings) -> bool:
    """Whether so many runs of one of the two failed that the numbers are about those that did not."""
    both = (one.level.environment, around.frame.study.baseline)
    return any((name, one.level.label) in around.failing for name in both)


def _late(one: Pair, late: Timeouts, baseline: str) -> str:
    """Which rounds the interval does not hold."""
    sides = ((late.environment, one.level.environment), (late.baseline, baseline))
    return "without " + " and ".join(
        f"{count} round{'s' if count != 1 else ''} in which {name} ran into its time limit"
        for count, name in sides
        if count
    )


def _judgement(one: Pair, claim: Claim | None, around: Surroundings) -> tuple[Verdict, str]:
    """The verdict of one pair and the sentence that says it."""
    study, found = around.frame.study, one.effect
    if one.blocker is not None:
        return Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {one.blocker.message}"
    if around.invalid and not one.control:
        return Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {around.invalid}"
    if found is None:
        return Verdict.DATA_ONLY, f"{Verdict.DATA_ONLY}: {_nothing(one, around.frame)}"
    if not one.logged:
        return Verdict.DIFFERENCE_ONLY, verdict.difference_of(found)
    word = verdict.early(found) or (claim.word if claim is not None else Verdict.INCONCLUSIVE)
    sentence = verdict.sentence_of(word, found, study.margin)
    if word in CONCLUSIVE and {one.level.environment, study.baseline} & around.one_boot:
        sentence = f"{sentence}, for this one boot"
    return word, sentence


def _nothing(one: Pair, frame: Frame) -> str:
    """Why no round has a number of both."""
    baseline = frame.study.baseline
    sides = ((one.level.environment, one.level), (baseline, one.base))
    empty = [name for name, level in sides if level is not None and not level.cells]
    if not empty:
        return f"no round in which {baseline} has it too"
    where = place_of_level(one.level)[1:]
    ends = {name: told(frame.lost.get((name, *where), {})) for name in empty}
    return "; ".join(f"no round has a number of it in {name}{ends[name]}" for name in empty)
