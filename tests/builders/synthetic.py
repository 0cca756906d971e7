"""A small campaign that never ran: a plan, its trials, its measurements, for tests of the analysis and the report."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from vtax.model.cluster import CellRecord, NodeFacts
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape, Role, Scope, Target
from vtax.model.plan import Cell, Plan, PlannedTrial, Work
from vtax.model.study import BenchmarkSpec, EnvironmentSpec, ImageSpec, Study
from vtax.model.trial import Status, StepRecord, TrialRecord

GIB = 2**30
NODES = ("master", "worker1", "worker2")
PAIRS = tuple((a, b) for a in NODES for b in NODES if a != b)

HPL = Metric(name="HPL", unit="flop/s", kind=Kind.RATE_FIXED_WORK, primary=True, meaning="solving a dense system")
DGEMM = Metric(name="StarDGEMM", unit="flop/s", kind=Kind.RATE_FIXED_WORK, meaning="matrix product, each process")
TRIAD = Metric(name="StarSTREAM_Triad", unit="byte/s", kind=Kind.RATE_FIXED_WORK, primary=True, meaning="a = b + q c")
COPY = Metric(name="StarSTREAM_Copy", unit="byte/s", kind=Kind.RATE_FIXED_WORK, meaning="a = b")
PTRANS = Metric(name="PTRANS", unit="byte/s", kind=Kind.RATE_FIXED_WORK, primary=True, meaning="transpose over the net")
RING = Metric(name="RandomlyOrderedRingLatency", unit="s", kind=Kind.COST, primary=True, meaning="8-byte message")
EVENTS = Metric(name="events_rate", unit="1/s", kind=Kind.RATE_FIXED_TIME, primary=True, meaning="prime searches")
MEMORY = Metric(name="transfer_rate", unit="byte/s", kind=Kind.RATE_FIXED_WORK, primary=True, meaning="block writes")
BOGO = Metric(
    name="bogo_ops_rate", unit="op/s", kind=Kind.RATE_FIXED_TIME, primary=True, meaning="operations in real time"
)
IO = Metric(name="throughput", unit="byte/s", kind=Kind.RATE_FIXED_WORK, primary=True, meaning="file throughput")
BITRATE = Metric(name="bitrate", unit="bit/s", kind=Kind.RATE_FIXED_TIME, primary=True, meaning="received TCP payload")
RETRANSMITS = Metric(name="retransmits", unit="1", kind=Kind.COUNT, meaning="TCP segments sent again")
RTT = Metric(name="rtt_avg", unit="s", kind=Kind.COST, primary=True, meaning="mean round trip")
LOST = Metric(name="lost_fraction", unit="1", kind=Kind.PROPORTION, meaning="packets without an answer")

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Series:
    """A metric with what the baseline gives for it and by how much the environments differ from that (log scale)."""

    metric: Metric
    level: float
    labels: Labels
    effect: Mapping[str, float]


def series(metric: Metric, level: float, labels: Labels | None = None, **effect: float) -> Series:
    return Series(metric, level, labels or {}, effect)


def iozone() -> tuple[Series, ...]:
    sizes = ("65536", "1048576", "16777216")
    records = ("4096", "65536", "1048576")
    level = {"write": 4e8, "read": 2.5e9, "random_read": 9e8}
    return tuple(
        series(
            IO,
            level[operation] * (1 + 0.4 * i) / (1 + 0.2 * j),
            {"operation": operation, "file_bytes": size, "record_bytes": record},
            container=-0.05,
            vm=-0.6,
        )
        for operation in level
        for j, size in enumerate(sizes)
        for i, record in enumerate(records)
        if int(record) <= int(size)
    )


def by_pair(metric: Metric, level: float, **effect: float) -> tuple[Series, ...]:
    return tuple(series(metric, level, {"client": a, "server": b}, **effect) for a, b in PAIRS)


Entries = Mapping[tuple[str, str, Scope], tuple[Series, ...]]
WORK: Entries = {
    ("hpcc", "hpcc", Scope.WORKERS): (
        series(HPL, 5.5e9, container=0.004, vm=-0.07),
        series(DGEMM, 1.4e9, container=-0.01, vm=-0.09),
        series(TRIAD, 4.0e9, container=0.006, vm=-0.08),
        series(COPY, 5.4e9, container=0.004, vm=-0.07),
        series(PTRANS, 1.5e9, container=-0.23, vm=-2.0),
        series(RING, 2.3e-7, container=3.4, vm=5.6),
    ),
    ("sysbench-cpu", "sysbench-cpu", Scope.NODE): (series(EVENTS, 452.0, container=0.01, vm=0.003),),
    ("sysbench-memory", "sysbench-memory", Scope.NODE): (series(MEMORY, 5.6e9, container=0.05, vm=-0.3),),
    ("stress-ng", "stress-ng", Scope.NODE): (
        series(BOGO, 1348.0, {"stressor": "cpu"}, container=-0.005, vm=-0.37),
        series(BOGO, 53900.0, {"stressor": "vm"}, container=-0.03, vm=-0.29),
    ),
    ("iozone", "iozone-local", Scope.NODE): iozone(),
    ("iperf3", "iperf3-tcp", Scope.PAIRS): (
        *by_pair(BITRATE, 4.2e10, container=-0.02, vm=-2.7),
        *by_pair(RETRANSMITS, 12.0, container=0.4, vm=1.2),
    ),
    ("ping", "ping", Scope.PAIRS): (*by_pair(RTT, 4.0e-5, container=0.4, vm=2.2), *by_pair(LOST, 0.0)),
}


@dataclass(frozen=True)
class Campaign:
    """All that a report is made from."""

    plan: Plan
    trials: tuple[TrialRecord, ...]
    measurements: tuple[Measurement, ...]
    cells: tuple[CellRecord, ...]
    findings: tuple[Finding, ...]


def shape() -> ClusterShape:
    return ClusterShape(
        nodes=tuple(
            NodeShape(
                name=name,
                role=Role.MASTER if name == "master" else Role.WORKER,
                cpus=2,
                cpu_ids=(2 * i, 2 * i + 1),
                memory_bytes=2 * GIB,
                disk_bytes=10 * GIB,
            )
            for i, name in enumerate(NODES)
        )
    )


def study(
    environments: tuple[str, ...],
    rounds: int,
    name: str = "laptop-2026",
    margin: float = 0.02,
    entries: Entries = WORK,
    exploratory: Collection[str] = (),
) -> Study:
    providers = {"host": "host", "container": "docker", "vm": "qemu"}
    return Study(
        name=name,
        seed=2026,
        rounds=rounds,
        baseline=environments[0],
        margin=margin,
        settle_s=5,
        environments=tuple(EnvironmentSpec(name=e, provider=providers.get(e, "docker")) for e in environments),
        workers=2,
        cpus=2,
        memory_bytes=2 * GIB,
        disk_bytes=10 * GIB,
        shared_path="/shared",
        image=ImageSpec(),
        benchmarks=tuple(
            BenchmarkSpec(name=b, label=label, scopes=(scope,), exploratory=label in exploratory)
            for b, label, scope in entries
        ),
    )


def plan(
    environments: tuple[str, ...] = ("host", "container"), rounds: int = 3, entries: Entries = WORK, **more: object
) -> Plan:
    """Every benchmark once in every cell, with one warm-up of sysbench."""
    chosen = study(environments, rounds, entries=entries, **more)  # type: ignore[arg-type]
    works = tuple(work(e, b, label, scope) for e in environments for b, label, scope in entries)
    return Plan(
        vtax_version="0.1.0",
        study=chosen,
        capacity=HostCapacity(cpu_ids=tuple(range(8)), memory_bytes=16 * GIB),
        shape=shape(),
        environments=chosen.environments,
        work=works,
        cells=tuple(cell(r, e, entries) for r in range(1, rounds + 1) for e in _shuffled(environments, r)),
        estimate_s=3600,
        sha256="5f" * 32,
    )


def work(environment: str, benchmark: str, label: str, scope: Scope) -> Work:
    params: Mapping[str, int | str] = (
        {"N": 16128, "NB": 192, "P": 2, "Q": 2} if benchmark == "hpcc" else {"seconds": 10}
    )
    return Work(
        id=label,
        environment=environment,
        benchmark=benchmark,
        label=label,
        target=Target(scope=scope, nodes=shape().nodes, directory=f"/scratch/{label}"),
        params=params,
        steps=(),
        estimate_s=60,
    )


def cell(round_number: int, environment: str, entries: Entries = WORK) -> Cell:
    name = f"r{round_number:02}-{environment}"
    trials = tuple(
        PlannedTrial(id=f"{name}-{label}-{i}", work=label, iteration=i, warmup=i == 0)
        for _, label, _ in entries
        for i in ((0, 1) if label == "sysbench-cpu" else (1,))
    )
    return Cell(id=name, round=round_number, environment=environment, trials=trials)


def _shuffled(environments: tuple[str, ...], round_number: int) -> tuple[str, ...]:
    order = list(environments)
    random.Random(round_number).shuffle(order)
    return tuple(order)


def trial(where: Cell, planned: PlannedTrial, benchmark: str, scope: Scope) -> TrialRecord:
    step = StepRecord(
        step=0,
        node="master",
        argv=(benchmark, "--run"),
        exit_code=0,
        timed_out=False,
        background=False,
        started=1.8e9,
        elapsed_s=10.0,
        stdout="step0-master.stdout",
        stderr="step0-master.stderr",
    )
    return TrialRecord(
        id=planned.id,
        environment=where.environment,
        round=where.round,
        cell=where.id,
        work=planned.work,
        benchmark=benchmark,
        label=planned.work,
        scope=scope,
        nodes=("worker1",) if scope is Scope.NODE else NODES,
        iteration=planned.iteration,
        warmup=planned.warmup,
        params={},
        status=Status.OK,
        started=1.8e9 + 100 * where.round,
        elapsed_s=10.0,
        steps=(step,),
        texts={},
    )


def measured(
    record: TrialRecord, several: tuple[Series, ...], dice: random.Random, sigma: float = 0.015
) -> Iterator[Measurement]:
    for item in several:
        noise = dice.gauss(0, sigma)
        value = item.level * 2.718281828 ** (item.effect.get(record.environment, 0.0) + noise)
        if item.metric.kind is Kind.COUNT:
            value = float(round(value))
        labels = dict(item.labels)
        if "client" in labels:
            labels["target"] = f"{labels['client']}-{labels['server']}"
        yield Measurement.of(record, item.metric, value, labels)


FACTS: Mapping[str, Mapping[str, object]] = {
    "host": {"scratch_filesystem": "ext4", "shared_filesystem": "ext4", "kernel": "6.12.9"},
    "container": {"scratch_filesystem": "overlay", "shared_filesystem": "ext4", "kernel": "6.12.9"},
    "vm": {"scratch_filesystem": "ext4", "shared_filesystem": "nfs4", "kernel": "6.12.12", "virtualization": ["kvm"]},
}
COMMON_FACTS = {
    "cpus": 2,
    "memory_limit_bytes": 2 * GIB,
    "os": "Debian 13",
    "libc": "glibc 2.41",
    "cpu_model": "Intel(R) Core(TM) i7-8550U",
    "blas_core": "Haswell",
    "clock_source": "tsc",
    "mpi_version": "Open MPI 5.0.7",
    "thp": "madvise",
    "a_fact_nobody_expected": ["x", 1],
}


def cell_record(where: Cell) -> CellRecord:
    facts = tuple(
        NodeFacts(
            node=node.name,
            values={
                **COMMON_FACTS,
                "cpus_allowed": f"{node.cpu_ids[0]}-{node.cpu_ids[-1]}",
                **FACTS.get(where.environment, {}),
            },
        )
        for node in shape().nodes
    )
    create = ("docker", "run", "-d", "--cpuset-cpus=0-1", "--memory=2g", f"vtax-{where.environment}")
    return CellRecord(
        cell=where.id,
        environment=where.environment,
        round=where.round,
        instance=1,
        status=Status.OK,
        started=1.8e9 + 1000 * where.round,
        provision_s=4.2,
        commands=(create, ("docker", "exec", "master", "sh", "-c", "echo 'ready & <waiting>'")),
        facts=facts,
        host_facts={"cpu_model": "Intel(R) Core(TM) i7-8550U", "memory_total_bytes": 16 * GIB, "kernel": "6.12.9"},
    )


def campaign(
    environments: tuple[str, ...] = ("host", "container"), rounds: int = 3, *, failing: bool = True, seed: int = 7
) -> Campaign:
    """A complete campaign; with `failing`, the last environment loses ping in the last round."""
    chosen = plan(environments, rounds)
    dice = random.Random(seed)
    kinds = {label: (benchmark, scope) for benchmark, label, scope in WORK}
    trials: list[TrialRecord] = []
    measurements: list[Measurement] = []
    for where in chosen.cells:
        for planned in where.trials:
            benchmark, scope = kinds[planned.work]
            record = trial(where, planned, benchmark, scope)
            lost = failing and (where.round, where.environment, planned.work) == (rounds, environments[-1], "ping")
            if lost:
                record = record.model_copy(update={"status": Status.TIMED_OUT, "failure": "no answer within 32 s"})
            else:
                measurements += measured(record, WORK[benchmark, planned.work, scope], dice)
            trials.append(record)
    findings = (
        Finding(
            id="T05",
            severity=Severity.WARNING,
            message="the host is itself a virtual machine; results do not transfer",
            remedy="run the campaign on bare metal",
        ),
    )
    cells = tuple(cell_record(where) for where in chosen.cells)
    return Campaign(chosen, tuple(trials), tuple(measurements), cells, findings)
