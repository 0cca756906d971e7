"""memcslap: gets and sets of a memcached server. It runs as a command."""

from __future__ import annotations

from vtax.tools.command.workload import Workload
from vtax.tools.memcslap.metrics import METRICS
from vtax.tools.memcslap.reader import read, starts
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="memcslap",
    benchmarks=(Workload("memcslap", "Servers", METRICS),),
    logs=(LogFormat("memcslap", read, starts, first="T"),),
    commands=("memcslap",),
    workloads=__name__,
)
