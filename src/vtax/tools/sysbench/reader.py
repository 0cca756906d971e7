"""What sysbench 0.4 to 1.1 prints for cpu, memory, fileio and OLTP, by one process or several with their lines mixed.

Every value has its own line, so it is found wherever the lines of other ranks are. Which values are of one rank
is not known, unless a tag says so; a run counts only when every rank that began has every line that a finished one
prints.

Facts: `settings` (all that decides the work, by name), `sysbench_version`, `sysbench_lua`, `threads` (of each rank),
`ranks`, `total_time_s` (of the longest rank), `thread_imbalance` (standard deviation over mean of the events of
threads: 1 where one of two did all); of fileio `file_bytes` (of all files), `direct_io`, `fsync_timed`, `file_flags`,
`io_mode`; of databases `operations`, `failed_operations`, `client_threads` and `least_flushes` (how often commits had
to wait for a disk at least: threads that commit at one moment share one flush); and what the command line above says.
"""

from __future__ import annotations

from vtax.model.metric import Metric
from vtax.tools.commands import command_facts
from vtax.tools.reading import Reading, Section, Value, agree
from vtax.tools.sysbench.lines import AROUND, FATAL, SCALE, Hit, Run
from vtax.tools.sysbench.metrics import (
    EVENTS_RATE,
    FILE_OPERATIONS,
    FILE_READ,
    FILE_WRITTEN,
    LATENCY_AVG,
    LATENCY_P95,
    LATENCY_SUM,
    MEMORY_OPERATIONS,
    MEMORY_THROUGHPUT,
    TOTAL_TIME,
)
from vtax.tools.sysbench.oltp import read_oltp
from vtax.tools.sysbench.settings import KINDS, benchmark_of, differing, facts_of, params_of

MIB = 2**20
OFF = 0.0051  # half of the last digit that sysbench prints, and a little for sums of such numbers
EVERYTHING = "all values of this run"
NAMELESS = (
    "its output names no test: it is `threads`, `mutex` or a script, and vtax reads cpu, memory and fileio of sysbench"
)


def read(section: Section) -> Reading:
    """One run of sysbench, with all its ranks."""
    return run_of(section).reading


def run_of(section: Section) -> Run:
    """The same, with the lines that were found."""
    run = Run(section.lines)
    _read(run)
    return run


def _read(run: Run) -> None:
    reading, benchmark = run.reading, benchmark_of(run)
    reading.benchmark = benchmark or "sysbench"  # of an unknown test
    reading.params = params_of(run, benchmark)
    reading.facts = {**command_facts(run.lines), **facts_of(run, benchmark, reading.params)}
    if reading.ranks > 1:
        reading.params["ranks"] = reading.ranks
    for line in run.lines:
        if line.text.startswith(FATAL):
            reading.refuse(line.number, line.text, "sysbench says that it failed", 0)
    if not benchmark and any(line.text.startswith(AROUND) for line in run.lines):
        reading.benchmark, reading.no_test = "sysbench-fileio", "it only makes or removes files"
        return
    if reason := _incomplete(run, benchmark):
        run.refuse(EVERYTHING, reason, 0, suspects=(*run.found["events"], *run.found["time"]))
        return
    reading.ended = True
    reading.elapsed_s = max(hit.number for hit in run.found["time"])
    TESTS[benchmark](run)


def _incomplete(run: Run, benchmark: str) -> str:
    """Why nothing of the run counts; "" when every rank that began ended, and all did the same."""
    found, ranks = run.found, run.reading.ranks
    if not benchmark:
        tests = run.distinct("test")
        return f"an unknown test: {tests[0]}" if tests else NAMELESS
    asked = run.reading.facts.get("ranks_asked")
    if isinstance(asked, int) and asked != ranks:
        return f"{ranks} ranks began, {asked} were asked for"
    versions = sorted(run.distinct("banner"))
    if len(versions) > 1:
        return f"ranks of different versions: {', '.join(versions)}"
    if run.old != bool(found["taken"]):
        return f"it is not what version {next(iter(versions), 'unknown')} prints"
    if different := differing(run):
        return f"its ranks did different work: {different}"
    for what, name in (("end", "end"), ("total time", "time"), ("number of events", "events")):
        if len(found[name]) != ranks:
            began = f"{ranks} ranks began, {len(found[name])} have a line with their {what}"
            return f"{began}: one did not end, or is damaged"
    none = any(hit.number == 0 for hit in (*found["events"], *found["time"]))
    return "no event took place" if none else ""


def _cpu(run: Run) -> None:
    found = run.found
    if found["speed"] or not run.old:  # 0.x printed no rate
        run.take(EVENTS_RATE, found["speed"], "events per second")
    if run.old:
        run.take(TOTAL_TIME, found["time"], "total time")
    mean_s, means = _mean_s(run), found["mean"]
    if mean_s is not None:
        run.reading.values.append(Value(LATENCY_AVG, mean_s, sums_of(run)[0].line))
    elif run.reading.ranks > 1 and all(hit.number > 0 for hit in means):
        run.take(LATENCY_AVG, means, "mean latency", per=1000)
    run.take(LATENCY_SUM, sums_of(run), "sum of latencies", per=1 if run.old else 1000)
    quantiles = [hit for hit in found["quantile"] if hit.groups[0] == "95"]
    if other := [hit for hit in found["quantile"] if hit not in quantiles]:
        reason = f"the percentile that was asked for is {other[0].groups[0]}"
        run.reading.refuse(other[0].line, LATENCY_P95.name, reason, len(other))
    elif len(quantiles) != run.reading.ranks or all(hit.number > 0 for hit in quantiles):
        run.take(LATENCY_P95, quantiles, "95th percentile", per=1000)  # 0.00 is too short to tell: absent


def _memory(run: Run) -> None:
    moved, blocks, block = run.found["moved"], run.found["blocks"], run.reading.params.get("block_bytes")
    bytes_taken = run.take(MEMORY_THROUGHPUT, moved, "throughput", scale=MIB)
    blocks_taken = run.take(MEMORY_OPERATIONS, blocks, "rate of operations")
    if bytes_taken and blocks_taken and isinstance(block, int) and block:
        pairs = zip(
            sorted(hit.number * MIB for hit in moved), sorted(hit.number * block for hit in blocks), strict=True
        )
        if not all(agree(one, other, 0.001) or abs(one - other) <= OFF * (MIB + block) for one, other in pairs):
            run.reading.drop(f"throughput and operations of {block} bytes do not agree", moved[0].line)
    run.take(LATENCY_SUM, sums_of(run), "sum of latencies", per=1 if run.old else 1000)
    _mean_s(run)


def _fileio(run: Run) -> None:
    """What the test did; what it did not do is printed as 0.00 and left out. Latencies mix reads, writes and fsyncs."""
    block, test, fsyncs = run.reading.params.get("block_bytes"), str(run.reading.params["test"]), run.found["fsyncs"]
    if not isinstance(block, int) or block == 0:
        where = run.found["block"][0].line if run.found["block"] else 0
        run.refuse(EVERYTHING, "the block size is missing", 0, line=where)
        return
    both = {"read", "write"} <= set(KINDS[test])  # in a fixed proportion, so what is written says nothing of its own
    written = FILE_WRITTEN.model_copy(update={"primary": False}) if both else FILE_WRITTEN
    for kind, metric in (("read", FILE_READ), ("write", written)):
        if kind in KINDS[test]:
            _file_rate(run, kind, metric, block)
    if not run.found["iops"] and not run.found["old rate"] and not (fsyncs and any(hit.number == 0 for hit in fsyncs)):
        run.take(FILE_OPERATIONS, fsyncs, "rate of fsyncs", labels={"kind": "fsync"})
    _mean_s(run)


def _file_rate(run: Run, kind: str, metric: Metric, block: int) -> None:
    """Reads or writes. Bytes are operations times the block size: sysbench rounds them to 0.01 MiB/s, far too coarse
    for a slow disk."""
    found, old = run.found, run.found["old rate"]
    rates, printed = found[f"{kind}s"], found["MiB read" if kind == "read" else "MiB written"]
    if mine := [hit for hit in found["iops"] if hit.groups[0] == kind]:
        rates = [hit._replace(groups=hit.groups[:2]) for hit in mine]
        printed = mine
    if not rates and old:
        if len(KINDS[str(run.reading.params["test"])]) > 1:
            run.refuse(metric.name, "this version prints reads and writes together", len(old), line=old[0].line)
            return
        scaled = [hit._replace(groups=(str(float(hit.groups[0]) * SCALE[hit.groups[1]]),)) for hit in old]
        run.take(metric, scaled, "throughput")
        return
    by_size = sorted(hit.number * block / MIB for hit in rates)
    fits = zip(by_size, sorted(hit.number for hit in printed), strict=False)
    apart = any(abs(one - other) > OFF * (1 + block / MIB) for one, other in fits)
    if rates and all(hit.number > 0 for hit in rates) and (apart or len(rates) != len(printed)):
        reason = f"{kind}s a second and MiB/s do not agree"
        run.refuse(metric.name, reason, len(rates), suspects=printed, line=rates[0].line)
    elif run.take(metric, rates, f"rate of {kind}s", scale=block):
        run.take(FILE_OPERATIONS, rates, f"rate of {kind}s", labels={"kind": kind})


def sums_of(run: Run) -> list[Hit]:
    """The lines with the time that all events took together: in ms, before sysbench 1.0 in s."""
    return run.found["taken" if run.old else "sum"]


def _mean_s(run: Run) -> float | None:
    """The mean time of an event of one process, by the sum, because sysbench prints the mean to 10 µs only. None for
    several, and where sum, events and printed mean do not fit, which is refused."""
    found, sums, means = run.found, sums_of(run), run.found["mean"]
    if run.reading.ranks > 1:
        return None
    values = int(run.reading.benchmark == "sysbench-cpu")  # for the others it only proves the output
    if not len(sums) == len(means) == 1:
        run.refuse(LATENCY_AVG.name, "its line or that of the sum is missing, or appears twice", values)
        return None
    events = int(found["events"][0].groups[0])
    mean_s = sums[0].number / (1 if run.old else 1000) / events
    apart = abs(mean_s * 1000 - means[0].number) > OFF
    if apart or not _counted(run, events):
        reason = "the mean does not fit the sum and the events"
        suspects, line = ((means[0], sums[0]), means[0].line) if apart else ((), 0)
        run.refuse(LATENCY_AVG.name, reason, values, suspects=suspects, line=line)
        return None
    return mean_s


def _counted(run: Run, events: int) -> bool:
    """Whether the events of all threads are the mean of a thread, times the threads, as the last lines have it."""
    threads, fairness = run.reading.params.get("threads"), run.found["fairness"]
    if not isinstance(threads, int) or len(fairness) != 1:
        return False
    return abs(float(fairness[0].groups[0]) * threads - events) <= 1e-4 * threads + 0.5


TESTS = {"sysbench-cpu": _cpu, "sysbench-memory": _memory, "sysbench-fileio": _fileio, "sysbench-oltp": read_oltp}
