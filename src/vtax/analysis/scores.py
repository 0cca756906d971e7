"""Composite scores: ratios of several metrics together, with the weights of the plan and no others.

The differences of a round are averaged over the metrics first, and only then over the rounds. So what the metrics of a
round have in common stays in the interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vtax.analysis import verdict
from vtax.analysis.comparison import effect_fields
from vtax.analysis.estimate.columns import Floats, Ints
from vtax.analysis.estimate.context import PairingContext
from vtax.analysis.estimate.differences import RoundDifferences, Rounds, over_machines
from vtax.analysis.estimate.pairs import Estimate, Pair, estimate
from vtax.analysis.estimate.summary import Key
from vtax.analysis.multiplicity import Claim, family_claims
from vtax.analysis.prepared import Prepared
from vtax.analysis.records import CONCLUSIVE, Score, Verdict
from vtax.analysis.sequential.sequential_test import benjamini_hochberg
from vtax.model.finding import Finding
from vtax.model.study import ScoreSpec


@dataclass(frozen=True)
class _Candidate:
    """A score of one environment; `refused` is why it does not compare, "" if it does."""

    spec: ScoreSpec
    both: tuple[str, str]  # the environment, and what it is compared with
    estimate: Estimate | None
    refused: str


def scores(
    pairs: Sequence[Pair], numbers: Prepared, findings: Sequence[Finding], one_boot: frozenset[str]
) -> tuple[Score, ...]:
    """Every score of the study in every environment but the control arm; corrected among themselves, as exploratory."""
    candidates = list(_candidates(pairs, numbers))
    judged = {
        i: one.estimate.interim
        for i, one in enumerate(candidates)
        if one.estimate is not None and one.estimate.interim is not None and not one.refused
    }
    claimed = dict(zip(judged, family_claims(list(judged.values()), benjamini_hochberg), strict=True))
    return tuple(_score(one, claimed.get(i), numbers.context, findings, one_boot) for i, one in enumerate(candidates))


def _candidates(pairs: Sequence[Pair], numbers: Prepared) -> Iterator[_Candidate]:
    study = numbers.context.study
    for spec in study.scores:
        for environment in dict.fromkeys(one.level.environment for one in pairs if not one.control):
            members = {metric: _members(metric, environment, pairs) for metric in spec.weights}
            every = [one for several in members.values() for one in several]
            baselines = list(dict.fromkeys(one.baseline for one in every)) or [study.baseline]
            both = (environment, baselines[0])
            missing = [m for m, several in members.items() if not _complete(m, several, numbers.levels, both[1])]
            blocked = (f"{metric_name(one)}: {one.blocker.message}" for one in every if one.blocker is not None)
            refused = next(blocked, numbers.control.excluded)
            if len(baselines) > 1:
                refused = f"its metrics are compared with different environments: {', '.join(baselines)}"
            elif missing:
                refused = f"{missing[0]} was not measured in the same way in {environment} and {both[1]}"
            apart = missing or len(baselines) > 1
            combined = None if apart else _estimate(spec, members, both, numbers.context)
            yield _Candidate(spec, both, combined, refused)


def metric_name(one: Pair) -> str:
    return f"{one.level.label}.{one.level.metric}"


def _members(metric: str, environment: str, pairs: Sequence[Pair]) -> list[Pair]:
    mine = (one for one in pairs if one.level.environment == environment and one.has_ratio)
    return [one for one in mine if metric_name(one) == metric]


def _complete(metric: str, members: Sequence[Pair], found: Iterable[Key], baseline: str) -> bool:
    """Whether both have the metric, for the same nodes, operations and sizes."""
    theirs = {series for name, series in found if name == baseline and f"{series.label}.{series.metric}" == metric}
    return bool(members) and {one.level.series for one in members} == theirs


def _estimate(
    spec: ScoreSpec, members: Mapping[str, Sequence[Pair]], both: tuple[str, str], context: PairingContext
) -> Estimate | None:
    """Over the rounds in which all of it was measured in both; None where there is none."""
    every = [one for several in members.values() for one in several]
    apart = {metric: [one.by_round for one in several] for metric, several in members.items()}
    machines = [name for name in every[0].alone if all(name in one.alone for one in every)]
    if any(one.alone for one in every):
        alone = {
            name: _weighted(spec, {metric: [one.alone[name] for one in several] for metric, several in apart.items()})
            for name in machines
        }
        combined = over_machines(alone)
    else:
        combined = _weighted(spec, apart)
    if not combined.rounds.size:
        return None
    return estimate(combined, both, context, mirrored=all(one.mirrored for one in every))


def _weighted(spec: ScoreSpec, apart: Mapping[str, Sequence[RoundDifferences]]) -> RoundDifferences:
    """The weighted mean of the differences of each round in which there are all of them."""
    every = [one for several in apart.values() for one in several]
    common = sorted(set.intersection(*(set(one.rounds.tolist()) for one in every)))
    rounds: Ints = np.array(common, np.int64)
    total = sum(spec.weights.values())
    differences: Floats = np.zeros(rounds.size)
    for metric, several in apart.items():
        values = [one.differences[np.searchsorted(one.rounds, rounds)] for one in several]
        differences = differences + spec.weights[metric] / total * (np.sum(values, axis=0) / len(values))
    return RoundDifferences(rounds, differences, _slow(every))


def _slow(every: Sequence[RoundDifferences]) -> tuple[Rounds, Rounds]:
    """Rounds in which parts of it hit their time limit, all in one of the two environments; the rest has a value."""
    sides = []
    for mine, other in ((0, 1), (1, 0)):
        known = frozenset.intersection(*(frozenset(one.rounds.tolist()) | one.slow[mine] for one in every))
        late = frozenset[int]().union(*(one.slow[mine] for one in every))
        sides.append((known & late).difference(*(one.slow[other] for one in every)))
    return sides[0], sides[1]


def _score(
    candidate: _Candidate,
    claim: Claim | None,
    context: PairingContext,
    findings: Sequence[Finding],
    one_boot: frozenset[str],
) -> Score:
    study, combined = context.study, candidate.estimate
    environment, baseline = candidate.both
    effect = combined.effect if combined is not None else None
    if candidate.refused:
        word, sentence = Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {candidate.refused}"
    elif combined is None or effect is None:
        word, sentence = Verdict.DATA_ONLY, f"{Verdict.DATA_ONLY}: no round has results for all of it in both"
    else:
        word = verdict.few_rounds_verdict(effect) or (claim.verdict if claim is not None else Verdict.INCONCLUSIVE)
        sentence = verdict.sentence_of(word, effect, study.margin)
        sentence += verdict.machines_text(study, combined.covered, combined.few)
    if word in CONCLUSIVE and {environment, baseline} & one_boot:
        sentence = f"{sentence}, {verdict.one_boot_text(study)}"
    if baseline != study.baseline:
        sentence = f"{sentence} (vs {baseline})"
    fields = effect_fields(effect, has_ratio=True)
    return Score(
        name=candidate.spec.name,
        environment=environment,
        baseline=baseline,
        weights=candidate.spec.weights,
        p_adjusted=claim.p_adjusted if claim is not None else None,
        verdict=word,
        sentence=f"{sentence} (exploratory)",
        caveat=verdict.caveat(findings, candidate.both),
        dropped=max(0, context.finished - (effect.n if effect is not None else 0)),
        **{name: value for name, value in fields.items() if name != "a_look"},
    )
