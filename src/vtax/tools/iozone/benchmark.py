"""iozone: 13 file operations over file and record sizes, in the trial's directory."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, ValidationError, model_validator

from vtax.launchers.base import Launcher
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import Params, own_section
from vtax.tools.fields import Bytes, kibibytes
from vtax.tools.iozone.metrics import KIB, OPERATIONS, TESTS, THROUGHPUT
from vtax.tools.iozone.reader import read
from vtax.tools.reading import Output, Reading, Section

MIB = 2**20
TYPICAL, START_S = 1000 * MIB, 0.2  # byte/s, s, for the estimate


class IozoneParams(Params):
    """Sizes are lists (`file_sizes` x `record_sizes`) or, when both are empty, powers of two from minimum to maximum.

    Records larger than their file are left out. `tests` are iozone's `-i` numbers, without the random mix. `direct`
    goes past the page cache; `include_flush` and `include_close` count the time of fsync and close: without them, and
    with files smaller than the memory, it is memory that is measured. A run longer than `limit_s` counts as hung.
    """

    file_sizes: tuple[Bytes, ...] = ()
    record_sizes: tuple[Bytes, ...] = ()
    file_min: Bytes = 64 * KIB
    file_max: Bytes = 512 * MIB
    record_min: Bytes = 4 * KIB
    record_max: Bytes = 16 * MIB
    tests: tuple[int, ...] = tuple(TESTS)
    direct: bool = False
    include_flush: bool = False
    include_close: bool = False
    operations_mode: bool = False
    limit_s: float = Field(14_400.0, gt=0, le=604_800)

    @model_validator(mode="after")
    def _possible(self) -> IozoneParams:
        if bool(self.file_sizes) != bool(self.record_sizes):
            raise ValueError("give both file_sizes and record_sizes, or neither")
        edges = (self.file_min, self.file_max, self.record_min, self.record_max)
        for size in (*self.file_sizes, *self.record_sizes, *edges):
            kibibytes(size)
        if not tuple(grid(self)):
            raise ValueError("no file is large enough for a record")
        if not set(self.tests) <= set(TESTS) or len(set(self.tests)) < len(self.tests):
            raise ValueError(f"tests are some of {', '.join(map(str, TESTS))}, each once")
        if 0 not in self.tests:
            raise ValueError("test 0 (write) makes the file that the others need")
        return self


def grid(params: IozoneParams) -> Iterator[tuple[int, int]]:
    """The file and record sizes that iozone goes through, in bytes."""
    files = params.file_sizes or tuple(_doubled(params.file_min, params.file_max))
    records = params.record_sizes or tuple(_doubled(params.record_min, params.record_max))
    return ((file, record) for file in files for record in records if record <= file)


def _doubled(smallest: int, largest: int) -> Iterator[int]:
    while smallest <= largest:
        yield smallest
        smallest *= 2


class Iozone:
    name = "iozone"
    group = "Storage"
    requires = ("iozone",)
    scopes = (Scope.NODE, Scope.SHARED)
    default_scopes = (Scope.NODE, Scope.SHARED)
    metrics = (THROUGHPUT, OPERATIONS)
    params = IozoneParams

    def resolve(self, params: IozoneParams, target: Target) -> IozoneParams:
        return params  # nothing depends on the machine

    def steps(self, params: IozoneParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        tests = [word for test in params.tests for word in ("-i", str(test))]
        flags = {
            "-I": params.direct,
            "-e": params.include_flush,
            "-c": params.include_close,
            "-O": params.operations_mode,
        }
        how = [flag for flag, wanted in flags.items() if wanted]
        argv = ("iozone", *_sizes(params), *tests, *how, "-f", "iozone.tmp")
        return (Step(nodes=target.names, argv=argv, timeout_s=params.limit_s),)

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        file, section = own_section(record)
        reading = read(section)
        _refuse_misfits(reading, section, record)
        place = {"filesystem": "shared" if record.scope is Scope.SHARED else "local", "node": record.nodes[0]}
        return (Output(file, reading, place),)

    def estimate_s(self, params: IozoneParams, target: Target) -> float:
        columns = sum(len(TESTS[test]) for test in params.tests)
        return columns * sum(file for file, _ in grid(params)) / TYPICAL + START_S

    def clocked_s(self, params: IozoneParams, target: Target) -> float:
        return 0.0


def _sizes(params: IozoneParams) -> list[str]:
    """The arguments of the grid. With `-y` given, automatic mode keeps small records for large files too."""
    if params.file_sizes:
        files = [word for size in params.file_sizes for word in ("-s", f"{kibibytes(size)}k")]
        return files + [word for size in params.record_sizes for word in ("-r", f"{kibibytes(size)}k")]
    edges = {"-n": params.file_min, "-g": params.file_max, "-y": params.record_min, "-q": params.record_max}
    return ["-a", *(word for flag, size in edges.items() for word in (flag, f"{kibibytes(size)}k"))]


def _refuse_misfits(reading: Reading, section: Section, record: TrialRecord) -> None:
    """What is not the run that the trial's parameters ask for."""
    if reading.ranks > 1:
        reading.refuse(section.end, "all values of this run", f"{reading.ranks} runs in one output", 0)
    if "invoked" not in reading.facts:
        reading.refuse(section.end, "all values of this run", "no line says with which options iozone ran", 0)
    if not record.params:
        return  # a run that vtax did not plan
    try:
        params = IozoneParams.model_validate(dict(record.params))
    except ValidationError:
        return  # planned by a version with other parameters
    wanted = {(str(file), str(size)) for file, size in grid(params)}
    first: dict[tuple[str, str], int] = {}
    for value in reading.values:
        first.setdefault((value.labels.get("file_bytes", ""), value.labels.get("record_bytes", "")), value.line)
    for (file, size), line in first.items():
        if (file, size) not in wanted:
            reading.refuse(line, f"file of {file} bytes, records of {size}", "the plan does not have these sizes")
    if missing := sorted(wanted - first.keys()):
        file, size = missing[0]
        reading.refuse(section.end, f"file of {file} bytes, records of {size}", "the plan has these sizes", 0)
