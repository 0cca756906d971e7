"""The tables of a study file, as records: what the JSON Schema of `vtax schema` is made from."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from vtax.model.names import STUDY_NAME as NAME
from vtax.model.names import WORKLOAD_SOURCE, Destination, MetricName, MountPoint, SlurmName, SlurmOption, WorkloadName
from vtax.model.nodes import MOST_WORKERS, Scope
from vtax.model.record import Record
from vtax.model.study import (
    TOGETHER,
    Component,
    Interleave,
    KernelFlavour,
    Mirror,
    Package,
    Snapshot,
    Suite,
    refuse_lost_place,
)
from vtax.planning.weights import ScoreTable
from vtax.units import parse_bytes, parse_seconds


def _size(value: Any) -> Any:
    return parse_bytes(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else value


def _bool_or_names(value: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, list) and value and all(isinstance(one, str) for one in value)):
        return value
    raise ValueError("it is neither true, false nor a list of metrics")


def _size_or_auto(value: Any) -> Any:
    return value if value == "auto" else _size(value)


def _duration(value: Any) -> Any:
    return parse_seconds(value) if isinstance(value, str) else value


def _image(value: str) -> str:
    if re.fullmatch(WORKLOAD_SOURCE.removesuffix("$"), value) is None:
        raise ValueError(f"{value!r} is not an image; write {IMAGE_FORMS}")
    return value


IMAGE_FORMS = (
    '"docker-archive:FILE", "oci-archive:FILE" or "oci:DIRECTORY", with ":TAG" where there are several images, or '
    '"docker://REGISTRY/NAME" with ":TAG" or "@sha256:DIGEST"; a path has no colon'
)
IMAGE_SCHEMA = {"type": "string", "pattern": WORKLOAD_SOURCE, "examples": ["docker-archive:app.tar", "oci:app"]}
SIZE_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "examples": ["512 MiB", "2 GB"]}]}
DURATION_SCHEMA = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "examples": ["90 s", "10 min"]}]}
Name = Annotated[str, Field(pattern=NAME)]
Size = Annotated[int, BeforeValidator(_size), Field(ge=1), WithJsonSchema(SIZE_SCHEMA)]
SizeOrAuto = Annotated[Literal["auto"] | int, BeforeValidator(_size_or_auto), WithJsonSchema(SIZE_SCHEMA)]
Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0), WithJsonSchema(DURATION_SCHEMA)]
Count = Annotated[int, Field(ge=1, le=1024)]
MOST_ROUNDS = 1000
MOST_MACHINES = 1 + MOST_WORKERS
Rounds = Annotated[int, Field(ge=1, le=MOST_ROUNDS)]
Iterations = Annotated[int, Field(ge=1, le=1000)]


class Table(Record):
    """A table of the file."""


class NodeOverride(Table):
    """What differs on one node."""

    cpus: Count | None = None
    memory: Size | None = None
    disk: Size | None = None


Place = Annotated[str, Field(pattern=r"^/[^\x00-\x1f\x7f]*$")]  # a directory of a machine


class SlurmTable(Table):
    """One allocation of Slurm: `nodes` of a `partition` for a `time`, started within `wait`. `options` are more options
    of salloc, such as "--constraint=amd"."""

    partition: SlurmName | None = None
    nodes: Annotated[int, Field(ge=1, le=MOST_MACHINES)] = 1
    time: Annotated[Duration, Field(ge=60)]
    wait: Annotated[Duration, Field(gt=0)] = 3600.0
    exclusive: bool = True
    account: SlurmName | None = None
    options: tuple[SlurmOption, ...] = ()


class MachineTable(Table):
    """A machine that clusters are created on: `ssh` is what one gives to the command `ssh`. With `slurm` it is an
    allocation of Slurm instead, each of whose nodes is a machine: NAME1, NAME2 and so on. Without any
    `[machines.NAME]` it is this machine. vtax keeps its files in `directory` there. Where clusters have nodes on
    several machines, `address` is the one by which the others reach it, and `shared` a directory of it that all of
    them see."""

    ssh: Destination | None = None
    slurm: SlurmTable | None = None
    directory: Place | None = None
    address: Annotated[str, Field(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$")] | None = None
    shared: Place | None = None


class NodesTable(Table):
    """One master and `workers` workers, each with `cpus`, `memory` and `disk`, unless `overrides.<node>` differs.

    `place` is for several machines: whole clusters "together" on each of them in turn, "spread" with each node on a
    machine alone, or a table with the machine of every node. With `share_cpus`, more workers than the machine has CPUs
    share them, one CPU and so one rank each."""

    workers: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 2
    cpus: Literal["auto"] | Count = "auto"
    memory: SizeOrAuto = "auto"
    disk: SizeOrAuto = "auto"
    share_cpus: bool = False
    place: Literal["together", "spread"] | dict[Name, Name] = TOGETHER
    overrides: dict[str, NodeOverride] = Field(default_factory=dict)


class SharedTable(Table):
    """Where every node sees the cluster's shared file system. `nfs`: whether the master's machine may serve it by NFS,
    where clusters have nodes on several machines, or nodes exist already, and these share no directory."""

    path: MountPoint = "/shared"
    nfs: bool = True


class WorkloadTable(Table):
    """The image that entries with `image` run in: `docker-archive:FILE`, `oci:DIR`, `oci-archive:FILE`, each with
    `:TAG` where there are several, or `docker://REGISTRY/NAME` with a tag or a digest."""

    source: Annotated[str, AfterValidator(_image), WithJsonSchema(IMAGE_SCHEMA)] = Field(alias="from")


class ImageTable(Table):
    """The root file system's recipe. `mirror` "auto" is the machine's own apt mirror; with a `snapshot`, the state of a
    day, it is Debian's archive of those. Virtual machines boot `kernel`: Debian's small one, or "generic", which has
    drivers for more devices. `workload` is the user's own image."""

    suite: Suite = "trixie"
    mirror: Mirror = "auto"
    snapshot: Snapshot = ""
    components: list[Component] = Field(default_factory=lambda: ["main", "non-free"])
    extra_packages: list[Package] = Field(default_factory=list)
    kernel: KernelFlavour = "cloud"
    workload: WorkloadTable | None = None

    @model_validator(mode="after")
    def _place(self) -> Self:
        refuse_lost_place(self.mirror, self.snapshot)
        return self


class SelectionTable(Table):
    """What of the study an environment runs: the entries with these labels `only`, or all but those to `skip`; in the
    first `rounds` rounds."""

    only: list[str] | None = None
    skip: list[str] = Field(default_factory=list)
    rounds: Rounds | None = None


class EmulatedTable(SelectionTable):
    """The same where its nodes are emulated: they are not compared, so fewer `iterations` of every entry may do."""

    iterations: Iterations | None = None


class EnvironmentTable(SelectionTable):
    """One `[environments.NAME]`: the keys of every provider. `emulated` replaces the other keys on machines on which
    the nodes are emulated in software. All others are the provider's own options."""

    emulated: EmulatedTable | None = None


class BenchmarkTable(BaseModel):
    """One `[[benchmarks]]` entry: the keys of every benchmark. All others are the benchmark's own parameters.

    A `workload` is an entry that vtax has by name, and stands in the place of `name`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    workload: WorkloadName = ""
    label: Name | None = None
    scopes: list[Scope] | None = None
    nodes: list[str] = Field(default_factory=list)
    warmup: Annotated[int, Field(ge=0, le=100)] = 0
    iterations: Iterations = 1
    load: str = ""
    alone: bool = True
    one_way: bool = False
    all_pairs: bool = False
    exploratory: Annotated[bool | list[MetricName], BeforeValidator(_bool_or_names)] = False
    matrix: dict[str, list[str | int | float]] = Field(default_factory=dict)


class StudyFile(Table):
    """A whole study file."""

    name: Name
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    rounds: Rounds = 6
    looks: Annotated[list[Rounds], Field(max_length=20)] = Field(default_factory=list)
    anytime: bool = False
    budget: Annotated[float, BeforeValidator(_duration), Field(gt=0), WithJsonSchema(DURATION_SCHEMA)] | None = None
    control: bool = False
    order_adjust: bool = True
    interleave: Interleave = "trial"
    baseline: str
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.02
    settle: Duration = 0.0
    environments: dict[Name, dict[str, Any]] = Field(min_length=1)
    ladder: list[str] = Field(default_factory=list)
    scores: list[ScoreTable] = Field(default_factory=list)
    nodes: NodesTable = Field(default_factory=NodesTable)
    machines: dict[Name, MachineTable] = Field(default_factory=dict, max_length=MOST_MACHINES)
    shared: SharedTable = Field(default_factory=SharedTable)
    image: ImageTable = Field(default_factory=ImageTable)
    benchmarks: list[dict[str, Any]] = Field(min_length=1)
