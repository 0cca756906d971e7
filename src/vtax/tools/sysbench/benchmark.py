"""What vtax runs with sysbench 1.x: primes on the CPUs, memory, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from vtax.launchers.base import Launcher
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import GRACE_S, Params, own_section
from vtax.tools.fields import Bytes, Threads, threads_on
from vtax.tools.reading import Output
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
)
from vtax.tools.sysbench.reader import read
from vtax.tools.sysbench.settings import MODES

MIB = 2**20
START_S = 0.1  # besides the time that it is given, for the estimate


def outputs_of(record: TrialRecord, wanted: Mapping[str, JsonValue], **labels: str) -> tuple[Output, ...]:
    """The timed step on every node, read. Refused unless it is one run of sysbench 1.x with the settings `wanted`."""
    outputs = []
    for done in (done for done in record.steps if "run" in done.argv):  # fileio has a step before it and one after it
        file, section = own_section(record, done.step, done.node)
        reading = read(section)
        if reading.ranks != 1:
            reading.refuse(0, "all values", f"the output of {reading.ranks} runs, and not of one")
        if str(reading.facts.get("sysbench_version")).startswith("0."):
            reading.refuse(0, "all values", "sysbench 0.x counts other things under the same names")
        for name, value in wanted.items():
            if value is not None and reading.params.get(name, value) != value:
                reading.refuse(0, "all values", f"{name} is {reading.params[name]}, and {value} was asked for")
        outputs.append(Output(file, reading, {"node": done.node, **labels}))
    return tuple(outputs)


class CpuParams(Params):
    """Every event finds the primes up to `max_prime`; `threads` do so for `time_s` seconds."""

    max_prime: int = Field(20_000, ge=3, le=10_000_000)
    threads: Threads = "auto"
    time_s: int = Field(10, ge=1, le=86_400)


class SysbenchCpu:
    name = "sysbench-cpu"
    group = "Compute"
    requires = ("sysbench",)
    scopes = (Scope.NODE, Scope.WORKERS, Scope.CLUSTER)
    default_scopes = (Scope.NODE,)
    metrics = (EVENTS_RATE, LATENCY_AVG, LATENCY_P95, LATENCY_SUM)
    params = CpuParams

    def resolve(self, params: CpuParams, target: Target) -> CpuParams:
        return params.model_copy(update={"threads": threads_on(target, params.threads)})

    def steps(self, params: CpuParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        limit = f"--cpu-max-prime={params.max_prime}"
        argv = ("sysbench", "cpu", f"--threads={params.threads}", f"--time={params.time_s}", "--events=0", limit, "run")
        return (Step(nodes=target.names, argv=argv, timeout_s=params.time_s + GRACE_S),)

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        return outputs_of(record, {name: record.params.get(name) for name in ("max_prime", "threads")})

    def estimate_s(self, params: CpuParams, target: Target) -> float:
        return params.time_s + START_S

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
    requires = ("sysbench",)
    scopes = (Scope.NODE, Scope.WORKERS, Scope.CLUSTER)
    default_scopes = (Scope.NODE,)
    metrics = (MEMORY_THROUGHPUT, MEMORY_OPERATIONS, LATENCY_SUM)
    params = MemoryParams

    def resolve(self, params: MemoryParams, target: Target) -> MemoryParams:
        return params.model_copy(update={"threads": threads_on(target, params.threads)})

    def steps(self, params: MemoryParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        sizes = (f"--memory-block-size={params.block_size}", f"--memory-total-size={params.total_size}")
        what = (f"--memory-oper={params.operation}", f"--memory-access-mode={params.access}")
        limits = (f"--threads={params.threads}", f"--time={params.time_s}", "--events=0")
        argv = ("sysbench", "memory", *limits, *sizes, *what, "run")
        return (Step(nodes=target.names, argv=argv, timeout_s=params.time_s + GRACE_S),)

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        return outputs_of(record, {name: record.params.get(name) for name in ("operation", "threads")})

    def estimate_s(self, params: MemoryParams, target: Target) -> float:
        return params.time_s + START_S

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
    requires = ("sysbench",)
    scopes = (Scope.NODE, Scope.SHARED)
    default_scopes = (Scope.NODE, Scope.SHARED)
    metrics = (FILE_READ, FILE_WRITTEN, FILE_OPERATIONS)
    params = FileioParams

    def resolve(self, params: FileioParams, target: Target) -> FileioParams:
        return params.model_copy(update={"threads": threads_on(target, params.threads)})

    def steps(self, params: FileioParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
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

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        test = MODES.get(str(record.params.get("mode")), (None,))[0]
        wanted = {"test": test, "threads": record.params.get("threads")}
        return outputs_of(record, wanted, filesystem="shared" if record.scope is Scope.SHARED else "local")

    def estimate_s(self, params: FileioParams, target: Target) -> float:
        return params.time_s + params.total_size / (400 * MIB) + START_S  # preparing writes it all

    def clocked_s(self, params: FileioParams, target: Target) -> float:
        return params.time_s
