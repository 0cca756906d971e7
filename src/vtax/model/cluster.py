"""What a cell's cluster was made of: the root file system, the facts of its nodes, how it came to be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from vtax.model.facts import Facts
from vtax.model.names import Name, Sha256, WorkloadSource
from vtax.model.record import FORMAT, Count, Record, Seconds, is_empty
from vtax.model.trial import Status


class Workload(Record):
    """A user's own image, unpacked on this machine. Its configuration names its layers; `digest` is its sha256.

    `directory` contains `root/` (the tree), `config` (the image's configuration as options of vtax-run) and `entry`
    (entry point and command); in both every string is followed by a NUL.
    """

    source: WorkloadSource  # as the study names it
    digest: Sha256
    directory: str
    architecture: str  # as images name it: amd64, arm64
    libc: str  # "glibc 2.41", "musl 1.2.5", both, or "none"
    size_bytes: int
    entry: tuple[str, ...] = ()  # entry point and command; () where the image has neither
    variables: tuple[str, ...] = ()  # names of its environment; a campaign does not record their values
    user: str = ""  # "" is root
    working_directory: str = "/"
    layers: int = 0
    unpacked_by: str = ""  # the programs and their versions

    @property
    def root(self) -> Path:
        return Path(self.directory) / "root"


class Image(Record):
    """The root file system on this machine; `digest` is the sha256 of the archive that all environments start from.

    One with a study's packages is made from another, its `base`. `workload` is the study's own image, where it has one.
    """

    recipe: str
    digest: str
    directory: str  # the unpacked tree
    archive: str  # the same tree as a tar file
    versions: Mapping[str, str] = Field(default_factory=dict)  # Debian package -> version
    kernel: str = ""  # what virtual machines boot, in the unpacked tree; "" when there is none
    enter_digest: str = ""  # sha256 of `enter`; "" for images of earlier versions, which have none
    base: str = ""  # the recipe that it was made from by installing `packages`; "" when mmdebstrap made it
    packages: tuple[str, ...] = ()
    workload: Workload | None = None

    @property
    def enter(self) -> str:
        """What puts commands into the tree on this machine: outside the tree, so nothing that runs in it sees it."""
        return str(Path(self.directory).with_name("vtax-enter"))


class NodeFacts(Record):
    """What one node says of itself. A field that could not be observed is absent from `values`, never guessed."""

    node: str
    values: Facts = Field(default_factory=dict)


class CellRecord(Record):
    """How one cell's cluster came to be: commands, times, facts of every node, checks passed.

    `host_facts` are of the machine that the cluster is on; `machine_facts` of each, where it is on several.
    """

    format: int = FORMAT
    cell: Name
    environment: Name
    round: Count
    instance: Count  # 1, or more when the cluster was lost and made again inside the cell
    status: Status
    failure: str = ""
    started: Seconds
    provision_s: Seconds
    commands: tuple[tuple[str, ...], ...] = ()
    facts: tuple[NodeFacts, ...] = ()
    host_facts: Facts = Field(default_factory=dict)
    checks: tuple[str, ...] = ()
    idle: Mapping[str, float] = Field(default_factory=dict)  # counters of the machine while the new cluster settled
    pausing: str = ""  # what pauses the cluster between its trials; "" where nothing does
    paused: tuple[str, ...] = ()  # environments whose clusters were there too, paused, when this was recorded
    machine_facts: Mapping[str, Facts] = Field(default_factory=dict, exclude_if=is_empty)
    not_interleaved: str = ""  # why this round ran as whole cells, although the plan alternates trials
