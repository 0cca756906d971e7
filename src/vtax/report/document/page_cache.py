"""How much of a file the page cache of an environment can hold."""

from __future__ import annotations

from vtax.report.records import ReportInput

TIMES = 2  # a file below twice the memory is served from the page cache in part at least


def cached_below(report: ReportInput, environment: str) -> float | None:
    """The file size in bytes from which an environment must reach its disk.

    Twice the smallest limit of memory that its nodes read back; where they have none, twice the memory they see;
    where no node said either, twice what the plan gives the smallest node. None where nobody knows, as for most logs.
    """
    limits, totals = [], []
    for cell in report.cells:
        if cell.environment == environment:
            for facts in cell.facts:
                limits += [facts.values[key] for key in ("memory_limit_bytes",) if key in facts.values]
                totals += [facts.values[key] for key in ("memory_total_bytes",) if key in facts.values]
    known = [float(value) for value in (limits or totals) if isinstance(value, (int, float)) and value > 0]
    sizes = known or [float(node.memory_bytes) for node in report.plan.shape.nodes]
    return TIMES * min(sizes) if sizes else None
