"""A small campaign in which nothing is wrong, and what it takes to make one thing wrong: for tests of the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from vtax.audit import Evidence, Row
from vtax.evaluation.readings import raw_digest
from vtax.model.cluster import CellRecord, NodeFacts
from vtax.model.finding import Finding, Outcome, Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction, Kind, Metric
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape, Role, Scope, Target
from vtax.model.plan import Cell, Origin, Plan, PlannedTrial, Work
from vtax.model.reading import TrialReading
from vtax.model.seal import Seal
from vtax.model.study import EnvironmentSpec, ImageSpec, Study
from vtax.model.trial import Imported, Status, StepRecord, TrialRecord
from vtax.tools import benchmarks
from vtax.tools.hpcc.linpack import OUTPUT
from vtax.tools.stream import benchmark as stream
from vtax.tools.trials import collected

GIB = 2**30
DATA = Path(__file__).parents[1] / "data"
FLAGS = ["avx2", "avx512f", "fma", "hypervisor", "sse2", "vmx"]
HPL = Metric(name="HPL", unit="flop/s", kind=Kind.RATE_FIXED_WORK, primary=True)
TRIAD = Metric(name="StarSTREAM_Triad", unit="byte/s", kind=Kind.RATE_FIXED_WORK)
ALONE = Metric(name="SingleSTREAM_Triad", unit="byte/s", kind=Kind.RATE_FIXED_WORK)
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
    "boot_id": "b-1",
    "aslr": "2",
    "environment_bytes": 300,
    "thp": "madvise",
    "huge_pages": 0,
    "virtualization": [],
    "cgroup_version": "2",
    "packages_sha256": "d" * 64,
    "last_cache_bytes": 2**18,
    "tcp_congestion_control": "cubic",
    "interfaces": [{"name": "eth0", "mtu": 1500, "gso_max_size": 65536, "addresses": ["10.0.0.9/24"]}],
}
HOST_FACTS: Mapping[str, Any] = {
    "cpu_flags": FLAGS,
    "virtualization": [],
    "is_virtual": False,
    "hostname": "box",
    "cpu_model": "CPU",
    "boot_id": "b-1",
    "governor": "performance",
    "running": {"containers": 0, "virtual machines": 0},
}
SEAL = Seal(
    plan="5" * 64,
    intact=True,
    named={"campaign.json": ("5" * 64,), "looks.json": ("5" * 64,), "records of trials": ("5" * 64,)},
)
IDLE = {"cpu_ticks": 100.0, "busy_ticks": 4.0, "seconds": 0.5}
PARAMS: Mapping[str, Mapping[str, Any]] = {
    "hpcc": {"N": 20_000},
    "iperf3-udp": {"protocol": "udp", "bitrate": 3_000_000_000, "parallel": 1},
}
SCOPES = {"hpcc": Scope.WORKERS, "iperf3-udp": Scope.PAIRS}
PLACEMENT = (
    "mpi world workers: 4 ranks, each of which sees all",
    "mpi placement workers: worker1=2 worker2=2",
    "mpi binding workers: worker1=2 worker1=3 worker2=4 worker2=5",
)
COUNTERS = {
    "oom_kills": 0.0,
    "swap_in_pages": 0.0,
    "cpu_periods": 1000.0,
    "cpu_throttled_periods": 0.0,
    "cpu_ticks": 20_000.0,
    "steal_ticks": 0.0,
    "clock_s": 91.0,
    "uptime_s": 91.01,
    "host_clock_s": 91.0,
    "clock_doubt_s": 0.02,
    "clock_offset_s": 0.0,
    "collector_cpu_s": 0.03,
}
LOGS = {
    "hpcc": ("hpcc", "trixie-two-nodes", "hpccoutf.txt"),
    "iperf3-udp": ("iperf3", "3.18--trixie-udp", "1-worker1.stdout"),
}


OUTPUTS = {"hpcc": OUTPUT, "hpl": OUTPUT, "stream": stream.OUTPUT}  # benchmark -> the file that it writes


def recorded(tool: str, case: str, name: str) -> str:
    """What a tool really printed."""
    return (DATA / tool / case / name).read_text("utf-8")


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


def trial(where: Cell, planned: PlannedTrial, started: float, params: Mapping[str, Any]) -> TrialRecord:
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
        outputs={OUTPUT: "0.worker1.stdout"} if planned.work == "hpcc" else {},
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
        params=params[planned.work],
        status=Status.OK,
        started=started,
        elapsed_s=91.0,
        steps=(step,),
        texts={step.stdout: recorded(*LOGS[planned.work]), step.stderr: f"{planned.id}\n"},
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
        idle=IDLE,
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
            done = trial(where, planned, started=1000.0 + 100 * len(trials), params=chosen.get("params", PARAMS))
            trials.append(done)
            metric = HPL if planned.work == "hpcc" else THROUGHPUT
            measurements.append(Measurement.of(done, metric, made[planned.work]))
            if planned.work == "hpcc":
                measurements += [Measurement.of(done, each, value) for each, value in ((TRIAD, 5e10), (ALONE, 7e10))]
    return Evidence(
        plan=wanted,
        cells=tuple(record(where, (facts or {}).get(where.environment, {}), host_facts) for where in wanted.cells),
        trials=tuple(trials),
        measurements=tuple(measurements),
        readings=readings_of(trials),
        counters={done.id: {"worker1": COUNTERS} for done in trials},
        seal=SEAL,
        looks=(wanted.study.rounds,),
    )


def logged(
    benchmark: str,
    texts: Mapping[str, str],
    *,
    values: Mapping[str, tuple[Measurement, ...]] | None = None,
    argv: Mapping[str, tuple[str, ...]] | None = None,
    params: Mapping[str, Any] | None = None,
    scope: Scope = Scope.PAIRS,
    elapsed_s: float = 90.0,
    provider: str = "docker",
    facts: Mapping[str, Mapping[str, Any]] | None = None,
) -> Evidence:
    """The same campaign, but what it ran is `benchmark`, which printed `texts`: environment -> text.

    An environment without a text ran nothing. Every run's text gets a line of its own, as no two runs are equal.
    """
    base = evidence(facts, provider=provider)
    trials = []
    for one in base.trials:
        if one.label == "hpcc" or one.environment not in texts:
            continue
        step = one.steps[0].model_copy(
            update={
                "argv": (argv or {}).get(one.environment, ("run",)),
                "elapsed_s": elapsed_s,
                "outputs": {OUTPUTS[benchmark]: one.steps[0].stdout} if benchmark in OUTPUTS else {},
            }
        )
        printed = {step.stdout: texts[one.environment], step.stderr: f"{one.id}\n"}
        changed = {
            "benchmark": benchmark,
            "label": benchmark,
            "texts": printed if texts[one.environment] else {},
            "params": dict(params or {}),
            "scope": scope,
            "steps": (step,),
        }
        trials.append(one.model_copy(update=changed))
    measured = [
        value.model_copy(update={"trial": one.id, "environment": one.environment, "round": one.round})
        for one in trials
        for value in (values or {}).get(one.environment, ())
    ]
    planned = tuple(item.model_copy(update={"benchmark": benchmark, "label": benchmark}) for item in base.plan.work)
    return replace(
        base,
        trials=tuple(trials),
        measurements=tuple(measured),
        readings=readings_of(trials),
        plan=base.plan.model_copy(update={"work": planned}),
    )


def as_imported(campaign: Evidence, facts: Mapping[str, Mapping[str, Any]] | None = None) -> Evidence:
    """The same runs as imported logs, which say `facts` (of an environment) besides what they print."""
    trials = tuple(
        one.model_copy(
            update={
                "imported": Imported(
                    file=f"{one.id}.txt",
                    sha256="",
                    raw="raw/log.txt",
                    first_line=1,
                    last_line=1,
                    reader=one.benchmark,
                    facts=dict((facts or {}).get(one.environment, {})),
                )
            }
        )
        for one in campaign.trials
    )
    cells = tuple(cell.model_copy(update={"facts": (), "host_facts": {}, "checks": ()}) for cell in campaign.cells)
    plan = campaign.plan.model_copy(update={"origin": Origin.IMPORTED})
    return replace(campaign, plan=plan, trials=trials, cells=cells, counters={}, seal=None, looks=None)


def readings_of(trials: Sequence[TrialRecord]) -> dict[str, TrialReading]:
    """What the tool's reader finds in each trial's texts, whole or not."""
    found = {}
    for one in trials:
        digest = raw_digest({name: text.encode() for name, text in one.texts.items()})
        read = TrialReading(trial=one.id)
        if one.texts and hasattr(benchmarks().get(one.benchmark), "read"):
            same = {"id": "any", "environment": "any", "cell": "any", "round": 1, "started": 0.0}
            texts = tuple((name, "" if text == f"{one.id}\n" else text) for name, text in one.texts.items())
            read = reading_of(one.model_copy(update=same).model_dump_json(), texts)
        found[one.id] = read.model_copy(update={"trial": one.id, "raw_sha256": digest})
    return found


@lru_cache(maxsize=256)
def reading_of(record: str, texts: tuple[tuple[str, str], ...]) -> TrialReading:
    """What is read from a record as JSON; every round of a made-up campaign prints the same."""
    one = TrialRecord.model_validate_json(record).model_copy(update={"texts": dict(texts)})
    known: Any = benchmarks()[one.benchmark]
    return collected(one, known.read(one))


def value(benchmark: str, metric: str, number: float, unit: str = "bit/s", **labels: str) -> Measurement:
    """A measurement of `benchmark`; `logged` puts it into its trials."""
    return Measurement(
        environment="",
        round=1,
        cell="",
        trial="",
        iteration=1,
        warmup=False,
        benchmark=benchmark,
        label=benchmark,
        metric=metric,
        value=number,
        unit=unit,
        kind=Kind.RATE_FIXED_TIME,
        direction=Direction.HIGHER,
        primary=True,
        labels=labels,
        source="",
    )


def both(text: str) -> dict[str, str]:
    """The same text in both environments."""
    return {"host": text, "container": text}


def failed(row: Row, campaign: Evidence) -> tuple[Finding, ...]:
    """The findings of a row, which must have failed, each with all that a finding has to say."""
    looked = row.look(campaign)
    assert looked.outcome is Outcome.FAIL, looked
    for found in looked.findings:
        assert found.id == row.id
        assert found.message
        assert found.why
        assert found.remedy
    return tuple(found for found in looked.findings if not found.unknown)


def passed(row: Row, campaign: Evidence) -> tuple[str, ...]:
    """What a row saw, which must have passed."""
    looked = row.look(campaign)
    assert looked.outcome is Outcome.PASS, looked
    return looked.seen


def unknown(row: Row, campaign: Evidence) -> Finding:
    """The first finding of a row that could not see: a warning where it would block, or else a note."""
    looked = row.look(campaign)
    assert looked.outcome is Outcome.UNKNOWN, looked
    expected = Severity.WARNING if row.severity is Severity.BLOCKER else Severity.INFO
    assert {found.severity for found in looked.findings} == {expected}
    return looked.findings[0]


def only(findings: tuple[Finding, ...]) -> Finding:
    """The finding, of which there must be exactly one."""
    assert len(findings) == 1, findings
    return findings[0]
