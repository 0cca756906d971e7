"""D: what the disks of the environments are, and whether files reached them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from vtax.audit import logs
from vtax.audit.catalogue import row
from vtax.audit.evidence import Evidence, blocker, differences, info, shown, unknown, values_of, warning
from vtax.model import Finding, Scope, Severity, TrialRecord
from vtax.units import format_bytes

HOST_CACHES = frozenset({"writeback", "writethrough", "unsafe"})  # QEMU's words; "none" and "directsync" go past it
DISK_BENCHMARKS = ("iozone", "sysbench-fileio")
NETWORK = frozenset({"nfs", "nfs4"})
MEMORY = frozenset({"tmpfs", "ramfs"})
TIMES_MEMORY = 2  # a file of this many times the memory does not fit into the page cache
REACHED = 0.5  # of the bytes that were claimed
LEAST_FREE = 0.05

IOZONE_UNIT = re.compile(r"^[ \t]*((?:OPS Mode\. )?Output is in [^\r\n]+?)\s*$", re.MULTILINE)
IOZONE_COMMAND = re.compile(r"^[ \t]*Command line used: ([^\r\n]+)$", re.MULTILINE)
DIRECT = re.compile(r"^[ \t]*(?:O_DIRECT feature enabled|Extra file open flags: .*direct.*)", re.MULTILINE)
FLUSHED = re.compile(
    r"^[ \t]*(?:(Include fsync) in write timing|(Include close) in write timing"
    r"|(Periodic FSYNC) enabled|Calling (fsync\(\) at the end) of test, Enabled)",
    re.MULTILINE,
)
FILEIO_SIZE = re.compile(r"^([\d.]{1,12})(KiB|MiB|GiB|TiB) total file size", re.MULTILINE)
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
READS = ("read", "reread", "random_read", "backward_read", "stride_read", "fread", "freread")
WRITES = ("write", "rewrite", "random_write", "record_rewrite", "fwrite", "frewrite")


@row(
    "D01",
    Severity.BLOCKER,
    "iozone's operations per second read as kB/s",
    why="the same table holds either, and only the line above it tells which",
    remedy="keep iozone's header with its table; without it the unit is unknown and stays so",
    source="the line above iozone's table, and its command line; also in imported logs",
    benchmarks=("iozone",),
)
def iozone_unit(evidence: Evidence) -> Iterator[Finding | str]:
    """D01: what the numbers of iozone are."""
    for (environment, label), trials in evidence.entries("iozone").items():
        units = {unit for trial in trials for unit in logs.found(IOZONE_UNIT, trial)}
        commands = [command for trial in trials for command in logs.found(IOZONE_COMMAND, trial)]
        by_command = any("-O" in command.split() for command in commands)
        by_header = any("operations per second" in unit for unit in units)
        if not units and not any(trial.texts for trial in trials):
            yield unknown("D01", f"the output of {label} is not there", environment, label)
        elif not units:
            yield blocker("D01", f"the tables of {label} in {environment} have no unit", "", environment, label)
        elif by_command and not by_header:
            message = f"{label} in {environment} ran with -O, and its table says {shown(sorted(units))}"
            yield blocker("D01", message, "", environment, label)
        elif len(units) > 1:
            yield blocker("D01", f"{label} in {environment} mixes {shown(sorted(units))}", "", environment, label)
        else:
            yield f"{label} in {environment}: {shown(sorted(units))}"


@row(
    "D02",
    Severity.BLOCKER,
    "files smaller than twice the memory, without O_DIRECT",
    why="they fit into the page cache: reads, and writes that are not flushed, measure memory",
    remedy="set `direct = true`, or files of twice the memory (of the host's, where it caches the guest's disk too)",
    source="file sizes and flags of iozone's and sysbench's logs, also imported ones; memory of the plan's nodes",
    benchmarks=DISK_BENCHMARKS,
)
def page_cache(evidence: Evidence) -> Iterator[Finding | str]:
    """D02: reads from the page cache, and writes into it."""
    for (environment, label), trials in evidence.entries(*DISK_BENCHMARKS).items():
        if any(DIRECT.search(logs.text_of(trial)) for trial in trials):
            yield f"{label} in {environment}: O_DIRECT"
            continue
        largest, memory = largest_file(evidence, trials), memory_seen(evidence, environment, trials[0])
        if largest is None or memory is None:
            missing = "the size of the files" if largest is None else "the memory of the machine"
            yield unknown("D02", f"{missing} of {label} is not known", environment, label)
            continue
        said = f"{label} in {environment}: files up to {format_bytes(largest)}, {format_bytes(memory)} of memory"
        if largest >= TIMES_MEMORY * memory:
            yield said
            continue
        kinds = READS if flushes(trials) else (*READS, *WRITES)
        scope = {"labels": {"operation": kinds}} if trials[0].benchmark == "iozone" else {"metrics": fileio(kinds)}
        what = "reads" if flushes(trials) else "reads and writes"
        yield blocker("D02", f"{said}, no O_DIRECT: {what} measure the page cache", "", environment, label, **scope)


def fileio(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The metrics of sysbench-fileio that these kinds of operations touch."""
    return ("throughput_read", "throughput_write", "operations_rate") if "write" in kinds else ("throughput_read",)


def largest_file(evidence: Evidence, trials: list[TrialRecord]) -> int | None:
    """Bytes of the largest file of iozone, or of all files of sysbench together."""
    mine = [one for trial in trials for one in evidence.measured.get(trial.id, ())]
    sizes = [int(one.labels["file_bytes"]) for one in mine if "file_bytes" in one.labels]
    for trial in trials:
        for digits, unit in FILEIO_SIZE.findall(logs.text_of(trial)):
            sizes.append(int(float(digits) * UNITS[unit]))
        total = logs.number(trial.params.get("total_size"))
        sizes += [int(total)] if total else []
    return max(sizes, default=None)


def memory_seen(evidence: Evidence, environment: str, trial: TrialRecord) -> int | None:
    """Memory that may hold file pages: the node's, and the host's where it caches the guest's disk."""
    if evidence.option(environment, "cache") in HOST_CACHES:
        host = evidence.host_facts(environment).get("memory_total_bytes")
        if host:
            return int(host)
    planned = [node.memory_bytes for node in evidence.plan.shape.nodes if node.name in trial.nodes]
    told = [v for every in values_of(evidence, environment, "memory_total_bytes").values() for v in every]
    return max(planned, default=None) or max(told, default=None)


def flushes(trials: list[TrialRecord]) -> tuple[str, ...]:
    """How the timing of writes includes their way to the disk; empty when it does not."""
    found = {word for trial in trials for groups in FLUSHED.findall(logs.text_of(trial)) for word in groups if word}
    return tuple(sorted(found))


@row(
    "D03",
    Severity.WARNING,
    "the timing of writes leaves out the flush, or includes it in some environments only",
    why="a write without fsync ends when the data are in memory",
    remedy="set `include_flush` (iozone -e) or `fsync_end`, or `direct`",
    source="the lines above iozone's table and sysbench's options, also in imported logs",
    benchmarks=DISK_BENCHMARKS,
)
def flushed(evidence: Evidence) -> Iterator[Finding | str]:
    """D03: fsync and close in the timing of writes."""
    told = {}
    for (environment, label), trials in evidence.entries(*DISK_BENCHMARKS).items():
        if not any(trial.texts for trial in trials):
            yield unknown("D03", f"the output of {label} is not there", environment, label)
            continue
        how = shown(flushes(trials)) or "nothing"
        told[environment, label] = how
        direct = any(DIRECT.search(logs.text_of(trial)) for trial in trials)
        if how == "nothing" and not direct:
            yield warning(
                "D03", f"{label} in {environment}: the time of writes excludes the flush", "", environment, label
            )
        else:
            yield f"{label} in {environment}: O_DIRECT {'on' if direct else 'off'}, in the timing: {how}"
    for label in dict.fromkeys(label for _, label in told):
        ways = {environment: how for (environment, other), how in told.items() if other == label}
        if len(set(ways.values())) > 1:
            listed = ", ".join(f"{how} in {environment}" for environment, how in ways.items())
            yield warning("D03", f"{label} includes {listed}", "", "", label)


def measures_disks(evidence: Evidence) -> str:
    return "" if evidence.labels_of(*DISK_BENCHMARKS) else "no benchmark measures disks"


@row(
    "D04",
    Severity.BLOCKER,
    "the host keeps a guest's disk in its own memory, or its disks are of another kind",
    why='reads and writes may never reach the disk; with cache = "unsafe" not even an fsync does',
    remedy='cache = "none" leaves caching to the guest alone',
    source="options of the environment (QEMU); containers and the host have no disk of their own; imported logs do not "
    "tell",
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
    Severity.WARNING,
    "the shared file system is not network storage",
    why="a directory of the same machine has no network in it",
    remedy="read figures of the shared file system as figures of that directory; for network storage, use real nodes",
    source="the mount table of every node, and a token that one writes and all read; imported logs do not tell",
    applies=has_shared,
)
def shared_filesystem(evidence: Evidence) -> Iterator[Finding | str]:
    """D05: the shared directory is not network storage; a warning where it is measured, or differs."""
    types = {
        environment: sorted({str(kind) for kinds in nodes.values() for kind in kinds})
        for environment in evidence.environments
        if (nodes := values_of(evidence, environment, "shared_filesystem"))
    }
    if not types:
        yield unknown("D05", "what the shared file system is was not told")
        return
    plain = {environment for environment, kinds in types.items() if not NETWORK.issuperset(kinds)}
    if not plain:
        yield ", ".join(f"{shown(kinds)} in {environment}" for environment, kinds in types.items())
        return
    path = evidence.plan.study.shared_path
    named = [f"{'/'.join(kinds)} in {environment}" for environment, kinds in types.items()]
    measured = any(work.target.scope is Scope.SHARED for work in evidence.plan.work)
    unlike = len({tuple(kinds) for kinds in types.values()}) > 1
    message = f"{path} is {shown(named)}: a directory of this machine, not storage over a network"
    if unlike:
        message += ", and not the same everywhere"
    yield warning("D05", message) if measured or unlike else info("D05", message)


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
