"""From a stored campaign to its measurements, findings and verdicts, each computed once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vtax.analysis.records import Analysis


@dataclass(frozen=True)
class Evaluation:
    """A campaign, or its first rounds, with everything that its numbers support.

    `trials` are as they count (failed where their output was refused), without texts; `readings` are of trials by id.
    """

    plan: Plan
    cells: tuple[CellRecord, ...]
    trials: tuple[TrialRecord, ...]
    readings: Mapping[str, TrialReading]
    measurements: tuple[Measurement, ...]
    seal: Seal
    audit: AuditReport
    analysis: Analysis


def evaluate(
    campaign: Campaign,
    until: int | None = None,
    ignoring: frozenset[str] = frozenset(),
    cache: Path | None = None,
    readings: Readings | None = None,
) -> Evaluation:
    """Evaluate a campaign, or its first `until` rounds as if it had ended with them, without the findings `ignoring`.

    `cache` is the directory that caches the simulated levels of unusual looks; `readings` is what was already read
    from the campaign's output.
    """
    from vtax.analysis.analyse import analysis_of
    from vtax.analysis.prepared import prepare
    from vtax.audit import audit, findings_of
    from vtax.evaluation.calibration_cache import tables_of
    from vtax.evidence.campaign import Evidence

    log = campaign.look_log()
    end = until if until is not None else log.looks[-1].rounds if log and _is_over(log) else None
    plan, cells = campaign.plan(), campaign.cells()
    if end is not None:
        plan = plan.until(end)
        cells = tuple(cell for cell in cells if cell.round <= end)
    records = tuple(t for t in campaign.trials(texts=False) if until is None or t.round <= until)
    read = (readings or Readings(campaign)).all(records)
    trials = tuple(one.record for one in read)
    measurements = tuple(value for one in read for value in one.measurements)
    by_trial = {one.record.id: one.reading for one in read}
    seal = campaign.seal(trials)
    tables = {} if plan.origin is Origin.IMPORTED else tables_of(plan.study, cache)
    evidence = Evidence(
        plan=plan,
        cells=cells,
        trials=trials,
        measurements=measurements,
        readings=by_trial,
        counters={trial.id: trial.counters for trial in trials},
        seal=seal,
        prepared=prepare(measurements, plan=plan, trials=trials, tables=tables, declared=declared_metrics()),
        looks=tuple(look.rounds for look in log.looks if look.decision is not Decision.BUDGET) if log else None,
    )
    rows = audit(evidence)
    findings = (finding for finding in findings_of(rows.rows) if finding.id not in ignoring)
    made = analysis_of(evidence.numbers, findings)
    if log is not None and until is None and _is_over(log):
        last = log.looks[-1]
        made = made.model_copy(update={"ended": f"after {last.rounds} rounds: {last.decision}: {last.reason}"})
    return Evaluation(plan, cells, trials, by_trial, measurements, seal, rows, made)


def _is_over(log: LookLog) -> bool:
    """Whether a campaign ended, for good or with its budget."""
    return bool(log.looks) and log.looks[-1].decision is not Decision.GO_ON
