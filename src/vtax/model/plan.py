"""What will be done, frozen before the first run: steps, work, cells, trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue

from vtax.model.capabilities import Capabilities
from vtax.model.finding import Problem
from vtax.model.names import Name, StudyName, TrialId
from vtax.model.nodes import ClusterShape, HostCapacity, Phase, Target
from vtax.model.record import FORMAT, TRIALS, Count, Record, is_empty
from vtax.model.study import EnvironmentSpec, Interleave, Study

WORK = 50_000  # of a plan: what its trials repeat
ENVIRONMENTS = 10_000


class InputFile(Record):
    """A file that a step finds in its directory: its text, or the hash of one that the campaign keeps."""

    name: str
    content: str = ""
    sha256: str = ""


class Ready(Record):
    """When a service can be used: a port on which it listens, a line that it prints, or a command that succeeds."""

    port: int | None = None
    line: str | None = None
    command: tuple[str, ...] | None = None
    timeout_s: float = 20.0


class Service(Record):
    """A background step that has to be ready before the next one starts, and to end well when it is stopped.

    `stop` is the signal that ends it; `exits` are the exit codes that are good then, None is 0 and death by `stop`.
    """

    ready: Ready | None = None
    stop: str = "SIGTERM"
    stop_s: float = 20.0  # how long it may take to end; then it is killed, which is a failure
    exits: tuple[int, ...] | None = None


class Step(Record):
    """One command, run at the same time on each of `nodes`, in the trial's directory.

    A background step runs alongside the steps that follow it and is stopped when they are done; `ready` is a regular
    expression that its standard output must match before the next step starts. `outputs` are files that it writes
    into its directory and that belong to the record. `results` are exit codes besides 0 with which the tool tells a
    result instead of a failure, each with the regular expression that its standard output must match then.

    A step without a command only places its `inputs`. `phase` says when it runs. A background step with a `service`
    must be ready in its way, and is stopped by its signal. `usage` is a file like `outputs`: what the command used, as
    `vtax-run` counted it. `success` are the exit codes that are good. `outside` is what this machine is to count of its
    nodes meanwhile (see `model/outside.py`).
    """

    nodes: tuple[str, ...]
    argv: tuple[str, ...]
    timeout_s: float
    inputs: tuple[InputFile, ...] = ()
    outputs: tuple[str, ...] = ()
    background: bool = False
    ready: str | None = None
    results: Mapping[int, str] = Field(default_factory=dict)
    phase: Phase = Phase.RUN
    service: Service | None = None
    usage: str = ""
    success: tuple[int, ...] = (0,)
    outside: tuple[str, ...] = ()


class Load(Record):
    """What disturbs a benchmark: another one, in the background until the benchmark is done."""

    id: str
    benchmark: str
    target: Target
    params: Mapping[str, JsonValue]
    steps: tuple[Step, ...]


class Work(Record):
    """One trial's frozen work in one environment: what every round repeats."""

    id: Name
    environment: Name
    benchmark: str
    label: str
    target: Target
    params: Mapping[str, JsonValue]
    steps: tuple[Step, ...]
    estimate_s: float
    setup_s: float = 0.0  # once on each cluster, in addition; for estimates
    load: Load | None = None
    clocked_s: float = 0.0  # the part of it that passes by the clock, however slow the nodes are
    provisioning: bool = False  # no command: what creating, keeping and destroying the cluster took


class PlannedTrial(Record):
    id: TrialId
    work: Name
    iteration: Count
    warmup: bool


class Cell(Record):
    """One environment in one round, on a freshly provisioned cluster. `estimate_s` is of all of it, 0 if unknown.

    `machine` has the whole cluster; or `placement` is the machine of each node. Both are empty on this machine.
    """

    id: Name
    round: Count
    environment: Name
    trials: Annotated[tuple[PlannedTrial, ...], Field(max_length=TRIALS)]
    estimate_s: float = 0.0
    machine: str = Field(default="", exclude_if=is_empty)
    placement: Mapping[StudyName, StudyName] = Field(default_factory=dict, exclude_if=is_empty)

    def machine_of(self, nodes: Sequence[str]) -> str:
        """The machine that these nodes are on, or those, as "a+b"; "" on this machine."""
        return self.machine or "+".join(dict.fromkeys(self.placement[name] for name in nodes if name in self.placement))

    @property
    def block(self) -> tuple[int, str]:
        """Round and machine: cells of one block are compared with each other."""
        return self.round, self.machine


def busiest_s(cells: Sequence[Cell]) -> float:
    """About how long some cells take, s: machines that each have whole rounds work at the same time."""
    machines = {cell.machine for cell in cells}
    return max((sum(cell.estimate_s for cell in cells if cell.machine == name) for name in machines), default=0)


class Origin(StrEnum):
    """How a campaign came to be."""

    RUN = "run"  # planned and run by vtax: fresh clusters, in randomised rounds
    IMPORTED = "imported"  # other people's logs: runs in an unplanned order


class Plan(Record):
    """Every cell and trial in order, frozen before the first run. `sha256` is of all the rest, as canonical JSON.

    `interleave` "trial": all clusters of a round exist at once, all but one paused, and trials alternate between them.
    "cell", also where the study asks for "trial" and the machine is too small: one cluster after the other.

    With machines of the study's own, `capacities` is what each of them has, and `capacity` what every one has at least.
    """

    format: int = FORMAT
    origin: Origin = Origin.RUN
    vtax_version: str
    study: Study
    capacity: HostCapacity
    shape: ClusterShape
    environments: Annotated[tuple[EnvironmentSpec, ...], Field(max_length=ENVIRONMENTS)]
    capabilities: Mapping[str, Capabilities] = Field(default_factory=dict)  # by environment; none in format 1
    work: Annotated[tuple[Work, ...], Field(max_length=TRIALS)]  # of imported logs, often one for each trial
    cells: Annotated[tuple[Cell, ...], Field(max_length=TRIALS)]
    left_out: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    estimate_s: float
    interleave: Interleave = "cell"
    capacities: Mapping[StudyName, HostCapacity] = Field(default_factory=dict, exclude_if=is_empty)
    sha256: str = ""

    def work_of(self, environment: str, work: str) -> Work:
        return next(item for item in self.work if item.environment == environment and item.id == work)

    def rounds_of(self, environment: str) -> int:
        """In how many of the rounds an environment takes part: the first ones."""
        known = (spec for spec in self.environments if spec.name == environment)
        return next((spec.selection.rounds_of(self.study.rounds) for spec in known), self.study.rounds)

    def names_of(self, benchmark: str, label: str) -> tuple[str, ...]:
        """What findings call an entry. Of imported logs some findings are about all entries of a tool, by its name."""
        return (label, benchmark) if self.origin is Origin.IMPORTED else self.study.names_of(benchmark, label)

    def estimate_until(self, round_: int) -> float:
        """About how long the campaign takes up to and with a round, s."""
        return busiest_s([cell for cell in self.cells if cell.round <= round_])

    def until(self, round_: int) -> Plan:
        """What was due when the campaign ended after a round: the same plan without the cells of later ones."""
        return self.model_copy(update={"cells": tuple(cell for cell in self.cells if cell.round <= round_)})
