"""One pair as a comparison: its numbers, its verdict in words, and what must accompany them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vtax.analysis import verdict
from vtax.analysis.advice import Advice
from vtax.analysis.estimate.bootstrap import LATE, MACHINES, TOO_FEW, mean_interval
from vtax.analysis.estimate.context import PairingContext
from vtax.analysis.estimate.failures import endings_text
from vtax.analysis.estimate.paired import exponential
from vtax.analysis.estimate.pairs import Pair
from vtax.analysis.estimate.randomisation import randomised
from vtax.analysis.estimate.summary import place_of_level
from vtax.analysis.multiplicity import CONTROL_ROW, Claim
from vtax.analysis.notes import mean_effect, notes, timeout_bounds
from vtax.analysis.order import exchangeable
from vtax.analysis.prepared import Prepared
from vtax.analysis.records import (
    CONCLUSIVE,
    Companion,
    Comparison,
    MachineEffect,
    MachineSpread,
    RoundDifference,
    TimeoutBounds,
    Verdict,
)
from vtax.analysis.sequential.sequential_test import CODES, words
from vtax.model.finding import Finding
from vtax.model.plan import Plan


@dataclass(frozen=True)
class ComparisonContext:
    """What of a campaign its comparisons need besides the pairs."""

    numbers: Prepared
    findings: Sequence[Finding]
    advice: Advice
    failing: frozenset[tuple[str, str]]  # environment and label whose verdicts are about the runs that succeeded
    one_boot: frozenset[str]


def comparison(one: Pair, claim: Claim | None, around: ComparisonContext) -> Comparison:
    """The comparison of one pair; `claim` is None where it makes none."""
    level, plan = one.level, around.numbers.plan
    word, sentence = _verdict(one, claim, around)
    if one.substituted:
        sentence = f"{sentence} (vs {one.baseline})"
    test = randomised(one, around.numbers.context, _exchangeable(one, plan))
    means = mean_interval(one, around.numbers.runs, plan.study.seed)
    noted = notes(one, around.numbers.runs, plan.study.equivalence.delta, test, means)
    late = timeout_bounds(one)
    caveat = verdict.caveat(around.findings, one.both)
    drifts = any(note.id == "EFFECT_DRIFTS" for note in noted) and word in CONCLUSIVE
    remarks = (
        around.advice.remark(one, word, claim.family if claim else 0),
        "" if late is None or one.effect is None else _late_text(one, late),
        "among successful runs" if one.effect is not None and _fails(one, around) else "",
        caveat,
        "for the observed period only" if drifts else "",
        _others_text(one, word, plan.study.equivalence.delta),
    )
    return Comparison(
        **level.series_fields,
        environment=level.environment,
        baseline=one.baseline,
        verdict=word,
        ruled_out_by=_ruled_out_by(one, word),
        sentence=sentence if level.primary else f"{sentence} (exploratory)",
        remark="; ".join(remark for remark in remarks if remark),
        caveat=caveat,
        dropped=one.dropped,
        companion=_companion(one),
        randomisation=test,
        more_rounds=around.advice.more_rounds(one, word),
        new_campaign=around.advice.new_campaign(one, word),
        control=one.control,
        over=plan.rounds_of(level.environment) < min(plan.study.rounds, around.numbers.context.finished + 1),
        planned=one.planned,
        timeouts=late,
        notes=noted,
        interleave=one.interleave,
        by_round=_by_round(one),
        machines=machine_effects(one),
        spread=_spread(one),
        **effect_fields(one.effect, has_ratio=one.has_ratio, a_look=one.calibration.a_look),
        **_test_fields(one, claim),
        **_mean_fields(one, means),
    )


def _exchangeable(one: Pair, plan: Plan) -> int:
    """Of how many environments the orders were drawn in which the two of a pair may change places."""
    mine, theirs = plan.rounds_of(one.level.environment), plan.rounds_of(one.baseline)
    return exchangeable(mine, theirs, [plan.rounds_of(spec.name) for spec in plan.environments])


def _by_round(one: Pair) -> tuple[RoundDifference, ...]:
    """The differences of rounds in which trials alternated; none of whole cells, whose levels have them."""
    if one.by_round.pairs is None:
        return ()
    columns = (one.rounds.tolist(), one.differences.tolist(), one.by_round.pairs.tolist())
    return tuple(
        RoundDifference.model_construct(round=number, difference=difference, pairs=pairs)
        for number, difference, pairs in zip(*columns, strict=True)
    )


def machine_effects(one: Pair) -> tuple[MachineEffect, ...]:
    """The effect on each machine, in the order of the study; those that it is not about come last."""
    about = [
        MachineEffect(machine=name, **_machine_fields(effect_fields(part.effect, has_ratio=part.has_ratio)))
        for name, part in one.alone.items()
    ]
    few = (MachineEffect(machine=name, n=count, covered=False) for name, count in one.by_round.few.items())
    return (*about, *few)


def _machine_fields(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in ("sd", "a_look")}


def _spread(one: Pair) -> MachineSpread | None:
    found = one.spread
    if found is None:
        return None
    low, high = (None if end is None else exponential(float(end)) for end in (found.low, found.high))
    return MachineSpread(p_same=float(found.p), low=low, high=high, contradict=one.contradicted)


def _others_text(one: Pair, word: Verdict, delta: float) -> str:
    """What a verdict about these machines leaves open for others like them; "" where theirs is the same word."""
    found = one.spread
    if word not in CONCLUSIVE or found is None or found.low is None or found.high is None:
        return ""
    if CODES[int(words(found.low, found.high, delta))] is word:
        return ""
    ends = [verdict.percent(exponential(float(end))) for end in (found.low, found.high)]
    return f"other machines like these may differ: [{ends[0]}, {ends[1]}] %"


def _ruled_out_by(one: Pair, word: Verdict) -> str:
    """The id of what makes a pair not comparable: a finding, or the control arm; "" where nothing does."""
    if word is not Verdict.NOT_COMPARABLE:
        return ""
    return one.blocker.id if one.blocker is not None else CONTROL_ROW


def effect_fields(found: verdict.Effect | None, *, has_ratio: bool, a_look: float | None = None) -> dict[str, Any]:
    """The effect as a ratio with its interval, or as a difference where there are no logarithms."""
    if found is None:
        return {"n": 0}
    if not has_ratio:
        ends = {"difference_low": found.low, "difference_high": found.high}
        return {"n": found.n, "sd": found.sd, "difference": found.theta, **ends}
    numbers = {"n": found.n, "sd": found.sd, "effect": found.theta, "ratio": exponential(found.theta)}
    if found.bounds is None:
        return numbers
    return {**numbers, "low": found.bounds[0], "high": found.bounds[1], "a_look": a_look}


def _test_fields(one: Pair, claim: Claim | None) -> dict[str, Any]:
    """The last interim result: the order that it adjusts for, and the p values of a claim."""
    if one.interim is None:
        return {}
    carried = one.interim.fit.carry_over
    order = {"order_adjusted": one.adjusted, "carry_over": None if carried is None else float(carried)}
    if claim is None:
        return order
    return {
        **order,
        "p_value": float(one.calibration.p_difference(one.interim.fit)),
        "p_sequential": float(one.interim.p_sequential),
        "p_adjusted": claim.p_adjusted,
    }


def _mean_fields(one: Pair, interval: tuple[float, float] | None) -> dict[str, Any]:
    """The ratio from total work over total time."""
    mean = mean_effect(one)
    if mean is None:
        return {"mean_without": LATE if one.late else ""}
    if interval is None:
        return {"mean_ratio": exponential(mean), "mean_without": MACHINES if one.alone else TOO_FEW}
    return {"mean_ratio": exponential(mean), "mean_low": interval[0], "mean_high": interval[1]}


def _companion(one: Pair) -> Companion | None:
    if one.interim is None:
        return None
    parts = map(float, one.interim.companion)
    ratio, low, high = (exponential(part) if math.isfinite(part) else None for part in parts)
    return Companion(ratio=ratio, low=low, high=high)


def _fails(one: Pair, around: ComparisonContext) -> bool:
    """Whether so many runs of one of the two failed that the numbers are about those that did not."""
    return any((name, one.level.label) in around.failing for name in one.both)


def _late_text(one: Pair, late: TimeoutBounds) -> str:
    """Which rounds are not in the interval."""
    sides = ((late.environment, one.level.environment), (late.baseline, one.baseline))
    return "excluding " + " and ".join(
        f"{count} round{'s' if count != 1 else ''} in which {name} hit its time limit" for count, name in sides if count
    )


def _verdict(one: Pair, claim: Claim | None, around: ComparisonContext) -> tuple[Verdict, str]:
    """The verdict of one pair and its sentence."""
    study, found, invalid = around.numbers.plan.study, one.effect, around.numbers.control.excluded
    if one.blocker is not None:
        return Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {one.blocker.message}"
    if invalid and not one.control:
        return Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {invalid}"
    if found is None:
        return Verdict.DATA_ONLY, f"{Verdict.DATA_ONLY}: {_no_pairs_text(one, around.numbers.context)}"
    if not one.has_ratio:
        return Verdict.DIFFERENCE_ONLY, f"{Verdict.DIFFERENCE_ONLY}: {verdict.difference_text(found, one.level.unit)}"
    word = verdict.few_rounds_verdict(found) or (claim.verdict if claim is not None else Verdict.INCONCLUSIVE)
    sentence = verdict.sentence_of(word, found, study.margin)
    differ = one.spread is not None and one.spread.differ
    sentence = f"{sentence}{verdict.machines_text(study, one.alone, one.by_round.few, differ=differ)}"
    if word in CONCLUSIVE and {*one.both} & around.one_boot:
        sentence = f"{sentence}, {verdict.one_boot_text(study)}"
    return word, sentence


def _no_pairs_text(one: Pair, context: PairingContext) -> str:
    """Why no round has results for both."""
    sides = ((one.level.environment, one.level), (one.baseline, one.base))
    empty = [name for name, level in sides if level is not None and not level.cells]
    if not empty:
        return f"no round has results for both {one.level.environment} and {one.baseline}"
    where = place_of_level(one.level)[1:]
    endings = {name: endings_text(context.lost.get((name, *where), {})) for name in empty}
    return "; ".join(f"no round has a result in {name}{endings[name]}" for name in empty)
