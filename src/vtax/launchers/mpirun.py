"""mpirun of Open MPI 5: one explicit placement, the same in every environment.

Open MPI's own `--bind-to core` assumes that all nodes may use the same CPU numbers and kills ranks on nodes whose
cpuset differs, so binding is done by `vtax-rank` (in the root file system): it pins local rank r of a node to the r-th
group of `threads` CPUs that the node may use.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from vtax.launchers.base import Ranks, Started, share_cpus
from vtax.model.nodes import Target
from vtax.model.plan import InputFile
from vtax.model.record import Record

PROGRAM = "mpirun"
HOSTFILE = "hostfile"
THREADS = "OPENBLAS_NUM_THREADS"
LOOPBACK = ("env", "LD_PRELOAD=/usr/local/bin/vtax-loopback.so")  # Open MPI has no option that does this


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

    @property
    def program(self) -> str:
        return PROGRAM

    @property
    def from_outside(self) -> bool:
        return False

    def argv(
        self, program: Sequence[str], target: Target, ranks: Ranks, yield_when_idle: bool = False
    ) -> tuple[str, ...]:
        """The command that starts `program` on all ranks, run on the first node of `target` in its directory."""
        transports = "self,tcp" if self.transport == "tcp" else "self,sm,tcp"
        command = [PROGRAM, "--allow-run-as-root", "--np", str(ranks.total), *self._placement(ranks)]
        if self.loopback:  # the ranks inherit it from mpirun and from the daemons that it starts on other nodes
            command = [*LOOPBACK, *command, "--prtemca", "prte_launch_agent", " ".join((*LOOPBACK, "prted"))]
        command += ["--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", transports]
        command += ["--mca", "btl_tcp_if_include", self.interface] if self.interface else []
        if yield_when_idle:
            command += ["--mca", "mpi_yield_when_idle", "1"]
        command += ["--wdir", target.directory, "-x", f"{THREADS}={ranks.threads}"]
        if self.one_machine and share_cpus(target):
            command += ["-x", "VTAX_OVERCOMMIT=1"]
        return (*command, "vtax-rank", str(ranks.threads), *program)

    def on_machines_network(self) -> Mpirun:
        """Interfaces are called differently on every machine."""
        return self.model_copy(update={"interface": "", "loopback": False})

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


def started(argv: Sequence[str]) -> Started | None:
    """What a recorded command line says; None for a command that is not mpirun, or not complete."""
    ranks = _after("--np", argv)
    if PROGRAM not in argv or not ranks.isdecimal():
        return None
    threads = next((word.partition("=")[2] for word in argv if word.startswith(f"{THREADS}=")), "1")
    transports = _after("btl", argv)
    inside = "shared memory" if "sm" in transports.split(",") else "TCP"
    alone = any(word.startswith("localhost:") for word in argv)
    path = f"{inside} between all ranks" if alone else f"{inside} inside a node, TCP between nodes"
    return Started(int(ranks), int(threads) if threads.isdecimal() else 1, path if transports else "", PROGRAM)


def _after(word: str, argv: Sequence[str]) -> str:
    """What follows a word; "" when nothing does."""
    return next((value for one, value in pairwise(argv) if one == word), "")
