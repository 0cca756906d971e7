"""Facts of nodes and of the machine as tables: what was matched between environments, what was not, and the host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vtax.model.cluster import CellRecord
from vtax.model.nodes import EVERY_PAIR
from vtax.model.plan import Origin
from vtax.report.document.model import Cell, Column, Row, Table, pairs_table
from vtax.report.records import ReportInput
from vtax.units import format_bytes
from vtax.wording import shortened

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


def matched(report: ReportInput) -> Table:
    """The facts that decide whether a comparison is one, in each environment, and what the plan asked for."""
    return _side_by_side("What was matched and what was not", report, tuple(FACTS))


def other_facts(report: ReportInput) -> Table:
    """All that the nodes reported besides; a fact with parts, such as package versions, has a row for each part."""
    seen = {key for cell in report.cells for facts in cell.facts for key, _ in _flat(facts.values)}
    return _side_by_side("Other facts of the nodes", report, tuple(sorted(seen - set(FACTS))))


def _side_by_side(title: str, report: ReportInput, keys: Sequence[str]) -> Table:
    environments = report.analysis.environments
    seen = {name: _facts_of(report.cells, name) for name in environments}
    foreign = (
        report.plan.origin is Origin.IMPORTED
    )  # then nothing was planned, and facts that are in no log are left out
    if foreign:
        recorded = {key for nodes in seen.values() for values in nodes.values() for key in values}
        keys = [key for key in keys if key in recorded]
    rows = []
    for key in keys:
        texts = [_compressed(seen[name], key) for name in environments]
        planned = [] if foreign else [Cell(_planned(report, key))]
        cells = [Cell(fact_name(key)), *planned, *(Cell(_cut(text)) for text in texts)]
        rows.append(Row((*cells, Cell("", verdict=_agreement(texts)))))
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
    """Every fact as text; of a fact with parts each part, named `versions libc6`."""
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from ((f"{key} {part}", fact_text(key, inner)) for part, inner in value.items())
        else:
            yield key, fact_text(key, value)


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text)} characters)"


def _compressed(nodes: Mapping[str, Mapping[str, list[str]]], key: str) -> str:
    """One value where all nodes agree; if they differ, each node's own, or of many nodes those that have it alike."""
    if not nodes:
        return UNKNOWN
    texts = {node: " or ".join(values.get(key, [])) or ABSENT_MEANS.get(key, UNKNOWN) for node, values in nodes.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    if len(texts) <= EVERY_PAIR:
        return "; ".join(f"{node} {text}" for node, text in texts.items())
    same: dict[str, list[str]] = {}
    for node, text in texts.items():
        same.setdefault(text, []).append(node)
    return "; ".join(f"{shortened(several)} {text}" for text, several in same.items())


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
