"""Whether a campaign's numbers may be believed: one small function a row, grouped as in METHOD section 3."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.audit import (
    clocks,
    course,
    disk,
    disturbance,
    environment,
    files,
    hpc,
    hpcc,
    limits,
    machine,
    method,
    mpi,
    network,
    programs,
    scores,
    streams,
    units,
)
from vtax.evidence.campaign import Counters, Evidence
from vtax.evidence.row import Row
from vtax.model.finding import AuditReport, AuditRow, Finding, Outcome, Severity, worst_first

__all__ = ["CATALOGUE", "Counters", "Evidence", "Row", "audit", "findings_of"]

CATALOGUE: tuple[Row, ...] = (
    network.loopback,
    network.one_host,
    streams.udp_rate,
    streams.cpu_bound,
    network.interfaces,
    streams.retransmits,
    streams.sender_side,
    network.few_packets,
    mpi.placement,
    mpi.binding,
    mpi.transport,
    mpi.problem,
    mpi.threads,
    hpcc.residuals,
    hpc.implausible,
    hpc.too_small,
    hpcc.best_of_many,
    hpcc.star_figures,
    hpcc.stream_arrays,
    hpcc.other_checks,
    programs.different,
    environment.different,
    environment.hidden_flags,
    environment.emulation,
    environment.nested,
    environment.layout,
    programs.blas_core,
    environment.machine_changed,
    environment.machines_changed,
    limits.not_applied,
    limits.throttled,
    limits.unequal,
    limits.shared_cpus,
    machine.steal,
    machine.foreign_load,
    machine.frequency_policy,
    machine.clock_speed,
    machine.kinds,
    disturbance.memory_pressure,
    disturbance.huge_pages,
    clocks.clock,
    clocks.elapsed,
    disturbance.too_short,
    files.iozone_unit,
    files.page_cache,
    files.flushed,
    disk.host_cache,
    disk.shared_filesystem,
    disk.reached_device,
    disk.storage_setup,
    disk.disk_in_memory,
    scores.bogo_operations,
    scores.cpu_time_rate,
    scores.sysbench_settings,
    units.unit_factors,
    units.declarations,
    units.reused,
    method.few_rounds,
    method.order,
    method.optional_stopping,
    course.drift,
    course.modes,
    method.confounded,
    method.missing_runs,
    course.control,
    disturbance.collector,
    method.one_source,
)
OUTCOMES = tuple(Outcome)  # declared in the order in which they are shown


def audit(evidence: Evidence) -> AuditReport:
    """Every row of the catalogue: failed ones first, the worst of them before others."""

    def key(row: AuditRow) -> tuple[int, int, str]:
        worst = min((found.severity.rank for found in row.findings), default=len(Severity))
        return OUTCOMES.index(row.outcome), worst, row.id

    return AuditReport(rows=tuple(sorted((row.look(evidence) for row in CATALOGUE), key=key)))


def findings_of(rows: Sequence[AuditRow]) -> tuple[Finding, ...]:
    """Everything that rows found, the worst first. What could not be seen counts where it would have blocked."""
    every = [found for row in rows for found in row.findings]
    return worst_first(found for found in every if not found.unknown or found.severity is not Severity.INFO)
