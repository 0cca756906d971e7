"""What numbers of imported runs support: levels, and differences between them, without an interval or a verdict.

Run 3 here has nothing to do with run 3 there, so nothing is paired. Nobody made the runs fresh or put them in random
order, so no interval would mean what it says: a comparison is a ratio of levels, and at most a pilot.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from vtax.analysis.estimate.summary import levels, series_of
from vtax.analysis.records import Analysis, Comparison, Failure, Level, Verdict
from vtax.analysis.verdict import blocker
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction, Kind
from vtax.model.plan import Plan
from vtax.model.trial import Status, TrialRecord

PLACES = frozenset({"client", "server", "node", "target"})  # names that an environment gives its own machines
PILOT_FROM = 3  # runs on both sides
KNOWN = frozenset({"R01", "R02"})  # of every imported campaign: they keep a verdict away, not a difference
PLAIN = frozenset({Kind.PROPORTION, Kind.COUNT})
REMARK = "runs of unknown order, not fresh instances in randomised rounds (R01, R02)"
WIDE = 2.0
SEVERITIES = tuple(Severity)
Key = tuple[str, str, str, tuple[tuple[str, str], ...]]


def analyse(
    measurements: Iterable[Measurement], *, plan: Plan, findings: Sequence[Finding], trials: Sequence[TrialRecord]
) -> Analysis:
    """Levels of all environments and their differences from the baseline.

    Raises ParseError for numbers that cannot be: a rate of zero, two values for one thing.
    """
    baseline = plan.study.baseline
    environments = tuple(spec.name for spec in plan.environments)
    found = levels(measurements)
    ordered = sorted(found.values(), key=lambda level: (series_of(level), environments.index(level.environment)))
    done = {trial.id for trial in trials if trial.status is Status.OK}
    broken = {cell.round for cell in plan.cells if any(trial.id not in done for trial in cell.trials)}
    return Analysis(
        campaign=plan.study.name,
        plan_sha256=plan.sha256,
        baseline=baseline,
        environments=environments,
        margin=plan.study.margin,
        rounds_planned=plan.study.rounds,
        rounds_complete=len({cell.round for cell in plan.cells} - broken),
        trials_planned=sum(len(cell.trials) for cell in plan.cells),
        trials_recorded=len(trials),
        family=0,
        levels=tuple(ordered),
        comparisons=tuple(_comparisons(ordered, baseline, findings)),
        findings=tuple(sorted(findings, key=_worst_first)),
        failures=tuple(_failures(trials)),
    )


def _worst_first(item: Finding) -> tuple[int, str, str, str, str]:
    return SEVERITIES.index(item.severity), item.id, item.environment, item.benchmark, item.message


def key_of(level: Level) -> Key:
    """What two environments may share: all but the names of machines."""
    labels = tuple(sorted((name, value) for name, value in level.labels.items() if name not in PLACES))
    return level.benchmark, level.label, level.metric, labels


def _comparisons(ordered: Sequence[Level], baseline: str, findings: Sequence[Finding]) -> Iterable[Comparison]:
    """One for every series that an environment and the baseline both have, on equally many machines."""
    groups: Mapping[tuple[str, Key], list[Level]] = defaultdict(list)
    for level in ordered:
        if level.direction is not Direction.NONE:
            groups[level.environment, key_of(level)].append(level)
    for (environment, key), mine in groups.items():
        theirs = groups.get((baseline, key)) if environment != baseline else None
        if theirs and len(mine) == len(theirs):
            yield _comparison(mine, theirs, dict(key[3]), findings)


def _comparison(
    mine: list[Level], theirs: list[Level], labels: dict[str, str], findings: Sequence[Finding]
) -> Comparison:
    level, other = mine[0], theirs[0]
    ours, base = (fmean(one.typical for one in side) for side in (mine, theirs))
    n = min(one.n for one in (*mine, *theirs))
    plain = level.kind in PLAIN
    sign = 1.0 if level.direction is Direction.HIGHER else -1.0
    effect = None if plain else sign * math.log(ours / base)
    names = (level.benchmark, level.label)
    block = blocker(findings, (level.environment, other.environment), level, names, besides=KNOWN)
    word = Verdict.DIFFERENCE_ONLY if plain else Verdict.PILOT if n >= PILOT_FROM else Verdict.DATA_ONLY
    runs = f"{mine[0].n} run{'s' if mine[0].n != 1 else ''} against {theirs[0].n}"
    sentence = f"{word} ({runs}): {_said(ours - base if effect is None else effect, plain=plain)}"
    if block is not None:
        word, sentence = Verdict.NOT_COMPARABLE, f"{Verdict.NOT_COMPARABLE}: {block.message}"
    remark = REMARK if len(mine) == 1 else f"mean over {len(mine)} pairs or nodes; {REMARK}"
    return Comparison(
        environment=level.environment,
        baseline=other.environment,
        benchmark=level.benchmark,
        label=level.label,
        metric=level.metric,
        unit=level.unit,
        kind=level.kind,
        direction=level.direction,
        primary=level.primary,
        labels=labels if len(mine) > 1 else level.labels,
        n=n,
        effect=effect,
        ratio=None if effect is None else math.exp(effect),
        difference=ours - base if plain else None,
        verdict=word,
        ruled_out_by=block.id if block is not None else "",
        sentence=sentence if level.primary else f"{sentence} (exploratory)",
        remark=remark,
    )


def _said(effect: float, *, plain: bool) -> str:
    """The size of a difference: percent, or a factor where percent would mislead."""
    if plain:
        return f"{effect:+.3g}"
    ratio = math.exp(effect)
    return f"{100 * (ratio - 1):+.1f} %" if 1 / WIDE <= ratio <= WIDE else f"{ratio:.3g} times the baseline"


def _failures(trials: Sequence[TrialRecord]) -> Iterable[Failure]:
    for trial in sorted(trials, key=lambda trial: (trial.round, trial.id)):
        if trial.status is not Status.OK:
            yield Failure(
                trial=trial.id,
                environment=trial.environment,
                round=trial.round,
                benchmark=trial.benchmark,
                label=trial.label,
                warmup=trial.warmup,
                status=trial.status,
                reason=trial.failure,
            )
