"""wrk: requests to a web server. Its workload runs nginx. It runs as a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.tools.command.workload import Workload
from vtax.tools.tool import LogFormat, Tool
from vtax.tools.wrk.metrics import METRICS
from vtax.tools.wrk.reader import read, starts

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.figures.entry import ToolFigures
    from vtax.figures.quantiles import quantiles

    return (ToolFigures("wrk", quantiles),)


TOOL = Tool(
    name="wrk",
    benchmarks=(Workload("wrk", "Servers", METRICS),),
    logs=(LogFormat("wrk", read, starts, first="R"),),
    commands=("wrk",),
    workloads=__name__,
    figures=_figures,
)
