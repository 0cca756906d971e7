"""OSU Micro-Benchmarks: latency, bandwidth and collectives of MPI; from logs, and from own commands."""

from __future__ import annotations

from vtax.tools.command.workload import Workload
from vtax.tools.osu.metrics import METRICS
from vtax.tools.osu.reader import read, starts
from vtax.tools.tool import LogFormat, Messages, Tool

TOOL = Tool(
    name="osu",
    benchmarks=(Workload("osu", "Network", METRICS),),
    logs=(LogFormat("osu", read, starts, first="#"),),
    messages={"osu": Messages("latency", "latency", "latency", tuple(metric.name for metric in METRICS), size="size")},
    commands=("osu_latency", "osu_bw", "osu_bibw", "osu_mbw_mr", "osu_allreduce", "osu_bcast", "osu_alltoall"),
)
