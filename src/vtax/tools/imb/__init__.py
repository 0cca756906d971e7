"""Intel MPI Benchmarks: point-to-point and collective operations of MPI; logs only."""

from __future__ import annotations

from vtax.tools.imb.reader import ends, read, starts
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="imb",
    benchmarks=(),
    logs=(LogFormat("imb", read, starts, first="#", ends=ends),),
    commands=("IMB-MPI1",),
)
