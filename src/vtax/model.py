"""The nouns of vtax: frozen records that one stage writes and the next reads. No behaviour beyond looking things up.

    Study -> Plan -> Cluster (live, in `providers.base`) -> TrialRecord -> Measurement -> Analysis

Units are part of the names (`memory_bytes`, `timeout_s`); values are in base units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

FORMAT = 1  # of every artefact; raised when a reader of the old one would go wrong

Labels = Mapping[str, str]


class Record(BaseModel):
    """A frozen record that refuses unknown fields and numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Role(StrEnum):
    MASTER = "master"
    WORKER = "worker"


class Scope(StrEnum):
    """Which nodes one trial of a benchmark uses."""

    NODE = "node"  # every node alone, one trial each
    WORKERS = "workers"  # all workers together
    CLUSTER = "cluster"  # master and workers together
    PAIRS = "pairs"  # every ordered pair of nodes (client, server)
    SHARED = "shared"  # every worker alone, on the shared file system


class Kind(StrEnum):
    """How values of a metric combine (METHOD 1.6): decides the summary of a cell and the sign of an effect."""

    COST = "cost"
    RATE_FIXED_WORK = "rate, fixed work"
    RATE_FIXED_TIME = "rate, fixed time"
    RATIO = "ratio"
    LATENCY_QUANTILE = "latency quantile"
    PROPORTION = "proportion"
    COUNT = "count"


class Direction(StrEnum):
    HIGHER = "higher is better"
    LOWER = "lower is better"
    NONE = "neither"


LOWER_KINDS = frozenset({Kind.COST, Kind.LATENCY_QUANTILE, Kind.PROPORTION})


class Metric(Record):
    """What a benchmark can report under one name. `unit` is a base unit: flop/s, byte/s, bit/s, update/s, 1/s, s, 1."""

    name: str
    unit: str
    kind: Kind
    primary: bool = False
    meaning: str = ""

    @property
    def direction(self) -> Direction:
        if self.kind is Kind.COUNT:
            return Direction.NONE
        return Direction.LOWER if self.kind in LOWER_KINDS else Direction.HIGHER


class NodeShape(Record):
    """What one node must have in every environment. `cpu_ids` are CPUs of the host, `cpus` of them."""

    name: str
    role: Role
    cpus: int
    cpu_ids: tuple[int, ...]
    memory_bytes: int
    disk_bytes: int


class ClusterShape(Record):
    """Master first, then the workers in order."""

    nodes: tuple[NodeShape, ...]

    @property
    def workers(self) -> tuple[NodeShape, ...]:
        return tuple(node for node in self.nodes if node.role is Role.WORKER)

    def node(self, name: str) -> NodeShape:
        return next(node for node in self.nodes if node.name == name)


class EnvironmentSpec(Record):
    """A named way to get a cluster: a provider and its options, validated and with the defaults filled in."""

    name: str
    provider: str
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    control_of: str = ""  # the environment that this one repeats, to show what the instrument itself cannot tell apart


class ImageSpec(Record):
    """The recipe of the root file system. `mirror` "auto" is the machine's own apt mirror."""

    suite: str = "trixie"
    mirror: str = "auto"
    components: tuple[str, ...] = ("main", "non-free")
    extra_packages: tuple[str, ...] = ()
    kernel: str = "cloud"  # of virtual machines: Debian's small one, or "generic" with the drivers that it lacks


def target_label(scope: Scope, nodes: Sequence[str]) -> str:
    """What a set of nodes is called in one scope: `worker1`, `worker1.shared`, `master-worker2`, `workers`."""
    if scope in (Scope.WORKERS, Scope.CLUSTER):
        return scope.value
    return f"{nodes[0]}.shared" if scope is Scope.SHARED else "-".join(nodes)


class Target(Record):
    """The nodes of one trial, in the order that matters (client before server), and its directory on each of them."""

    scope: Scope
    nodes: tuple[NodeShape, ...]
    directory: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)

    @property
    def label(self) -> str:
        return target_label(self.scope, self.names)

    @property
    def filesystem(self) -> str:
        return "shared" if self.scope is Scope.SHARED else "local"


class InputFile(Record):
    """A file that a step finds in its directory."""

    name: str
    content: str


class Step(Record):
    """One command, run at the same time on each of `nodes`, in the trial's directory.

    A background step runs beside the steps that follow it and is stopped when they are done; `ready` is a regular
    expression that its standard output must match before the next step starts. `outputs` are files that it writes
    into its directory and that belong to the record.
    """

    nodes: tuple[str, ...]
    argv: tuple[str, ...]
    timeout_s: float
    inputs: tuple[InputFile, ...] = ()
    outputs: tuple[str, ...] = ()
    background: bool = False
    ready: str | None = None


class BenchmarkSpec(Record):
    """One `[[benchmarks]]` entry of a study. `params` are the benchmark's own, validated, not yet resolved."""

    name: str
    label: str
    scopes: tuple[Scope, ...]
    nodes: tuple[str, ...] = ()  # only these, in the scopes that take nodes one by one; () is all
    warmup: int = 0
    iterations: int = 1
    load: str = ""  # label of the entry that runs beside it, as a disturbance
    alone: bool = True  # False: only the load of others
    params: Mapping[str, JsonValue] = Field(default_factory=dict)


class Study(Record):
    """A study file, validated, with every default filled in; sizes may still be "auto" (None).

    `looks` are the numbers of complete rounds after which the results may be looked at, the last one being `rounds`.
    A study that looks once, at its end, has a fixed number of rounds.
    """

    name: str
    seed: int
    rounds: int
    looks: tuple[int, ...] = ()
    budget_s: float | None = None  # wall time of a campaign; its end is no evidence
    control: bool = False  # whether an environment repeats the baseline in every round
    order_adjust: bool = True  # whether the position inside a round is adjusted for
    baseline: str
    margin: float
    settle_s: float
    environments: tuple[EnvironmentSpec, ...]
    workers: int
    cpus: int | None
    memory_bytes: int | None
    disk_bytes: int | None
    overrides: Mapping[str, Mapping[str, int]] = Field(default_factory=dict)
    shared_path: str
    image: ImageSpec
    benchmarks: tuple[BenchmarkSpec, ...]
    ladder: tuple[str, ...] = ()  # environments, each to be compared with the one before it

    @model_validator(mode="before")
    @classmethod
    def _one_look(cls, given: Any) -> Any:
        """A study without looks has one, after its last round."""
        if isinstance(given, Mapping) and not given.get("looks") and "rounds" in given:
            return {**given, "looks": (given["rounds"],)}
        return given

    def fixed(self, rounds: int) -> Study:
        """The same study with a fixed number of rounds and no look before the last."""
        return self.model_copy(update={"rounds": rounds, "looks": (rounds,)})

    @property
    def control_name(self) -> str | None:
        """The environment that repeats the baseline; None without one."""
        return next((spec.name for spec in self.environments if spec.control_of == self.baseline), None)


class HostCapacity(Record):
    """What the plan needs to know of the machine: its CPUs in the order in which they are given away, its memory."""

    cpu_ids: tuple[int, ...]
    memory_bytes: int


class Severity(StrEnum):
    BLOCKER = "blocker"
    WARNING = "warning"
    INFO = "info"


class Problem(Record):
    """Something found before anything runs; a blocker means that it cannot run."""

    severity: Severity
    message: str
    remedy: str = ""


class Finding(Record):
    """Something the audit says about a campaign (METHOD section 3), and what it touches: empty fields touch all.

    `metrics` are names of metrics; `labels` maps a label to the values that are meant. `unknown` is a condition that
    could not be looked at.
    """

    id: str
    severity: Severity
    message: str  # what was seen
    remedy: str
    why: str = ""  # why it matters
    environment: str = ""
    benchmark: str = ""
    metrics: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    unknown: bool = False

    def touches(self, environments: Sequence[str], names: Sequence[str], metric: str, labels: Labels) -> bool:
        """Whether it is about a comparison of environments; `names` are the benchmark's own and its label."""
        return (
            self.environment in ("", *environments)
            and self.benchmark in ("", *names)
            and (not self.metrics or metric in self.metrics)
            and all(labels.get(name) in values for name, values in self.labels.items())
        )


class Outcome(StrEnum):
    """What a row of the audit came to."""

    FAIL = "fail"
    UNKNOWN = "unknown"
    PASS = "pass"
    NOT_APPLICABLE = "does not apply"


class AuditRow(Record):
    """One row of the catalogue, looked at: what it found, or what was seen that was right."""

    id: str
    severity: Severity  # the worst that this row can say
    title: str
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    seen: tuple[str, ...] = ()


class AuditReport(Record):
    """Every row: failed ones first, then unknown ones, then those that passed or do not apply."""

    format: int = FORMAT
    rows: tuple[AuditRow, ...]


class Load(Record):
    """What disturbs a benchmark: another one, in the background until the benchmark is done."""

    id: str
    benchmark: str
    target: Target
    params: Mapping[str, JsonValue]
    steps: tuple[Step, ...]


class Work(Record):
    """One trial's frozen work in one environment: what every round repeats."""

    id: str
    environment: str
    benchmark: str
    label: str
    target: Target
    params: Mapping[str, JsonValue]
    steps: tuple[Step, ...]
    estimate_s: float
    load: Load | None = None
    clocked_s: float = 0.0  # the part of it that passes by the clock, however slow the nodes are


class PlannedTrial(Record):
    id: str
    work: str
    iteration: int
    warmup: bool


class Cell(Record):
    """One environment in one round, on a freshly provisioned cluster."""

    id: str
    round: int
    environment: str
    trials: tuple[PlannedTrial, ...]


class Origin(StrEnum):
    """How a campaign came to be."""

    RUN = "run"  # planned and run by vtax: fresh clusters, in randomised rounds
    IMPORTED = "imported"  # other people's logs: runs in an order that nobody planned


class Plan(Record):
    """Every cell and trial in order, frozen before the first run. `sha256` is of all the rest, as canonical JSON."""

    format: int = FORMAT
    origin: Origin = Origin.RUN
    vtax_version: str
    study: Study
    capacity: HostCapacity
    shape: ClusterShape
    environments: tuple[EnvironmentSpec, ...]
    work: tuple[Work, ...]
    cells: tuple[Cell, ...]
    left_out: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    estimate_s: float
    sha256: str = ""

    def work_of(self, environment: str, work: str) -> Work:
        return next(item for item in self.work if item.environment == environment and item.id == work)

    def until(self, round_: int) -> Plan:
        """What was due when the campaign ended after a round: the same plan without the cells of later ones."""
        return self.model_copy(update={"cells": tuple(cell for cell in self.cells if cell.round <= round_)})


class Decision(StrEnum):
    """What followed from a look, or ended a campaign without one."""

    GO_ON = "go on"
    SETTLED = "no primary metric waits for its verdict"
    LAST = "the last planned round"
    BUDGET = "the time budget"  # no evidence: nothing was looked at


class Look(Record):
    """A moment at which a running campaign was looked at, or ended. `rounds` are those that were over."""

    rounds: int
    decision: Decision
    reason: str
    at: float  # Unix time
    plan_sha256: str


class LookLog(Record):
    """Every look of a campaign in the order of time: `looks.json`."""

    format: int = FORMAT
    looks: tuple[Look, ...] = ()

    @property
    def ended(self) -> Look | None:
        """The look that ended the campaign for good; None while it may go on, as it may after a budget ended."""
        final = (Decision.SETTLED, Decision.LAST)
        return next((look for look in self.looks if look.decision in final), None)


class Image(Record):
    """The root file system on this machine; `digest` is the sha256 of the archive that all environments start from."""

    recipe: str
    digest: str
    directory: str  # the unpacked tree
    archive: str  # the same tree as a tar file
    versions: Mapping[str, str] = Field(default_factory=dict)  # Debian package -> version
    kernel: str = ""  # what virtual machines boot, in the unpacked tree; "" when there is none


class CommandResult(Record):
    """One finished command. `exit_code` is negative for a signal, as in `subprocess`."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    started: float  # Unix time, s
    elapsed_s: float
    timed_out: bool = False


class StepRecord(Record):
    """What one step did on one node. File names are relative to the trial's directory in the campaign."""

    step: int
    node: str
    argv: tuple[str, ...]
    exit_code: int
    timed_out: bool
    background: bool
    started: float  # Unix time, s
    elapsed_s: float
    stdout: str
    stderr: str
    outputs: Mapping[str, str] = Field(default_factory=dict)  # name in the node -> file


class Status(StrEnum):
    OK = "ok"
    FAILED = "failed"  # it ran and did not succeed; the log is there
    TIMED_OUT = "timed out"
    NOT_RUN = "not run"  # its cluster was gone


class Imported(Record):
    """Where an imported trial was read from. Lines count from 1, in the original file.

    `facts` are what the log says of the machine, the programs and the run; one that it does not say is absent.
    `refused` are sentences about values that are in the log and were not taken.
    """

    file: str
    sha256: str
    raw: str  # the copy of the file, relative to the campaign's directory
    first_line: int
    last_line: int
    reader: str
    facts: Mapping[str, JsonValue] = Field(default_factory=dict)
    refused: tuple[str, ...] = ()


class TrialRecord(Record):
    """One execution of one benchmark in a cell, as it was. Written before anything is parsed.

    `texts` maps each file that the record names to what it holds; the store fills it when a record is read.
    """

    format: int = FORMAT
    id: str
    environment: str
    round: int
    cell: str
    work: str
    benchmark: str
    label: str
    scope: Scope
    nodes: tuple[str, ...]
    iteration: int
    warmup: bool
    params: Mapping[str, JsonValue]
    status: Status
    failure: str = ""
    started: float
    elapsed_s: float
    steps: tuple[StepRecord, ...]
    load: tuple[StepRecord, ...] = ()  # what ran beside it, as a disturbance
    counters: Mapping[str, Mapping[str, float]] = Field(default_factory=dict)  # node -> what was counted meanwhile
    host_counters: Mapping[str, float] = Field(default_factory=dict)  # of the machine that vtax runs on
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


class Measurement(Record):
    """One number, with everything needed to find where it came from."""

    environment: str
    round: int
    cell: str
    trial: str
    iteration: int
    warmup: bool
    benchmark: str
    label: str
    metric: str
    value: float
    unit: str
    kind: Kind
    direction: Direction
    primary: bool
    labels: Labels = Field(default_factory=dict)
    source: str  # file in the campaign, relative to its directory

    @classmethod
    def of(
        cls, record: TrialRecord, metric: Metric, value: float, labels: Labels | None = None, source: str = ""
    ) -> Measurement:
        """A measurement of `record`; `source` is a file that the record names, its last standard output unless told."""
        return cls(
            environment=record.environment,
            round=record.round,
            cell=record.cell,
            trial=record.id,
            iteration=record.iteration,
            warmup=record.warmup,
            benchmark=record.benchmark,
            label=record.label,
            metric=metric.name,
            value=value,
            unit=metric.unit,
            kind=metric.kind,
            direction=metric.direction,
            primary=metric.primary,
            labels={"target": target_label(record.scope, record.nodes), **(labels or {})},
            source=f"trials/{record.id}/{source or record.steps[-1].stdout}",
        )


class NodeFacts(Record):
    """What one node says of itself. A field that could not be observed is absent from `values`, never guessed."""

    node: str
    values: Mapping[str, Any] = Field(default_factory=dict)


class CellRecord(Record):
    """How one cell's cluster came to be: commands, times, facts of every node, checks passed."""

    format: int = FORMAT
    cell: str
    environment: str
    round: int
    instance: int  # 1, or more when the cluster was lost and made again inside the cell
    status: Status
    failure: str = ""
    started: float
    provision_s: float
    commands: tuple[tuple[str, ...], ...] = ()
    facts: tuple[NodeFacts, ...] = ()
    host_facts: Mapping[str, Any] = Field(default_factory=dict)
    checks: tuple[str, ...] = ()
    idle: Mapping[str, float] = Field(default_factory=dict)  # counters of the machine while the new cluster settled
