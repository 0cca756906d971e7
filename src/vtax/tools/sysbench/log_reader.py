"""sysbench 0.4 to 1.1: cpu, memory and fileio, with the ranks of an mpirun mixed line by line.

Every figure has a line of its own, so it is found wherever other ranks' lines stand. Which values are of one
rank is not known, unless a tag says so; a run counts only when every rank that began has every line
that a finished one prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pydantic import JsonValue

from vtax.model.metric import Kind, Metric
from vtax.tools.commands import command_facts
from vtax.tools.reading import Line, Reading, Section, Value, agree, distinct
from vtax.tools.sysbench.benchmark import (
    EVENTS_RATE,
    FILE_OPERATIONS,
    FILE_READ,
    FILE_WRITTEN,
    KINDS,
    LATENCY_AVG,
    LATENCY_P95,
    MEMORY_OPERATIONS,
    MEMORY_THROUGHPUT,
    MIB,
)
from vtax.tools.sysbench.report import LATENCY_SUM

TOTAL_TIME = Metric(
    name="total_time",
    unit="s",
    kind=Kind.COST,
    primary=True,
    meaning="time for a fixed number of events (sysbench before 1.0; later versions stop after a time)",
)
NUM = r"(\d{1,15}\.\d\d)"
BANNER = re.compile(r"^sysbench v? ?(\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)")
LUAJIT = re.compile(r"^sysbench .{0,80}\(using (.{1,80})\)")
THREADS = re.compile(r"^Number of threads: (\d{1,6})$")
PRIMES = re.compile(r"^(?:Primer? numbers limit|Maximum prime number checked in CPU test): (\d{1,12})$")
BLOCK = re.compile(r"^ {0,4}(?:Memory block size|block size|Block size):? (\d{1,12}(?:\.\d{1,4})?) ?([KMGT]?i?[Bb]?)$")
TOTAL = re.compile(r"^ {0,4}(?:Memory transfer size|total size): (\d{1,12}) ?([KMGT]?i?[Bb]?)$")
OPERATION = re.compile(r"^ {0,4}(?:Memory operations type|operation): (\w{1,20})$")
FILES = re.compile(r"^(\d{1,9}) files, (.{1,20}) each$")
FLAGS = re.compile(r"^Extra file open flags: (.{1,60})$")
IO_MODE = re.compile(r"^Using (.{1,40}) I/O mode$")
DOING = re.compile(r"^Doing (.{1,60}) test$")
END = re.compile(r"^ {4}execution time \(avg/stddev\): {1,20}\d{1,12}\.\d{4}/\d{1,12}\.\d\d$")
FAIRNESS = re.compile(r"^ {4}events \(avg/stddev\): {1,20}(\d{1,15})\.(\d{4})/(\d{1,15}\.\d\d)$")
TIME = re.compile(r"^ {4}(?:total time|time elapsed): {1,40}(\d{1,12}\.\d{4})s$")
EVENTS = re.compile(r"^ {4}total number of events: {1,30}(\d{1,15})$")
P95 = re.compile(rf"^ {{9}}(?:approx\. {{1,3}})?95(?:th)? percentile: {{1,40}}{NUM}(?:ms)?$")
AVERAGE = re.compile(rf"^ {{9}}avg: {{1,50}}{NUM}(?:ms)?$")
SUM = re.compile(rf"^ {{9}}sum: {{1,50}}{NUM}$")
TAKEN = re.compile(r"^ {4}total time taken by event execution: {1,20}(\d{1,12}\.\d{4})s?$")
SPEED = re.compile(r"^ {4}(?:events per second|events/s \(eps\)): {1,30}(\d{1,12}\.\d{2,4})$")
OPS = re.compile(
    r"^(?:Total operations|Operations performed): (\d{1,15}) \( {0,10}(\d{1,12}\.\d\d) (?:per second|ops/sec)\)$"
)
MOVED = re.compile(r"^(\d{1,12}\.\d\d) (?:MiB|MB) transferred \((\d{1,12}\.\d\d) (?:MiB|MB)/sec\)$")
FILE_LINES = {
    ("read", "operations"): re.compile(rf"^ {{4}}reads/s: {{1,30}}{NUM}$"),
    ("write", "operations"): re.compile(rf"^ {{4}}writes/s: {{1,30}}{NUM}$"),
    ("fsync", "operations"): re.compile(rf"^ {{4}}fsyncs/s: {{1,30}}{NUM}$"),
    ("read", "MiB"): re.compile(rf"^ {{4}}read, MiB/s: {{1,30}}{NUM}$"),
    ("write", "MiB"): re.compile(rf"^ {{4}}written, MiB/s: {{1,30}}{NUM}$"),
}
IOPS = re.compile(rf"^ {{1,10}}(read|write): {{1,6}}IOPS={NUM} {NUM} MiB/s \(\d{{1,12}}\.\d\d MB/s\)$")
OLD_RATE = re.compile(
    r"^Read \d{1,9}(?:\.\d{1,5})?([KMG]?)b {1,4}Written \d{1,9}(?:\.\d{1,5})?([KMG]?)b {1,4}"
    r"Total transferred \d{1,9}(?:\.\d{1,5})?[KMG]?b {1,4}\((\d{1,9}(?:\.\d{1,5})?)([KMG]?)b/sec\)$"
)
SCALE = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
AROUND = ("Creating files for the test", "Removing test files", "Creating file test_file")
FATAL = re.compile(r"^(?:FATAL|ALERT): ")


class Hit(NamedTuple):
    line: int
    rank: str
    groups: tuple[str, ...]


def hits(pattern: re.Pattern[str], lines: tuple[Line, ...]) -> list[Hit]:
    """Every line that the pattern fits, with the groups."""
    fits = pattern.match
    return [Hit(line.number, line.rank, found.groups()) for line in lines if (found := fits(line.text))]


def size_of(number: str, unit: str) -> int:
    return round(float(number) * SCALE[unit[:1].upper() if unit[:1].upper() in SCALE else ""])


def read(section: Section) -> Reading:
    """One run of sysbench, with all its ranks."""
    lines = section.lines
    banners = hits(BANNER, lines)
    test, benchmark = _kind(lines)
    reading = Reading(benchmark)
    reading.ranks = len(banners)
    reading.facts = {**command_facts(lines), **_facts(lines)}
    reading.params = _params(benchmark, test, lines)
    if reading.ranks > 1:
        reading.params["ranks"] = reading.ranks
    for line in lines:
        if FATAL.match(line.text):
            reading.refuse(line.number, line.text, "sysbench says that it failed", 0)
    if not benchmark and any(line.text.startswith(AROUND) for line in lines):
        reading.benchmark, reading.beside = "sysbench-fileio", "it only makes or removes files"
        return reading
    old = any(banner.groups[0].startswith("0.") for banner in banners)
    if reason := _incomplete(reading, lines, banners, old):
        reading.benchmark = benchmark or "sysbench-cpu"
        reading.refuse(section.first, "all values of this run", reason, 0)
        return reading
    times = hits(TIME, lines)
    reading.elapsed_s = max(float(time.groups[0]) for time in times)
    readers: dict[str, Callable[[Reading, tuple[Line, ...], str], None]] = {
        "sysbench-cpu": _cpu,
        "sysbench-memory": _memory,
        "sysbench-fileio": _fileio,
    }
    readers[benchmark](reading, lines, test)
    if old and benchmark == "sysbench-cpu":
        _take(reading, TOTAL_TIME, times, 1.0, "total time")
    _latency(reading, lines, hits(EVENTS, lines), old)
    return reading


def _incomplete(reading: Reading, lines: tuple[Line, ...], banners: list[Hit], old: bool) -> str:
    """Why nothing of the run counts; "" when every rank that began ended, and all did the same."""
    if not reading.benchmark:
        return "which test of sysbench this is does not stand in it"
    asked = reading.facts.get("ranks_asked")
    if isinstance(asked, int) and asked != reading.ranks:
        return f"{reading.ranks} ranks began, {asked} were asked for"
    versions = sorted({banner.groups[0] for banner in banners})
    if len(versions) > 1:
        return f"ranks of different versions: {', '.join(versions)}"
    if old != bool(hits(TAKEN, lines)):
        return f"it is not what version {next(iter(versions), 'unknown')} prints"
    for name, seen in _differing(lines).items():
        return f"its ranks did different work: {name} {', '.join(seen)}"
    events = hits(EVENTS, lines)
    for what, found in (("end", hits(END, lines)), ("total time", hits(TIME, lines)), ("number of events", events)):
        if len(found) != reading.ranks:
            began = f"{reading.ranks} ranks began, {len(found)} have a line with their {what}"
            return f"{began}: one did not end, or is damaged"
    return "no event took place" if any(int(event.groups[0]) == 0 for event in events) else ""


def _kind(lines: tuple[Line, ...]) -> tuple[str, str]:
    """The file test, and the benchmark."""
    tests = distinct(DOING, lines)
    if files := [test for test in tests if test in KINDS]:
        return files[0], "sysbench-fileio"
    for line in lines:
        if PRIMES.match(line.text) or line.text in ("CPU speed:", "Doing CPU performance benchmark"):
            return "", "sysbench-cpu"
        if line.text.startswith(("Running memory speed test", "Doing memory operations speed test")):
            return "", "sysbench-memory"
    return "", ""


def _params(benchmark: str, test: str, lines: tuple[Line, ...]) -> dict[str, JsonValue]:
    """What decides the work; ranks that differ in it are refused elsewhere."""
    params: dict[str, JsonValue] = {}
    if benchmark == "sysbench-fileio":
        params["test"] = test
    if benchmark == "sysbench-cpu" and (primes := distinct(PRIMES, lines)):
        params["max_prime"] = int(primes[0])
    for line in lines:
        if benchmark != "sysbench-cpu" and "block_bytes" not in params and (block := BLOCK.match(line.text)):
            params["block_bytes"] = size_of(block[1], block[2])
        if benchmark == "sysbench-memory" and "total_bytes" not in params and (total := TOTAL.match(line.text)):
            params["total_bytes"] = size_of(total[1], total[2])
    if benchmark == "sysbench-memory" and (operation := distinct(OPERATION, lines)):
        params["operation"] = operation[0]
    if benchmark == "sysbench-fileio" and (files := hits(FILES, lines)):
        params["files"] = f"{files[0].groups[0]}x{files[0].groups[1]}"
        if (flags := distinct(FLAGS, lines)) and flags[0] not in ("(none)", "0"):
            params["flags"] = flags[0]
    if threads := distinct(THREADS, lines):
        params["threads"] = int(threads[0])
    return params


def _differing(lines: tuple[Line, ...]) -> dict[str, list[str]]:
    """Settings that ranks of one run have otherwise."""
    patterns = {"threads": THREADS, "prime limit": PRIMES, "test": DOING, "operation": OPERATION, "flags": FLAGS}
    found = {name: distinct(pattern, lines) for name, pattern in patterns.items()}
    return {name: values for name, values in found.items() if len(values) > 1}


def _facts(lines: tuple[Line, ...]) -> dict[str, JsonValue]:
    """What sysbench says of itself and of how it went."""
    facts: dict[str, JsonValue] = {}
    said = {"sysbench_version": BANNER, "sysbench_lua": LUAJIT, "io_mode": IO_MODE, "file_flags": FLAGS}
    for name, pattern in said.items():
        if values := distinct(pattern, lines):
            facts[name] = ", ".join(values)
    if fairness := hits(FAIRNESS, lines):
        shares = [float(hit.groups[2]) / max(1.0, float(f"{hit.groups[0]}.{hit.groups[1]}")) for hit in fairness]
        facts["thread_imbalance"] = round(max(shares), 3)  # 1: one of two threads did everything
    if times := hits(TIME, lines):
        facts["total_time_s"] = max(float(hit.groups[0]) for hit in times)
    return facts


def _take(
    reading: Reading, metric: Metric, found: list[Hit], scale: float, what: str, labels: dict[str, str] | None = None
) -> bool:
    """One value for every rank, or a refusal."""
    if len(found) != reading.ranks:
        where = found[0].line if found else 0
        reading.refuse(where, metric.name, f"{len(found)} lines with the {what}, but {reading.ranks} ranks", 0)
        return False
    for hit in found:
        value = float(hit.groups[-1]) * scale
        reading.values.append(Value(metric, value, hit.line, labels or {}, of_ranks=True, ordinal=hit.rank))
    return True


def _positive(reading: Reading, found: list[Hit], metric: Metric) -> bool:
    if all(float(hit.groups[-1]) > 0 for hit in found):
        return True
    reading.refuse(found[0].line, metric.name, "it is zero: too small for the digits that sysbench prints", len(found))
    return False


def _cpu(reading: Reading, lines: tuple[Line, ...], _test: str) -> None:
    found = hits(SPEED, lines)
    version = str(reading.facts.get("sysbench_version", ""))
    if not found and version.startswith("0."):
        return  # it printed no rate then
    if _positive(reading, found, EVENTS_RATE):
        _take(reading, EVENTS_RATE, found, 1.0, "events per second")


def _memory(reading: Reading, lines: tuple[Line, ...], _test: str) -> None:
    moved, operations = hits(MOVED, lines), hits(OPS, lines)
    block = reading.params.get("block_bytes")
    if moved and _positive(reading, moved, MEMORY_THROUGHPUT):
        _take(reading, MEMORY_THROUGHPUT, moved, MIB, "throughput")
    elif not moved:
        reading.refuse(0, MEMORY_THROUGHPUT.name, "no line with the throughput", 0)
    if operations and _positive(reading, operations, MEMORY_OPERATIONS):
        _take(reading, MEMORY_OPERATIONS, operations, 1.0, "rate of operations")
    if isinstance(block, int) and len(moved) == len(operations) == reading.ranks:
        rates = sorted(float(hit.groups[1]) * MIB for hit in moved)
        counted = sorted(float(hit.groups[1]) * block for hit in operations)
        if not all(agree(one, other, 0.001) for one, other in zip(rates, counted, strict=True)):
            reading.drop(f"throughput and operations of {block} bytes do not agree", moved[0].line)


def _fileio(reading: Reading, lines: tuple[Line, ...], test: str) -> None:
    block = reading.params.get("block_bytes")
    if not isinstance(block, int):
        reading.refuse(0, "all values of this run", "the block size is missing", 0)
        return
    iops, old = hits(IOPS, lines), hits(OLD_RATE, lines)
    for kind, metric in (("read", FILE_READ), ("write", FILE_WRITTEN)):
        if kind not in KINDS[test]:
            continue
        rates = hits(FILE_LINES[kind, "operations"], lines)
        printed = hits(FILE_LINES[kind, "MiB"], lines)
        if mine := [hit for hit in iops if hit.groups[0] == kind]:
            rates = [Hit(hit.line, hit.rank, (hit.groups[1],)) for hit in mine]
            printed = [Hit(hit.line, hit.rank, (hit.groups[2],)) for hit in mine]
        if not rates and old:
            if KINDS[test] == (kind,):
                scaled = [Hit(h.line, h.rank, (str(float(h.groups[2]) * SCALE[h.groups[3]]),)) for h in old]
                if _positive(reading, scaled, metric):
                    _take(reading, metric, scaled, 1.0, "throughput")
            else:
                reading.refuse(old[0].line, metric.name, "this version prints reads and writes together", len(old))
            continue
        if not rates or not _positive(reading, rates, metric):
            if not rates:
                reading.refuse(0, metric.name, f"no line with the rate of {kind}s", 0)
            continue
        ours = sorted(float(hit.groups[0]) * block / MIB for hit in rates)
        theirs = sorted(float(hit.groups[0]) for hit in printed)
        off = 0.006 * (1 + block / MIB)
        if len(ours) != len(theirs) or any(abs(a - b) > off for a, b in zip(ours, theirs, strict=True)):
            reading.refuse(rates[0].line, metric.name, f"{kind}s a second and MiB/s do not agree", len(rates))
            continue
        _take(reading, metric, rates, float(block), f"rate of {kind}s")
        _take(reading, FILE_OPERATIONS, rates, 1.0, f"rate of {kind}s", {"kind": kind})
    fsyncs = hits(FILE_LINES["fsync", "operations"], lines)
    if fsyncs and all(float(hit.groups[0]) > 0 for hit in fsyncs):
        _take(reading, FILE_OPERATIONS, fsyncs, 1.0, "rate of fsyncs", {"kind": "fsync"})


def _counted(reading: Reading, lines: tuple[Line, ...], events: int) -> bool:
    """Whether the events of all threads are the mean per thread, times the threads, as the last lines have it."""
    threads, fairness = reading.params.get("threads"), hits(FAIRNESS, lines)
    if not isinstance(threads, int) or len(fairness) != 1:
        return False
    mean = float(f"{fairness[0].groups[0]}.{fairness[0].groups[1]}")
    return abs(mean * threads - events) <= 1e-4 * threads + 0.5


def _latency(reading: Reading, lines: tuple[Line, ...], events: list[Hit], old: bool) -> None:
    """The mean by the sum where it stands with its own events, or as printed; never of one rank by another's events."""
    benchmark = reading.benchmark
    sums, averages, quantiles = hits(SUM, lines), hits(AVERAGE, lines), hits(P95, lines)
    if old:
        sums = hits(TAKEN, lines)
    if benchmark == "sysbench-fileio":
        return  # as the parser of our own runs: its latencies mix reads, writes and fsyncs
    if sums:
        _take(reading, LATENCY_SUM, sums, 1.0 if old else 1e-3, "sum of latencies")
    if benchmark != "sysbench-cpu":
        return
    if reading.ranks == 1 and not len(sums) == len(averages) == len(events) == 1:
        reading.refuse(0, LATENCY_AVG.name, "its line or that of the sum is missing, or stands there twice")
    elif reading.ranks == 1:
        mean_ms = float(sums[0].groups[0]) * (1000 if old else 1) / int(events[0].groups[0])
        if abs(mean_ms - float(averages[0].groups[0])) <= 0.0051 and _counted(reading, lines, int(events[0].groups[0])):
            reading.values.append(Value(LATENCY_AVG, mean_ms / 1000, sums[0].line))
        else:
            reading.refuse(averages[0].line, LATENCY_AVG.name, "the mean does not fit the sum and the events")
    elif averages and all(float(hit.groups[0]) > 0 for hit in averages):
        _take(reading, LATENCY_AVG, averages, 1e-3, "mean latency")
    if quantiles and all(float(hit.groups[0]) > 0 for hit in quantiles):
        _take(reading, LATENCY_P95, quantiles, 1e-3, "95th percentile")
