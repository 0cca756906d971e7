"""D04 to D08: what the disks of the environments are, and whether files reached them."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from vtax.audit.files import DIRECT, DISK_BENCHMARKS, HOST_CACHES, WRITES, flushes
from vtax.evidence import logs
from vtax.evidence.campaign import Evidence, blocker, differences, info, shown, unknown, values_of, warning
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity
from vtax.model.nodes import Scope
from vtax.model.trial import TrialRecord

NETWORK = frozenset({"nfs", "nfs4"})
MEMORY = frozenset({"tmpfs", "ramfs"})
ON_SHARED = {"filesystem": ("shared",)}  # the figures of benchmarks that ran there
REACHED = 0.5  # of the bytes that were claimed
LEAST_FREE = 0.05


def measures_disks(evidence: Evidence) -> str:
    return "" if evidence.labels_of(*DISK_BENCHMARKS) else "no benchmark measures disks"


@row(
    "D04",
    Severity.BLOCKER,
    "the host keeps a guest's disk in its own memory, or its disks are of another kind",
    why='reads and writes may never reach the disk; with cache = "unsafe" not even an fsync does',
    remedy='cache = "none" leaves caching to the guest alone',
    source="options of the environment; containers and the host have no disk of their own; imported logs do not tell",
    applies=measures_disks,
)
def host_cache(evidence: Evidence) -> Iterator[Finding | str]:
    """D04: the host keeps blocks of a guest's disk in its own memory, beyond what the guest was given."""
    for environment in evidence.environments:
        cache = evidence.option(environment, "cache")
        if cache in HOST_CACHES:
            said = blocker if cache == "unsafe" else warning
            message = f"the disks of {environment} are cached by the host too (cache={cache})"
            for label in evidence.labels_of(*DISK_BENCHMARKS):
                yield said("D04", f"{message}: reads and writes may never reach the disk", "", environment, label)
        elif cache is not None:
            disk, form = (evidence.option(environment, name) for name in ("disk", "format"))
            yield f"{environment}: cache={cache}, {disk or 'default'} disk, {form or 'default'} format"


def has_shared(evidence: Evidence) -> str:
    told = any(values_of(evidence, name, "shared_filesystem") for name in evidence.environments)
    measured = any(trial.scope is Scope.SHARED for trial in evidence.trials)
    return "" if told or measured else "no shared file system is known or measured"


@row(
    "D05",
    Severity.BLOCKER,
    "the shared file system is of another type than in the baseline, or is not network storage",
    why="a directory of the same machine has no network in it; against one that has, two kinds of storage are compared",
    remedy="read figures of the shared file system as figures of that directory; for network storage, use real nodes",
    source="the mount table of every node, and a token that one writes and all read; imported logs do not tell",
    applies=has_shared,
)
def shared_filesystem(evidence: Evidence) -> Iterator[Finding | str]:
    """D05: the shared directory is of another type, or no network storage. A blocker of the figures on it in the
    environment where it differs from the baseline's; a warning where it is alike and measured. Of the nodes of a
    network file system one, the server, has the directory itself."""
    types = {
        environment: sorted({str(kind) for kinds in nodes.values() for kind in kinds})
        for environment in evidence.environments
        if (nodes := values_of(evidence, environment, "shared_filesystem"))
    }
    if not types:
        yield unknown("D05", "what the shared file system is was not told")
        return
    path = evidence.plan.study.shared_path
    named = {environment: f"{'/'.join(kinds)} in {environment}" for environment, kinds in types.items()}
    measured = any(work.target.scope is Scope.SHARED for work in evidence.plan.work)
    unlike = list(differences(evidence, "shared_filesystem"))
    for one in unlike:
        message = f"{path} of {one.node} is {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in "
        said = blocker if measured else warning  # a blocker that touches no figure would stop what it does not mean
        yield said("D05", f"{message}{evidence.reference}", "", one.environment, labels=ON_SHARED)
    apart = {one.environment for one in unlike}
    plain = [name for name, kinds in types.items() if name not in apart and not NETWORK.intersection(kinds)]
    if plain:
        message = f"{path} is {shown([named[name] for name in plain])}: a directory of this machine, not storage over "
        said = warning if measured else info
        yield said("D05", f"{message}a network", labels=ON_SHARED)
    elif not unlike:
        yield shown(list(named.values()))


@row(
    "D06",
    Severity.BLOCKER,
    "bytes that were claimed never reached the device",
    why="direct or flushed writes must arrive at a disk of the machine; where they do not, a cache took them",
    remedy="look at the disk's cache mode, and whether the file system is one in memory",
    source="sectors in /proc/diskstats of the machine around every trial; absent where the machine shows no disk; "
    "imported logs do not tell",
    benchmarks=DISK_BENCHMARKS,
)
def reached_device(evidence: Evidence) -> Iterator[Finding | str]:
    """D06: bytes written by direct or flushed tests, and bytes that the machine's disks took meanwhile."""
    for (environment, label), trials in evidence.entries(*DISK_BENCHMARKS).items():
        if not flushes(trials) and not any(DIRECT.search(logs.text_of(trial)) for trial in trials):
            yield f"{label} in {environment} neither flushes nor goes past the page cache: see D02"
            continue
        pairs = [
            (claimed, trial.host_counters["disk_written_bytes"])
            for trial in trials
            if "disk_written_bytes" in trial.host_counters and (claimed := written(evidence, trial)) > 0
        ]
        if not pairs:
            yield unknown("D06", f"what the disks took during {label} was not counted", environment, label)
            continue
        share = median(taken / claimed for claimed, taken in pairs)
        said = f"{label} in {environment}: the disks took {share:.0%} of the bytes that it wrote (median)"
        if share < REACHED:
            scope = (
                {"labels": {"operation": WRITES}}
                if trials[0].benchmark == "iozone"
                else {"metrics": ("throughput_write",)}
            )
            yield blocker("D06", said, "", environment, label, **scope)
        else:
            yield said


def written(evidence: Evidence, trial: TrialRecord) -> float:
    """Bytes that a trial wrote at least: every file of iozone once, or sysbench's rate times its time."""
    mine = evidence.measured.get(trial.id, [])
    files = sum(
        int(one.labels["file_bytes"]) for one in mine if one.labels.get("operation") == "write" and one.unit == "byte/s"
    )
    time_s = logs.number(trial.params.get("time_s")) or 0.0
    return files + sum(one.value * time_s for one in mine if one.metric == "throughput_write")


SETUP = {
    "scratch_filesystem": "the file system of /scratch",
    "scratch_options": "the mount options of /scratch",
    "scratch_scheduler": "the I/O scheduler below /scratch",
}


@row(
    "D07",
    Severity.WARNING,
    "file system, mount options or I/O scheduler differ, or the disk is nearly full",
    why="journals, barriers and schedulers have costs of their own; a full file system looks for free blocks",
    remedy="use the same file system with the same options; free some space",
    source="mount table, df and /sys of every node; imported logs do not tell",
    applies=measures_disks,
)
def storage_setup(evidence: Evidence) -> Iterator[Finding | str]:
    """D07: how the storage is set up."""
    for fact, name in SETUP.items():
        for one in differences(evidence, fact):
            message = (
                f"{name} is {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in {evidence.reference}"
            )
            yield warning("D07", message, "", one.environment)
    for environment in evidence.environments:
        told = values_of(evidence, environment, "scratch_filesystem")
        if not told:
            yield unknown("D07", "no node told its file systems", environment)
        free = [v for every in values_of(evidence, environment, "scratch_free_fraction").values() for v in every]
        if free and min(free) < LEAST_FREE:
            yield warning("D07", f"/scratch in {environment} has {min(free):.1%} of its space left", "", environment)
        elif told:
            kinds = sorted({str(value) for every in told.values() for value in every})
            yield f"{environment}: /scratch is {shown(kinds)}" + (f", {min(free):.0%} free" if free else "")


@row(
    "D08",
    Severity.BLOCKER,
    "the disk under test is memory",
    why="tmpfs and ramfs have no disk at all",
    remedy="put /scratch on a disk",
    source="the mount table of every node; stress-ng's own line about its directory in imported logs",
    applies=measures_disks,
)
def disk_in_memory(evidence: Evidence) -> Iterator[Finding | str]:
    """D08: /scratch in memory. Not in METHOD's catalogue, which asks this of the shared file system alone."""
    labels = [
        label
        for label in evidence.labels_of(*DISK_BENCHMARKS)
        if any(trial.label == label and trial.scope is not Scope.SHARED for trial in evidence.trials)
    ]
    for environment in dict.fromkeys(environment for environment, _ in evidence.entries(*DISK_BENCHMARKS)):
        told = {str(v) for every in values_of(evidence, environment, "scratch_filesystem").values() for v in every}
        if not told:
            yield unknown("D08", "what is below /scratch was not told", environment)
        elif told & MEMORY:
            for label in labels:
                yield blocker("D08", f"/scratch in {environment} is {shown(sorted(told))}", "", environment, label)
        else:
            yield f"{environment}: {shown(sorted(told))}"
