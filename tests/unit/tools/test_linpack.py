"""hpcc and hpl: the size of the matrix, the grid, the exact command, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from builders.recorded import DATA, load, parse, values, with_text
from vtax.errors import ParseError, UsageError
from vtax.launchers.mpirun import Mpirun
from vtax.model.nodes import NodeShape, Role, Scope, Target
from vtax.tools.hpcc.benchmark import Hpcc, HpccParams
from vtax.tools.hpcc.hpl import Hpl, HplParams
from vtax.tools.hpcc.linpack import OUTPUT, LinpackParams, grid_of

GIB = 2**30
TWO_NODES = DATA / "hpcc" / "trixie-two-nodes"
ONE_RANK = DATA / "hpcc" / "trixie-one-rank"
SWEEP = DATA / "hpl" / "trixie-sweep"


def node(name: str, cpus: int = 2, memory_bytes: int = 4 * GIB) -> NodeShape:
    first = 100 * int(name.removeprefix("worker") or 0)
    ids = tuple(range(first, first + cpus))
    return NodeShape(
        name=name, role=Role.WORKER, cpus=cpus, cpu_ids=ids, memory_bytes=memory_bytes, disk_bytes=10 * GIB
    )


def target(*nodes: NodeShape) -> Target:
    return Target(scope=Scope.WORKERS, nodes=nodes or (node("worker1"), node("worker2")), directory="/run/trial")


@pytest.mark.parametrize(
    ("ranks", "grid"), [(1, (1, 1)), (2, (1, 2)), (4, (2, 2)), (6, (2, 3)), (7, (1, 7)), (12, (3, 4)), (36, (6, 6))]
)
def test_the_grid_is_as_square_as_the_ranks_allow(ranks: int, grid: tuple[int, int]) -> None:
    assert grid_of(LinpackParams(), ranks) == grid


@pytest.mark.parametrize(
    ("p", "q", "grid"), [("auto", 2, (4, 2)), (1, "auto", (1, 8)), (4, 2, (4, 2)), ("auto", 8, (1, 8))]
)
def test_a_grid_that_is_given_stays(p: int | str, q: int | str, grid: tuple[int, int]) -> None:
    assert grid_of(LinpackParams.model_validate({"p": p, "q": q}), 8) == grid


@pytest.mark.parametrize(("p", "q"), [(2, 2), (3, "auto"), ("auto", 16), (8, 2)])
def test_a_grid_that_does_not_hold_the_ranks_is_refused(p: int | str, q: int | str) -> None:
    with pytest.raises(UsageError, match="does not hold the 8 ranks") as refusal:
        grid_of(LinpackParams.model_validate({"p": p, "q": q}), 8)
    assert "auto" in refusal.value.remedy


def test_the_matrix_fills_its_part_of_the_memory_of_all_ranks() -> None:
    # A rank has (4 GiB - 96 MiB) / 2 - 64 MiB = 1936 MiB; 0.8 of four of them hold 28 496² doubles, 148 blocks of 192.
    resolved = Hpcc().resolve(HpccParams(), target())
    assert (resolved.n, resolved.p, resolved.q, resolved.ranks_per_node) == (148 * 192, 2, 2, 2)


def test_the_poorest_rank_decides_on_unequal_nodes() -> None:
    # worker2 has (1 GiB - 96 MiB) / 1 - 64 MiB = 864 MiB for its rank; 0.5 of three such hold 13 033² doubles.
    unequal = target(node("worker1", cpus=2, memory_bytes=8 * GIB), node("worker2", cpus=1, memory_bytes=GIB))
    resolved = Hpcc().resolve(HpccParams(memory_fraction=0.5, nb=100), unequal)
    assert (resolved.n, resolved.p, resolved.q, resolved.ranks_per_node) == (13_000, 1, 3, "auto")


def test_resolving_twice_changes_nothing() -> None:
    once = Hpcc().resolve(HpccParams(), target())
    assert Hpcc().resolve(once, target()) == once
    swept = Hpl().resolve(HplParams(n=(500, 1000), nb=(64, 128)), target())
    assert Hpl().resolve(HplParams.model_validate(swept.model_dump(mode="json")), target()) == swept


def test_a_matrix_that_does_not_fit_is_refused_with_the_largest_that_does() -> None:
    # 4 · 1936 MiB are 8 120 172 544 bytes: 31 859² doubles fit, 31 860² do not.
    assert Hpcc().resolve(HpccParams(n=31_859), target()).n == 31_859
    with pytest.raises(UsageError, match="n = 31860 takes") as refusal:
        Hpcc().resolve(HpccParams(n=31_860), target())
    assert "up to 31859" in refusal.value.remedy
    with pytest.raises(UsageError, match="n = 31860 takes"):
        Hpl().resolve(HplParams(n=(1000, 31_860)), target())


def test_nodes_without_memory_for_their_ranks_are_refused() -> None:
    with pytest.raises(UsageError, match="too little memory"):
        Hpcc().resolve(HpccParams(), target(node("worker1", memory_bytes=128 * 2**20)))


@pytest.mark.parametrize("params", [{"ranks_per_node": 3}, {"threads": 3}, {"ranks_per_node": 2, "threads": 2}])
def test_more_busy_threads_than_cpus_are_refused(params: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="worker1 has 2 CPUs"):
        Hpcc().resolve(HpccParams.model_validate({"n": 1000, **params}), target())


@pytest.mark.parametrize(
    "params", [{"n": [1000, 1000]}, {"n": []}, {"n": list(range(100, 121))}, {"nb": [0]}, {"memory_fraction": 1}]
)
def test_a_sweep_that_xhpl_cannot_run_is_a_mistake_of_the_study(params: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        HplParams.model_validate(params)


@pytest.mark.parametrize("share", [False, True])
def test_ranks_yield_where_workers_share_cpus(share: bool) -> None:
    first, second = node("worker1"), node("worker2")
    second = second.model_copy(update={"cpu_ids": first.cpu_ids}) if share else second
    workers = target(first, second)
    (step,) = Hpcc().steps(Hpcc().resolve(HpccParams(n=1152), workers), workers, Mpirun(interface="eth0"))
    assert ("mpi_yield_when_idle" in step.argv) is share


def test_the_exact_command_of_hpcc() -> None:
    benchmark, workers = Hpcc(), target()
    params = benchmark.resolve(HpccParams(n=1152, ranks_per_node=1, threads=2, yield_when_idle=True), workers)
    (step,) = benchmark.steps(params, workers, Mpirun(interface="eth0"))
    assert " ".join(step.argv) == (
        "mpirun --allow-run-as-root --np 2 --hostfile hostfile --map-by ppr:1:node --bind-to none --mca pml ob1 "
        "--mca btl self,sm,tcp --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1 --wdir /run/trial "
        "-x OPENBLAS_NUM_THREADS=2 vtax-rank 2 hpcc"
    )
    assert (step.nodes, step.outputs, step.background) == (("worker1",), ("hpccoutf.txt",), False)
    assert {file.name for file in step.inputs} == {"hpccinf.txt", "hostfile"}
    assert step.timeout_s == params.timeout_s


def test_all_ranks_on_one_machine_need_no_host_file() -> None:
    benchmark, workers = Hpl(), target()
    params = benchmark.resolve(HplParams(n=1000), workers)
    (step,) = benchmark.steps(params, workers, Mpirun(interface="lo", one_machine=True))
    assert step.argv[2:8] == ("--np", "4", "--host", "localhost:4", "--map-by", "ppr:4:node")
    assert step.argv[-1] == "xhpl"
    assert [file.name for file in step.inputs] == ["hpccinf.txt"]


def test_the_input_file_holds_the_sweep_where_hpl_reads_it() -> None:
    benchmark, workers = Hpl(), target()
    params = benchmark.resolve(HplParams(n=(960, 1920), nb=(96, 192)), workers)
    lines = benchmark.steps(params, workers, Mpirun(interface="eth0"))[0].inputs[0].content.splitlines()
    assert [line.split("#")[0].split("Ns")[0].split("NBs")[0].split() for line in lines[4:8]] == [
        ["2"], ["960", "1920"], ["2"], ["96", "192"],
    ]  # fmt: skip
    assert lines[10].split() == ["2", "Ps"]
    assert lines[11].split() == ["2", "Qs"]
    assert lines[12].split()[0] == "16.0"  # without a threshold HPL checks nothing
    assert lines[31].startswith("#####")  # hpcc skips 32 lines, then reads the sizes of PTRANS
    assert len(lines) == 36


def test_an_explicit_limit_stays_and_the_automatic_one_is_generous() -> None:
    benchmark, workers = Hpl(), target()
    assert benchmark.resolve(HplParams(n=1000, timeout_s=77), workers).timeout_s == 77
    # 2/3 · 12000³ operations on four CPUs at 20 Gflop/s take 14.4 s.
    estimate = benchmark.estimate_s(HplParams(n=12_000), workers)
    assert estimate == pytest.approx(14.8, abs=0.1)
    assert benchmark.resolve(HplParams(n=12_000), workers).timeout_s == pytest.approx(600 + 30 * estimate, abs=0.5)


def test_hpcc_on_two_ranks_is_estimated_near_what_was_measured() -> None:
    pair = target(node("worker1", cpus=1), node("worker2", cpus=1))
    assert 5 < Hpcc().estimate_s(HpccParams(n=2000), pair) < 12  # 6.6 s were measured


def test_one_rank_has_no_figures_of_messages() -> None:
    names = {value.metric for value in values(parse(load(ONE_RANK)))}
    assert not {name for name in names if "PingPong" in name or "Ring" in name}
    assert {"HPL", "StarSTREAM_Triad", "PTRANS", "MPIFFT"} <= names


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Success=1\n", "Success=0\n", "results wrong"),
        ("Success=1\n", "", "results wrong"),
        ("StarSTREAM_Triad=", "StarSTREAM_Tria=", "StarSTREAM_Triad: it is missing"),
        ("PTRANS_GBs=", "PTRANS_GBs=-", "did not run"),
        ("PTRANS_GBs=", "PTRANS_GBs=0\nX=", "not a number above zero"),
        ("MPIFFT_Gflops=", "MPIFFT_Gflops=inf\nX=", "MPIFFT_Gflops=inf: not a number"),
        ("MinPingPongLatency_usec=", "MinPingPongLatency_usec=-1\nX=", "did not run"),
        ("LANG=C\n", "LANG=C\nLANG=C\n", "LANG: it appears twice"),
        ("LANG=C\n", "LANG=C\nBegin of Summary section.\n", "more than one summary"),
        ("LANG=C\n", "LAN\n", "LAN: not a line of a summary"),
        ("...... PASSED", "...... FAILED", "residual check failed"),
        ("End of Tests.", "End of", "no closing lines"),
    ],
)
def test_a_wrong_or_damaged_run_of_hpcc_is_refused(old: str, new: str, message: str) -> None:
    refuses(TWO_NODES, old, new, message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("...... PASSED", "...... FAILED", "residual check failed"),
        (
            "4 tests completed and passed",
            "3 tests completed and passed",
            "3 tests completed and passed .*: the rows above say 4",
        ),
        ("0 tests completed and failed", "1 tests completed and failed", "the rows above say 0"),
        ("0 tests skipped", "1 tests skipped", "1 tests skipped .*: the rows above say 0"),
        ("8.525e+01", "8.525e+00", "do not fit its rate, which means 0.55 s"),
        ("8.525e+01", "-8.52e+01", "not a time and a rate above zero"),
        ("0.0036223", "      nan", r"residual check failed \(nan\)"),
        ("Finished      4 tests", "Finished      3 tests", "HPL counts 3 tests, 4 have a row"),
        ("1920   192 ", "1920   191 ", r"1920, 191, 1, 2\): the plan has"),
        ("End of Tests.", "", "no closing lines"),
    ],
)
def test_a_wrong_or_damaged_run_of_xhpl_is_refused(old: str, new: str, message: str) -> None:
    refuses(SWEEP, old, new, message)


def refuses(folder: Path, old: str, new: str, message: str) -> None:
    record = load(folder)
    text = record.texts[OUTPUT]
    assert old in text
    with pytest.raises(ParseError, match=message):
        parse(with_text(record, OUTPUT, text.replace(old, new, 1)))


def test_two_runs_in_one_file_are_refused() -> None:
    for folder in (TWO_NODES, SWEEP):
        record = load(folder)
        with pytest.raises(ParseError, match=r"more than one summary|HPL counts 4 tests, 8 have a row"):
            parse(with_text(record, OUTPUT, record.texts[OUTPUT] * 2))


def test_a_run_without_its_output_file_is_refused() -> None:
    for folder in (TWO_NODES, SWEEP):
        record = load(folder)
        steps = tuple(step.model_copy(update={"outputs": {}}) for step in record.steps)
        with pytest.raises(ParseError, match=r"hpccoutf\.txt is missing"):
            parse(record.model_copy(update={"steps": steps}))


def test_a_run_that_vtax_did_not_plan_is_parsed_as_it_is() -> None:
    record = load(SWEEP).model_copy(update={"params": {}})
    assert len(parse(record)) == 12
