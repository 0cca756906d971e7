"""How the numbers came to be, as tables: what was matched, the machine, versions, the plan, the commands, failures."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vtax.analysis.records import Analysis
from vtax.model.cluster import CellRecord
from vtax.model.plan import Origin
from vtax.model.trial import Status
from vtax.report.document.tables import Cell, Column, Row, Table
from vtax.report.records import ReportInput
from vtax.units import format_bytes, format_looks, format_seconds

UNKNOWN = "unknown"
FACTS = {
    "cpus_allowed": "CPUs allowed",
    "cpus": "CPUs seen",
    "cpu_quota_cpus": "CPU quota",
    "memory_limit_bytes": "memory limit",
    "memory_total_bytes": "memory seen",
    "kernel": "kernel",
    "os": "operating system",
    "libc": "C library",
    "cpu_model": "CPU model",
    "blas_core": "BLAS kernel",
    "blas_config": "BLAS build",
    "mpi_version": "MPI",
    "scratch_filesystem": "file system of scratch",
    "shared_filesystem": "file system of the shared directory",
    "clock_source": "clock source",
    "thp": "transparent huge pages",
    "cgroup_version": "cgroup version",
    "governor": "frequency governor",
    "smt": "simultaneous multithreading",
    "seccomp": "seccomp",
    "tcp_congestion_control": "TCP congestion control",
    "virtualization": "virtualization seen from inside",
}
MACHINE = {
    "cpu_model": "CPU model",
    "cpus": "CPUs",
    "smt": "simultaneous multithreading",
    "governor": "frequency governor",
    "memory_total_bytes": "memory",
    "kernel": "kernel",
    "os": "operating system",
    "virtualization": "virtualization around it",
    "hypervisor": "hypervisor",
    "kvm": "/dev/kvm",
    "dmi_vendor": "vendor",
    "dmi_product": "product",
    "clock_source": "clock source",
    "thp": "transparent huge pages",
    "cgroup_version": "cgroup version",
}
LONG = 160  # characters of a fact that are shown
ABSENT_MEANS = {"cpu_quota_cpus": "none"}
TOLD = re.compile(
    r"(vtax|hpcc|openmpi-bin|libopenmpi\d\w*|libopenblas0-\w+|sysbench|stress-ng|iozone3|iperf3|iputils-ping|libc6|"
    r"linux-image-\S+|openssh-server|nfs-\S+)$"
)
HPL_PARAMS = ("N", "NB", "P", "Q")


def pairs_table(title: str, pairs: Sequence[tuple[str, str]], columns: tuple[str, str]) -> Table:
    rows = tuple(Row((Cell(name), Cell(value))) for name, value in pairs)
    return Table(title, tuple(Column(name) for name in columns), rows)


def matched(report: ReportInput) -> Table:
    """The facts that decide whether a comparison is one, in each environment, and what the plan asked for."""
    return _side_by_side("What was matched and what was not", report, tuple(FACTS))


def other_facts(report: ReportInput) -> Table:
    """All that the nodes reported beside that; a fact with parts, such as package versions, has a row for each part."""
    seen = {key for cell in report.cells for facts in cell.facts for key, _ in _flat(facts.values)}
    return _side_by_side("Other facts of the nodes", report, tuple(sorted(seen - set(FACTS))))


def _side_by_side(title: str, report: ReportInput, keys: Sequence[str]) -> Table:
    environments = report.analysis.environments
    seen = {name: _facts_of(report.cells, name) for name in environments}
    foreign = (
        report.plan.origin is Origin.IMPORTED
    )  # then nothing was planned, and facts that no log tells are left out
    if foreign:
        told = {key for nodes in seen.values() for values in nodes.values() for key in values}
        keys = [key for key in keys if key in told]
    rows = []
    for key in keys:
        texts = [_compressed(seen[name], key) for name in environments]
        planned = [] if foreign else [Cell(_planned(report, key))]
        cells = [Cell(fact_name(key)), *planned, *(Cell(_cut(text)) for text in texts)]
        rows.append(Row((*cells, Cell("", badge=_agreement(texts)))))
    columns = [Column("Fact"), *([] if foreign else [Column("planned")])]
    columns += [Column(name, place) for place, name in enumerate(environments)]
    return Table(title, (*columns, Column("compared")), tuple(rows))


def _facts_of(cells: Sequence[CellRecord], environment: str) -> dict[str, dict[str, list[str]]]:
    """Node -> fact -> every value that it had in any round, in order."""
    nodes: dict[str, dict[str, list[str]]] = {}
    for cell in sorted(cells, key=lambda cell: (cell.round, cell.instance)):
        if cell.environment != environment:
            continue
        for facts in cell.facts:
            values = nodes.setdefault(facts.node, {})
            for key, text in _flat(facts.values):
                texts = values.setdefault(key, [])
                if text not in texts:
                    texts.append(text)
    return nodes


def _flat(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every fact as text; of a fact with parts each part, named `versions hpcc`."""
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from ((f"{key} {part}", fact_text(key, inner)) for part, inner in value.items())
        else:
            yield key, fact_text(key, value)


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text)} characters)"


def _compressed(nodes: Mapping[str, Mapping[str, list[str]]], key: str) -> str:
    """One value where all nodes agree; otherwise each node's own."""
    if not nodes:
        return UNKNOWN
    texts = {node: " or ".join(values.get(key, [])) or ABSENT_MEANS.get(key, UNKNOWN) for node, values in nodes.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{node} {text}" for node, text in texts.items())


def _agreement(texts: Sequence[str]) -> str:
    if UNKNOWN in texts:
        return "unknown" if set(texts) == {UNKNOWN} else "partly unknown"
    return "equal" if len(set(texts)) == 1 else "different"


def _planned(report: ReportInput, key: str) -> str:
    nodes = report.plan.shape.nodes
    planned = {
        "cpus": [str(node.cpus) for node in nodes],
        "cpus_allowed": [ranges(node.cpu_ids) for node in nodes],
        "memory_limit_bytes": [format_bytes(node.memory_bytes) for node in nodes],
    }.get(key)
    if planned is None:
        return ""
    if len(set(planned)) == 1:
        return planned[0]
    return "; ".join(f"{node.name} {text}" for node, text in zip(nodes, planned, strict=True))


def ranges(ids: Sequence[int]) -> str:
    """`0-1,4` from (0, 1, 4), as Linux writes CPU lists."""
    parts: list[list[int]] = []
    for number in sorted(ids):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def fact_name(key: str) -> str:
    return FACTS.get(key, key).removesuffix("_bytes").replace("_", " ")


def fact_text(key: str, value: Any) -> str:
    """A fact as a person reads it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and key.endswith("_bytes"):
        return format_bytes(value)
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(map(str, value)) or "none"
    return json.dumps(value, sort_keys=True, default=str)


def machine(report: ReportInput) -> tuple[Table, Table]:
    """The host: what matters most, and the rest."""
    facts = dict(report.host_facts or next((cell.host_facts for cell in report.cells if cell.host_facts), {}))
    if isinstance(facts.get("cpus"), (list, tuple)):
        facts["cpus"] = len(facts["cpus"])
    texts = dict(_flat(facts))
    first = [(name, texts.pop(key)) for key, name in MACHINE.items() if key in texts]
    rest = [(fact_name(key), _cut(text)) for key, text in texts.items()]
    columns = ("Fact", "Host")
    return pairs_table("The machine", first, columns), pairs_table("More about the machine", rest, columns)


def versions(report: ReportInput) -> tuple[Table, Table]:
    """vtax and the packages that measure or that are measured with, and all the others of the root file system."""
    pairs = [("vtax", report.plan.vtax_version), *sorted(report.versions.items())]
    first = [pair for pair in pairs if TOLD.match(pair[0])]
    rest = [pair for pair in pairs if not TOLD.match(pair[0])]
    columns = ("Package", "Version")
    return pairs_table("Versions", first, columns), pairs_table("All other packages", rest, columns)


def built(report: ReportInput) -> tuple[tuple[str, str], ...]:
    """For each environment the commands that made its first cluster, as they would be typed."""
    texts = []
    for name in report.analysis.environments:
        cells = [cell for cell in report.cells if cell.environment == name and cell.commands]
        if cells:
            first = min(cells, key=lambda cell: (cell.round, cell.instance))
            texts.append((name, "\n".join(shlex.join(argv) for argv in first.commands)))
    return tuple(texts)


def plan(report: ReportInput) -> Table:
    plan, analysis = report.plan, report.analysis
    pairs = [
        ("seed", str(plan.study.seed)),
        ("rounds", f"{plan.study.rounds} planned, {analysis.rounds_complete} complete"),
        *([("looks", _looks(analysis))] if analysis.looks else []),
        ("trials", f"{analysis.trials_planned} planned, {analysis.trials_recorded} recorded"),
        ("margin of equivalence", f"{100 * plan.study.margin:g} %"),
        ("plan frozen before the first run", report.plan_frozen),
        ("sha256 of the plan", plan.sha256),
    ]
    pairs += [(f"round {number}, as run", order) for number, order in _order_as_run(report.cells)]
    pairs += [("left out", text) for text in plan.left_out]
    return pairs_table("The plan", pairs, ("Item", "Value"))


def _looks(analysis: Analysis) -> str:
    """Where the campaign could end, and how far it came."""
    planned = f"planned after {format_looks(analysis.looks)}"
    return f"{planned}; the last one reached: {analysis.look or 'none'}"


def _order_as_run(cells: Sequence[CellRecord]) -> list[tuple[int, str]]:
    rounds: dict[int, list[CellRecord]] = {}
    for cell in sorted(cells, key=lambda cell: (cell.started, cell.cell, cell.instance)):
        rounds.setdefault(cell.round, []).append(cell)
    words = {
        number: ", ".join(
            cell.environment + (f" (provisioned in {format_seconds(cell.provision_s)})" if cell.provision_s else "")
            for cell in several
        )
        for number, several in rounds.items()
    }
    return sorted(words.items())


def frozen_work(report: ReportInput) -> Table:
    """The parameters of every benchmark entry, the same in every environment; HPL's sizes first."""
    rows: dict[tuple[str, str, str], Row] = {}
    for work in report.plan.work:
        params = dict(work.params)
        hpl = [f"{name} = {params.pop(name)}" for name in HPL_PARAMS if name in params]
        rest = [f"{name} = {fact_text(name, value)}" for name, value in sorted(params.items())]
        text = ", ".join(hpl + rest) or "no parameters"
        key = (work.label, work.target.scope, text)
        rows.setdefault(key, Row((Cell(work.label, work.benchmark), Cell(work.target.scope), Cell(text))))
    columns = (Column("Benchmark"), Column("Scope"), Column("Parameters"))
    title = "The work, as the logs tell it" if report.plan.origin is Origin.IMPORTED else "The work, frozen in the plan"
    return Table(title, columns, tuple(rows.values()))


def failures(report: ReportInput) -> Table:
    """Trials without a result, and clusters that did not come up."""
    rows = [
        Row((Cell(item.trial, "warm-up" if item.warmup else ""), Cell(item.status), Cell(item.reason or UNKNOWN)))
        for item in report.analysis.failures
    ]
    rows += [
        Row((Cell(cell.cell, "provisioning"), Cell(cell.status), Cell(cell.failure or UNKNOWN)))
        for cell in sorted(report.cells, key=lambda cell: (cell.round, cell.cell, cell.instance))
        if cell.status is not Status.OK
    ]
    return Table("Failures", (Column("Trial"), Column("Status"), Column("Reason")), tuple(rows))


def commands(report: ReportInput) -> tuple[tuple[str, str], ...]:
    """For each environment the command lines of the benchmarks, of the first target of each entry and scope."""
    texts = []
    for name in report.analysis.environments:
        seen: dict[tuple[str, str], int] = {}
        lines: list[str] = []
        for work in (work for work in report.plan.work if work.environment == name and work.steps):
            key = (work.label, work.target.scope)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] == 1:
                lines += [f"# {work.label} on {work.target.label}"]
                lines += [
                    f"{node}:{work.target.directory}$ {shlex.join(step.argv)}{' &' if step.background else ''}"
                    for step in work.steps
                    for node in step.nodes
                ]
        if lines:
            texts.append((name, "\n".join(lines)))
    return tuple(texts)


def image(report: ReportInput) -> Table:
    """What all environments start from."""
    spec = report.plan.study.image
    pairs = [
        ("archive, sha256", report.image_sha256 or UNKNOWN),
        ("recipe", report.image_recipe or UNKNOWN),
        ("suite", spec.suite),
        ("components", ", ".join(spec.components)),
    ]
    if spec.extra_packages:
        pairs.append(("extra packages", ", ".join(spec.extra_packages)))
    return pairs_table("The root file system", pairs, ("Item", "Value"))


def cells(report: ReportInput) -> Table:
    """Every cluster that was made, in the order of time, with its record."""
    rows = [
        Row(
            (
                Cell(f"round {cell.round}"),
                Cell(cell.environment),
                Cell(cell.status, cell.failure),
                Cell(format_seconds(cell.provision_s)),
                Cell(f"{len(cell.checks)} passed"),
                Cell(f"{cell.cell}.{cell.instance}.json", file=f"cells/{cell.cell}.{cell.instance}.json"),
            )
        )
        for cell in sorted(report.cells, key=lambda cell: (cell.started, cell.cell, cell.instance))
    ]
    columns = ("Round", "Environment", "Status", "Provisioned in", "Checks", "Record")
    return Table("Every cluster", tuple(Column(name) for name in columns), tuple(rows))
