"""From what a campaign stored to what it says: measurements, findings, verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vtax.model.finding import AuditReport
from vtax.model.look import Decision, LookLog
from vtax.model.plan import Origin
from vtax.store import Campaign
from vtax.tools import declared_metrics
from vtax.tools.trials import read_all

if TYPE_CHECKING:
    from vtax.analysis.records import Analysis


def judged(
    campaign: Campaign,
    until: int | None = None,
    ignoring: frozenset[str] = frozenset(),
    cache: Path | None = None,
) -> tuple[Analysis, AuditReport]:
    """The analysis of a campaign, or of its first rounds as if it had ended with them, without some findings; and
    every row of its audit. `cache` is the directory that keeps the levels of unusual looks once they are simulated."""
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
    measurements, trials, readings = read_all(tuple(t for t in campaign.trials() if until is None or t.round <= until))
    counters = {trial.id: trial.counters for trial in trials}
    tables = {} if plan.origin is Origin.IMPORTED else tables_of(plan.study, cache)
    prepared = prepare(measurements, plan=plan, trials=trials, tables=tables, declared=declared_metrics())
    evidence = Evidence(
        plan=plan,
        cells=cells,
        trials=trials,
        measurements=measurements,
        readings=readings,
        counters=counters,
        seal=campaign.seal(trials),
        prepared=prepared,
        looks=tuple(look.rounds for look in log.looks if look.decision is not Decision.BUDGET) if log else None,
    )
    rows = audit(evidence)
    findings = (finding for finding in findings_of(rows.rows) if finding.id not in ignoring)
    made = analysis_of(evidence.numbers, findings)
    if log is not None and until is None and _is_over(log):
        last = log.looks[-1]
        made = made.model_copy(update={"ended": f"after {last.rounds} rounds: {last.decision}: {last.reason}"})
    return made, rows


def _is_over(log: LookLog) -> bool:
    """Whether a campaign ended, for good or with its budget."""
    return bool(log.looks) and log.looks[-1].decision is not Decision.GO_ON
