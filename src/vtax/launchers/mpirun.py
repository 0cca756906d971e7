"""mpirun of Open MPI 5: one explicit placement, the same in every environment.

Open MPI's own `--bind-to core` assumes that all nodes may use the same CPU numbers and kills ranks on nodes whose
cpuset differs, so binding is done by `vtax-rank` (in the root file system): it pins local rank r of a node to the r-th
group of `threads` CPUs that the node may use.
"""

from __future__ import annotations

from collections.abc import Sequence

from vtax.model.nodes import NodeShape, Target
from vtax.model.plan import InputFile
from vtax.model.record import Record

HOSTFILE = "hostfile"
LOOPBACK = ("env", "LD_PRELOAD=/usr/local/bin/vtax-loopback.so")  # Open MPI has no option that does this


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


class Mpirun(Record):
    """mpirun as one environment needs it.

    `interface` is the network interface of the cluster inside a node, "" where the node's own files name the network.
    `one_machine` environments (the host) run all ranks next to each other and have no host file. `transport` "tcp"
    forces TCP even inside a node. `loopback`: all nodes share this machine's own network, where mpirun, its daemons and
    the ranks must not listen on other addresses.
    """

    interface: str
    one_machine: bool = False
    loopback: bool = False
    transport: str = "auto"

    def argv(
        self, program: Sequence[str], target: Target, ranks: Ranks, yield_when_idle: bool = False
    ) -> tuple[str, ...]:
        """The command that starts `program` on all ranks, run on the first node of `target` in its directory."""
        transports = "self,tcp" if self.transport == "tcp" else "self,sm,tcp"
        command = ["mpirun", "--allow-run-as-root", "--np", str(ranks.total), *self._placement(ranks)]
        if self.loopback:  # the ranks inherit it from mpirun and from the daemons that it starts on other nodes
            command = [*LOOPBACK, *command, "--prtemca", "prte_launch_agent", " ".join((*LOOPBACK, "prted"))]
        command += ["--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", transports]
        command += ["--mca", "btl_tcp_if_include", self.interface] if self.interface else []
        if yield_when_idle:
            command += ["--mca", "mpi_yield_when_idle", "1"]
        command += ["--wdir", target.directory, "-x", f"OPENBLAS_NUM_THREADS={ranks.threads}"]
        if self.one_machine and _shared_cpus(target):
            command += ["-x", "VTAX_OVERCOMMIT=1"]
        return (*command, "vtax-rank", str(ranks.threads), *program)

    def _placement(self, ranks: Ranks) -> list[str]:
        if self.one_machine:
            return ["--host", f"localhost:{ranks.total}", "--map-by", f"ppr:{ranks.total}:node"]
        if len(set(ranks.per_node)) == 1:
            return ["--hostfile", HOSTFILE, "--map-by", f"ppr:{ranks.per_node[0]}:node"]
        return ["--hostfile", HOSTFILE, "--map-by", "slot"]  # unequal nodes: the slots in the host file place the ranks

    def inputs(self, target: Target, ranks: Ranks) -> tuple[InputFile, ...]:
        """The host file, one line a node with its slots; nothing where all ranks share one machine."""
        if self.one_machine:
            return ()
        lines = (f"{name} slots={slots}\n" for name, slots in zip(target.names, ranks.per_node, strict=True))
        return (InputFile(name=HOSTFILE, content="".join(lines)),)


def _shared_cpus(target: Target) -> bool:
    """Whether nodes of the target share CPUs, so that side by side on one machine some ranks must share one too."""
    distinct = {cpu for node in target.nodes for cpu in node.cpu_ids}
    return len(distinct) < sum(node.cpus for node in target.nodes)
