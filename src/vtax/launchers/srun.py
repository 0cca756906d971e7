"""srun of Slurm with PMIx: the ranks are the tasks of one step of an allocation, on the nodes that the plan has.

Nothing of Slurm is inside a node. The command there is a script that asks a program next to the node, the relay
(`machines/slurm/relay.py`), which starts srun; its tasks enter the nodes that run already. Ranks are placed one by one
(`arbitrary`), because rank 0 belongs where the command runs, and are bound by `vtax-rank`, as with mpirun.
"""

from __future__ import annotations

from collections.abc import Sequence

from vtax.launchers.base import Ranks, Started
from vtax.model.nodes import Target
from vtax.model.plan import InputFile
from vtax.model.record import Record

PROGRAM = "srun"
PLACE = "/run/vtax-srun"  # of the relay, in a node
SCRIPT = f"{PLACE}/{PROGRAM}"
TASKS, NODES = "--ntasks=", "--nodelist="
THREADS = "OPENBLAS_NUM_THREADS="
SETTING = "OMPI_MCA_"  # begins a setting of Open MPI in the environment
BY_MESSAGE = "PMIX_MCA_gds=hash"  # the other way is by files of the machine, which nodes do not see


class Srun(Record):
    """`transport` as for mpirun. The nodes' own files name the network."""

    transport: str = "auto"

    @property
    def program(self) -> str:
        return PROGRAM

    @property
    def one_machine(self) -> bool:
        return False

    @property
    def from_outside(self) -> bool:
        return True

    def argv(
        self, program: Sequence[str], target: Target, ranks: Ranks, yield_when_idle: bool = False
    ) -> tuple[str, ...]:
        """The command that has `program` started on all ranks. For each of them, the list has the name of its node."""
        places = [name for name, count in zip(target.names, ranks.per_node, strict=True) for _ in range(count)]
        settings = {"pml": "ob1", "btl": "self,tcp" if self.transport == "tcp" else "self,sm,tcp"}
        if yield_when_idle:
            settings["mpi_yield_when_idle"] = "1"
        return (
            *("sh", SCRIPT, "--mpi=pmix", "--distribution=arbitrary", f"{TASKS}{ranks.total}"),
            f"{NODES}{','.join(places)}",
            *("env", f"{THREADS}{ranks.threads}", BY_MESSAGE),
            *(f"{SETTING}{name}={value}" for name, value in settings.items()),
            *("vtax-rank", str(ranks.threads), *program),
        )

    def inputs(self, target: Target, ranks: Ranks) -> tuple[InputFile, ...]:  # noqa: ARG002  # of the protocol
        return ()

    def on_machines_network(self) -> Srun:
        return self


def started(argv: Sequence[str]) -> Started | None:
    """What a recorded command line says; None for a command that is not srun's, or not complete."""
    tasks = _value(TASKS, argv)
    if SCRIPT not in argv or not tasks.isdecimal():
        return None
    threads, transports = _value(THREADS, argv) or "1", _value(f"{SETTING}btl=", argv)
    inside = "shared memory" if "sm" in transports.split(",") else "TCP"
    path = f"{inside} inside a node, TCP between nodes" if transports else ""
    return Started(int(tasks), int(threads) if threads.isdecimal() else 1, path, PROGRAM)


def _value(begin: str, argv: Sequence[str]) -> str:
    """What follows the beginning of a word; "" where no word has it."""
    return next((word.removeprefix(begin) for word in argv if word.startswith(begin)), "")
