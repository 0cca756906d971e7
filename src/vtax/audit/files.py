"""D02, D03: what figures of files are figures of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vtax.audit.subjects import DISKS, STORAGE
from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord
from vtax.units import format_bytes, format_quantity

HOST_CACHES = frozenset({"writeback", "writethrough", "unsafe"})  # QEMU's words; "none" and "directsync" go past it
TIMES_MEMORY = 2  # a file of this many times the memory does not fit into the page cache
FASTER_THAN_DISKS = 3e9  # byte/s, where sizes are unknown: a page cache does more than a fast disk of one machine
READS = ("read", "reread", "random_read", "backward_read", "stride_read", "fread", "freread")
WRITES = ("write", "rewrite", "random_write", "record_rewrite", "fwrite", "frewrite")
FLUSHES = {"fsync_timed": "fsync", "close_timed": "close"}


def direct(evidence: Evidence, trials: Sequence[TrialRecord]) -> bool:
    """Whether files were opened with O_DIRECT."""
    return any(facts["direct_io"] for facts in evidence.facts(trials, "direct_io"))


def flushes(evidence: Evidence, trials: Sequence[TrialRecord]) -> tuple[str, ...]:
    """How the timing of writes includes their way to the disk; empty when it does not."""
    return tuple(words for fact, words in FLUSHES.items() if any(facts[fact] for facts in evidence.facts(trials, fact)))


def touching(
    evidence: Evidence, trials: Sequence[TrialRecord], kinds: tuple[str, ...]
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The metrics and the labels that a finding about these kinds of operations touches."""
    mine = [one for trial in trials for one in evidence.measured.get(trial.id, ())]
    if any("operation" in one.labels for one in mine):
        return (), {"operation": kinds}
    if named := {one.metric for one in mine if one.metric.partition("_")[0] in kinds}:  # read_iops, write_latency_p99
        return tuple(sorted(named)), {}
    metrics = tuple(metric for metric in ("throughput_read", "throughput_write") if metric[11:] in kinds)
    return (*metrics, *(("operations_rate",) if len(metrics) > 1 else ())), {}


@row(
    "D02",
    Severity.BLOCKER,
    "files smaller than twice the memory, without O_DIRECT",
    short="the page cache measured",
    why="they fit into the page cache: reads, and writes that are not flushed, measure memory",
    remedy="set `direct = true`, or files of twice the memory (of the host's, where it caches the guest's disk too)",
    source="file sizes and flags in the tools' output; memory of the plan's nodes, or of a log's; where neither is "
    "known, rates that no disk reaches",
    note="a warning where the page cache is measured in an environment and in what it is compared with: the figure is "
    "then of memory in both, and so is their ratio",
    benchmarks=DISKS,
    needs=(
        Needs("how files were opened, and how large they are", facts=("direct_io", "file_bytes")),
        Needs("rates of files", metrics=("throughput", "throughput_read"), origin=Origin.IMPORTED),
    ),
)
def page_cache(evidence: Evidence) -> Iterator[Result]:
    """D02: reads from the page cache, and writes into it."""
    cached: dict[tuple[str, str], Failed | None] = {}
    for (environment, label), trials in evidence.entries().items():
        where = f"{label} in {environment}"
        cached[environment, label] = None
        if direct(evidence, trials):
            yield f"{where}: O_DIRECT"
            continue
        largest, memory = largest_file(evidence, trials), memory_seen(evidence, environment, trials[0])
        fastest = fastest_rate(evidence, trials)
        if largest is not None and memory is not None:
            said = f"{where}: files up to {format_bytes(largest)}, {format_bytes(memory)} of memory"
            if largest >= TIMES_MEMORY * memory:
                yield said
                continue
        elif fastest > FASTER_THAN_DISKS:
            said = f"{where}: {format_quantity(fastest, 'byte/s')} is more than any disk of a machine does"
        else:
            missing = "the size of the files" if largest is None else "the memory of the machine"
            del cached[environment, label]
            yield Undecided(f"{where}: not recorded: {missing}", environment, label)
            continue
        flushed = flushes(evidence, trials)
        metrics, labels = touching(evidence, trials, READS if flushed else (*READS, *WRITES))
        message = f"{said}, no O_DIRECT: {'reads' if flushed else 'reads and writes'} measure the page cache"
        cached[environment, label] = Failed(message, environment, label, metrics=metrics, labels=labels)
    yield from weighed(evidence, cached, Severity.BLOCKER, alike=Severity.WARNING)


def largest_file(evidence: Evidence, trials: Sequence[TrialRecord]) -> int | None:
    """Bytes of the largest file, or of all files of a test that reads and writes several."""
    sizes = [int(facts["file_bytes"]) for facts in evidence.facts(trials, "file_bytes")]
    mine = (one for trial in trials for one in evidence.measured.get(trial.id, ()))
    sizes += [int(one.labels["file_bytes"]) for one in mine if "file_bytes" in one.labels]
    sizes += [int(total) for one in trials if isinstance(total := one.params.get("total_size"), int) and total]
    return max(sizes, default=None)


def fastest_rate(evidence: Evidence, trials: Sequence[TrialRecord]) -> float:
    """byte/s of one process."""
    mine = (one for trial in trials for one in evidence.measured.get(trial.id, ()) if one.unit == "byte/s")
    return max((one.value for one in mine if "sum" not in one.labels.values()), default=0.0)


def memory_seen(evidence: Evidence, environment: str, trial: TrialRecord) -> int | None:
    """Memory that may hold file pages: the node's, and the host's where it caches the guest's disk."""
    if evidence.option(environment, "cache") in HOST_CACHES:
        host = evidence.host_facts(environment).get("memory_total_bytes")
        if host:
            return int(host)
    planned = [node.memory_bytes for node in evidence.plan.shape.nodes if node.name in trial.nodes]
    seen = [v for every in values_of(evidence, environment, "memory_total_bytes").values() for v in every]
    return max(planned, default=None) or max((v for v in seen if isinstance(v, int)), default=None)


@row(
    "D03",
    Severity.WARNING,
    "the timing of writes leaves out the flush, or includes it in some environments only",
    short="flushes timed differently",
    why="a write without fsync ends when the data are in memory",
    remedy="set `include_flush`, `fsync_end` or `direct`",
    source="what the tools say of their options",
    note="a note where an environment and what it is compared with have it alike: it is then about what the number "
    "means",
    benchmarks=STORAGE,
    needs=Needs("whether the flush is timed", facts=tuple(FLUSHES)),
)
def flushed(evidence: Evidence) -> Iterator[Result]:
    """D03: fsync and close in the timing of writes."""
    ways: dict[str, dict[str, str]] = {}
    unflushed: dict[tuple[str, str], Failed | None] = {}
    for (environment, label), trials in evidence.entries().items():
        how = shown(flushes(evidence, trials)) or "nothing"
        ways.setdefault(label, {})[environment] = how
        passed_by = direct(evidence, trials)
        unflushed[environment, label] = None
        if how == "nothing" and not passed_by:
            message = f"{label} in {environment}: the time of writes excludes the flush"
            unflushed[environment, label] = Failed(message, environment, label)
        else:
            yield f"{label} in {environment}: O_DIRECT {'on' if passed_by else 'off'}, in the timing: {how}"
    yield from weighed(evidence, unflushed, Severity.WARNING)
    for label, by_environment in ways.items():
        if len(set(by_environment.values())) > 1:
            listed = ", ".join(f"{how} in {environment}" for environment, how in by_environment.items())
            yield Failed(f"{label} includes {listed}", entry=label)
