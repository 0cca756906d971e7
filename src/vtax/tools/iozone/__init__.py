"""iozone: rates of file operations."""

from vtax.tools.iozone.benchmark import Iozone
from vtax.tools.iozone.reader import headerless, read
from vtax.tools.tool import LogFormat, Tool, never

TOOL = Tool(
    name="iozone",
    benchmarks=(Iozone(),),
    logs=(LogFormat("iozone", read, never), LogFormat("iozone, no header", headerless, never)),
    packages=("iozone3",),
    programs=("iozone",),
    versions={"iozone_version": "iozone"},
)
