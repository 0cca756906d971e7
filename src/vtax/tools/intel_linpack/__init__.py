"""Intel's Optimized LINPACK Benchmark (linpack_xeon64 and the like, not HPL); from logs, and from own commands."""

from __future__ import annotations

from vtax.tools.command.workload import Workload
from vtax.tools.intel_linpack.metrics import METRICS
from vtax.tools.intel_linpack.reader import read, starts
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="intel-linpack",
    benchmarks=(Workload("intel-linpack", "Processor", METRICS),),
    logs=(LogFormat("intel-linpack", read, starts, first="I"),),
    commands=("xlinpack_xeon64", "linpack_xeon64", "runme_xeon64"),
)
