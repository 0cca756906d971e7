"""How the numbers were made, as tables: versions, commands, the plan and its work, clusters, failures."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from vtax.analysis.records import Analysis
from vtax.model.cluster import CellRecord, Workload
from vtax.model.plan import Origin
from vtax.model.trial import Status
from vtax.report.document import apart
from vtax.report.document.facts import UNKNOWN, fact_text
from vtax.report.document.model import Cell, Column, Row, Table, pairs_table
from vtax.report.records import ReportInput
from vtax.tools import packages
from vtax.units import format_bytes, format_looks, format_seconds

SYSTEM = re.compile(
    r"vtax|openmpi-bin|libopenmpi\d\w*|libopenblas0-\w+|libc6|linux-image-\S+|openssh-server|nfs-\S+"
)  # packages besides those of the tools that decide what is measured


def versions(report: ReportInput) -> tuple[Table, Table]:
    """vtax and the packages that measure or that are measured with, and all the others of the root file system."""
    pairs = [("vtax", report.plan.vtax_version), *sorted(report.versions.items())]
    measuring = frozenset(packages())
    first = [pair for pair in pairs if pair[0] in measuring or SYSTEM.fullmatch(pair[0])]
    rest = [pair for pair in pairs if pair not in first]
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
        *([("interim analyses", _looks(analysis))] if analysis.looks else []),
        ("trials", f"{analysis.trials_planned} planned, {analysis.trials_recorded} recorded"),
        ("margin of equivalence", f"{100 * plan.study.margin:g} %"),
        ("plan frozen before the first run", report.plan_frozen),
        ("sha256 of the plan", plan.sha256),
    ]
    pairs += apart.rows(report)
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
    """The parameters of every benchmark entry, the same in every environment."""
    rows: dict[tuple[str, str, str], Row] = {}
    for work in report.plan.work:
        given = {name: _without_nothing(value) for name, value in sorted(work.params.items())}
        params = (f"{name} = {fact_text(name, value)}" for name, value in given.items() if value is not None)
        text = ", ".join(params) or "no parameters"
        key = (work.label, work.target.scope, text)
        rows.setdefault(key, Row((Cell(work.label, work.benchmark), Cell(work.target.scope), Cell(text))))
    columns = (Column("Benchmark"), Column("Scope"), Column("Parameters"))
    title = (
        "The work, as recorded in the logs" if report.plan.origin is Origin.IMPORTED else "The work, frozen in the plan"
    )
    return Table(title, columns, tuple(rows.values()))


def _without_nothing(value: Any) -> Any:
    """A value without the keys that a study may have and this one has not."""
    if isinstance(value, dict):
        return {key: _without_nothing(one) for key, one in value.items() if one is not None}
    return [_without_nothing(one) for one in value] if isinstance(value, list) else value


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
    if report.plan.study.packages:
        pairs.append(("packages of the entries", ", ".join(report.plan.study.packages)))
    if report.workload:
        pairs += _own_image(report.workload)
    return pairs_table("The root file system", pairs, ("Item", "Value"))


def _own_image(own: Workload) -> list[tuple[str, str]]:
    """The image that commands are run in."""
    return [
        ("own image", own.source),
        ("own image, sha256 of its configuration", own.digest),
        ("own image, made for", f"{own.architecture}, {own.libc}"),
        ("own image, size", format_bytes(own.size_bytes)),
        ("own image, entry point and command", shlex.join(own.entry) or "none"),
        ("own image, user and directory", f"{own.user or 'root'}, {own.working_directory}"),
        ("own image, unpacked by", own.unpacked_by or UNKNOWN),
    ]


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
