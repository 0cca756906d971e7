"""netperf: requests and responses over TCP and UDP. It runs as a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.tools.command.workload import Workload
from vtax.tools.netperf.reader import METRICS, read, starts
from vtax.tools.tool import LogFormat, Tool

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.figures.entry import ToolFigures
    from vtax.figures.quantiles import quantiles

    return (ToolFigures("netperf", quantiles),)


TOOL = Tool(
    name="netperf",
    benchmarks=(Workload("netperf", "Network", METRICS, facts=("time_rounding",)),),
    logs=(LogFormat("netperf", read, starts, first="MTU"),),
    commands=("netperf",),
    workloads=__name__,
    figures=_figures,
)
