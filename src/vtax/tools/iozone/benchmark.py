"""iozone: 13 file operations over file and record sizes, in the trial's directory.

iozone's kB are 1024 bytes, of sizes and of rates (it shifts bytes by 10). With `-O` the same table holds operations per
second; only the line above it tells, so an output without that line has no unit and is refused. Columns of tests that
were not asked for are blank, and their widths differ between versions, so the command line that iozone echoes says
which columns are there. 0 is what it prints for a test that it did not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import Field, model_validator

from vtax.launchers.mpirun import Mpirun
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.nodes import Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import Params, found, refuse
from vtax.tools.excerpts import Piece, pieces
from vtax.tools.fields import Bytes, kibibytes

THROUGHPUT = Metric(
    name="throughput",
    unit="byte/s",
    kind=Kind.RATE_FIXED_WORK,
    meaning="bytes a second of one operation at one file and record size (in operations mode, operations x record "
    "size); primary for write and read",
)
PRIMARY = THROUGHPUT.model_copy(update={"primary": True})
HEADLINES = ("write", "read")  # 13 operations at every size would leave no claim standing after the correction
OPERATIONS = Metric(
    name="operations_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_WORK,
    meaning="operations of one record each a second, measured in operations mode only",
)

TESTS = {  # what `-i` takes -> the columns it fills
    0: ("write", "rewrite"),
    1: ("read", "reread"),
    2: ("random_read", "random_write"),
    3: ("backward_read",),
    4: ("record_rewrite",),
    5: ("stride_read",),
    6: ("fwrite", "frewrite"),
    7: ("fread", "freread"),
}
ALL = tuple(column for columns in TESTS.values() for column in columns)  # in the order of the table
KBYTES, OPS = "Output is in kBytes/sec", "OPS Mode. Output is in operations per second."
UNITS = re.compile(r"^[ \t]*((?:OPS Mode\. )?Output is in .+?)\s*$", re.MULTILINE)
COMMAND = re.compile(r"^[ \t]*Command line used: (.+)$", re.MULTILINE)
TABLE = re.compile(
    r"^ +random +random +bkwd +record +stride *\n"
    r" +kB +reclen +write +rewrite +read +reread +read +write +read +rewrite +read"
    r" +fwrite +frewrite +fread +freread *\n"
    r"((?: *\d+ +\d+ [ \d]*\n)+)\niozone test complete\.$",
    re.MULTILINE,
)
SELECTED = re.compile(r"(?<=\s)-i\s*(\S+)")
KIB, MIB = 1024, 2**20
TYPICAL = 500 * MIB  # byte/s, for the estimate


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
    package = "iozone3"
    requires = ("iozone",)
    scopes = (Scope.NODE, Scope.SHARED)
    default_scopes = (Scope.NODE, Scope.SHARED)
    metrics = (THROUGHPUT, OPERATIONS)
    params = IozoneParams

    def resolve(self, params: IozoneParams, target: Target) -> IozoneParams:
        return params  # nothing depends on the machine

    def steps(self, params: IozoneParams, target: Target, launcher: Mpirun) -> tuple[Step, ...]:
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

    def parse(self, record: TrialRecord) -> tuple[Measurement, ...]:
        text, node = record.output(), record.nodes[0]
        place = {"filesystem": "shared" if record.scope is Scope.SHARED else "local", "node": node}
        operations_mode = _unit(text, record) == OPS
        measurements: list[Measurement] = []
        for file_kb, record_kb, operation, rate in _cells(text, record):
            sizes = {"file_bytes": str(file_kb * KIB), "record_bytes": str(record_kb * KIB)}
            labels = {**place, **sizes, "operation": operation}
            bytes_each = record_kb * KIB if operations_mode else KIB
            metric = PRIMARY if operation in HEADLINES else THROUGHPUT
            measurements.append(Measurement.of(record, metric, float(rate * bytes_each), labels))
            if operations_mode:
                measurements.append(Measurement.of(record, OPERATIONS, float(rate), labels))
        if not measurements:
            raise refuse(record, "no test ran", text)
        return tuple(measurements)

    def estimate_s(self, params: IozoneParams, target: Target) -> float:
        columns = sum(len(TESTS[test]) for test in params.tests)
        return columns * sum(file for file, _ in grid(params)) / TYPICAL + 1.0

    def clocked_s(self, params: IozoneParams, target: Target) -> float:
        return 0.0


def _sizes(params: IozoneParams) -> list[str]:
    """The arguments of the grid. With `-y` given, automatic mode keeps small records for large files too."""
    if params.file_sizes:
        files = [word for size in params.file_sizes for word in ("-s", f"{kibibytes(size)}k")]
        return files + [word for size in params.record_sizes for word in ("-r", f"{kibibytes(size)}k")]
    edges = {"-n": params.file_min, "-g": params.file_max, "-y": params.record_min, "-q": params.record_max}
    return ["-a", *(word for flag, size in edges.items() for word in (flag, f"{kibibytes(size)}k"))]


def _unit(text: str, record: TrialRecord) -> str:
    """The line that says what the table holds. Raises ParseError when it is missing or means something else."""
    (unit,) = found(UNITS, text, record)
    if unit not in (KBYTES, OPS):
        raise refuse(record, f"values of an unknown unit: {unit}", unit)
    return unit


def _selected(command: Piece, record: TrialRecord) -> list[int]:
    """The tests that the command asks for; all when it asks for none."""
    tests = set()
    for (test,) in map(pieces, SELECTED.finditer(command.whole, command.start, command.start + len(command))):
        if not test.isdecimal():
            raise refuse(record, f"{test} is no number of a test", test)
        tests.add(int(test))
    return sorted(tests & set(TESTS)) or list(TESTS)


def _cells(text: str, record: TrialRecord) -> Iterator[tuple[int, int, str, int]]:
    """(file kB, record kB, operation, value) of every test that ran. Raises ParseError for a table not whole."""
    (command,) = found(COMMAND, text, record)
    selected = _selected(command, record)
    columns = [column for test in selected for column in TESTS[test]]
    (table,) = found(TABLE, text, record)
    seen: set[tuple[int, int]] = set()
    for line in table.splitlines():
        file_kb, record_kb, *rates = map(int, line.split())
        if len(rates) not in (len(columns), len(ALL)) or (file_kb, record_kb) in seen:
            raise refuse(record, f"{line!r} does not hold {', '.join(columns)} of new sizes", text)
        seen.add((file_kb, record_kb))
        for column, rate in zip(columns if len(rates) == len(columns) else ALL, rates, strict=True):
            if rate > 0:  # 0: not run
                yield file_kb, record_kb, column, rate
