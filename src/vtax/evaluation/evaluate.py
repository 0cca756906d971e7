"""From a stored campaign to its measurements, findings and verdicts, each computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vtax.errors import UsageError
from vtax.evaluation.readings import Readings
from vtax.model.cluster import CellRecord
from vtax.model.finding import AuditReport
from vtax.model.look import Decision, LookLog
from vtax.model.measurement import Measurement
from vtax.model.plan import Origin, Plan
from vtax.model.reading import TrialReading
from vtax.model.seal import Seal
from vtax.model.trial import TrialRecord
from vtax.store import Campaign
from vtax.tools import declared_metrics
from vtax.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vtax.analysis.records import Analysis
    from vtax.evidence.campaign import Evidence


@dataclass(frozen=True)
class Evaluation:
    """A campaign, or its first rounds, with everything that its numbers support.

    `trials` are as they count (failed where their output was refused), without texts; `readings` are of trials by id.
    `evidence` is what the audit looked at, and findings in `ignoring` were left out of the analysis.
    """

    plan: Plan
    cells: tuple[CellRecord, ...]
    trials: tuple[TrialRecord, ...]
    readings: Mapping[str, TrialReading]
    measurements: tuple[Measurement, ...]
    seal: Seal
    audit: AuditReport
    analysis: Analysis
    evidence: Evidence
    ignoring: frozenset[str] = frozenset()

    def against(self, baseline: str) -> Evaluation:
        """The same numbers, with all environments compared with another one than the plan has, and audited so.

        Such an analysis is exploratory, and says so. Raises UsageError for an unknown environment, and for an emulated
        one: what is compared with it says nothing.
        """
        from vtax.analysis.estimate.baselines import candidates, with_baseline

        planned = self.plan.study.baseline
        plan = self.plan.model_copy(update={"study": with_baseline(self.plan.study, baseline)})
        if baseline == planned:
            return self
        if baseline in self.analysis.emulated:
            others = ", ".join((planned, *candidates(self.plan, self.analysis.emulated)))
            raise UsageError(
                f"environment {baseline!r} ran in software emulation, so nothing is compared with it",
                remedy=f"choose from {others}",
            )
        evidence = replace(self.evidence, plan=plan)
        evidence = replace(evidence, prepared=self.evidence.numbers.against(plan, evidence.emulated))
        rows, made = _judged(evidence, self.ignoring)
        said = f"{baseline} is not the planned baseline, which is {planned}: exploratory"
        made = made.model_copy(update={"ended": self.analysis.ended, "exploratory": said})
        return replace(self, plan=plan, audit=rows, analysis=made, evidence=evidence)


def evaluate(
    campaign: Campaign,
    until: int | None = None,
    ignoring: frozenset[str] = frozenset(),
    cache: Path | None = None,
    readings: Readings | None = None,
    baseline: str = "",
) -> Evaluation:
    """Evaluate a campaign, or its first `until` rounds as if it had ended with them, without the findings `ignoring`.

    Environments are compared with the baseline of the plan, or with another `baseline` (see `Evaluation.against`).

    `cache` is the directory that caches the simulated levels of unusual looks; `readings` is what was already read
    from the campaign's output.
    """
    from vtax.analysis.prepared import prepare
    from vtax.evaluation.calibration_cache import tables_of
    from vtax.evidence.campaign import Evidence
    from vtax.evidence.machine_cost import machine_cost
    from vtax.evidence.outside import from_outside

    log = campaign.look_log()
    end = until if until is not None else log.looks[-1].rounds if log and _is_over(log) else None
    plan, cells = campaign.plan(), campaign.cells()
    if end is not None:
        plan = plan.until(end)
        cells = tuple(cell for cell in cells if cell.round <= end)
    records = tuple(t for t in campaign.trials(texts=False) if until is None or t.round <= until)
    read = (readings or Readings(campaign)).all(records)
    trials = tuple(one.record for one in read)
    by_trial = {one.record.id: one.reading for one in read}
    printed = tuple(value for one in read for value in one.measurements)
    measurements = (*printed, *from_outside(plan, trials), *machine_cost(plan, trials, by_trial))
    seal = campaign.seal(trials)
    tables = {} if plan.origin is Origin.IMPORTED else tables_of(plan.study, cache)
    evidence = Evidence(
        plan=plan,
        cells=cells,
        trials=trials,
        measurements=printed,
        readings=by_trial,
        counters={trial.id: trial.counters for trial in trials},
        seal=seal,
        looks=tuple(look.rounds for look in log.looks if look.decision is not Decision.BUDGET) if log else None,
    )
    declared, emulated = declared_metrics(plan.study.benchmarks), evidence.emulated
    numbers = prepare(
        measurements,
        plan=plan,
        trials=trials,
        declared=declared,
        tables=tables,
        emulated=emulated,
        alternated=evidence.alternated,
    )
    evidence = replace(evidence, prepared=numbers)
    rows, made = _judged(evidence, ignoring)
    if log is not None and until is None and _is_over(log):
        last = log.looks[-1]
        rounds = f"{last.rounds} {plural(last.rounds, 'round')}"
        made = made.model_copy(update={"ended": f"after {rounds}: {last.decision}: {last.reason}"})
    found = Evaluation(plan, cells, trials, by_trial, measurements, seal, rows, made, evidence, ignoring)
    return found.against(baseline) if baseline else found


def _judged(evidence: Evidence, ignoring: frozenset[str]) -> tuple[AuditReport, Analysis]:
    """The audit of a campaign, and the analysis under its findings."""
    from vtax.analysis.analyse import analysis_of
    from vtax.audit import audit, findings_of

    rows = audit(evidence)
    findings = (finding for finding in findings_of(rows.rows) if finding.id not in ignoring)
    return rows, analysis_of(evidence.numbers, findings)


def _is_over(log: LookLog) -> bool:
    """Whether a campaign ended, for good or with its budget."""
    return bool(log.looks) and log.looks[-1].decision is not Decision.GO_ON
