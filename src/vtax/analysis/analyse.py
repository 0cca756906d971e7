"""The analysis of a campaign, whole: every level, every comparison with the baseline, every failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from vtax.analysis import verdict
from vtax.analysis.advice import advice_of
from vtax.analysis.comparison import ComparisonContext, comparison
from vtax.analysis.estimate.context import Declared, PairingContext
from vtax.analysis.estimate.failures import failing, failure_rates, failures
from vtax.analysis.estimate.pairs import Pair
from vtax.analysis.independent import independent_comparisons
from vtax.analysis.ladder import ladders
from vtax.analysis.multiplicity import claims
from vtax.analysis.prepared import Prepared, prepare
from vtax.analysis.records import VERDICT_FROM, Analysis
from vtax.analysis.scores import scores
from vtax.analysis.sequential.anytime import wider
from vtax.analysis.sequential.group_sequential import USUAL, Tables, calibration, level_of
from vtax.model.capabilities import NodeKind
from vtax.model.finding import Finding, worst_first
from vtax.model.measurement import Measurement
from vtax.model.plan import Origin, Plan
from vtax.model.study import Study
from vtax.model.trial import TrialRecord
from vtax.providers.recorded import capabilities_of


def analyse(
    measurements: Iterable[Measurement],
    *,
    plan: Plan,
    findings: Sequence[Finding],
    trials: Sequence[TrialRecord],
    tables: Tables | None = None,
    declared: Declared | None = None,
) -> Analysis:
    """Everything that measurements support, made up or simulated; see `prepare` for the arguments and errors."""
    return analysis_of(
        prepare(measurements, plan=plan, trials=trials, declared=declared or {}, tables=tables), findings
    )


def analysis_of(numbers: Prepared, findings: Iterable[Finding]) -> Analysis:
    """The analysis of prepared numbers under the findings of the audit.

    Rounds that were planned are compared pair by pair. Imported runs have none, so that they are compared as two
    independent samples, without intervals and verdicts.
    """
    plan, audit = numbers.plan, worst_first(findings)
    if plan.origin is Origin.IMPORTED:
        compared: dict[str, Any] = {"family": 0, "comparisons": independent_comparisons(numbers, audit)}
    else:
        compared = _by_rounds(numbers, audit)
    return Analysis(
        campaign=plan.study.name,
        plan_sha256=plan.sha256,
        baseline=plan.study.baseline,
        environments=numbers.environments,
        emulated=tuple(name for name in numbers.environments if name in numbers.context.emulated),
        margin=plan.study.margin,
        rounds_planned=plan.study.rounds,
        rounds_complete=numbers.context.complete,
        trials_planned=sum(len(cell.trials) for cell in plan.cells),
        trials_recorded=len(numbers.trials),
        levels=numbers.in_order(numbers.levels.values()),
        findings=audit,
        failures=failures(numbers.trials),
        machines=tuple(plan.study.machines),
        **compared,
    )


def _by_rounds(numbers: Prepared, findings: Sequence[Finding]) -> dict[str, Any]:
    """What paired rounds support: comparisons with verdicts, scores, ladders, advice."""
    plan, context = numbers.plan, numbers.context
    pairs = tuple(replace(one, blocker=_blocker(one, plan, findings)) for one in numbers.pairs)
    rates, boots = failure_rates(numbers.trials, context.baseline_of_entry, context.blocks), one_boot(plan)
    advice = advice_of(pairs, plan, numbers.trials, context, numbers.runs)
    around = ComparisonContext(numbers, findings, advice, failing(rates), frozenset(boots))
    claimed, adjusted = claims(pairs), any(one.adjusted for one in pairs)
    return {
        "order_adjusted": adjusted,
        "control": plan.study.control_name,
        "resolution": numbers.control.resolution,
        "family": sum(one.judged and one.level.primary for one in pairs),
        "comparisons": tuple(comparison(one, claimed.get(i), around) for i, one in enumerate(pairs)),
        "failure_rates": rates,
        "one_boot": boots,
        "advice": advice.sentences,
        "round_s": advice.round_s,
        "scores": scores(pairs, numbers, findings, frozenset(boots)),
        "ladder": ladders(numbers, findings),
        **_look_levels(context, adjusted=adjusted),
    }


def _look_levels(context: PairingContext, *, adjusted: bool) -> dict[str, Any]:
    """The planned looks, and the level that makes intervals hold at all of them."""
    study = context.study
    plain, ordered = (level_of(study, adjusted=way, tables=context.tables) for way in (False, True))
    return {
        "look": context.look,
        "looks": study.looks,
        "a_look": plain.a_look,
        "a_look_adjusted": ordered.a_look,
        "a_look_source": plain.source,
        "anytime_wider": _wider(study, context.complete, adjusted),
    }


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


def _blocker(one: Pair, plan: Plan, findings: Sequence[Finding]) -> Finding | None:
    return verdict.blocker(findings, one.both, one.level, plan)
