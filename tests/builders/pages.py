"""Report inputs for tests of the page: a made-up campaign with every figure, and one in which every text is hostile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builders.hostile import NAME, renamed
from builders.recorded import DATA, load
from builders.synthetic import Campaign, campaign
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis
from vtax.model.cluster import CellRecord, NodeFacts, Workload
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind, Metric
from vtax.model.plan import Cell
from vtax.model.trial import Status, StepRecord, TrialRecord
from vtax.report.document.compose import document_of
from vtax.report.formats import html as html_format
from vtax.report.formats import latex as latex_format
from vtax.report.formats import markdown as markdown_format
from vtax.report.records import Reference, ReportInput
from vtax.tools.trials import read_trial

HOSTILE = (
    '<script>window.hurt = 1</script><img src=x onerror="window.hurt = 2">|`*[a](javascript:alert(1))_$x^{$\x00&amp;'
)
SWEEP = Metric(name="HPL", unit="flop/s", kind=Kind.RATE_FIXED_WORK, primary=True, meaning="solving a dense system")
TCP = DATA / "iperf3" / "3.18--trixie-tcp-tenths"
ANSWERS = DATA / "ping" / "iputils-20240905--trixie-answers"
CELL_TRIALS = 8  # that the timeline sets behind each other
PAIRS = (("master", "worker1"), ("worker1", "worker2"), ("worker2", "master"))
RATE = Metric(name="throughput", unit="bit/s", kind=Kind.RATE_FIXED_TIME, primary=True)
SPEED = Metric(name="throughput", unit="byte/s", kind=Kind.RATE_FIXED_WORK, primary=True)


def html(report: ReportInput) -> str:
    """The page of a report."""
    return html_format.render(document_of(report))


def markdown(report: ReportInput) -> str:
    return markdown_format.render(document_of(report))


def latex_tables(report: ReportInput) -> str:
    return latex_format.tables(document_of(report))


def report_input(made: Campaign, analysis: Analysis | None = None, **more: Any) -> ReportInput:
    found = analysis or analyse(made.measurements, plan=made.plan, findings=made.findings, trials=made.trials)
    return ReportInput(
        analysis=found,
        plan=made.plan,
        cells=made.cells,
        trials=(trials := more.pop("trials", made.trials)),
        readings={trial.id: read_trial(trial) for trial in trials if trial.texts},
        versions={"hpcc": "1.5.0-3", "adduser": "3.150"},
        host_facts=made.cells[0].host_facts,
        meanings={"hpcc": {"HPL": "solving a dense system"}},
        **more,
    )


def whole(rounds: int = 6) -> ReportInput:
    """A campaign whose page has every kind of figure: sizes, seconds, packets, counters, failures, references."""
    made = campaign(("host", "container", "vm"), rounds)
    begun = {cell.cell: 1.8e9 + 400.0 * place for place, cell in enumerate(made.cells)}
    cells = tuple(cell.model_copy(update={"started": begun[cell.cell]}) for cell in made.cells)
    trials = [
        record.model_copy(
            update={"counters": _counters(number), "started": begun[record.cell] + 20 * (number % CELL_TRIALS + 1)}
        )
        for number, record in enumerate(made.trials)
    ]
    measurements = list(made.measurements)
    for cell in made.plan.cells:
        step = sum(map(ord, cell.environment)) % 5 / 10
        extra = [_recorded(TCP, cell, begun[cell.id], pair) for pair in PAIRS]
        extra += [_recorded(ANSWERS, cell, begun[cell.id], pair) for pair in PAIRS]
        trials += extra
        for record, pair in zip(extra[:3], PAIRS, strict=True):
            labels = {"client": pair[0], "server": pair[1], "protocol": "tcp"}
            measurements.append(Measurement.of(record, RATE, 4e9 * (1 + step + cell.round / 100), labels))
        measurements += _sweep(extra[0], step + cell.round / 50)
        measurements += _grid(extra[0], step + cell.round / 50)
    reference = Reference(benchmark="hpcc", metric="HPL", value=5e9, unit="flop/s", source="another laptop, 2025")
    blocked = Finding(
        id="T03",
        severity=Severity.WARNING,
        message="the guest lacks avx2",
        remedy="pass the host's CPU through",
        environment="vm",
        benchmark="hpcc",
    )
    complete = Campaign(made.plan, tuple(trials), tuple(measurements), cells, (*made.findings, blocked))
    return report_input(complete, references=(reference,), image_sha256="ab" * 32, image_recipe="cd" * 8)


def _counters(number: int) -> dict[str, dict[str, float]]:
    node = {
        "load1": 0.5 + number % 7 / 4,
        "steal_ticks": float(number % 3),
        "cpu_ticks": 1000.0,
        "cpu_periods": 100.0,
        "cpu_throttled_periods": float(number % 2),
    }
    return {"worker1": node}


def _recorded(folder: Any, cell: Cell, begun: float, pair: tuple[str, str]) -> TrialRecord:
    """A recorded trial as if it had run in this cell between these nodes."""
    record = load(folder)
    own = {
        "id": f"{cell.id}-{record.benchmark}-{'-'.join(pair)}",
        "environment": cell.environment,
        "round": cell.round,
        "cell": cell.id,
        "label": "ping" if record.benchmark == "ping" else "iperf3-seconds",
        "nodes": pair,
        "started": begun + 260,
    }
    return record.model_copy(update=own)


def _sweep(record: TrialRecord, step: float) -> list[Measurement]:
    base = record.model_copy(update={"benchmark": "hpl", "label": "hpl", "id": f"{record.cell}-hpl"})
    return [
        Measurement.of(base, SWEEP, 1e9 * (1 + n / 4000 + nb / 1000 + step), {"n": str(n), "nb": str(nb)})
        for n in (1024, 2048, 4096)
        for nb in (64, 128, 192)
    ]


def _grid(record: TrialRecord, step: float) -> list[Measurement]:
    base = record.model_copy(update={"benchmark": "iozone", "label": "iozone", "id": f"{record.cell}-iozone"})
    return [
        Measurement.of(
            base,
            SPEED,
            2e8 * (1 + i + step + j / 3),
            {
                "filesystem": place,
                "node": "worker1",
                "operation": operation,
                "file_bytes": str(file),
                "record_bytes": str(size),
            },
        )
        for place in ("local", "shared")
        for operation in ("write", "read", "random_read")
        for j, file in enumerate((2**20, 2**26, 2**33))
        for i, size in enumerate((4096, 65536, 1048576))
    ]


def hostile(text: str = HOSTILE) -> ReportInput:
    """A campaign in which every free text is `text`."""
    made = renamed(campaign(("host", NAME), 3), text)
    measurements = tuple(
        item.model_copy(
            update={"metric": text, "label": text, "unit": text, "labels": {**item.labels, text: text, "target": text}}
        )
        if item.metric == "rtt_avg"
        else item.model_copy(update={"labels": {**item.labels, "operation": text}})
        if item.benchmark == "iozone"
        else item
        for item in _distinct(made.measurements)
    )
    finding = Finding(id=text, severity=Severity.BLOCKER, message=text, remedy=text, environment="vm", benchmark="x")
    step = StepRecord(
        step=0,
        node=text,
        argv=(text,),
        exit_code=1,
        timed_out=False,
        background=False,
        started=1.0,
        elapsed_s=1.0,
        stdout="0",
        stderr="1",
    )
    failed = {"failure": text, "status": Status.FAILED, "steps": (step,), "counters": {text: {"load1": 1.0}}}
    trials = tuple(t.model_copy(update=failed) for t in made.trials[:1])
    cell = CellRecord(
        cell="cell",
        environment="box",
        round=1,
        instance=1,
        status=Status.FAILED,
        failure=text,
        started=1.0,
        provision_s=1.0,
        commands=((text, text),),
        facts=(NodeFacts(node=text, values={text: text, "kernel": text, "versions": {text: text}}),),
        host_facts={text: text},
    ).model_copy(update={"cell": text, "environment": text})
    analysis = analyse(measurements, plan=made.plan, findings=[finding], trials=trials)
    return ReportInput(
        analysis=analysis.model_copy(update={"campaign": text}),
        plan=made.plan,
        cells=(cell,),
        trials=trials,
        versions={text: text},
        host_facts={text: text},
        meanings={"ping": {text: text}},
        references=(Reference(benchmark="hpcc", metric="HPL", value=1.0, unit="flop/s", source=text),),
        image_sha256=text,
        workload=Workload(
            source="oci:app",
            digest="0" * 64,
            directory=text,
            architecture=text,
            libc=text,
            size_bytes=1,
            entry=(text,),
            user=text,
            working_directory=text,
        ),
    )


def _distinct(several: Sequence[Measurement]) -> Sequence[Measurement]:
    """Of iozone one operation, since a hostile text replaces its name."""
    return [item for item in several if item.labels.get("operation", "write") == "write"]
