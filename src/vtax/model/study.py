"""What a user wants to know: environments, benchmarks, rounds; validated, with every default filled in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from vtax.model.names import (
    Address,
    Destination,
    ImageName,
    KubernetesContext,
    KubernetesName,
    MachinePlace,
    MetricName,
    MountPoint,
    Name,
    Sha256,
    SlurmName,
    SlurmOption,
    StudyName,
    WorkloadName,
    WorkloadSource,
)
from vtax.model.nodes import Scope
from vtax.model.record import Count, Record, is_empty

# What becomes an argument of mmdebstrap or a line of apt's sources: no option, no bracket, no white space gets through,
# whether it comes from a study file or from the plan of a campaign.
Suite = Annotated[str, Field(pattern=r"^[a-z][a-z-]*$")]
Mirror = Annotated[str, Field(pattern=r"^(auto|(https?://|file:/)[^\s\[\]\x00-\x1f\x7f]+)$")]
Component = Annotated[str, Field(pattern=r"^[a-z][a-z0-9.-]*$")]
Package = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]+$")]
KernelFlavour = Literal["cloud", "generic"]
SNAPSHOT_PLACE = "{snapshot}"  # in a mirror: where its address has the time stamp of the snapshot


def moment(snapshot: str) -> datetime:
    """What a snapshot's date or time stamp means; a date is the beginning of that day. Raises ValueError for a moment
    that does not exist."""
    form = "%Y-%m-%d" if "-" in snapshot else "%Y%m%dT%H%M%SZ"
    return datetime.strptime(snapshot, form).replace(tzinfo=UTC)


def _existing(snapshot: str) -> str:
    try:
        if snapshot:
            moment(snapshot)
    except ValueError as error:
        raise ValueError(f"there is no such day or time: {snapshot}") from error
    return snapshot


def refuse_lost_place(mirror: str, snapshot: str) -> None:
    """Raise ValueError for the address of a snapshot mirror without a snapshot."""
    if SNAPSHOT_PLACE in mirror and not snapshot:
        raise ValueError(f"the mirror has {SNAPSHOT_PLACE} in its address, but there is no `snapshot`")


Snapshot = Annotated[
    str, Field(pattern=r"^(20[0-9]{2}-[0-9]{2}-[0-9]{2}|20[0-9]{6}T[0-9]{6}Z)?$"), AfterValidator(_existing)
]
Interleave = Literal["trial", "cell"]  # what alternates between the environments of a round
# Where a study with several machines has its nodes: all of a cluster on one machine, and clusters in turn on each; one
# node on each machine; or a table, node -> machine.
TOGETHER: Final = "together"
SPREAD: Final = "spread"
Place = Literal["together", "spread"] | Mapping[StudyName, StudyName]


def _is_together(place: object) -> bool:
    return place == TOGETHER


class Selection(Record):
    """In which entries, by label, in how many of the first rounds, and with how many iterations of an entry at most an
    environment takes part. Empty is all."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    rounds: Count | None = None
    iterations: Count | None = None

    def has(self, label: str) -> bool:
        return label not in self.skip and (not self.only or label in self.only)

    def rounds_of(self, planned: int) -> int:
        """In how many of the `planned` rounds it takes part: the first ones."""
        return planned if self.rounds is None else min(self.rounds, planned)

    def iterations_of(self, planned: int) -> int:
        """How many of the `planned` iterations of an entry it runs in a round: the first ones."""
        return planned if self.iterations is None else min(self.iterations, planned)


class EnvironmentSpec(Record):
    """A named way to get a cluster: a provider and its options, validated and with the defaults filled in.

    `emulated` replaces `selection` on machines on which the environment's nodes are emulated in software.
    """

    name: Name
    provider: str
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    selection: Selection = Selection()
    emulated: Selection | None = None
    control_of: str = ""  # the environment that this one repeats, to show what the instrument itself cannot tell apart
    one_directory: bool = Field(default=True, exclude_if=bool)  # whether its nodes all see one shared directory


class WorkloadSpec(Record):
    """The user's own image. `digest` is the sha256 of its configuration, "" until it is known.

    A source of a registry names a tag until the image is resolved, then the digest of its manifest. `base` is the
    directory that relative paths of `source` start at: not a part of the plan.
    """

    source: WorkloadSource
    digest: Sha256 | Literal[""] = ""
    base: str = Field(default="", exclude=True)


class ImageSpec(Record):
    """The recipe of the root file system. `mirror` "auto" is the machine's own apt mirror; with a `snapshot` it is
    Debian's archive of snapshots."""

    suite: Suite = "trixie"
    mirror: Mirror = "auto"
    snapshot: Snapshot = ""  # the state of the Debian archive at a date; "" is today's
    components: tuple[Component, ...] = ("main", "non-free")
    extra_packages: tuple[Package, ...] = ()
    kernel: KernelFlavour = "cloud"  # of virtual machines: Debian's small one, or "generic" with more drivers
    workload: WorkloadSpec | None = None

    @model_validator(mode="after")
    def _place(self) -> Self:
        refuse_lost_place(self.mirror, self.snapshot)
        return self


class BenchmarkSpec(Record):
    """One `[[benchmarks]]` entry of a study. `params` are the benchmark's own, validated, not yet resolved."""

    name: str
    label: str
    scopes: tuple[Scope, ...]
    nodes: tuple[str, ...] = ()  # only these, in the scopes that take nodes one by one; () is all
    warmup: Count = 0
    iterations: Count = 1
    load: str = ""  # label of the entry that runs at the same time, as a disturbance
    alone: bool = True  # False: only the load of others
    one_way: bool = False  # in the scope of pairs: every pair of nodes in one direction only
    all_pairs: bool = Field(default=False, exclude_if=is_empty)  # there: all, also of many nodes, and not a sample
    exploratory: bool | tuple[MetricName, ...] = False  # all its metrics, or these: with intervals, never primary
    sweep_of: str = ""  # label of the entry with the `matrix` that it came from
    point: Mapping[str, str | int | float] = Field(default_factory=dict)  # its values in that matrix
    workload: WorkloadName = ""  # the name under which vtax has this entry, where the study took it by name
    params: Mapping[str, JsonValue] = Field(default_factory=dict)

    def explores(self, metric: str) -> bool:
        """Whether this metric is not primary, whatever its tool declares."""
        return metric in self.exploratory if isinstance(self.exploratory, tuple) else self.exploratory


class ScoreSpec(Record):
    """A composite score: `weights` by LABEL.METRIC, frozen with the plan."""

    name: str
    weights: Mapping[str, float]


class Equivalence(NamedTuple):
    """What counts as equivalent: ratios from `low` to `high`, which is `delta` either way on the log scale."""

    low: float
    high: float
    delta: float

    @classmethod
    def of(cls, margin: float) -> Equivalence:
        return cls(1 / (1 + margin), 1 + margin, math.log1p(margin))


class SlurmSpec(Record):
    """One allocation of Slurm. Its nodes are machines, called as its table, `name`, and numbered from 1."""

    name: StudyName
    partition: SlurmName = ""  # "" is the default one
    nodes: Count = 1
    time_s: float  # of the allocation
    wait_s: float  # until it starts
    exclusive: bool = True
    account: SlurmName = ""
    options: tuple[SlurmOption, ...] = ()  # of salloc, besides

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(f"{self.name}{number}" for number in range(1, self.nodes + 1))


class ClusterNodeSpec(Record):
    """A machine of a Kubernetes cluster, as `kubectl get nodes` shows it, entered by a pod of this image."""

    node: KubernetesName
    image: ImageName = "vtax-rootfs:latest"
    kubeconfig: MachinePlace = ""
    context: KubernetesContext = ""


class MachineSpec(Record):
    """A machine on which clusters are created: `ssh` is what one gives to `ssh`, so anything that ~/.ssh/config
    understands; with `slurm` it is a node of an allocation, with `kubernetes` a machine of such a cluster. `directory`
    is where vtax keeps its files there; "" is below the user's home directory, or below /var/tmp of a node of Slurm and
    of a machine of Kubernetes."""

    ssh: Destination | Literal[""] = ""
    slurm: SlurmSpec | None = Field(default=None, exclude_if=is_empty)
    kubernetes: ClusterNodeSpec | None = Field(default=None, exclude_if=is_empty)
    directory: MachinePlace = Field(default="", exclude_if=is_empty)
    address: Address = Field(default="", exclude_if=is_empty)  # by which the other machines reach it; "": found by vtax
    shared: MachinePlace = Field(default="", exclude_if=is_empty)  # a directory of it that all machines see

    @property
    def words(self) -> str:
        """What it is reached by."""
        if self.kubernetes is not None:
            return f"Kubernetes, machine {self.kubernetes.node}"
        if self.slurm is None:
            return self.ssh
        return f"Slurm, partition {self.slurm.partition}" if self.slurm.partition else "Slurm"

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.ssh) + (self.slurm is not None) + (self.kubernetes is not None) != 1:
            raise ValueError("a machine has one of ssh, slurm and kubernetes")
        return self


class Study(Record):
    """A study file, validated, with every default filled in; sizes may still be "auto" (None).

    `looks` are the numbers of complete rounds after which the results may be analysed, the last one being `rounds`.
    A study with one look, at its end, has a fixed number of rounds. Without `machines` all clusters are on this
    machine; with several, `rounds` are rounds on each of them.
    """

    name: str
    seed: int
    rounds: Count
    looks: tuple[Count, ...] = ()
    anytime: bool = False  # intervals that hold after every round, so that `looks` are all rounds from six on
    budget_s: float | None = None  # wall time of a campaign; its end is no evidence
    control: bool = False  # whether an environment repeats the baseline in every round
    order_adjust: bool = True  # whether the position inside a round is adjusted for
    interleave: Interleave = "cell"
    baseline: str
    margin: float
    settle_s: float
    environments: tuple[EnvironmentSpec, ...]
    workers: int
    cpus: int | None
    memory_bytes: int | None
    disk_bytes: int | None
    overrides: Mapping[str, Mapping[str, int]] = Field(default_factory=dict)
    share_cpus: bool = Field(default=False, exclude_if=is_empty)  # whether workers may have the same CPUs
    shared_path: MountPoint
    nfs: bool = Field(default=True, exclude_if=bool)  # whether machines without a shared directory may get one by NFS
    nfs_used: bool = Field(default=False, exclude_if=is_empty)  # whether they do, once they were asked
    nfs_refused: str = Field(default="", exclude_if=is_empty)  # why they do not
    image: ImageSpec
    benchmarks: tuple[BenchmarkSpec, ...]
    scores: tuple[ScoreSpec, ...] = ()
    ladder: tuple[str, ...] = ()  # environments, each to be compared with the one before it
    machines: Mapping[StudyName, MachineSpec] = Field(default_factory=dict, exclude_if=is_empty)
    place: Place = Field(default=TOGETHER, exclude_if=_is_together)
    files: Mapping[str, bytes] = Field(default_factory=dict, exclude=True, repr=False)  # of its folder, by their hashes

    @model_validator(mode="before")
    @classmethod
    def _one_look(cls, given: Any) -> Any:
        """A study without looks has one, after its last round."""
        if isinstance(given, Mapping) and not given.get("looks") and "rounds" in given:
            return {**given, "looks": (given["rounds"],)}
        return given

    def fixed(self, rounds: int) -> Study:
        """The same study with a fixed number of rounds and no look before the last."""
        return self.model_copy(update={"rounds": rounds, "looks": (rounds,), "anytime": False})

    def names_of(self, benchmark: str, label: str) -> tuple[str, ...]:
        """What findings call an entry: its label, and the benchmark's name where no entry has that as its label."""
        return (label,) if any(entry.label == benchmark for entry in self.benchmarks) else (label, benchmark)

    @property
    def packages(self) -> tuple[Package, ...]:
        """What the entries want installed in addition to the root file system of [image]."""
        found: set[str] = set()
        for entry in self.benchmarks:
            names = entry.params.get("packages")
            found |= {str(name) for name in names} if isinstance(names, list) else set()
        return tuple(sorted(found))

    def explores(self, label: str, metric: str) -> bool:
        """Whether this metric of this entry is not primary, whatever its tool declares."""
        return any(entry.explores(metric) for entry in self.benchmarks if entry.label == label)

    @property
    def equivalence(self) -> Equivalence:
        return Equivalence.of(self.margin)

    @property
    def node_names(self) -> tuple[str, ...]:
        """Master first, then the workers in order."""
        return ("master", *(f"worker{number}" for number in range(1, self.workers + 1)))

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The machines that each have whole rounds alone; () where a round uses this machine, or all of them."""
        return tuple(self.machines) if self.place == TOGETHER else ()

    @property
    def apart(self) -> bool:
        """Whether the nodes of a cluster are on several machines."""
        return bool(self.machines) and self.place != TOGETHER

    @property
    def one_directory(self) -> bool:
        """Whether all nodes of a cluster see one shared directory: on several machines only where these share one."""
        shared = not self.apart or self.nfs_used or all(one.shared for one in self.machines.values())
        return shared and all(one.one_directory for one in self.environments)

    @property
    def control_name(self) -> str | None:
        """The environment that repeats the baseline; None without one."""
        return next((spec.name for spec in self.environments if spec.control_of == self.baseline), None)
