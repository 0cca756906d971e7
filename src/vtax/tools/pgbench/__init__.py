"""pgbench: transactions of a PostgreSQL server, with their latencies. It runs as a command."""

from __future__ import annotations

from vtax.evidence.row import Row, rows_of
from vtax.tools.command.workload import Workload
from vtax.tools.pgbench.lines import begins, ends, starts
from vtax.tools.pgbench.metrics import METRICS
from vtax.tools.pgbench.reader import read
from vtax.tools.tool import LogFormat, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.pgbench import audit

    return rows_of(audit)


TOOL = Tool(
    name="pgbench",
    benchmarks=(Workload("pgbench", "Servers", METRICS, facts=("least_flushes",)),),
    logs=(LogFormat("pgbench", read, starts, first="pst", begins=begins, ends=ends, together=True),),
    commands=("pgbench",),
    versions={"pgbench_version": "postgresql"},
    audit=_audit,
    workloads=__name__,
)
