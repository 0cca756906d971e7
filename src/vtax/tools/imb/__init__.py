"""Intel MPI Benchmarks: point-to-point and collective operations of MPI; from logs, and from own commands."""

from __future__ import annotations

from vtax.tools.command.workload import Workload
from vtax.tools.imb.metrics import METRICS
from vtax.tools.imb.reader import ends, read, starts
from vtax.tools.tool import LogFormat, Messages, Tool

TOOL = Tool(
    name="imb",
    benchmarks=(Workload("imb", "Network", METRICS),),
    logs=(LogFormat("imb", read, starts, first="#", ends=ends),),
    messages={
        "imb": Messages("t", "t", "t", tuple(metric.name for metric in METRICS), {"benchmark": "PingPong"}, size="size")
    },
    commands=("IMB-MPI1",),
)
