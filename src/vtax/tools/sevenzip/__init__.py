"""sevenzip: compressing and decompressing in memory, by 7-Zip's own benchmark. It runs as a command."""

from __future__ import annotations

from vtax.evidence.row import Row, rows_of
from vtax.tools.command.workload import Workload
from vtax.tools.sevenzip.reader import METRICS, read, starts
from vtax.tools.tool import LogFormat, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.sevenzip import audit

    return rows_of(audit)


TOOL = Tool(
    name="sevenzip",
    benchmarks=(Workload("sevenzip", "Compute", METRICS),),
    logs=(LogFormat("sevenzip", read, starts, first="7"),),
    commands=("7z",),
    workloads=__name__,
    audit=_audit,
)
