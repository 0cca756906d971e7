"""The analysis of a campaign, whole: every level, every comparison with the baseline, every failure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vtax.analysis import verdict
from vtax.analysis.advice import Advice, advice_of
from vtax.analysis.anytime import wider
from vtax.analysis.bootstrap import TOO_FEW, mean_interval
from vtax.analysis.columns import columns
from vtax.analysis.decide import CODES, adjusted_words, benjamini_hochberg, holm
from vtax.analysis.estimate import exponential
from vtax.analysis.failures import censored, failing, failure_rates, failures
from vtax.analysis.ladder import ladders
from vtax.analysis.looks import USUAL, Tables, calibration, level_of
from vtax.analysis.notes import mean_effect, notes
from vtax.analysis.pairs import Frame, Pair, frame_of, pair
from vtax.analysis.randomisation import randomised
from vtax.analysis.records import CONCLUSIVE, VERDICT_FROM, Analysis, Companion, Comparison, Level, Verdict
from vtax.analysis.scores import scores
from vtax.analysis.summary import Key, Runs, levels_of, series_of
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.model.trial import TrialRecord

SEVERITIES = tuple(Severity)
ONE_BOOT = frozenset({"host"})  # providers that cannot make a fresh instance for each cell
INVALID = "INVALID_AA"
INVALID_BELOW = 0.01  # p of the control arm, over its primary metrics, at which the campaign is invalid


@dataclass(frozen=True)
class Claim:
    """What the correction for many comparisons leaves of a pair's claims."""

    p_adjusted: float
    word: Verdict
    family: int


def analyse(
    measurements: Iterable[Measurement],
    *,
    plan: Plan,
    findings: Sequence[Finding],
    trials: Sequence[TrialRecord],
    tables: Tables | None = None,
) -> Analysis:
    """Everything that the numbers of a campaign support, in an order that does not depend on theirs.

    `tables` saves the simulation of the plan's looks (`calibrations`), and changes no bit.
    Raises ParseError, naming the file, for numbers that cannot be: a rate of zero, two values for one thing.
    """
    study = plan.study
    table = columns(measurements)
    found, runs = levels_of(table, {trial.id: trial.started for trial in trials})
    environments = _environments(plan, {key[0] for key in found})
    ordered = sorted(found.values(), key=lambda level: (series_of(level), environments.index(level.environment)))
    audit = _ordered_findings(findings)
    rates = failure_rates(trials, study.baseline)
    frame = frame_of(plan, trials, int(table.round.max(initial=0)), censored(trials), tables or {})
    pairs = _pairs(ordered, found, frame, audit)
    claims = _claims(pairs)
    excluded = control_excluded(pairs)
    advice = advice_of(pairs, plan, trials, frame, runs)
    failed = failing(rates)
    comparisons = tuple(
        _comparison(
            one,
            claims.get(i),
            frame,
            plan,
            advice,
            runs,
            failed,
            excluded,
            verdict.caveat(audit, (one.level.environment, study.baseline)),
        )
        for i, one in enumerate(pairs)
    )
    plain, adjusted = (level_of(study, adjusted=way, tables=frame.tables) for way in (False, True))
    return Analysis(
        campaign=study.name,
        plan_sha256=plan.sha256,
        baseline=study.baseline,
        environments=environments,
        margin=study.margin,
        rounds_planned=study.rounds,
        rounds_complete=frame.complete,
        look=frame.look,
        looks=study.looks,
        a_look=plain.a_look,
        a_look_adjusted=adjusted.a_look,
        a_look_source=plain.source,
        order_adjusted=any(one.adjusted for one in pairs),
        anytime_wider=_wider(study, frame.complete, any(one.adjusted for one in pairs)),
        control=study.control_name,
        resolution=_resolution(pairs),
        trials_planned=sum(len(cell.trials) for cell in plan.cells),
        trials_recorded=len(trials),
        family=sum(one.judged and one.level.primary for one in pairs),
        levels=tuple(ordered),
        comparisons=comparisons,
        findings=audit,
        failures=failures(trials),
        failure_rates=rates,
        one_boot=one_boot(plan),
        advice=advice.sentences,
        scores=scores(pairs, found, frame, audit, _invalid(excluded), frozenset(one_boot(plan))),
        ladder=ladders(ordered, found, audit, frame),
    )


def _environments(plan: Plan, measured: set[str]) -> tuple[str, ...]:
    """In the order of the plan; one that the plan does not know comes last."""
    planned = tuple(environment.name for environment in plan.environments)
    return planned + tuple(sorted(measured - set(planned)))


def one_boot(plan: Plan) -> tuple[str, ...]:
    """Environments that are one instance for the whole campaign, so that claims are about that instance."""
    return tuple(spec.name for spec in plan.environments if spec.provider in ONE_BOOT)


def _wider(study: Study, rounds: int, adjusted: bool) -> float | None:
    """How much wider anytime-valid intervals are here than those of the usual planned looks; None without them."""
    if not study.anytime or rounds < VERDICT_FROM:
        return None
    parameters = 1 + adjusted
    return wider(rounds, parameters, calibration(USUAL, adjusted=adjusted).critical(rounds, parameters))


def _pairs(
    ordered: Sequence[Level], found: Mapping[Key, Level], frame: Frame, findings: Sequence[Finding]
) -> tuple[Pair, ...]:
    baseline = frame.study.baseline

    def blocker(level: Level) -> Finding | None:
        names = frame.study.names_of(level.benchmark, level.label)
        return verdict.blocker(findings, (level.environment, baseline), level, names)

    return tuple(
        pair(level, found, frame, blocker(level))
        for level in ordered
        if level.environment != baseline and level.direction is not Direction.NONE
    )


def _claims(pairs: Sequence[Pair]) -> dict[int, Claim]:
    """The claims of every judged pair, by its place: primary ones are one family, exploratory ones another.

    The control arm is no claim about anything; it is told at its own level.
    """
    claims: dict[int, Claim] = {}
    families = (
        (holm, [i for i, one in enumerate(pairs) if one.judged and one.level.primary]),
        (benjamini_hochberg, [i for i, one in enumerate(pairs) if one.judged and not one.level.primary]),
        (holm, [i for i, one in enumerate(pairs) if one.control and one.look is not None and one.level.primary]),
        (benjamini_hochberg, [i for i, one in enumerate(pairs) if one.control and one.look and not one.level.primary]),
    )
    for adjust, places in families:
        looks = [look for i in places if (look := pairs[i].look) is not None]
        if not looks:
            continue
        differs = adjust(np.array([look.p_sequential for look in looks]))
        within = adjust(np.array([look.p_within_sequential for look in looks]))
        words = adjusted_words(np.array([look.word for look in looks]), differs, within)
        for place, p, code in zip(places, differs.tolist(), words.tolist(), strict=True):
            claims[place] = Claim(p, CODES[code], len(places))
    return claims


def control_excluded(pairs: Sequence[Pair]) -> Pair | None:
    """The primary pair of the control arm whose interval excludes 1 beyond doubt; then the campaign is invalid."""
    arms = [(one, one.look) for one in pairs if one.control and one.level.primary]
    looks = [(one, look) for one, look in arms if look is not None]
    if not looks:
        return None
    adjusted = holm(np.array([look.p_sequential for _, look in looks]))
    worst = int(np.argmin(adjusted))
    return looks[worst][0] if adjusted[worst] < INVALID_BELOW else None


def _resolution(pairs: Sequence[Pair]) -> float | None:
    widths = [
        width
        for one in pairs
        if one.control and one.level.primary and one.logged and one.effect is not None
        if (width := verdict.half_width(one.effect)) is not None
    ]
    return max(widths, default=None)


def _comparison(
    one: Pair,
    claim: Claim | None,
    frame: Frame,
    plan: Plan,
    advice: Advice,
    runs: Runs,
    failed: frozenset[tuple[str, str]],
    excluded: Pair | None,
    caveat: str,
) -> Comparison:
    level, found, study = one.level, one.effect, frame.study
    word, sentence = _judgement(one, claim, frame, excluded)
    if word in CONCLUSIVE and {level.environment, study.baseline} & set(one_boot(plan)):
        sentence = f"{sentence}, for this one boot"
    means = mean_interval(one, runs, study.seed)
    test = randomised(one, frame, len(plan.environments))
    noted = notes(one, runs, math.log1p(study.margin), test, means)
    remarks = [advice.remark(one, word, claim.family if claim else 0)]
    if {(level.environment, level.label), (study.baseline, level.label)} & failed:
        remarks.append("among successful runs")
    remarks.append(caveat)
    if any(note.id == "EFFECT_DRIFTS" for note in noted) and word in CONCLUSIVE:
        remarks.append("for the observed period only")
    logged, bounds = found is not None and one.logged, found.bounds if found is not None else None
    plain = found is not None and not one.logged
    mean = mean_effect(one)
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
        n=found.n if found is not None else 0,
        effect=found.theta if found is not None and logged else None,
        sd=found.sd if found is not None else None,
        ratio=exponential(found.theta) if found is not None and logged else None,
        low=bounds[0] if bounds and logged else None,
        high=bounds[1] if bounds and logged else None,
        difference=found.theta if found is not None and plain else None,
        difference_low=found.low if found is not None and plain else None,
        difference_high=found.high if found is not None and plain else None,
        p_value=float(one.calibration.p_difference(one.look.fit))
        if one.look is not None and claim is not None
        else None,
        p_adjusted=claim.p_adjusted if claim is not None else None,
        verdict=word,
        ruled_out_by=_ruled_out_by(one, word),
        sentence=sentence if level.primary else f"{sentence} (exploratory)",
        remark="; ".join(remark for remark in remarks if remark),
        caveat=caveat,
        a_look=one.calibration.a_look if logged and bounds else None,
        order_adjusted=one.adjusted,
        carry_over=_carried(one),
        p_sequential=float(one.look.p_sequential) if one.look is not None and claim is not None else None,
        dropped=one.dropped,
        mean_ratio=None if mean is None else exponential(mean),
        mean_low=None if means is None else means[0],
        mean_high=None if means is None else means[1],
        mean_without="" if mean is None or means is not None else TOO_FEW,
        companion=_companion(one),
        randomisation=test,
        more_rounds=advice.more_rounds(one, word),
        control=one.control,
        notes=noted,
    )


def _judgement(one: Pair, claim: Claim | None, frame: Frame, excluded: Pair | None) -> tuple[Verdict, str]:
    """The verdict of one pair and the sentence that says it."""
    study, found = frame.study, one.effect
    if one.blocker is not None:
        return Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {one.blocker.message}"
    if excluded is not None and not one.control:
        return Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {_invalid(excluded)}"
    if found is None:
        return Verdict.DATA_ONLY, f"{Verdict.DATA_ONLY}: no round in which {study.baseline} has it too"
    if not one.logged:
        return Verdict.DIFFERENCE_ONLY, verdict.difference_of(found)
    word = verdict.early(found) or (claim.word if claim is not None else Verdict.INCONCLUSIVE)
    return word, verdict.sentence_of(word, found, study.margin)


def _ruled_out_by(one: Pair, word: Verdict) -> str:
    """The id of what makes a pair not comparable: a finding, or the control arm; "" where nothing does."""
    if word is not Verdict.NOT_COMPARABLE:
        return ""
    return one.blocker.id if one.blocker is not None else INVALID


def _invalid(excluded: Pair | None) -> str:
    """Why nothing of the campaign compares; "" when the control arm is as the baseline."""
    if excluded is None:
        return ""
    what = f"{excluded.level.label} {excluded.level.metric}"
    return f"{INVALID}, the control arm differs from the baseline that it repeats, in {what}"


def _carried(one: Pair) -> float | None:
    carried = one.look.fit.carry_over if one.look is not None else None
    return None if carried is None else float(carried)


def _companion(one: Pair) -> Companion | None:
    if one.look is None:
        return None
    ratio, low, high = (exponential(float(part)) for part in one.look.companion)
    return Companion(ratio=ratio, low=low, high=high)


def _ordered_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    def key(item: Finding) -> tuple[int, str, str, str, str]:
        return (SEVERITIES.index(item.severity), item.id, item.environment, item.benchmark, item.message)

    return tuple(sorted(findings, key=key))
