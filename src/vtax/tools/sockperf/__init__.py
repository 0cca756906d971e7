"""sockperf: the time of a small message to a server and back, with quantiles. It runs as a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.command.workload import Workload
from vtax.tools.sockperf.reader import METRICS, read, starts
from vtax.tools.tool import LogFormat, Tool

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _audit() -> tuple[Row, ...]:
    from vtax.tools.sockperf import audit

    return rows_of(audit)


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.figures.entry import ToolFigures
    from vtax.figures.quantiles import quantiles

    return (ToolFigures("sockperf", quantiles),)


TOOL = Tool(
    name="sockperf",
    benchmarks=(Workload("sockperf", "Network", METRICS),),
    logs=(
        LogFormat(
            "sockperf", read, starts, first="s\x1b", unread={r"---> percentile ": "percentiles that are not taken"}
        ),
    ),
    commands=("sockperf",),
    workloads=__name__,
    audit=_audit,
    figures=_figures,
)
