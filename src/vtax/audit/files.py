"""D01 to D03: what iozone's and sysbench's figures of files are figures of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vtax.evidence import logs
from vtax.evidence.campaign import Evidence, blocker, shown, unknown, values_of, warning
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity
from vtax.model.trial import TrialRecord
from vtax.units import format_bytes

HOST_CACHES = frozenset({"writeback", "writethrough", "unsafe"})  # QEMU's words; "none" and "directsync" go past it
DISK_BENCHMARKS = ("iozone", "sysbench-fileio")
TIMES_MEMORY = 2  # a file of this many times the memory does not fit into the page cache

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
