"""H01, H04 to H07 and M02 to M05: what logs of hpcc and xhpl say, and how their ranks were started."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from builders.audit_cases import PLACEMENT, both, evidence, failed, logged, passed, recorded, unknown, value
from vtax.audit import Evidence, mpi
from vtax.model.finding import Severity
from vtax.model.nodes import Scope
from vtax.model.trial import Status
from vtax.tools.hpcc import audit as hpcc

HPCC = recorded("hpcc", "trixie-two-nodes", "hpccoutf.txt")
MPIRUN = (
    "mpirun",
    "--np",
    "4",
    "--mca",
    "btl",
    "self,sm,tcp",
    "-x",
    "OPENBLAS_NUM_THREADS=1",
    "vtax-rank",
    "1",
    "hpcc",
)
ONE_MACHINE = ("mpirun", "--np", "4", "--host", "localhost:4", *MPIRUN[3:])


def run(text: str, **more: Any) -> Evidence:
    return logged("hpcc", both(text), scope=Scope.WORKERS, **more)


def keyed(**keys: object) -> str:
    """hpcc's output with other values in its summary; None takes a line out."""
    text = HPCC
    for name, new in keys.items():
        line = "" if new is None else f"{name}={new}\n"
        text, count = re.subn(rf"^{name}=.*\n", line, text, flags=re.MULTILINE)
        assert count == 1, name
    return text


def test_h01_a_wrong_result() -> None:
    found = failed(hpcc.residuals, run(re.sub(r"(Ax-b.*)PASSED", r"\1FAILED", HPCC)))
    assert (found[0].severity, found[0].environment) == (Severity.BLOCKER, "host")
    assert "6 of 6 runs of hpcc in host failed their own check" in found[0].message
    assert failed(hpcc.residuals, run(keyed(Success=0)))
    assert "all 6 runs passed" in passed(hpcc.residuals, run(HPCC))[0]


def test_h01_a_failed_trial_counts_too() -> None:
    campaign = run(keyed(Success=0))
    trials = tuple(one.model_copy(update={"status": Status.FAILED}) for one in campaign.trials)
    assert failed(hpcc.residuals, replace(campaign, trials=trials))


def test_h01_no_check() -> None:
    assert "print no check" in failed(hpcc.residuals, run("WR11C2R4 1 2\n"))[0].message
    assert "runs is missing" in unknown(hpcc.residuals, run("")).message


def test_h04_the_best_of_many() -> None:
    row = next(line for line in HPCC.splitlines() if re.match(r"W[RC]\d", line))
    found = failed(hpcc.best_of_many, run(f"{HPCC}\n{row}\n"))
    assert "the best of 2 rows" in found[0].message
    assert found[0].metrics == ("HPL", "HPL_time")
    assert passed(hpcc.best_of_many, run(HPCC))
    assert unknown(hpcc.best_of_many, run("nothing\n"))


@pytest.mark.parametrize(("star", "fails"), [(7e10, False), (11e10, True)])
def test_h05_a_figure_of_each_process_above_one_alone(star: float, fails: bool) -> None:
    each = tuple(
        value("hpcc", name, number, "byte/s")
        for name, number in (("StarSTREAM_Triad", star), ("SingleSTREAM_Triad", 7e10))
    )
    campaign = run(HPCC, values={"host": each, "container": each})
    if fails:
        found = failed(hpcc.star_figures, campaign)[0]
        assert (found.severity, found.metrics) == (Severity.BLOCKER, ("StarSTREAM_Triad",))
        assert "StarSTREAM_Triad: 1.57 times" in found.message
    else:
        assert "140.0 GB/s for all 2" in passed(hpcc.star_figures, campaign)[0]
    assert unknown(hpcc.star_figures, run(HPCC))


@pytest.mark.parametrize(
    ("cache", "single", "star"),
    [
        (2**18, None, None),  # arrays of 221184 words: 1.69 MiB alone, twice that together
        (2**20, Severity.INFO, Severity.INFO),  # in both environments, so the ratio is of the same thing
        (2**21, Severity.WARNING, Severity.INFO),
        (2**25, Severity.WARNING, Severity.WARNING),
    ],
)
def test_h06_arrays_in_the_cache(cache: int, single: Severity | None, star: Severity | None) -> None:
    campaign = run(HPCC, facts={name: {"last_cache_bytes": cache} for name in ("host", "container")})
    found = {(one.environment, one.metrics[0]): one.severity for one in hpcc.stream_arrays(campaign)}
    assert found.get(("host", "SingleSTREAM_Copy")) is single
    assert found.get(("host", "StarSTREAM_Copy")) is star


def test_h06_a_cache_in_one_environment_only() -> None:
    campaign = run(HPCC, facts={"host": {"last_cache_bytes": 2**18}, "container": {"last_cache_bytes": 2**25}})
    found = hpcc.stream_arrays(campaign)
    assert {(one.severity, one.environment) for one in found} == {(Severity.BLOCKER, "container")}
    assert {one.metrics[0] for one in found} == {"SingleSTREAM_Copy", "StarSTREAM_Copy"}  # and HPL stays comparable


def test_h06_unknown() -> None:
    blind = {name: {"last_cache_bytes": None} for name in ("host", "container")}
    assert "not recorded: the size of the last cache" in unknown(hpcc.stream_arrays, run(HPCC, facts=blind)).message
    assert "not recorded: the size of STREAM's arrays" in unknown(hpcc.stream_arrays, run("nothing\n")).message


def test_h06_arrays_of_stream_alone() -> None:
    text = recorded("stream", "hpcc-1.5.0--trixie", "stream.txt")  # arrays of 15.3 MiB
    for cache, severity in ((2**20, None), (2**23, Severity.INFO), (2**25, Severity.WARNING)):
        facts = {name: {"last_cache_bytes": cache} for name in ("host", "container")}
        found = hpcc.stream_arrays(logged("stream", both(text), scope=Scope.NODE, facts=facts))
        assert {one.severity for one in found} == ({severity} if severity else set())


def test_h06_a_part_of_the_caches_of_a_machine_counts_where_a_node_has_a_part() -> None:
    text = recorded("stream", "hpcc-1.5.0--trixie", "stream.txt")
    facts = {name: {"last_cache_bytes": 2**25} for name in ("host", "container")}
    campaign = logged("stream", both(text), scope=Scope.NODE, facts=facts)
    nodes = tuple(node.model_copy(update={"last_cache_bytes": 2**20}) for node in campaign.plan.shape.nodes)
    shape = campaign.plan.shape.model_copy(update={"nodes": nodes})
    assert passed(hpcc.stream_arrays, replace(campaign, plan=campaign.plan.model_copy(update={"shape": shape})))


def test_h07_other_checks() -> None:
    wrong = failed(hpcc.other_checks, run(keyed(MPIRandomAccess_ErrorsFraction="0.02")))
    assert (wrong[0].severity, wrong[0].metrics) == (Severity.BLOCKER, ("MPIRandomAccess",))
    assert "2.0% of the updates" in wrong[0].message
    cut = failed(hpcc.other_checks, run(keyed(MPIRandomAccess_LCG_ExeUpdates=1048576)))
    assert (cut[0].severity, cut[0].metrics) == (Severity.WARNING, ("MPIRandomAccess_LCG",))
    assert "after 25% of its updates" in cut[0].message
    assert failed(hpcc.other_checks, run(keyed(PTRANS_residual=17)))[0].metrics == ("PTRANS",)
    assert failed(hpcc.other_checks, run(keyed(MPIFFT_maxErr=0.5)))[0].metrics == ("MPIFFT",)
    assert passed(hpcc.other_checks, run(HPCC))
    assert unknown(hpcc.other_checks, run("nothing\n"))


def bound(text: str) -> Evidence:
    campaign = evidence()
    cells = tuple(cell.model_copy(update={"checks": (f"mpi binding workers: {text}",)}) for cell in campaign.cells)
    return replace(campaign, cells=cells)


def test_m02_ranks_that_share_a_cpu() -> None:
    found = failed(mpi.binding, bound("worker1=0 worker1=0-1 worker2=2"))
    assert (found[0].severity, len(found)) == (Severity.INFO, 2)  # alike in both environments
    assert "two ranks may use CPU 0 of worker1" in found[0].message
    assert passed(mpi.binding, bound("worker1=0 worker1=1 worker2=0,2 worker2=3"))
    assert unknown(mpi.binding, bound("").__class__(plan=evidence().plan, cells=unchecked(), trials=evidence().trials))


def unchecked() -> tuple[Any, ...]:
    return tuple(cell.model_copy(update={"checks": ()}) for cell in evidence().cells)


def test_m03_another_path_between_ranks() -> None:
    campaign = run(HPCC, argv={"host": ONE_MACHINE, "container": MPIRUN})
    (found,) = failed(mpi.transport, campaign)
    assert (found.severity, found.environment) == (Severity.WARNING, "container")
    assert "shared memory inside a node, TCP between nodes in container, shared memory between all ranks in host" in (
        found.message
    )
    assert passed(mpi.transport, run(HPCC, argv={"host": MPIRUN, "container": MPIRUN}))
    assert unknown(mpi.transport, run(HPCC))


def test_m03_no_message_leaves_a_single_node() -> None:
    campaign = run(HPCC, argv={"host": ONE_MACHINE, "container": MPIRUN})
    trials = tuple(trial.model_copy(update={"nodes": ("worker1",)}) for trial in campaign.trials)
    assert "hpcc in host: shared memory" in passed(mpi.transport, replace(campaign, trials=trials))
    tcp = tuple("tcp,self" if "sm" in word.split(",") else word for word in ONE_MACHINE)
    campaign = run(HPCC, argv={"host": tcp, "container": MPIRUN})
    (found,) = failed(
        mpi.transport,
        replace(campaign, trials=tuple(trial.model_copy(update={"nodes": ("worker1",)}) for trial in campaign.trials)),
    )
    assert "shared memory in container, TCP in host" in found.message


def test_m03_copies_that_open_mpi_may_not_make() -> None:
    text = f"{HPCC}\nRead -1, expected 4096, errno = 1\n"
    found = failed(mpi.transport, run(text, argv={"host": MPIRUN, "container": MPIRUN}))
    assert "fell back to two copies" in found[0].message


def test_m04_another_problem() -> None:
    other = logged("hpcc", {"host": HPCC, "container": keyed(VersionMicro=1)}, scope=Scope.WORKERS)
    (found,) = failed(hpcc.problem, other)
    assert (found.severity, found.environment) == (Severity.BLOCKER, "container")
    assert "hpcc 1.5.1.f, N=1152 NB=192 P=1 Q=2 in container, hpcc 1.5.0.f" in found.message
    version = failed(hpcc.problem, run(HPCC, facts={"container": {"mpi_version": "mpirun (Open MPI) 4.1.4"}}))
    assert "MPI is mpirun (Open MPI) 4.1.4 in container" in version[0].message
    assert passed(hpcc.problem, run(HPCC))
    assert unknown(hpcc.problem, run("nothing\n"))


def test_m05_more_threads_than_cpus() -> None:
    many = tuple("8" if word == "4" else word for word in MPIRUN)
    found = failed(mpi.threads, run(HPCC, argv={"host": many, "container": MPIRUN}))
    assert [(one.severity, one.environment) for one in found] == [
        (Severity.WARNING, "host"),
        (Severity.BLOCKER, "container"),
    ]
    assert "8 threads on 4 CPUs" in found[0].message
    assert passed(mpi.threads, run(HPCC, argv={"host": MPIRUN, "container": MPIRUN}))
    quota = {"container": {"cpu_quota_cpus": 1.0}}
    assert "4 threads on 2 CPUs" in failed(mpi.threads, run(HPCC, argv=both_run(MPIRUN), facts=quota))[0].message
    blind = {name: {"cpus_allowed": None} for name in ("host", "container")}
    assert unknown(mpi.threads, run(HPCC, argv=both_run(MPIRUN), facts=blind))


def both_run(argv: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {"host": argv, "container": argv}


def test_m05_threads_of_sysbench() -> None:
    text = "sysbench 1.0.20\nNumber of threads: 9\n"
    found = failed(mpi.threads, logged("sysbench-cpu", both(text), scope=Scope.NODE))
    assert found[0].severity is Severity.INFO


# --- M07, and the memory of M03 --------------------------------------------------------------------------------------


def checked(*checks: str) -> Evidence:
    """A campaign whose clusters have these checks besides the usual ones."""
    campaign = logged("hpcc", both(HPCC), scope=Scope.WORKERS, argv={"host": MPIRUN, "container": MPIRUN})
    cells = tuple(cell.model_copy(update={"checks": (*PLACEMENT[1:], *checks)}) for cell in campaign.cells)
    return replace(campaign, cells=cells)


def test_a_world_of_all_ranks() -> None:
    assert passed(mpi.world, evidence())


def test_a_world_of_fewer_ranks_than_planned() -> None:
    findings = failed(mpi.world, checked("mpi world workers: 1 ranks, each of which sees all"))
    assert [finding.severity for finding in findings] == [Severity.BLOCKER, Severity.BLOCKER]
    assert findings[0].message == "host, workers: 1 ranks that see each other; the plan has 4"
    assert "launcher" in findings[0].remedy


def test_a_world_that_nobody_asked_for_is_unknown() -> None:
    assert unknown(mpi.world, checked())


def test_memory_that_ranks_cannot_read_is_another_path() -> None:
    line = "mpi memory workers: ranks of a node cannot read each other's memory (EPERM)"
    findings = failed(mpi.transport, checked(PLACEMENT[0], line))
    assert {finding.environment for finding in findings} == {"host", "container"}
    assert "cannot read each other's memory (EPERM)" in findings[0].message
    assert "ptrace" in findings[0].remedy
    good = "mpi memory workers: ranks of a node can read each other's memory"
    assert passed(mpi.transport, checked(PLACEMENT[0], good))
