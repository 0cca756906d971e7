"""The analysis of a campaign, whole: every level, every comparison with the baseline, every failure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis import compare, verdict
from vtax.analysis.records import VERDICT_FROM, Analysis, Comparison, Failure, Level, Verdict
from vtax.analysis.summary import UNLOGGED, Series, levels, series_of
from vtax.model import Direction, Finding, Measurement, Plan, Severity, Status, Study, TrialRecord

FAILING = 0.1  # share of failed trials from which a verdict says that it is about the others
SEVERITIES = tuple(Severity)


@dataclass(frozen=True)
class Pair:
    """An environment and the baseline in one series; `found` is absent without a common round."""

    level: Level
    found: compare.Estimate | None
    blocker: Finding | None
    caveat: str = ""

    @property
    def judged(self) -> bool:
        """Whether it makes a claim at all, so that the correction counts it."""
        enough = self.found is not None and self.found.n >= VERDICT_FROM
        return enough and self.blocker is None and self.level.kind not in UNLOGGED


@dataclass(frozen=True)
class Claim:
    """What the correction for many comparisons leaves of a pair's two possible claims."""

    p_value: float
    p_adjusted: float
    differs: bool
    within: bool
    family: int


def analyse(
    measurements: Sequence[Measurement], *, plan: Plan, findings: Sequence[Finding], trials: Sequence[TrialRecord]
) -> Analysis:
    """Everything that the numbers of a campaign support, in an order that does not depend on theirs.

    Raises ParseError, naming the file, for numbers that cannot be: a rate of zero, two values for one thing.
    """
    study = plan.study
    environments = _environments(plan, measurements)
    found = levels(measurements)
    ordered = sorted(found.values(), key=lambda level: (series_of(level), environments.index(level.environment)))
    audit = _ordered_findings(findings)
    pairs = _pairs(ordered, found, study.baseline, audit)
    claims = _claims(pairs, math.log1p(study.margin))
    failing = _failing(trials)
    return Analysis(
        campaign=study.name,
        plan_sha256=plan.sha256,
        baseline=study.baseline,
        environments=environments,
        margin=study.margin,
        rounds_planned=study.rounds,
        rounds_complete=_complete_rounds(plan, trials),
        trials_planned=sum(len(cell.trials) for cell in plan.cells),
        trials_recorded=len(trials),
        family=sum(pair.judged and pair.level.primary for pair in pairs),
        levels=tuple(ordered),
        comparisons=tuple(_comparison(pair, claims.get(i), study, failing) for i, pair in enumerate(pairs)),
        findings=audit,
        failures=_failures(trials),
    )


def _environments(plan: Plan, measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """In the order of the plan; one that the plan does not know comes last."""
    planned = tuple(environment.name for environment in plan.environments)
    return planned + tuple(sorted({item.environment for item in measurements} - set(planned)))


def _pairs(
    ordered: Sequence[Level],
    found: Mapping[tuple[str, Series], Level],
    baseline: str,
    findings: Sequence[Finding],
) -> tuple[Pair, ...]:
    pairs = []
    for level in ordered:
        if level.environment == baseline or level.direction is Direction.NONE:
            continue
        other = found.get((baseline, series_of(level)))
        differences = compare.paired_differences(level, other) if other is not None else ()
        block = verdict.blocker(findings, (level.environment, baseline), level.benchmark, level.label)
        caveat = verdict.caveat(findings, (level.environment, baseline))
        pairs.append(Pair(level, compare.estimate(differences), block, caveat))
    return tuple(pairs)


def _claims(pairs: Sequence[Pair], delta: float) -> dict[int, Claim]:
    """The claims of every judged pair, by its place: primary ones are one family, exploratory ones another."""
    claims: dict[int, Claim] = {}
    for primary, adjust in ((True, verdict.holm), (False, verdict.benjamini_hochberg)):
        judged = [
            (place, pair.found)
            for place, pair in enumerate(pairs)
            if pair.judged and pair.found is not None and pair.level.primary is primary
        ]
        differs = [compare.p_difference(found) for _, found in judged]
        within = adjust([compare.p_equivalence(found, delta) for _, found in judged])
        for (place, _), p, q, w in zip(judged, differs, adjust(differs), within, strict=True):
            claims[place] = Claim(p, q, q <= verdict.LEVEL, w <= verdict.LEVEL, len(judged))
    return claims


def _comparison(pair: Pair, claim: Claim | None, study: Study, failing: frozenset[tuple[str, str]]) -> Comparison:
    level, found = pair.level, pair.found
    word, sentence = _judgement(pair, claim, study)
    remarks = []
    if found is not None and claim is not None:
        remarks.append(verdict.remark_of(word, found, study.margin, claim.family))
    if {(level.environment, level.label), (study.baseline, level.label)} & failing:
        remarks.append("among successful runs")
    remarks.append(pair.caveat)
    logged = found is not None and level.kind not in UNLOGGED
    plain = found is not None and not logged
    low, high = (found.low, found.high) if found is not None else (None, None)
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
        effect=found.mean if found is not None and logged else None,
        sd=found.sd if found is not None else None,
        ratio=compare.exponential(found.mean) if found is not None and logged else None,
        low=compare.exponential(low) if low is not None and logged else None,
        high=compare.exponential(high) if high is not None and logged else None,
        difference=found.mean if found is not None and plain else None,
        difference_low=low if plain else None,
        difference_high=high if plain else None,
        p_value=claim.p_value if claim is not None else None,
        p_adjusted=claim.p_adjusted if claim is not None else None,
        verdict=word,
        sentence=sentence if level.primary else f"{sentence} (exploratory)",
        remark="; ".join(remark for remark in remarks if remark),
    )


def _judgement(pair: Pair, claim: Claim | None, study: Study) -> tuple[Verdict, str]:
    """The verdict of one pair and the sentence that says it."""
    if pair.blocker is not None:
        return Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {pair.blocker.message}"
    if pair.found is None:
        return Verdict.DATA_ONLY, f"{Verdict.DATA_ONLY}: no round in which {study.baseline} has it too"
    if pair.level.kind in UNLOGGED:
        return Verdict.DIFFERENCE_ONLY, verdict.difference_of(pair.found)
    word = verdict.word_of(
        pair.found,
        math.log1p(study.margin),
        differs=claim is not None and claim.differs,
        within=claim is not None and claim.within,
    )
    return word, verdict.sentence_of(word, pair.found, study.margin)


def _ordered_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    def key(item: Finding) -> tuple[int, str, str, str, str]:
        return (SEVERITIES.index(item.severity), item.id, item.environment, item.benchmark, item.message)

    return tuple(sorted(findings, key=key))


def _complete_rounds(plan: Plan, trials: Sequence[TrialRecord]) -> int:
    """Rounds in which every planned measured trial of every environment succeeded."""
    done = {trial.id for trial in trials if trial.status is Status.OK}
    missing = {cell.round for cell in plan.cells if any(t.id not in done for t in cell.trials if not t.warmup)}
    return len({cell.round for cell in plan.cells} - missing)


def _failures(trials: Sequence[TrialRecord]) -> tuple[Failure, ...]:
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


def _failing(trials: Sequence[TrialRecord]) -> frozenset[tuple[str, str]]:
    """Environment and benchmark entry of which a tenth or more of the measured trials failed."""
    outcomes: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for trial in trials:
        if not trial.warmup:
            outcomes[trial.environment, trial.label][trial.status is Status.OK] += 1
    return frozenset(key for key, count in outcomes.items() if count[False] >= FAILING * count.total())
