"""STREAM: memory bandwidth, by the code in Debian's hpcc; logs of the original programs too."""

from __future__ import annotations

from vtax.tools.stream.benchmark import Stream
from vtax.tools.stream.reader import read, starts
from vtax.tools.tool import Build, LogFormat, Tool

TOOL = Tool(
    name="stream",
    benchmarks=(Stream(),),
    logs=(LogFormat("stream", read, starts, first="S"),),
    packages=("hpcc", "libgomp1"),
    programs=("stream",),
    hashed=("stream",),
    commands=("stream_c.exe", "stream_mpi"),
    builds=(Build("stream_code", "the code of STREAM is"),),
)
