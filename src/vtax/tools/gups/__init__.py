"""GUPS (RandomAccess as a program of its own): updates of random words of a table in memory."""

from __future__ import annotations

from vtax.tools.command.workload import Workload
from vtax.tools.gups.metrics import METRICS
from vtax.tools.gups.reader import read, starts
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="gups",
    benchmarks=(Workload("gups", "Memory", METRICS),),
    logs=(LogFormat("gups", read, starts, first="M", never_after=("hpcc",)),),
    commands=("gups", "gups.exe"),
)
