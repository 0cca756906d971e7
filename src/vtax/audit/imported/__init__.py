"""What logs say against the numbers in them: rows of the catalogue (METHOD section 3) on imported campaigns.

An imported campaign has no probed nodes, no counters and no clock of ours, so rows that need them cannot speak. These
read what the logs themselves say, gathered as facts of each run when it was imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from vtax.audit.evidence import Evidence
from vtax.audit.imported import hpc, method, network, programs, scores, storage
from vtax.model import Finding, Severity

Check = Callable[[Evidence], Iterator[Finding]]
CHECKS: tuple[Check, ...] = (
    network.loopback,
    network.udp_rate,
    network.retransmits,
    hpc.placement,
    hpc.unused_ranks,
    hpc.bound_threads,
    hpc.transport,
    hpc.problem,
    hpc.residuals,
    hpc.short,
    hpc.best_of_many,
    hpc.per_process,
    hpc.random_access,
    hpc.timer,
    programs.builds,
    programs.blas,
    programs.kernels,
    storage.unit,
    storage.page_cache,
    storage.flush,
    storage.not_shared,
    scores.stress_ng,
    scores.cpu_shares,
    scores.sysbench,
    scores.killed,
    scores.too_short,
    method.unit_factors,
    method.reused,
    method.wrong_names,
    method.few_runs,
    method.windows,
)
FROM_TEXT = frozenset(  # rows of the catalogue that read raw output, or values, and so hold for logs too
    "N01 N03 N04 N06 N07 N08 M03 M04 H01 H04 H05 H06 H07 O01 D01 D02 D03 S01 S03 U01 U03 R07".split()  # noqa: SIM905
)
SEVERITIES = tuple(Severity)


def findings(evidence: Evidence, catalogue: Iterable[Finding]) -> tuple[Finding, ...]:
    """What the logs say, and what rows of the catalogue found in them, the worst first."""
    mine = [finding for check in CHECKS for finding in check(evidence)]
    said = {(one.id, one.environment, one.benchmark) for one in mine}
    kept = [
        one
        for one in catalogue
        if one.id in FROM_TEXT
        and not _unknown(one)
        and (one.id, one.environment, one.benchmark) not in said
        and not any(ours.id == one.id and ours.environment == one.environment and not ours.benchmark for ours in mine)
    ]

    def key(item: Finding) -> tuple[int, str, str, str, str]:
        return SEVERITIES.index(item.severity), item.id, item.environment, item.benchmark, item.message

    return tuple(sorted(dict.fromkeys((*mine, *kept)), key=key))


def _unknown(finding: Finding) -> bool:
    """Whether a row could not see what it looks for, which is so for most rows of any log."""
    return bool(getattr(finding, "unknown", False)) or "cannot be checked" in finding.message
