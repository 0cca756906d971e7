"""The analysis of a campaign, whole: every level, every comparison with the baseline, every failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vtax.analysis import verdict
from vtax.analysis.advice import advice_of
from vtax.analysis.comparison import Surroundings, comparison
from vtax.analysis.estimate.columns import columns
from vtax.analysis.estimate.failures import failing, failure_rates, failures, lost, timeouts
from vtax.analysis.estimate.pairs import Frame, Pair, frame_of, missing_levels, pair
from vtax.analysis.estimate.summary import Key, levels_of, series_of
from vtax.analysis.ladder import ladders
from vtax.analysis.multiplicity import claims, control_excluded, invalid
from vtax.analysis.records import VERDICT_FROM, Analysis, Level
from vtax.analysis.scores import scores
from vtax.analysis.sequential.anytime import wider
from vtax.analysis.sequential.group_sequential import USUAL, Tables, calibration, level_of
from vtax.model.capabilities import NodeKind
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.model.trial import TrialRecord
from vtax.providers.recorded import capabilities_of

SEVERITIES = tuple(Severity)


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
    study, table, late = plan.study, columns(measurements), timeouts(trials)
    found, runs = levels_of(table, {trial.id: trial.started for trial in trials}, late)
    environments = _environments(plan, {key[0] for key in found})
    frame = frame_of(plan, trials, int(table.round.max(initial=0)), late, lost(trials), tables or {})
    ordered = _in_order(found.values(), environments)
    audit, rates = _ordered_findings(findings), failure_rates(trials, study.baseline)
    pairs = _pairs(found, environments, frame, audit)
    forbids = invalid(control_excluded(pairs))
    advice = advice_of(pairs, plan, trials, frame, runs)
    boots = one_boot(plan)
    around = Surroundings(frame, plan, audit, advice, runs, failing(rates), frozenset(boots), forbids)
    claimed = claims(pairs)
    return Analysis(
        campaign=study.name,
        plan_sha256=plan.sha256,
        baseline=study.baseline,
        environments=environments,
        margin=study.margin,
        rounds_planned=study.rounds,
        rounds_complete=frame.complete,
        order_adjusted=any(one.adjusted for one in pairs),
        control=study.control_name,
        resolution=_resolution(pairs),
        trials_planned=sum(len(cell.trials) for cell in plan.cells),
        trials_recorded=len(trials),
        family=sum(one.judged and one.level.primary for one in pairs),
        levels=ordered,
        comparisons=tuple(comparison(one, claimed.get(i), around) for i, one in enumerate(pairs)),
        findings=audit,
        failures=failures(trials),
        failure_rates=rates,
        one_boot=boots,
        advice=advice.sentences,
        scores=scores(pairs, found, frame, audit, forbids, frozenset(boots)),
        ladder=ladders(ordered, found, audit, frame, forbids),
        **_looked(frame, adjusted=any(one.adjusted for one in pairs)),
    )


def _looked(frame: Frame, *, adjusted: bool) -> dict[str, Any]:
    """The planned looks, and the level that makes intervals hold at all of them."""
    study = frame.study
    plain, ordered = (level_of(study, adjusted=way, tables=frame.tables) for way in (False, True))
    return {
        "look": frame.look,
        "looks": study.looks,
        "a_look": plain.a_look,
        "a_look_adjusted": ordered.a_look,
        "a_look_source": plain.source,
        "anytime_wider": _wider(study, frame.complete, adjusted),
    }


def _environments(plan: Plan, measured: set[str]) -> tuple[str, ...]:
    """In the order of the plan; one that the plan does not know comes last."""
    planned = tuple(environment.name for environment in plan.environments)
    return planned + tuple(sorted(measured - set(planned)))


def one_boot(plan: Plan) -> tuple[str, ...]:
    """Environments that are one instance for the whole campaign, so that claims are about that instance."""
    known = capabilities_of(plan)
    named = [spec.name for spec in plan.environments if known[spec.name].kind is not NodeKind.UNKNOWN]
    return tuple(name for name in named if not known[name].fresh_per_cell)


def _wider(study: Study, rounds: int, adjusted: bool) -> float | None:
    """How much wider anytime-valid intervals are here than those of the usual planned looks; None without them."""
    if not study.anytime or rounds < VERDICT_FROM:
        return None
    parameters = 1 + adjusted
    return wider(rounds, parameters, calibration(USUAL, adjusted=adjusted).critical(rounds, parameters))


def _in_order(several: Iterable[Level], environments: Sequence[str]) -> tuple[Level, ...]:
    return tuple(sorted(several, key=lambda level: (series_of(level), environments.index(level.environment))))


def _pairs(
    found: Mapping[Key, Level], environments: Sequence[str], frame: Frame, findings: Sequence[Finding]
) -> tuple[Pair, ...]:
    """Every series of every environment beside the baseline, also where no run gave a number."""
    baseline, every = frame.study.baseline, {**found, **missing_levels(found, frame)}

    def blocker(level: Level) -> Finding | None:
        names = frame.study.names_of(level.benchmark, level.label)
        return verdict.blocker(findings, (level.environment, baseline), level, names)

    return tuple(
        pair(level, every, frame, blocker(level))
        for level in _in_order(every.values(), environments)
        if level.environment != baseline and level.direction is not Direction.NONE
    )


def _resolution(pairs: Sequence[Pair]) -> float | None:
    widths = [
        width
        for one in pairs
        if one.control and one.level.primary and one.logged and one.effect is not None
        if (width := verdict.half_width(one.effect)) is not None
    ]
    return max(widths, default=None)


def _ordered_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    def key(item: Finding) -> tuple[int, str, str, str, str]:
        return (SEVERITIES.index(item.severity), item.id, item.environment, item.benchmark, item.message)

    return tuple(sorted(findings, key=key))
