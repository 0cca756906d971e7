"""B02 to B05: work on servers: what failed, whether the client was the limit, how finely it measures, and whether
commits reached a disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from vtax.audit.disk import MEMORY
from vtax.audit.subjects import SERVERS, reporting
from vtax.evidence.alike import A_NOTE, Condition, judged
from vtax.evidence.campaign import Evidence, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord

FAILED_SHARE = 0.01  # of what was done: above it, a rate of what succeeded is another number
BUSY = 0.9  # of the CPU time that a client could take at most
COARSE = 0.05  # of a time: half of the step with which it is measured
FLUSHES = "least_flushes"
BLOCK_BYTES = 512  # the least that reaches a disk


@row(
    "B02",
    Severity.BLOCKER,
    "more than one in a hundred requests or transactions failed",
    short="failed requests",
    why="an error is answered faster or slower than what it takes the place of, and some tools count it as work done",
    remedy="look at what failed, in the raw output and in the server's log; use fewer connections, or a larger scale",
    source="the counts of failures that the tool prints",
    note="a warning where an environment and what it is compared with are alike",
    benchmarks=SERVERS,
    needs=Needs("how many operations failed", facts=("failed_operations",)),
)
def failures(evidence: Evidence) -> Iterator[Result]:
    """B02: failures among what was counted, or left out of it."""
    found = {}
    for key, trials in evidence.entries().items():
        counted = [(facts["failed_operations"], facts["operations"]) for facts in _counts(evidence, trials)]
        failed, done = (sum(pair[side] for pair in counted) for side in (0, 1))
        share = failed / max(1, failed + done)
        said = f"{failed:,} failed next to {done:,} that did not ({100 * share:.3g} %)"
        found[key] = Condition(said, share > FAILED_SHARE)
    yield from judged(evidence, found, Severity.BLOCKER, Severity.WARNING)


def _counts(evidence: Evidence, trials: list[TrialRecord]) -> list[Mapping[str, Any]]:
    return evidence.facts(trials, "failed_operations", "operations")


@row(
    "B03",
    Severity.WARNING,
    "the client, and not the server, was the limit",
    short="the client was the limit",
    why="a client that is busy all the time asks no faster, so the rate is its own, and a faster server would not show",
    remedy="give the client more threads, or put it on a node of its own",
    source="the client's own CPU time and wall time, by vtax-run, and its threads",
    note=A_NOTE,
    benchmarks=SERVERS,
    needs=Needs("the client's threads and its CPU time", facts=("client_threads",), metrics=("user",)),
)
def busy_client(evidence: Evidence) -> Iterator[Result]:
    """B03: whether the client used all the CPU time that it could."""
    found = {}
    for key, trials in evidence.entries().items():
        busy = [share for trial in trials if (share := _busy(evidence, trial)) is not None]
        if busy:
            middle = sorted(busy)[len(busy) // 2]
            said = f"the client used {100 * middle:.3g} % of the CPU time that its threads could"
            found[key] = Condition(said, middle > BUSY)
    yield from judged(evidence, found, Severity.WARNING)


def _busy(evidence: Evidence, trial: TrialRecord) -> float | None:
    """CPU time of the client as a share of what its threads could take; None where that is not known."""
    threads = [facts["client_threads"] for facts in evidence.facts((trial,), "client_threads")]
    said = {one.metric: one.value for one in evidence.measured.get(trial.id, ())}
    if not threads or not said.get("wall") or not {"user", "system"} & said.keys():
        return None
    cpus = {node.name: node.cpus for node in evidence.plan.shape.nodes}
    most = min(max(threads), max((cpus.get(name, max(threads)) for name in trial.nodes), default=max(threads)))
    return float((said.get("user", 0.0) + said.get("system", 0.0)) / (said["wall"] * most))


@row(
    "B04",
    Severity.WARNING,
    "times that are a few steps of the client's timer",
    short="times of few steps",
    why="a time that the client measures in large steps is rounded by more than the difference that is looked for",
    remedy="compare rates instead, or make a run longer, or what is timed larger",
    source="the steps in the distribution of latencies, or the decimals of the only time, that the tool prints",
    note=A_NOTE,
    benchmarks=tuple(dict.fromkeys((*SERVERS, *reporting("time_rounding")))),
    needs=Needs("the steps of the client's timer", facts=("time_rounding",)),
)
def coarse_times(evidence: Evidence) -> Iterator[Result]:
    """B04: whether the client's timer is fine enough for what it measured."""
    found = {}
    for key, trials in evidence.entries().items():
        known = evidence.facts(trials, "time_rounding")
        rounding = max(facts["time_rounding"] for facts in known)
        metrics = tuple(known[0].get("rounded", ()))
        found[key] = Condition(f"its times are right to {100 * rounding:.2g} %", rounding > COARSE, metrics)
    yield from judged(evidence, found, Severity.WARNING)


@row(
    "B05",
    Severity.BLOCKER,
    "commits did not wait for a disk",
    short="commits without a disk",
    why="most of a durable transaction is the wait for the disk: where a server, a cache or a file system in memory "
    "leaves it out, other work is measured",
    remedy='put /scratch on a disk, leave `fsync` on, and give virtual machines any cache but "unsafe"',
    source="transactions and clients that the tool prints; sectors in /proc/diskstats of the machine around every "
    "trial; the file system of /scratch and the disk cache of the environment",
    note="a warning where it is so in an environment and in what it is compared with",
    benchmarks=reporting(FLUSHES),
    needs=Needs("whether transactions write", facts=(FLUSHES,), origin=Origin.RUN),
)
def commits(evidence: Evidence) -> Iterator[Result]:
    """B05: every group of commits writes at least one block to a disk of the machine."""
    found = {}
    for (environment, label), trials in evidence.entries().items():
        flushes = {one.id: sum(said[FLUSHES] for said in evidence.facts((one,), FLUSHES)) for one in trials}
        kinds = {str(v) for every in values_of(evidence, environment, "scratch_filesystem").values() for v in every}
        shares = [
            one.host_counters["disk_written_bytes"] / (BLOCK_BYTES * flushes[one.id])
            for one in trials
            if flushes[one.id] and "disk_written_bytes" in one.host_counters
        ]
        if not any(flushes.values()):
            found[environment, label] = Condition("its transactions only read", fails=False)
        elif kinds & MEMORY:
            found[environment, label] = Condition(f"/scratch is {shown(sorted(kinds))}", fails=True)
        elif evidence.option(environment, "cache") == "unsafe":
            found[environment, label] = Condition("the host ignores flushes of the guest (cache=unsafe)", fails=True)
        elif shares:
            said = f"the disks took {median(shares):.3g} blocks for every wait of a commit (median)"
            found[environment, label] = Condition(said, median(shares) < 1)
        else:
            yield Undecided(f"{label} in {environment}: not recorded: what the disks took", environment, label)
    yield from judged(evidence, found, Severity.BLOCKER, Severity.WARNING)
