"""nuttcp: throughput of TCP and UDP between two nodes; logs only."""

from __future__ import annotations

from vtax.tools.nuttcp.reader import INTERVAL, read, starts
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="nuttcp",
    benchmarks=(),
    logs=(LogFormat("nuttcp", read, starts, first=" 0123456789", unread={INTERVAL.pattern: "nuttcp's intervals"}),),
    commands=("nuttcp",),
)
