"""The theoretical peak of an entry's nodes, and what that number rests on."""

from __future__ import annotations

from vtax.analysis.records import Level
from vtax.errors import EnvironmentMissing
from vtax.model.nodes import NodeShape
from vtax.model.plan import Plan
from vtax.reference.peak import CpuPeak, cpu_peak
from vtax.report.document.model import Cell, Column, Row, Table
from vtax.report.records import ReportInput
from vtax.units import format_quantity


def peak_of(report: ReportInput, label: str) -> CpuPeak | None:
    """What the cores of an entry's nodes could do; None where nothing is known of them.

    At the clock that was measured when the campaign began; without one at the base clock, or what the kernel says.
    """
    facts = report.host_facts
    ids = {cpu for node in nodes_of(report.plan, label) for cpu in node.cpu_ids}
    cores = {(cpu.get("socket", 0), cpu.get("core", cpu["id"])) for cpu in facts.get("cpus", ()) if cpu["id"] in ids}
    if not ids:
        return None
    measured = facts.get("clock_hz")
    clock = (float(measured), "measured when the campaign began, all CPUs busy") if measured else None
    try:
        return cpu_peak(facts, cores=len(cores) or len(ids), clock=clock)
    except EnvironmentMissing:
        return None


def has_peak(level: Level) -> bool:
    """Whether a result is compared with the theoretical peak: a primary rate of floating-point operations."""
    return level.primary and level.unit == "flop/s"


def peak_flops(report: ReportInput, label: str) -> float | None:
    """That peak, in flop/s."""
    peak = peak_of(report, label)
    return None if peak is None else peak.value


def nodes_of(plan: Plan, label: str) -> tuple[NodeShape, ...]:
    """The nodes that the trials of an entry use; of several targets, those of the first."""
    return next((work.target.nodes for work in plan.work if work.label == label), ())


def peaks(report: ReportInput) -> Table:
    """The peak for every entry that is compared with it, with each factor that was assumed or measured."""
    labels = dict.fromkeys(level.label for level in report.analysis.levels if has_peak(level))
    rows = []
    for label in labels:
        peak = peak_of(report, label)
        if peak is None:
            why = Cell("this CPU's clock or operations per cycle are not known")
            rows.append(Row((Cell(label), Cell("unknown"), why)))
        else:
            names = ", ".join(node.name for node in nodes_of(report.plan, label))
            value = Cell(format_quantity(peak.value, peak.unit), peak.formula)
            rows.append(Row((Cell(label, f"CPUs of {names}"), value, Cell("; ".join(peak.assumptions)))))
    columns = ("Benchmark", "Theoretical peak", "Assumed")
    return Table("Theoretical peak", tuple(map(Column, columns)), tuple(rows))
