"""nuttcp: throughput of TCP and UDP between two nodes; from logs, and from own commands."""

from __future__ import annotations

from vtax.tools.command.workload import Workload
from vtax.tools.nuttcp.metrics import METRICS
from vtax.tools.nuttcp.reader import INTERVAL, read, starts
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="nuttcp",
    benchmarks=(Workload("nuttcp", "Network", METRICS),),
    logs=(LogFormat("nuttcp", read, starts, first=" 0123456789", unread={INTERVAL.pattern: "nuttcp's intervals"}),),
    commands=("nuttcp",),
)
