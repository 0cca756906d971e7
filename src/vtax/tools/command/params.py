"""The tables of an entry with an own command, as records: what a study says, and what the plan adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from vtax.model.names import Argument, OutputName, Program, Sha256, Signal, User, Variable, Word, WorkloadName
from vtax.model.outside import EVENTS
from vtax.model.record import Record
from vtax.model.study import Package
from vtax.tools.benchmark import Params
from vtax.tools.command.metric_table import MetricTables
from vtax.tools.fields import Auto, Seconds
from vtax.tools.patterns import PatternText

LARGEST_FILE = 16 * 2**20
ROLE = r"^(node|server|client|master|worker[0-9]{1,3})$"


def _with_program(words: tuple[str, ...]) -> tuple[str, ...]:
    """A command begins with a program, which is no option."""
    if not words:
        raise ValueError("the command is empty; write a program and its arguments, each a string of its own")
    _Begins(program=words[0])
    return words


def _known_event(name: str) -> str:
    if name not in EVENTS:
        raise ValueError(f"there is no event {name}; allowed: {', '.join(EVENTS)}")
    return name


class _Begins(Record):
    program: Program


Argv = Annotated[tuple[Argument, ...], AfterValidator(_with_program), Field(max_length=1000)]
Role = Annotated[str, Field(pattern=ROLE)]
ExitCode = Annotated[int, Field(ge=0, le=255)]
RanksPerNode = Annotated[int, Field(ge=1, le=1024)]
Port = Annotated[int, Field(ge=1, le=65535)]
PortWord = Annotated[str, Field(pattern=r"^\{[a-z][a-z0-9_]{0,30}\}$")]
PerfEvent = Annotated[str, AfterValidator(_known_event)]
Value = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]


class FileTable(Record):
    """A file of the study's folder that the commands find in their directory. `sha256` may be given to pin it; the
    plan has it, and the size, in any case. `shipped` is the workload whose own file it is: vtax fills it in."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True, validate_by_alias=True)

    source: OutputName = Field(alias="from")
    to: OutputName | None = None
    executable: bool = False
    sha256: Sha256 | Literal[""] = ""
    size_bytes: Annotated[int, Field(ge=0, le=LARGEST_FILE)] = 0
    shipped: SkipJsonSchema[WorkloadName] = ""

    @property
    def name(self) -> str:
        """How it is called in the directory of the commands."""
        return self.to or self.source.rpartition("/")[2]


class CommandTable(Record):
    """A command of `setup`, `prepare` or `cleanup` on a certain node, with another time limit than usual, or with an
    estimate of its time."""

    command: Argv
    on: Role | None = None
    timeout: Seconds | None = None
    estimate: Seconds | None = None


class ReadyTable(Record):
    """When a service can be used: it listens on a `port`, has printed a `line`, or a `command` succeeds."""

    port: Port | PortWord | None = None
    line: PatternText | None = None
    command: Argv | None = None
    timeout: Seconds = 20.0

    @model_validator(mode="after")
    def _one_condition(self) -> ReadyTable:
        if sum(one is not None for one in (self.port, self.line, self.command)) != 1:
            raise ValueError("give exactly one of `port`, `line` and `command`")
        return self


class ServiceTable(Record):
    """A server that runs while the commands of a trial do. Without a `command` it is the image's own."""

    command: Argv | None = None
    on: Role | None = None
    image: bool | None = None
    ready: ReadyTable | None = None
    stop: Signal = "SIGTERM"
    stop_timeout: Seconds = 20.0
    exits: Annotated[tuple[ExitCode, ...], Field(min_length=1)] | None = None


class SuccessTable(Record):
    """How a run that succeeded is recognised: its exit code, a pattern in its output, a pattern that is not there."""

    exit: Annotated[tuple[ExitCode, ...], Field(min_length=1)] = (0,)
    match: PatternText | None = None
    refuse: PatternText | None = None


class RunTable(Record):
    """What is measured. With `seconds` it runs for a fixed time, else it does fixed work. With `same_output`, its
    standard output is the same everywhere, apart from what `volatile` matches. With `ranks_per_node`, mpirun starts so
    many of it on each node that takes part."""

    command: Argv | None = None
    on: Role | None = None
    ranks_per_node: RanksPerNode | None = None
    seconds: Seconds | None = None
    timeout: Seconds | None = None
    estimate: Seconds | None = None
    success: SuccessTable = SuccessTable()
    same_output: bool = False
    volatile: PatternText | None = None

    @model_validator(mode="after")
    def _volatile_of_something(self) -> RunTable:
        if self.volatile is not None and not self.same_output:
            raise ValueError("`volatile` is what may differ of an output that is the same: it needs same_output = true")
        return self


class CommandParams(Params):
    """`command` is short for `run.command`; docs/own-workloads.md describes the tables.

    The plan completes `port` and `image`. `words` is its own: what the words in braces stand for, apart from addresses,
    which depend on the environment.
    """

    command: Argv | None = None  # short for run.command
    run: RunTable | None = None
    setup: tuple[Argv | CommandTable, ...] = ()
    prepare: tuple[Argv | CommandTable, ...] = ()
    cleanup: tuple[Argv | CommandTable, ...] = ()
    services: Annotated[tuple[ServiceTable, ...], Field(max_length=16)] = ()
    metrics: MetricTables = Field(default_factory=list)
    files: Annotated[tuple[FileTable, ...], Field(max_length=100)] = ()
    perf: Annotated[tuple[PerfEvent, ...], Field(max_length=len(EVENTS))] = ()
    packages: Annotated[tuple[Package, ...], Field(max_length=100)] = ()
    env: Mapping[Variable, Value] = Field(default_factory=dict)
    user: User | None = None
    image: bool | None = None
    directory: Value | None = None
    values: Mapping[Word, int | float | Value] = Field(default_factory=dict)
    port: Auto | Port = "auto"
    words: SkipJsonSchema[Mapping[Word, Value]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_run(self) -> CommandParams:
        if self.command is not None and self.run is not None and self.run.command is not None:
            raise ValueError("`command` is short for `run.command`; give only one of them")
        return self

    @property
    def running(self) -> RunTable:
        """The run with its command, wherever the study has that; the image's own where it has none."""
        run = self.run or RunTable()
        return run if self.command is None else run.model_copy(update={"command": self.command})
