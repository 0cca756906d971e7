"""Whether a campaign's numbers may be believed: one small function a check, grouped as in METHOD section 3."""

from __future__ import annotations

from collections.abc import Callable

from vtax.audit import disk, disturbance, environment, hpc, limits, method, mpi, network, programs
from vtax.audit.evidence import Counters, Evidence
from vtax.model import Finding, Severity

__all__ = ["CHECKS", "Counters", "Evidence", "audit"]

Check = Callable[[Evidence], tuple[Finding, ...]]

CHECKS: tuple[Check, ...] = (
    method.few_rounds,
    method.order,
    method.missing_runs,
    mpi.placement,
    limits.not_applied,
    limits.throttled,
    limits.unequal,
    limits.shared_cpus,
    programs.different,
    programs.blas_core,
    environment.different,
    environment.hidden_flags,
    environment.emulation,
    environment.nested,
    disk.host_cache,
    disk.shared_filesystem,
    disturbance.memory_pressure,
    disturbance.clock_source,
    disturbance.too_short,
    network.udp_rate,
    hpc.implausible,
    hpc.too_small,
)
SEVERITIES = tuple(Severity)  # declared from the worst to the mildest


def audit(evidence: Evidence) -> tuple[Finding, ...]:
    """Everything that the checks find, the worst first."""
    found = [finding for check in CHECKS for finding in check(evidence)]

    def key(item: Finding) -> tuple[int, str, str, str, str]:
        return SEVERITIES.index(item.severity), item.id, item.environment, item.benchmark, item.message

    return tuple(sorted(found, key=key))
