"""D: whether figures of storage are of storage."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.audit.imported.evidence import runs, told
from vtax.evidence.campaign import Evidence, blocker, shown, warning
from vtax.model.finding import Finding
from vtax.units import format_bytes, format_quantity

FASTER_THAN_DISKS = 3e9  # byte/s: what a fast disk of one machine reads; a page cache does more
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "fuse.glusterfs"})
READS = {"iozone": ("throughput",), "sysbench-fileio": ("throughput_read",)}


def page_cache(evidence: Evidence) -> Iterator[Finding]:
    """D02: files that fit into memory, without O_DIRECT."""
    memory = {t.environment: f["memory_bytes"] for t, f in runs(evidence) if isinstance(f.get("memory_bytes"), int)}
    seen = set()
    for trial, facts in runs(evidence, "iozone", "sysbench-fileio"):
        where_ = (trial.environment, trial.label)
        if facts.get("direct_io") or "direct" in str(facts.get("file_flags", "")) or where_ in seen:
            continue
        rates = [
            one.value
            for one in evidence.measurements
            if one.trial == trial.id and one.metric in READS[trial.benchmark] and "sum" not in one.labels.values()
        ]
        size, room = facts.get("file_bytes"), memory.get(trial.environment)
        fits = isinstance(size, int) and isinstance(room, int) and size < 2 * room
        if not fits and (not rates or max(rates) < FASTER_THAN_DISKS):
            continue
        seen.add(where_)
        why = (
            f"files of up to {format_bytes(int(str(size)))} on nodes with {format_bytes(int(str(room)))} of memory"
            if fits
            else f"{format_quantity(max(rates), 'byte/s')} is more than any disk of a machine does"
        )
        message = f"{trial.label} in {trial.environment}: {why}, without O_DIRECT: the page cache was measured"
        yield blocker("D02", message, "use files of twice the memory, or -I / --file-extra-flags=direct", *where_)


def flush(evidence: Evidence) -> Iterator[Finding]:
    """D03: write times without the flush, or with it in one environment only."""
    found = told(evidence, "fsync_timed", "iozone")
    for environment, values_ in found.items():
        if values_ == ["False"]:
            message = f"iozone's write times in {environment} do not include fsync (-e) or close (-c)"
            yield warning("D03", message, "add -e -c", environment, "iozone")
        ours = found.get(evidence.reference, values_)
        if set(ours) != set(values_):
            message = f"fsync is timed in one of {environment} and {evidence.reference} only"
            yield blocker("D03", message, "use the same options", environment, "iozone")


def not_shared(evidence: Evidence) -> Iterator[Finding]:
    """D05: a directory that is called shared and is no network storage, or differs."""
    types: dict[str, dict[str, str]] = {}
    for trial, facts in runs(evidence):
        place = facts.get("filesystem")
        for one in place if isinstance(place, list) else [place]:
            if isinstance(one, dict):
                types.setdefault(str(one.get("path")), {})[trial.environment] = str(one.get("type"))
    for path, kinds in types.items():
        local = [name for name, kind in kinds.items() if kind not in NETWORK]
        if len(set(kinds.values())) > 1 or (local and "shared" in path):
            said = shown([f"{kind} in {name}" for name, kind in kinds.items()])
            message = f"{path} is {said}: figures of that directory are not of the same storage"
            for environment in local or list(kinds):
                for benchmark in ("iozone", "sysbench-fileio"):
                    if any(trial.environment == environment for trial, _ in runs(evidence, benchmark)):
                        yield blocker("D05", message, "use one kind of storage everywhere", environment, benchmark)
                yield warning("D05", message, "use one kind of storage everywhere", environment)
