"""A small campaign in which nothing is wrong, and what it takes to make one thing wrong: for tests of the audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vtax.audit import Evidence
from vtax.model import (
    Cell,
    CellRecord,
    ClusterShape,
    EnvironmentSpec,
    Finding,
    HostCapacity,
    ImageSpec,
    Kind,
    Measurement,
    Metric,
    NodeFacts,
    NodeShape,
    Plan,
    PlannedTrial,
    Role,
    Scope,
    Status,
    StepRecord,
    Study,
    Target,
    TrialRecord,
    Work,
)

GIB = 2**30
FLAGS = ["avx2", "avx512f", "fma", "hypervisor", "sse2", "vmx"]
HPL = Metric(name="HPL", unit="flop/s", kind=Kind.RATE_FIXED_WORK, primary=True)
THROUGHPUT = Metric(name="throughput", unit="bit/s", kind=Kind.RATE_FIXED_TIME, primary=True)
SHAPE = ClusterShape(
    nodes=tuple(
        NodeShape(
            name=name,
            role=Role.WORKER if number else Role.MASTER,
            cpus=2,
            cpu_ids=(2 * number, 2 * number + 1),
            memory_bytes=2 * GIB,
            disk_bytes=10 * GIB,
        )
        for number, name in enumerate(("master", "worker1", "worker2"))
    )
)
FACTS: Mapping[str, Any] = {
    "cpus": 2,
    "memory_limit_bytes": 2 * GIB,
    "memory_total_bytes": 64 * GIB,
    "cpu_flags": FLAGS,
    "cpu_mhz": 3000.0,
    "blas_core": "SkylakeX",
    "blas_config": "OpenBLAS 0.3.29 DYNAMIC_ARCH SkylakeX MAX_THREADS=128",
    "binary_sha256": {"hpcc": "a" * 64, "xhpl": "b" * 64},
    "versions": {"hpcc": "1.5.0-4", "iperf3": "3.18-2"},
    "mpi_version": "mpirun (Open MPI) 5.0.7",
    "kernel": "6.12.0",
    "libc": "glibc 2.41",
    "microcode": "0x1",
    "mitigations": {"meltdown": "Mitigation: PTI"},
    "clock_source": "tsc",
    "shared_filesystem": "nfs4",
}
HOST_FACTS: Mapping[str, Any] = {"cpu_flags": FLAGS, "virtualization": [], "is_virtual": False}
PARAMS: Mapping[str, Mapping[str, Any]] = {
    "hpcc": {"N": 20_000},
    "iperf3-udp": {"protocol": "udp", "bitrate": 3_000_000_000, "parallel": 1},
}
SCOPES = {"hpcc": Scope.WORKERS, "iperf3-udp": Scope.PAIRS}
PLACEMENT = ("mpi placement workers: worker1=2 worker2=2",)
COUNTERS = {"oom_kills": 0.0, "swap_in_pages": 0.0, "cpu_periods": 1000.0, "cpu_throttled_periods": 0.0}


def plan(
    rounds: int = 6, provider: str = "docker", shape: ClusterShape = SHAPE, params: Mapping[str, Any] = PARAMS
) -> Plan:
    """`host` and `container`, each with hpcc over the workers and iperf3 over UDP between them."""
    environments = (
        EnvironmentSpec(name="host", provider="host"),
        EnvironmentSpec(name="container", provider=provider),
    )
    study = Study(
        name="sample",
        seed=1,
        rounds=rounds,
        baseline="host",
        margin=0.02,
        settle_s=0,
        environments=environments,
        workers=2,
        cpus=2,
        memory_bytes=2 * GIB,
        disk_bytes=10 * GIB,
        shared_path="/shared",
        image=ImageSpec(),
        benchmarks=(),
    )
    return Plan(
        vtax_version="0",
        study=study,
        capacity=HostCapacity(cpu_ids=tuple(range(8)), memory_bytes=64 * GIB),
        shape=shape,
        environments=environments,
        work=tuple(work(spec.name, label, shape, params) for spec in environments for label in SCOPES),
        cells=tuple(cell(number, spec.name) for number in range(1, rounds + 1) for spec in environments),
        estimate_s=1,
    )


def work(environment: str, label: str, shape: ClusterShape, params: Mapping[str, Any]) -> Work:
    target = Target(scope=SCOPES[label], nodes=shape.workers, directory="/scratch")
    return Work(
        id=label,
        environment=environment,
        benchmark=label.partition("-")[0],
        label=label,
        target=target,
        params=params[label],
        steps=(),
        estimate_s=1,
    )


def cell(number: int, environment: str) -> Cell:
    trials = tuple(
        PlannedTrial(id=f"r{number}-{environment}-{label}", work=label, iteration=1, warmup=False) for label in SCOPES
    )
    return Cell(id=f"r{number}-{environment}", round=number, environment=environment, trials=trials)


def trial(where: Cell, planned: PlannedTrial, started: float) -> TrialRecord:
    step = StepRecord(
        step=0,
        node="worker1",
        argv=("run",),
        exit_code=0,
        timed_out=False,
        background=False,
        started=started,
        elapsed_s=90.0,
        stdout="0.worker1.stdout",
        stderr="0.worker1.stderr",
    )
    return TrialRecord(
        id=planned.id,
        environment=where.environment,
        round=where.round,
        cell=where.id,
        work=planned.work,
        benchmark=planned.work.partition("-")[0],
        label=planned.work,
        scope=SCOPES[planned.work],
        nodes=("worker1", "worker2"),
        iteration=1,
        warmup=False,
        params=PARAMS[planned.work],
        status=Status.OK,
        started=started,
        elapsed_s=91.0,
        steps=(step,),
        texts={},
    )


def record(where: Cell, facts: Mapping[str, Any], host_facts: Mapping[str, Any]) -> CellRecord:
    """A cell that came up; a fact that is None was not observed."""
    nodes = tuple(
        NodeFacts(
            node=node.name,
            values={
                name: value
                for name, value in {**FACTS, "cpus_allowed": f"{node.cpu_ids[0]}-{node.cpu_ids[1]}", **facts}.items()
                if value is not None
            },
        )
        for node in SHAPE.nodes
    )
    return CellRecord(
        cell=where.id,
        environment=where.environment,
        round=where.round,
        instance=1,
        status=Status.OK,
        started=0,
        provision_s=1,
        facts=nodes,
        host_facts=host_facts,
        checks=PLACEMENT,
    )


def evidence(
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    host_facts: Mapping[str, Any] = HOST_FACTS,
    values: Mapping[str, float] | None = None,
    **chosen: Any,
) -> Evidence:
    """A campaign without a fault. `facts` replaces facts of an environment, `values` its results; `chosen` the plan."""
    wanted, made = plan(**chosen), {"hpcc": 8.0e10, "iperf3-udp": 2.0e9, **(values or {})}
    trials: list[TrialRecord] = []
    measurements: list[Measurement] = []
    for where in wanted.cells:
        for planned in where.trials:
            done = trial(where, planned, started=1000.0 + 100 * len(trials))
            trials.append(done)
            metric = HPL if planned.work == "hpcc" else THROUGHPUT
            measurements.append(Measurement.of(done, metric, made[planned.work]))
    return Evidence(
        plan=wanted,
        cells=tuple(record(where, (facts or {}).get(where.environment, {}), host_facts) for where in wanted.cells),
        trials=tuple(trials),
        measurements=tuple(measurements),
        counters={done.id: {"worker1": COUNTERS} for done in trials},
    )


def only(findings: tuple[Finding, ...]) -> Finding:
    """The finding, of which there must be exactly one."""
    assert len(findings) == 1, findings
    return findings[0]
