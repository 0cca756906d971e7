"""What starts a parallel program on all its ranks: the protocol of launchers, and how many ranks run where.

Only providers choose a launcher; planner, benchmarks and verification know this protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from vtax.model.nodes import NodeShape, Role, Target
from vtax.model.plan import InputFile
from vtax.model.record import Record


class Ranks(Record):
    """How many ranks run where: `per_node` in the order of the target's nodes; `threads` CPUs belong to each rank."""

    per_node: tuple[int, ...]
    threads: int = 1

    @property
    def total(self) -> int:
        return sum(self.per_node)


def ranks_for(nodes: Sequence[NodeShape], ranks_per_node: int | None = None, threads: int = 1) -> Ranks:
    """One rank for every `threads` CPUs of each node, unless `ranks_per_node` fixes the number."""
    counts = tuple(ranks_per_node or max(1, node.cpus // threads) for node in nodes)
    return Ranks(per_node=counts, threads=threads)


def share_cpus(target: Target) -> bool:
    """Whether nodes of the target share CPUs, so that some ranks must share one too."""
    distinct = {cpu for node in target.nodes for cpu in node.cpu_ids}
    return len(distinct) < sum(node.cpus for node in target.nodes)


def workers_share(target: Target) -> bool:
    """Whether workers of the target share CPUs, as only a study with `share_cpus` allows: ranks that wait then keep
    others from running, unless they yield."""
    workers = tuple(node for node in target.nodes if node.role is Role.WORKER)
    return share_cpus(target.model_copy(update={"nodes": workers}))


class Launcher(Protocol):
    """How ranks are started in one environment. Pure: the plan contains its command lines.

    A launch of a program that prints its world size, rank and host (`running/placement.py`) verifies each new cluster,
    so a launcher that starts ranks that do not know each other is noticed, whatever its exit code says.
    """

    @property
    def program(self) -> str:
        """The program that starts the ranks, as messages name it."""
        ...

    @property
    def one_machine(self) -> bool:
        """Whether all ranks run next to each other on one machine, of which nodes are only sets of CPUs."""
        ...

    @property
    def from_outside(self) -> bool:
        """Whether the ranks are started by a program next to the node, which the command asks."""
        ...

    def argv(
        self, program: Sequence[str], target: Target, ranks: Ranks, yield_when_idle: bool = False
    ) -> tuple[str, ...]:
        """The command that starts `program` on all ranks, run on the first node of `target` in its directory. With
        `yield_when_idle`, ranks that wait for a message let others run."""
        ...

    def inputs(self, target: Target, ranks: Ranks) -> tuple[InputFile, ...]:
        """The files that the command reads from that directory."""
        ...

    def on_machines_network(self) -> Launcher:
        """The same for nodes that use their machines' own networks, where files of each node name the interface."""
        ...


class Started(NamedTuple):
    """What a launcher's command line says."""

    ranks: int
    threads: int  # of each rank
    path: str  # how ranks reach each other, "" where it does not say
    launcher: str
