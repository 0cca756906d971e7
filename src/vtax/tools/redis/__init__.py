"""redis-benchmark: requests to a Redis or Valkey server, with their latencies. It runs as a command."""

from __future__ import annotations

import string

from vtax.tools.command.workload import Workload
from vtax.tools.redis.metrics import METRICS
from vtax.tools.redis.reader import read, starts
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="redis-benchmark",
    benchmarks=(Workload("redis-benchmark", "Servers", METRICS),),
    logs=(LogFormat("redis-benchmark", read, starts, first=' ="' + string.ascii_letters),),
    commands=("redis-benchmark", "valkey-benchmark"),
    workloads=__name__,
)
