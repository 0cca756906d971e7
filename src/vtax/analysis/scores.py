"""Composite scores: ratios of several metrics together, with the weights of the plan and none other (METHOD 1.10).

The differences of a round are averaged over the metrics first, and only then over the rounds. So what the metrics of a
round have in common stays in the interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from vtax.analysis import verdict
from vtax.analysis.estimate.columns import Floats, Ints
from vtax.analysis.estimate.paired import exponential
from vtax.analysis.estimate.pairs import Estimate, Frame, Pair, Rounds, estimate
from vtax.analysis.estimate.summary import Key, series_of
from vtax.analysis.records import CONCLUSIVE, Score, Verdict
from vtax.analysis.sequential.sequential_test import CODES, adjusted_words, benjamini_hochberg
from vtax.model.finding import Finding
from vtax.model.study import ScoreSpec

Made = tuple[ScoreSpec, str, Estimate | None, str]  # of one environment; why it does not compare, "" if it does


def scores(
    pairs: Sequence[Pair],
    found: Mapping[Key, object],
    frame: Frame,
    findings: Sequence[Finding],
    invalid: str,
    one_boot: frozenset[str],
) -> tuple[Score, ...]:
    """Every score of the study in every environment but the control arm; corrected among themselves, as exploratory.

    `invalid` is why nothing of the campaign compares, "" when nothing says so.
    """
    made = list(_made(pairs, found, frame, invalid))
    looks = [(i, e.look) for i, (_, _, e, refused) in enumerate(made) if e is not None and not refused]
    judged = [(i, look) for i, look in looks if look is not None]
    told: dict[int, tuple[float, Verdict]] = {}
    if judged:
        differs = benjamini_hochberg(np.array([look.p_sequential for _, look in judged]))
        within = benjamini_hochberg(np.array([look.p_within_sequential for _, look in judged]))
        words = adjusted_words(np.array([look.word for _, look in judged]), differs, within)
        told = {i: (float(p), CODES[int(w)]) for (i, _), p, w in zip(judged, differs, words, strict=True)}
    return tuple(_score(one, told.get(i), frame, findings, one_boot) for i, one in enumerate(made))


def _made(pairs: Sequence[Pair], found: Mapping[Key, object], frame: Frame, invalid: str) -> Iterator[Made]:
    environments = dict.fromkeys(one.level.environment for one in pairs if not one.control)
    for spec in frame.study.scores:
        for environment in environments:
            members = {metric: _members(metric, environment, pairs) for metric in spec.weights}
            every = [one for several in members.values() for one in several]
            missing = [m for m, several in members.items() if not _complete(m, several, found, frame.study.baseline)]
            blocked = next((one for one in every if one.blocker is not None), None)
            refused = invalid
            if missing:
                refused = f"{missing[0]} was not measured alike in {environment} and {frame.study.baseline}"
            elif blocked is not None and blocked.blocker is not None:
                refused = f"{name_of(blocked)}: {blocked.blocker.message}"
            combined = None if missing else _estimate(spec, members, environment, frame)
            yield spec, environment, combined, refused


def name_of(one: Pair) -> str:
    return f"{one.level.label}.{one.level.metric}"


def _members(metric: str, environment: str, pairs: Sequence[Pair]) -> list[Pair]:
    return [one for one in pairs if one.level.environment == environment and name_of(one) == metric and one.logged]


def _complete(metric: str, members: Sequence[Pair], found: Mapping[Key, object], baseline: str) -> bool:
    """Whether both have the metric, for the same nodes, operations and sizes."""
    theirs = {series for name, series in found if name == baseline and f"{series.label}.{series.metric}" == metric}
    return bool(members) and {series_of(one.level) for one in members} == theirs


def _estimate(
    spec: ScoreSpec, members: Mapping[str, Sequence[Pair]], environment: str, frame: Frame
) -> Estimate | None:
    """Over the rounds in which all of it was measured in both; None where there is none."""
    every = [one for several in members.values() for one in several]
    common = sorted(set.intersection(*(set(one.rounds.tolist()) for one in every)))
    rounds: Ints = np.array(common, np.int64)
    if not rounds.size:
        return None
    total = sum(spec.weights.values())
    differences: Floats = np.zeros(rounds.size)
    for metric, several in members.items():
        values = [one.differences[np.searchsorted(one.rounds, rounds)] for one in several]
        differences = differences + spec.weights[metric] / total * (np.sum(values, axis=0) / len(values))
    return estimate(rounds, differences, environment, frame, _slow(every))


def _slow(every: Sequence[Pair]) -> tuple[Rounds, Rounds]:
    """Rounds in which parts of it ran into their time limit, all in one of both environments; the rest has a value."""
    sides = []
    for mine, other in ((0, 1), (1, 0)):
        known = frozenset.intersection(*(frozenset(one.rounds.tolist()) | one.slow[mine] for one in every))
        late = frozenset[int]().union(*(one.slow[mine] for one in every))
        sides.append((known & late).difference(*(one.slow[other] for one in every)))
    return sides[0], sides[1]


def _score(
    made: Made, told: tuple[float, Verdict] | None, frame: Frame, findings: Sequence[Finding], one_boot: frozenset[str]
) -> Score:
    spec, environment, combined, refused = made
    study, effect = frame.study, combined.effect if combined is not None else None
    bounds = effect.bounds if effect is not None else None
    if refused:
        word, sentence = Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {refused}"
    elif effect is None:
        word, sentence = Verdict.DATA_ONLY, f"{Verdict.DATA_ONLY}: no round has all of it in both"
    else:
        word = verdict.early(effect) or (told[1] if told is not None else Verdict.INCONCLUSIVE)
        sentence = verdict.sentence_of(word, effect, study.margin)
    if word in CONCLUSIVE and {environment, study.baseline} & one_boot:
        sentence = f"{sentence}, for this one boot"
    return Score(
        name=spec.name,
        environment=environment,
        baseline=study.baseline,
        weights=spec.weights,
        n=effect.n if effect is not None else 0,
        effect=effect.theta if effect is not None else None,
        sd=effect.sd if effect is not None else None,
        ratio=exponential(effect.theta) if effect is not None else None,
        low=bounds[0] if bounds else None,
        high=bounds[1] if bounds else None,
        p_adjusted=told[0] if told is not None else None,
        verdict=word,
        sentence=f"{sentence} (exploratory)",
        caveat=verdict.caveat(findings, (environment, study.baseline)),
        dropped=max(0, frame.finished - (effect.n if effect is not None else 0)),
    )
