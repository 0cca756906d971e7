"""D04 to D08: what the disks of the environments are, and whether files reached them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from vtax.audit.files import HOST_CACHES, WRITES, direct, flushes, touching
from vtax.audit.subjects import DISKS, reporting
from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence, differences, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import ADDITIONAL, Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.nodes import Scope
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord

NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "fuse.glusterfs"})
MEMORY = frozenset({"tmpfs", "ramfs"})
ON_SHARED = {"filesystem": ("shared",)}  # the figures of benchmarks that ran there
SHARED = re.compile(r"(?i)(?<![a-z])(?:shared?|nfs|network|remote)(?![a-z])")
COMMANDS = ("command", "invoked")  # facts of logs
REACHED = 0.5  # of the bytes that were claimed
LEAST_FREE = 0.05
SETUP = {
    "scratch_filesystem": "the file system of /scratch",
    "scratch_options": "the mount options of /scratch",
    "scratch_scheduler": "the I/O scheduler below /scratch",
}


@row(
    "D04",
    Severity.BLOCKER,
    "the host keeps a guest's disk in its own memory, or its disks are of another kind",
    short="a disk in the host's memory, or of another kind",
    why='reads and writes may never reach the disk; with cache = "unsafe" not even an fsync does',
    remedy='set cache = "none", which leaves caching to the guest alone',
    source="options of the environment; containers and the host have no separate disk",
    benchmarks=DISKS,
    needs=Needs("options of the environments", origin=Origin.RUN),
)
def host_cache(evidence: Evidence) -> Iterator[Result]:
    """D04: the host keeps blocks of a guest's disk in its own memory, beyond what the guest was given."""
    for environment in evidence.environments:
        cache = evidence.option(environment, "cache")
        if cache in HOST_CACHES:
            message = f"the disks of {environment} are cached by the host too (cache={cache})"
            for label in evidence.labels_of(*DISKS):
                yield Failed(message, environment, label, None if cache == "unsafe" else Severity.WARNING)
        elif cache is not None:
            disk, form = (evidence.option(environment, name) for name in ("disk", "format"))
            yield f"{environment}: cache={cache}, {disk or 'default'} disk, {form or 'default'} format"


def has_shared(evidence: Evidence) -> str:
    known = any(values_of(evidence, name, "shared_filesystem") for name in evidence.environments)
    measured = any(trial.scope is Scope.SHARED for trial in evidence.trials)
    logged = any(evidence.facts(evidence.trials, "filesystem"))
    called = any(map(called_shared, evidence.trials))
    return "" if known or measured or logged or called else "no shared file system is known or measured"


def called_shared(trial: TrialRecord) -> bool:
    """Whether the file or the command of an imported run of files names a shared directory, whose type is then
    unknown unless the log says it."""
    if trial.imported is None or trial.benchmark not in DISKS:
        return False
    said = (trial.imported.file, *trial.steps[0].argv, *(str(trial.imported.facts.get(f, "")) for f in COMMANDS))
    return any(SHARED.search(text) for text in said)


@row(
    "D05",
    Severity.BLOCKER,
    "the shared file system is of another type than in the baseline, or is not network storage",
    short="local or unequal shared storage",
    why="a directory of the same machine has no network in it; against one that has, two kinds of storage are compared",
    remedy="read figures of the shared file system as figures of that directory; for network storage, use real nodes",
    source="the mount table of every node, and a token that one writes and all read; in logs the file "
    "systems that they name",
    needs=(
        Needs("the type of the shared file system", node=("shared_filesystem",), origin=Origin.RUN),
        Needs("types of file systems", facts=("filesystem",), each="environment", origin=Origin.IMPORTED),
    ),
    applies=has_shared,
    note="blocks the figures on the shared file system of an environment where that is of another type than in the "
    "baseline (over a network, on a disk, in memory), and warns where only the file system differs; where it is alike "
    "it is a note, because that is about the name of a figure, which the report then says, and not about the "
    "comparison",
)
def shared_filesystem(evidence: Evidence) -> Iterator[Result]:
    """D05: the shared directory is of another type, or not network storage. A blocker of the figures on it in the
    environment where its kind differs from the baseline's; a note where it is alike. Of the nodes of a network file
    system one, the server, has the directory itself."""
    if evidence.plan.origin is Origin.IMPORTED:
        yield from directories(evidence)
        return
    types = {
        environment: sorted({str(kind) for kinds in nodes.values() for kind in kinds})
        for environment in evidence.environments
        if (nodes := values_of(evidence, environment, "shared_filesystem"))
    }
    path = evidence.plan.study.shared_path
    named = {environment: f"{'/'.join(kinds)} in {environment}" for environment, kinds in types.items()}
    measured = any(work.target.scope is Scope.SHARED for work in evidence.plan.work)
    unlike = list(differences(evidence, "shared_filesystem"))
    for one in unlike:
        message = f"{path} of {one.node} is {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in "
        same_kind = storage_kinds(one.theirs) == storage_kinds(one.reference)
        # a blocker that touches no figure would stop what it does not mean
        severity = Severity.WARNING if same_kind or not measured else None
        yield Failed(message + one.base, one.environment, severity=severity, labels=ON_SHARED, against=one.base)
    apart = {one.environment for one in unlike}
    plain = [name for name, kinds in types.items() if name not in apart and not NETWORK.intersection(kinds)]
    if plain:
        message = f"{path} is {shown([named[name] for name in plain])}: a directory of this machine, not storage over "
        yield Failed(f"{message}a network", severity=Severity.INFO, labels=ON_SHARED)
    elif not unlike:
        yield shown(list(named.values()))


def storage_kinds(types: Iterable[Any]) -> set[str]:
    """What file systems are: over a network, in memory, or on a disk of this machine."""
    return {"network" if kind in NETWORK else "memory" if kind in MEMORY else "disk" for kind in map(str, types)}


def directories(evidence: Evidence) -> Iterator[Result]:
    """Of logs: a directory that is called shared and is not network storage, or is of another type elsewhere."""
    types: dict[str, dict[str, str]] = {}
    for trial in evidence.trials:
        for facts in evidence.facts((trial,), "filesystem"):
            place = facts["filesystem"]
            for one in place if isinstance(place, list) else [place]:
                types.setdefault(str(one["path"]), {})[trial.environment] = str(one["type"])
    for path, kinds in types.items():
        local = [name for name, kind in kinds.items() if kind not in NETWORK]
        said = f"{path} is {shown([f'{kind} in {name}' for name, kind in kinds.items()])}"
        if len(set(kinds.values())) == 1 and not (local and "shared" in path):
            yield said
            continue
        message, remedy = f"{said}: its figures are not of the same storage", "use one kind of storage everywhere"
        for environment in local or list(kinds):
            for benchmark in dict.fromkeys(t.benchmark for t in evidence.trials if t.environment == environment):
                if benchmark in DISKS:
                    yield Failed(message, environment, benchmark, remedy=remedy)
            yield Failed(message, environment, severity=Severity.WARNING, remedy=remedy)


@row(
    "D06",
    Severity.BLOCKER,
    "bytes that were claimed never reached the device",
    short="bytes that never reached the disk",
    why="direct or flushed writes must arrive at a disk of the machine; where they do not, a cache took them",
    remedy="check the disk's cache mode, and whether the file system is one in memory",
    source="sectors in /proc/diskstats of the machine around every trial; absent where the machine shows no disk",
    note="a warning where they did not arrive in an environment and in what it is compared with: both figures are "
    "then of a cache",
    benchmarks=DISKS,
    needs=Needs("what the disks took", origin=Origin.RUN),
)
def reached_device(evidence: Evidence) -> Iterator[Result]:
    """D06: bytes written by direct or flushed tests, and bytes that the machine's disks took meanwhile."""
    absorbed: dict[tuple[str, str], Failed | None] = {}
    for (environment, label), trials in evidence.entries().items():
        where = f"{label} in {environment}"
        if not flushes(evidence, trials) and not direct(evidence, trials):
            yield f"{where} neither flushes nor goes past the page cache: see D02"
            continue
        shares = [
            trial.host_counters["disk_written_bytes"] / claimed
            for trial in trials
            if "disk_written_bytes" in trial.host_counters and (claimed := written(evidence, trial)) > 0
        ]
        if not shares:
            yield Undecided(f"{where}: not recorded: what the disks took", environment, label)
            continue
        said = f"{where}: the disks took {median(shares):.0%} of the bytes that it wrote (median)"
        if median(shares) < REACHED:
            metrics, labels = touching(evidence, trials, WRITES)
            absorbed[environment, label] = Failed(said, environment, label, metrics=metrics, labels=labels)
        else:
            absorbed[environment, label] = None
            yield said
    yield from weighed(evidence, absorbed, Severity.BLOCKER, alike=Severity.WARNING)


def written(evidence: Evidence, trial: TrialRecord) -> float:
    """Bytes that a trial wrote at least: what its tool says, every file once, or the rate times the time."""
    if said := evidence.facts((trial,), "written_bytes"):
        return float(sum(facts["written_bytes"] for facts in said))
    mine = evidence.measured.get(trial.id, [])
    files = sum(
        int(one.labels["file_bytes"]) for one in mine if one.labels.get("operation") == "write" and one.unit == "byte/s"
    )
    time_s = trial.params.get("time_s")
    rates = sum(one.value for one in mine if one.metric == "throughput_write")
    return files + rates * (float(time_s) if isinstance(time_s, int | float) else 0.0)


@row(
    "D07",
    Severity.WARNING,
    "file system, mount options or I/O scheduler differ, or the disk is nearly full",
    short="storage configured differently",
    why="journals, barriers and schedulers have costs of their own; a full file system looks for free blocks",
    remedy="use the same file system with the same options; free some space",
    source="mount table, df and /sys of every node",
    benchmarks=(*DISKS, *reporting("least_flushes")),  # databases wait for the disk too
    needs=Needs("the file systems of its nodes", node=("scratch_filesystem",), origin=Origin.RUN),
)
def storage_setup(evidence: Evidence) -> Iterator[Result]:
    """D07: how the storage is set up."""
    for fact, name in SETUP.items():
        for one in differences(evidence, fact):
            message = f"{name} is {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in "
            yield Failed(message + one.base, one.environment, against=one.base)
    for environment in evidence.environments:
        kinds = values_of(evidence, environment, "scratch_filesystem").values()
        free = [v for every in values_of(evidence, environment, "scratch_free_fraction").values() for v in every]
        if free and min(free) < LEAST_FREE:
            yield Failed(f"/scratch in {environment} has {min(free):.1%} of its space left", environment)
        else:
            said = f"{environment}: /scratch is {shown(sorted({str(value) for every in kinds for value in every}))}"
            yield said + (f", {min(free):.0%} free" if free else "")


@row(
    "D08",
    Severity.BLOCKER,
    "the disk under test is memory",
    short="a disk in memory",
    why="tmpfs and ramfs have no disk at all",
    remedy="put /scratch on a disk",
    source="the mount table of every node",
    benchmarks=DISKS,
    needs=Needs("the file system of /scratch", node=("scratch_filesystem",), origin=Origin.RUN),
    note=f"{ADDITIONAL}; a warning where it is memory in an environment and in what it is compared with",
)
def disk_in_memory(evidence: Evidence) -> Iterator[Result]:
    """D08: /scratch in memory."""
    in_memory: dict[tuple[str, str], Failed | None] = {}
    labels = dict.fromkeys(trial.label for trial in evidence.trials if trial.scope is not Scope.SHARED)
    for environment in dict.fromkeys(environment for environment, _ in evidence.entries()):
        kinds = {str(v) for every in values_of(evidence, environment, "scratch_filesystem").values() for v in every}
        if kinds & MEMORY:
            message = f"/scratch in {environment} is {shown(sorted(kinds))}"
            in_memory |= {(environment, label): Failed(message, environment, label) for label in labels}
        else:
            in_memory |= {(environment, label): None for label in labels}
            yield f"{environment}: {shown(sorted(kinds))}"
    yield from weighed(evidence, in_memory, Severity.BLOCKER, alike=Severity.WARNING)
