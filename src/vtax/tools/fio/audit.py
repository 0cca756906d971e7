"""F01 to F03: queues that are not as deep as was asked for, caches behind a guest's disk, refused direct I/O."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import Status

SYNCHRONOUS = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap")
ASYNCHRONOUS = ("libaio", "posixaio")
FASTER = 1.3  # than the machine that it runs on: more than noise between rounds
DIRECT_REFUSED = (  # what fio prints; "direct=1" alone is in its command too
    "does not support direct=1",
    "does not support O_DIRECT",
)
RATES = ("read_iops", "write_iops", "read_bandwidth", "write_bandwidth")
ABOUT = ("fio",)


@row(
    "F01",
    Severity.WARNING,
    "the queue is not as deep as was asked for",
    short="a queue of one",
    why="engines such as psync wait for each block whatever iodepth says, and so does libaio on buffered files",
    remedy="use ioengine=libaio with direct=1, or say iodepth=1",
    source="fio's options, in its JSON or above its text",
    benchmarks=ABOUT,
    needs=Needs("the options of fio", facts=("fio_options",)),
)
def queue_depth(evidence: Evidence) -> Iterator[Result]:
    """F01: iodepth that has no effect."""
    for (environment, label), trials in evidence.entries().items():
        for facts in evidence.facts(trials, "fio_options")[:1]:
            options = facts["fio_options"]
            engine, depth = str(options.get("ioengine", "")), str(options.get("iodepth", "1"))
            buffered = facts.get("direct_io") is False
            said = f"{label} in {environment}: {engine or 'the usual engine'}, iodepth={depth}"
            waits = engine in SYNCHRONOUS or (engine in ASYNCHRONOUS and buffered)
            if depth not in ("", "1") and waits:
                how = "on buffered files " if engine in ASYNCHRONOUS else ""
                yield Failed(f"{said}: {engine} {how}has one block at a time", environment, label)
            else:
                yield said


@row(
    "F02",
    Severity.BLOCKER,
    "a guest with a disk of its own is faster than the machine that it runs on",
    short="a cache behind the guest's disk",
    why="no virtual disk is faster than the disk below it: what is faster is the host's page cache, or a write that is "
    "reported as done before it is on the disk",
    remedy='set cache = "none" or "directsync" for the guest, and compare with direct I/O on the same disk',
    source="rates of direct I/O of environments with their own kernel, against the baseline's",
    benchmarks=ABOUT,
    needs=Needs("whether fio went past the page cache", facts=("direct_io",)),
)
def faster_than_host(evidence: Evidence) -> Iterator[Result]:
    """F02: direct I/O of a guest that is faster than the baseline's."""
    for (environment, label), trials in evidence.entries().items():
        base = evidence.counterpart(label)
        own = evidence.capabilities(environment).own_kernel or evidence.plan.origin is Origin.IMPORTED
        passed_by = all(facts["direct_io"] for facts in evidence.facts(trials, "direct_io"))
        if environment == base or not own or not passed_by:
            continue
        quick = []
        for metric in RATES:
            theirs, mine = evidence.values(base, label, metric), evidence.values(environment, label, metric)
            if theirs and mine and median(mine) > FASTER * median(theirs):
                quick.append((metric, median(mine) / median(theirs)))
        if quick:
            rates = ", ".join(f"{metric} {ratio:.2g} times" for metric, ratio in quick)
            message = f"{label}: {environment} has {rates} that of {base}, past its page cache"
            yield Failed(message, environment, label, metrics=tuple(metric for metric, _ in quick))
        else:
            yield f"{label}: {environment} is not faster than {base}"


@row(
    "F03",
    Severity.WARNING,
    "the file system refuses direct I/O",
    short="direct I/O refused",
    why="then nothing is known of this disk past the page cache; ramfs, tmpfs before Linux 6.6 and some network file "
    "systems never have it",
    remedy="put /scratch on another file system, or measure the page cache with the workload's -buffered form",
    source="what fio printed in trials that failed",
    benchmarks=ABOUT,
    needs=Needs("runs of vtax's own", origin=Origin.RUN),
)
def direct_refused(evidence: Evidence) -> Iterator[Result]:
    """F03: trials that failed because the file system cannot go past the page cache."""
    refused: dict[tuple[str, str], int] = {}
    for trial in evidence.trials:
        if trial.status is not Status.OK and any(words in trial.failure for words in DIRECT_REFUSED):
            key = (trial.environment, trial.label)
            refused[key] = refused.get(key, 0) + 1
    for (environment, label), count in refused.items():
        yield Failed(
            f"{label} in {environment}: direct I/O was refused in {count} run{'s' * (count > 1)}", environment, label
        )
    for environment, label in evidence.entries():
        if (environment, label) not in refused:
            yield f"{label} in {environment}: no run failed for that"
