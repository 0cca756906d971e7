"""hackbench: many processes that send each other small messages, for the scheduler. It runs as a command."""

from __future__ import annotations

from vtax.tools.command.workload import Workload
from vtax.tools.hackbench.reader import METRICS, read, starts
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="hackbench",
    benchmarks=(Workload("hackbench", "Compute", METRICS, facts=("policy", "time_rounding")),),
    logs=(LogFormat("hackbench", read, starts, first="R"),),
    commands=("hackbench",),
    workloads=__name__,
)
