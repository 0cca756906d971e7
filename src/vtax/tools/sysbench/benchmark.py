"""sysbench 1.x: primes on the CPUs, memory, files. All three stop after a time, so events per second is the figure."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from vtax.launchers.mpirun import Mpirun
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.record import Labels
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import GRACE_S, Params, found, number, refuse
from vtax.tools.excerpts import blame
from vtax.tools.fields import Bytes, Threads, threads_on
from vtax.tools.sysbench.report import LATENCY_SUM, ROUNDING, Report, positive, report_of, runs

MIB = 2**20

EVENTS_RATE = Metric(
    name="events_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="times a second that all threads of a node found the primes up to `max_prime`",
)
LATENCY_AVG = Metric(name="latency_avg", unit="s", kind=Kind.COST, meaning="mean time of one event in one thread")
LATENCY_P95 = Metric(
    name="latency_p95", unit="s", kind=Kind.LATENCY_QUANTILE, meaning="95 % of the events took no longer than this"
)
MEMORY_THROUGHPUT = Metric(
    name="throughput",
    unit="byte/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="bytes that all threads of a node read or wrote in memory a second; small blocks stay in the caches",
)
MEMORY_OPERATIONS = Metric(
    name="operations_rate", unit="1/s", kind=Kind.RATE_FIXED_TIME, meaning="blocks read or written in memory a second"
)
FILE_READ = Metric(
    name="throughput_read", unit="byte/s", kind=Kind.RATE_FIXED_TIME, primary=True, meaning="bytes read from files"
)
FILE_WRITTEN = Metric(
    name="throughput_write",
    unit="byte/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="bytes written to files, including the time of the fsync calls between them",
)
FILE_OPERATIONS = Metric(
    name="operations_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    meaning="file operations a second, by their kind: read, write, fsync",
)

PRIME_RATE = re.compile(r"^ +events per second: +([\d.]+)$", re.MULTILINE)
MEMORY_OPS = re.compile(r"^Total operations: \d+ \(\s*([\d.]+) per second\)$", re.MULTILINE)
MEMORY_RATE = re.compile(r"^[\d.]+ MiB transferred \(([\d.]+) MiB/sec\)$", re.MULTILINE)
FILE_TEST = re.compile(r"^Doing (.+) test$", re.MULTILINE)
FILE_RATES = re.compile(r"^ +reads/s: +([\d.]+)\n +writes/s: +([\d.]+)\n +fsyncs/s: +([\d.]+)$", re.MULTILINE)
FILE_THROUGHPUT = re.compile(r"^ +read, MiB/s: +([\d.]+)\n +written, MiB/s: +([\d.]+)$", re.MULTILINE)
BLOCK_SIZE = re.compile(r"^Block size ([\d.]+)(B|KiB|MiB|GiB)$", re.MULTILINE)
UNIT = {"B": 1, "KiB": 2**10, "MiB": MIB, "GiB": 2**30}
KINDS = {  # what each test does, by what sysbench calls it
    "sequential write (creation)": ("write",),
    "sequential rewrite": ("write",),
    "sequential read": ("read",),
    "random read": ("read",),
    "random write": ("write",),
    "random r/w": ("read", "write"),
}


class CpuParams(Params):
    """Every event finds the primes up to `max_prime`; `threads` do so for `time_s` seconds."""

    max_prime: int = Field(20_000, ge=3, le=10_000_000)
    threads: Threads = "auto"
    time_s: int = Field(10, ge=1, le=86_400)


class SysbenchCpu:
    name = "sysbench-cpu"
    group = "Compute"
    package = "sysbench"
    requires = ("sysbench",)
    scopes = (Scope.NODE, Scope.WORKERS, Scope.CLUSTER)
    default_scopes = (Scope.NODE,)
    metrics = (EVENTS_RATE, LATENCY_AVG, LATENCY_P95, LATENCY_SUM)
    params = CpuParams

    def resolve(self, params: CpuParams, target: Target) -> CpuParams:
        return params.model_copy(update={"threads": threads_on(target, params.threads)})

    def steps(self, params: CpuParams, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
        limit = f"--cpu-max-prime={params.max_prime}"
        argv = ("sysbench", "cpu", f"--threads={params.threads}", f"--time={params.time_s}", "--events=0", limit, "run")
        return (Step(nodes=target.names, argv=argv, timeout_s=params.time_s + GRACE_S),)

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        measurements: list[Measurement] = []
        for done in runs(record):
            report, labels = report_of(record, done), {"node": done.node}
            (rate,) = found(PRIME_RATE, report.text, record)
            values = {
                EVENTS_RATE: positive(rate, record, "the rate of events"),
                LATENCY_AVG: report.latency_avg_s,
                LATENCY_SUM: report.latency_sum_s,
            }
            if report.latency_p95_s > 0:  # printed to 10 µs: 0.00 is too short to tell, not none
                values[LATENCY_P95] = report.latency_p95_s
            measurements += [Measurement.of(record, m, value, labels, done.stdout) for m, value in values.items()]
        return tuple(measurements)

    def estimate_s(self, params: CpuParams, target: Target) -> float:
        return params.time_s + 0.5

    def clocked_s(self, params: CpuParams, target: Target) -> float:
        return params.time_s


class MemoryParams(Params):
    """Blocks of `block_size` are read or written until `total_size` has passed or `time_s` is over."""

    block_size: Bytes = 1024
    total_size: Bytes = 100 * 2**30
    operation: Literal["write", "read"] = "write"
    access: Literal["seq", "rnd"] = "seq"
    threads: Threads = "auto"
    time_s: int = Field(10, ge=1, le=86_400)


class SysbenchMemory:
    name = "sysbench-memory"
    group = "Memory"
    package = "sysbench"
    requires = ("sysbench",)
    scopes = (Scope.NODE, Scope.WORKERS, Scope.CLUSTER)
    default_scopes = (Scope.NODE,)
    metrics = (MEMORY_THROUGHPUT, MEMORY_OPERATIONS, LATENCY_SUM)
    params = MemoryParams

    def resolve(self, params: MemoryParams, target: Target) -> MemoryParams:
        return params.model_copy(update={"threads": threads_on(target, params.threads)})

    def steps(self, params: MemoryParams, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
        sizes = (f"--memory-block-size={params.block_size}", f"--memory-total-size={params.total_size}")
        what = (f"--memory-oper={params.operation}", f"--memory-access-mode={params.access}")
        limits = (f"--threads={params.threads}", f"--time={params.time_s}", "--events=0")
        argv = ("sysbench", "memory", *limits, *sizes, *what, "run")
        return (Step(nodes=target.names, argv=argv, timeout_s=params.time_s + GRACE_S),)

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        measurements: list[Measurement] = []
        for done in runs(record):
            report, labels = report_of(record, done), {"node": done.node}
            (throughput,) = found(MEMORY_RATE, report.text, record)
            (operations,) = found(MEMORY_OPS, report.text, record)
            values = {
                MEMORY_THROUGHPUT: positive(throughput, record, "the throughput") * MIB,
                MEMORY_OPERATIONS: positive(operations, record, "the rate of operations"),
                LATENCY_SUM: report.latency_sum_s,
            }
            measurements += [Measurement.of(record, m, value, labels, done.stdout) for m, value in values.items()]
        return tuple(measurements)

    def estimate_s(self, params: MemoryParams, target: Target) -> float:
        return params.time_s + 0.5

    def clocked_s(self, params: MemoryParams, target: Target) -> float:
        return params.time_s


class FileioParams(Params):
    """`mode` on `files` files of `total_size` together, for `time_s` seconds.

    `fsync_every` requests (0: never) and, with `fsync_end`, at the end, written data go to the device; `direct` opens
    the files with O_DIRECT, past the page cache.
    """

    mode: Literal["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] = "rndrw"
    total_size: Bytes = 2 * 2**30
    files: int = Field(128, ge=1, le=100_000)
    block_size: Bytes = 16 * 1024
    threads: Threads = "auto"
    time_s: int = Field(10, ge=1, le=86_400)
    fsync_every: int = Field(100, ge=0, le=1_000_000)
    fsync_end: bool = True
    direct: bool = False


class SysbenchFileio:
    name = "sysbench-fileio"
    group = "Storage"
    package = "sysbench"
    requires = ("sysbench",)
    scopes = (Scope.NODE, Scope.SHARED)
    default_scopes = (Scope.NODE, Scope.SHARED)
    metrics = (FILE_READ, FILE_WRITTEN, FILE_OPERATIONS)
    params = FileioParams

    def resolve(self, params: FileioParams, target: Target) -> FileioParams:
        return params.model_copy(update={"threads": threads_on(target, params.threads)})

    def steps(self, params: FileioParams, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
        size = (f"--file-num={params.files}", f"--file-total-size={params.total_size}")
        sync = (f"--file-fsync-freq={params.fsync_every}", f"--file-fsync-end={'on' if params.fsync_end else 'off'}")
        how = (f"--file-test-mode={params.mode}", f"--file-block-size={params.block_size}", *sync)
        limits = (f"--threads={params.threads}", f"--time={params.time_s}", "--events=0")
        direct = ("--file-extra-flags=direct",) if params.direct else ()
        prepare_s = GRACE_S + params.total_size / MIB  # at 1 MiB/s, the slowest shared disk worth measuring
        return (
            Step(nodes=target.names, argv=("sysbench", "fileio", *size, "prepare"), timeout_s=prepare_s),
            Step(
                nodes=target.names,
                argv=("sysbench", "fileio", *size, *how, *direct, *limits, "run"),
                timeout_s=params.time_s + prepare_s,  # the fsync at the end may have all of it to write
            ),
            Step(nodes=target.names, argv=("sysbench", "fileio", *size, "cleanup"), timeout_s=GRACE_S),
        )

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        measurements: list[Measurement] = []
        for done in runs(record):
            report = report_of(record, done)
            labels = {"node": done.node, "filesystem": "shared" if record.scope is Scope.SHARED else "local"}
            measurements += [
                Measurement.of(record, metric, value, {**labels, **more}, done.stdout)
                for metric, value, more in _file_rates(report, record)
            ]
        return tuple(measurements)

    def estimate_s(self, params: FileioParams, target: Target) -> float:
        return params.time_s + params.total_size / (200 * MIB) + 1.0  # preparing writes it all

    def clocked_s(self, params: FileioParams, target: Target) -> float:
        return params.time_s


def _file_rates(report: Report, record: TrialRecord) -> list[tuple[Metric, float, Labels]]:
    """What the test did; what it did not do is printed as 0.00 and left out.

    Throughput is the rate of operations times the block size: sysbench rounds it to 0.01 MiB/s, far too coarse for a
    slow disk.
    """
    (test,) = found(FILE_TEST, report.text, record)
    if test not in KINDS:
        raise refuse(record, f"an unknown file test: {test}", test)
    size, unit = found(BLOCK_SIZE, report.text, record)
    block_bytes = number(size, record) * UNIT[unit]
    reads, writes, fsyncs = found(FILE_RATES, report.text, record)
    rates: list[tuple[Metric, float, Labels]] = []
    printed = zip(("read", "write"), (FILE_READ, FILE_WRITTEN), (reads, writes), strict=True)
    for (kind, metric, rate), mib in zip(printed, found(FILE_THROUGHPUT, report.text, record), strict=True):
        if kind not in KINDS[test]:
            continue
        value = positive(rate, record, f"the rate of a {test} test")
        if abs(value * block_bytes / MIB - number(mib, record)) > ROUNDING * (1 + block_bytes / MIB):
            what = f"{mib} MiB/s are not {rate} blocks of {size} {unit} a second"
            raise refuse(record, what, blame(mib, size))
        rates += [(metric, value * block_bytes, {}), (FILE_OPERATIONS, value, {"kind": kind})]
    if number(fsyncs, record) > 0:
        rates.append((FILE_OPERATIONS, number(fsyncs, record), {"kind": "fsync"}))
    return rates
