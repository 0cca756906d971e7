"""stress-ng: synthetic load, counted in bogus operations."""

from vtax.tools.stress_ng import log_reader
from vtax.tools.stress_ng.benchmark import StressNg
from vtax.tools.tool import Build, LogFormat, Tool, never

TOOL = Tool(
    name="stress-ng",
    benchmarks=(StressNg(),),  # type: ignore[arg-type]
    logs=(LogFormat("stress-ng", log_reader.read, never),),
    packages=("stress-ng",),
    programs=("stress-ng",),
    versions={"stress_ng_version": "stress-ng"},
    builds=(Build("compiler", "stress-ng was compiled with"),),
)
