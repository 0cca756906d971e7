"""What one trial did: its commands, their output, how it ended; or the log that it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field, JsonValue

from vtax.model.names import FileName, Name, RawFile, TrialId
from vtax.model.nodes import Phase, Scope
from vtax.model.record import FORMAT, Count, Record, Seconds, is_empty

OUTPUT_BYTES = 64 * 2**20  # of all that one trial printed


class CommandResult(Record):
    """One finished command. `exit_code` is negative for a signal, as in `subprocess`. `stopped` is why vtax ended it,
    apart from its time limit."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    started: float  # Unix time, s
    elapsed_s: float
    timed_out: bool = False
    stopped: str = ""


class StepRecord(Record):
    """What one step did on one node. File names are relative to the trial's directory in the campaign.

    `left` are the programs that it left running, which were ended with it. `stopped` is why vtax ended it before its
    time limit; "" when it did not. `not_kept` are files that it left and that are not among its `outputs`, and why.
    """

    step: int
    node: str
    argv: tuple[str, ...]
    exit_code: int
    timed_out: bool
    background: bool
    started: Seconds  # Unix time, s
    elapsed_s: Seconds
    stdout: FileName
    stderr: FileName
    outputs: Mapping[str, FileName] = Field(default_factory=dict)  # name in the node -> file
    not_kept: Mapping[str, str] = Field(default_factory=dict)
    phase: Phase = Phase.RUN
    left: tuple[str, ...] = ()
    stopped: str = ""


class Status(StrEnum):
    OK = "ok"
    FAILED = "failed"  # it ran and did not succeed; the log is there
    TIMED_OUT = "timed out"
    NOT_RUN = "not run"  # its cluster was gone


class Imported(Record):
    """Where an imported trial was read from. Lines count from 1, in the original file.

    `facts` are what the log says of the machine, the programs and the run; one that it does not say is absent.
    `refused` are sentences about values that are in the log and were not taken. `source` is the node that a prefix of
    every line names; `pieces` are first line and number of lines of each part, where other lines are between them.
    """

    file: str
    sha256: str
    raw: RawFile  # the copy of the file, relative to the campaign's directory
    first_line: int
    last_line: int
    reader: str
    facts: Mapping[str, JsonValue] = Field(default_factory=dict)
    refused: tuple[str, ...] = ()
    source: str = ""
    pieces: tuple[tuple[int, int], ...] = ()
    labels: Mapping[str, str] = Field(default_factory=dict)  # of all its values, as whoever imported it stated
    unit: str = ""  # of values whose unit the log does not say, as whoever imported it stated
    table: tuple[str, ...] = ()  # what the columns of a table are, as whoever imported it stated


class Pause(Record):
    """The pause of a trial's cluster before it, while the trials of other environments ran.

    `clock_behind_s` says by how much the clock of each node with its own kernel was behind the host's when the pause
    was over, before it was set; what is left then is the delay of one command.
    """

    lasted_s: Seconds
    pause_s: Seconds  # until all nodes had stopped
    resume_s: Seconds  # until all nodes ran again, with their clocks set
    clock_behind_s: Mapping[str, float] = Field(default_factory=dict)


class TrialRecord(Record):
    """One execution of one benchmark in a cell, as it was. Written before anything is parsed.

    `texts` maps each file that the record names to what it holds; the store fills it when a record is read.
    """

    format: int = FORMAT
    id: TrialId
    environment: Name
    round: Count
    cell: Name
    work: Name
    benchmark: str
    label: str
    scope: Scope
    nodes: tuple[str, ...]
    iteration: Count
    warmup: bool
    params: Mapping[str, JsonValue]
    status: Status
    failure: str = ""
    started: Seconds
    elapsed_s: Seconds
    steps: tuple[StepRecord, ...]
    load: tuple[StepRecord, ...] = ()  # what ran at the same time, as a disturbance
    counters: Mapping[str, Mapping[str, float]] = Field(default_factory=dict)  # node -> what was counted meanwhile
    host_counters: Mapping[str, float] = Field(default_factory=dict)  # of the machine that vtax runs on
    step_counters: Mapping[int, Mapping[str, float]] = Field(default_factory=dict)  # of the machine while a step ran
    machine: str = Field(default="", exclude_if=is_empty)  # that its nodes were on, "a+b" for two; "": this one
    plan_sha256: str = ""  # of the plan that it ran by; "" in records of older versions, and of imported logs
    outside: Mapping[str, float] = Field(default_factory=dict)  # counted of the nodes from outside while it ran
    not_outside: Mapping[str, str] = Field(default_factory=dict)  # what should have been, and why it was not
    pause: Pause | None = None  # None in a round whose clusters are not paused
    imported: Imported | None = None  # of a log that vtax did not make
    texts: Mapping[str, str] = Field(default_factory=dict, exclude=True, repr=False)

    def step_on(self, step: int, node: str | None = None) -> StepRecord:
        """The record of a step (negative: from the end) on a node (None: the first that ran it)."""
        last = max((done.step for done in self.steps), default=-1)
        wanted = step if step >= 0 else last + 1 + step
        return next(done for done in self.steps if done.step == wanted and node in (None, done.node))

    def output(self, step: int = -1, node: str | None = None) -> str:
        """Standard output of a step, as text."""
        return self.texts[self.step_on(step, node).stdout]

    def file(self, name: str, step: int = -1, node: str | None = None) -> str | None:
        """An output file of a step, as text; None when the step left none."""
        path = self.step_on(step, node).outputs.get(name)
        return None if path is None else self.texts[path]
