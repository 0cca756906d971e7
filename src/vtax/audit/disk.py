"""D: what the disks of the environments are."""

from __future__ import annotations

from vtax.audit.evidence import Evidence, info, shown, values_of, warning
from vtax.model import Finding, Scope

HOST_CACHES = frozenset({"writeback", "writethrough", "unsafe"})  # QEMU's words; "none" and "directsync" go past it
DISK_BENCHMARKS = frozenset({"iozone"})
NETWORK = frozenset({"nfs", "nfs4"})


def host_cache(evidence: Evidence) -> tuple[Finding, ...]:
    """D04: the host keeps blocks of a guest's disk in its own memory, beyond what the guest was given."""
    if not any(work.benchmark in DISK_BENCHMARKS for work in evidence.plan.work):
        return ()
    remedy = 'cache = "none" leaves caching to the guest alone'
    return tuple(
        warning(
            "D04",
            f"the disks of {environment} are cached by the host too (cache={evidence.option(environment, 'cache')}): "
            "reads and writes may never reach the disk",
            remedy,
            environment,
        )
        for environment in evidence.environments
        if evidence.option(environment, "cache") in HOST_CACHES
    )


def shared_filesystem(evidence: Evidence) -> tuple[Finding, ...]:
    """D05: the shared directory is not network storage; a warning where it is measured, or differs."""
    types = {
        environment: sorted({str(kind) for kinds in nodes.values() for kind in kinds})
        for environment in evidence.environments
        if (nodes := values_of(evidence, environment, "shared_filesystem"))
    }
    plain = {environment for environment, kinds in types.items() if not NETWORK.issuperset(kinds)}
    if not plain:
        return ()
    path = evidence.plan.study.shared_path
    named = [f"{'/'.join(kinds)} in {environment}" for environment, kinds in types.items()]
    measured = any(work.target.scope is Scope.SHARED for work in evidence.plan.work)
    unlike = len({tuple(kinds) for kinds in types.values()}) > 1
    message = f"{path} is {shown(named)}: a directory of this machine, not storage over a network"
    remedy = "read figures of the shared file system as figures of that directory; for network storage, use real nodes"
    if unlike:
        message += ", and not the same everywhere"
    return (warning("D05", message, remedy) if measured or unlike else info("D05", message, remedy),)
