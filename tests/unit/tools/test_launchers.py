"""The exact mpirun and srun commands of every kind of target."""

from __future__ import annotations

import json

import pytest

from fakes.cluster import node_shape
from vtax.launchers import restored, started, written
from vtax.launchers.base import Launcher, Ranks, ranks_for
from vtax.launchers.mpirun import Mpirun
from vtax.launchers.srun import Srun
from vtax.model.nodes import NodeShape, Scope, Target

ONE = node_shape("worker1", (0, 1))
TWO = node_shape("worker2", (2, 3))
MASTER = node_shape("master", (4,))
SHARING = node_shape("master", (0,))

START = "mpirun --allow-run-as-root --np"
MCA = "--bind-to none --mca pml ob1 --mca btl self,sm,tcp --mca btl_tcp_if_include"
END = "--wdir /shared/t -x OPENBLAS_NUM_THREADS=1"


def target(*nodes: NodeShape) -> Target:
    return Target(scope=Scope.WORKERS, nodes=nodes, directory="/shared/t")


def line(launcher: Launcher, nodes: Target, ranks: Ranks, yield_when_idle: bool = False) -> str:
    return " ".join(launcher.argv(("hpcc", "-x"), nodes, ranks, yield_when_idle))


def test_equal_nodes() -> None:
    nodes = target(ONE, TWO)
    assert line(Mpirun(interface="eth0"), nodes, ranks_for(nodes.nodes)) == (
        f"{START} 4 --hostfile hostfile --map-by ppr:2:node {MCA} eth0 {END} vtax-rank 1 hpcc -x"
    )


def test_unequal_nodes_are_placed_by_the_slots_of_the_host_file() -> None:
    nodes = target(MASTER, ONE, TWO)
    launcher, ranks = Mpirun(interface="eth0"), ranks_for(nodes.nodes)
    assert line(launcher, nodes, ranks) == (
        f"{START} 5 --hostfile hostfile --map-by slot {MCA} eth0 {END} vtax-rank 1 hpcc -x"
    )
    (file,) = launcher.inputs(nodes, ranks)
    assert file.name == "hostfile"
    assert file.content == "master slots=1\nworker1 slots=2\nworker2 slots=2\n"


def test_one_machine_needs_no_host_file() -> None:
    nodes = target(ONE, TWO)
    launcher, ranks = Mpirun(interface="lo", one_machine=True), ranks_for(nodes.nodes)
    assert line(launcher, nodes, ranks) == (
        f"{START} 4 --host localhost:4 --map-by ppr:4:node {MCA} lo {END} vtax-rank 1 hpcc -x"
    )
    assert launcher.inputs(nodes, ranks) == ()


def test_nodes_of_one_machine_that_share_a_cpu_are_told_so() -> None:
    nodes = target(SHARING, ONE, TWO)
    ranks = ranks_for(nodes.nodes)
    assert line(Mpirun(interface="lo", one_machine=True), nodes, ranks) == (
        f"{START} 5 --host localhost:5 --map-by ppr:5:node {MCA} lo {END} -x VTAX_OVERCOMMIT=1 vtax-rank 1 hpcc -x"
    )
    assert "VTAX_OVERCOMMIT" not in line(Mpirun(interface="eth0"), nodes, ranks)  # separate nodes have their own


def test_tcp_only() -> None:
    nodes = target(ONE, TWO)
    assert line(Mpirun(interface="eth0", transport="tcp"), nodes, ranks_for(nodes.nodes)) == (
        f"{START} 4 --hostfile hostfile --map-by ppr:2:node --bind-to none --mca pml ob1 --mca btl self,tcp "
        f"--mca btl_tcp_if_include eth0 {END} vtax-rank 1 hpcc -x"
    )


def test_nodes_in_this_machine_s_own_network_listen_on_the_loopback() -> None:
    """mpirun, the daemons that it starts on other nodes, and by inheritance the ranks of both."""
    nodes = target(ONE, TWO)
    words = Mpirun(interface="lo", loopback=True).argv(("hpcc",), nodes, ranks_for(nodes.nodes))
    kept = "env LD_PRELOAD=/usr/local/bin/vtax-loopback.so"
    assert " ".join(words).startswith(f"{kept} mpirun --allow-run-as-root --np 4 --hostfile hostfile")
    assert words[words.index("prte_launch_agent") + 1] == f"{kept} prted"


def test_ranks_that_yield() -> None:
    nodes = target(ONE, TWO)
    assert line(Mpirun(interface="eth0"), nodes, ranks_for(nodes.nodes), yield_when_idle=True) == (
        f"{START} 4 --hostfile hostfile --map-by ppr:2:node {MCA} eth0 --mca mpi_yield_when_idle 1 {END} "
        "vtax-rank 1 hpcc -x"
    )


def test_two_threads_a_rank() -> None:
    nodes = target(ONE, TWO)
    assert line(Mpirun(interface="eth0"), nodes, ranks_for(nodes.nodes, threads=2)) == (
        f"{START} 2 --hostfile hostfile --map-by ppr:1:node {MCA} eth0 --wdir /shared/t -x OPENBLAS_NUM_THREADS=2 "
        "vtax-rank 2 hpcc -x"
    )


def test_what_a_recorded_command_line_says() -> None:
    nodes = target(ONE, TWO)
    words = Mpirun(interface="eth0").argv(("hpcc",), nodes, ranks_for(nodes.nodes, threads=2))
    assert started(words) == (2, 2, "shared memory inside a node, TCP between nodes", "mpirun")
    words = Mpirun(interface="lo", one_machine=True, transport="tcp").argv(("hpcc",), nodes, ranks_for(nodes.nodes))
    assert started(words) == (4, 1, "TCP between all ranks", "mpirun")


def test_a_launcher_crosses_to_another_machine() -> None:
    launcher = Mpirun(interface="lo", one_machine=True, transport="tcp")
    told = json.loads(json.dumps(written(launcher)))
    assert told["program"] == "mpirun"
    assert restored(told) == launcher
    with pytest.raises(ValueError, match="not a launcher: 'ssh'"):
        restored({"program": "ssh", "settings": {}})


@pytest.mark.parametrize("words", ["srun --np 2 hpcc", "mpirun hpcc", "mpirun hpcc --np", "mpirun --np two hpcc", ""])
def test_commands_that_say_nothing_of_ranks(words: str) -> None:
    assert started(words.split()) is None


@pytest.mark.parametrize(
    ("nodes", "ranks_per_node", "threads", "per_node", "total"),
    [
        ((ONE, TWO), None, 1, (2, 2), 4),
        ((MASTER, ONE), None, 1, (1, 2), 3),
        ((MASTER, ONE), None, 2, (1, 1), 2),  # never less than one, whatever the threads want
        ((ONE, TWO), 1, 1, (1, 1), 2),
    ],
)
def test_how_many_ranks_there_are(
    nodes: tuple[NodeShape, ...], ranks_per_node: int | None, threads: int, per_node: tuple[int, ...], total: int
) -> None:
    ranks = ranks_for(nodes, ranks_per_node, threads)
    assert (ranks.per_node, ranks.threads, ranks.total) == (per_node, threads, total)


def test_srun_has_a_place_for_every_rank_where_the_command_runs_first() -> None:
    nodes = target(MASTER, ONE)
    settings = "env OPENBLAS_NUM_THREADS=1 PMIX_MCA_gds=hash OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,sm,tcp"
    assert line(Srun(), nodes, ranks_for(nodes.nodes)) == (
        "sh /run/vtax-srun/srun --mpi=pmix --distribution=arbitrary --ntasks=3 --nodelist=master,worker1,worker1 "
        f"{settings} vtax-rank 1 hpcc -x"
    )
    assert Srun().inputs(nodes, ranks_for(nodes.nodes)) == () and Srun().from_outside
    waiting = line(Srun(transport="tcp"), nodes, ranks_for(nodes.nodes, threads=2), yield_when_idle=True)
    assert "OMPI_MCA_btl=self,tcp OMPI_MCA_mpi_yield_when_idle=1 vtax-rank 2" in waiting
    assert "--ntasks=2 " in waiting and "OPENBLAS_NUM_THREADS=2" in waiting


def test_a_command_of_srun_says_what_it_started() -> None:
    nodes = target(MASTER, ONE)
    said = started(Srun().argv(("xhpl",), nodes, ranks_for(nodes.nodes)))
    assert said == (3, 1, "shared memory inside a node, TCP between nodes", "srun")
    assert started(("srun", "--ntasks=3", "hostname")) is None
    assert started(Srun().argv(("xhpl",), nodes, ranks_for(nodes.nodes))[:4]) is None


def test_another_machine_is_told_of_srun() -> None:
    made = Srun(transport="tcp")
    assert restored(json.loads(json.dumps(written(made)))) == made
    assert made.on_machines_network() == made
