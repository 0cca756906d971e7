"""STREAM: memory bandwidth, by the code in Debian's hpcc; logs of the original programs too."""

from __future__ import annotations

from vtax.tools.stream.benchmark import Stream
from vtax.tools.stream.reader import ends, read, starts, starts_untitled, titles
from vtax.tools.tool import Build, LogFormat, Tool

TOOL = Tool(
    name="stream",
    benchmarks=(Stream(),),
    logs=(
        LogFormat(
            "stream", read, starts, first="S", begins=starts, ends=ends, titles=titles, holds=("stream, untitled",)
        ),
        LogFormat("stream, untitled", read, starts_untitled, first="T", titles=titles, never_after=("hpcc",)),
    ),
    packages=("hpcc", "libgomp1"),
    programs=("stream",),
    hashed=("stream",),
    commands=("stream_c.exe", "stream_mpi"),
    builds=(Build("stream_code", "the code of STREAM is"),),
)
