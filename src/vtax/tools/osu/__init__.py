"""OSU Micro-Benchmarks: latency, bandwidth and collectives of MPI; logs only."""

from __future__ import annotations

from vtax.tools.osu.reader import read, starts
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="osu",
    benchmarks=(),
    logs=(LogFormat("osu", read, starts, first="#"),),
    commands=("osu_latency", "osu_bw", "osu_bibw", "osu_mbw_mr", "osu_allreduce", "osu_bcast", "osu_alltoall"),
)
