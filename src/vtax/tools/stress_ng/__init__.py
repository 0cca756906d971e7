"""stress-ng: synthetic load, counted in bogus operations."""

from vtax.tools.stress_ng import log_reader, logs
from vtax.tools.stress_ng.benchmark import StressNg
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="stress-ng",
    benchmarks=(StressNg(),),  # type: ignore[arg-type]
    logs=(
        LogFormat(
            "stress-ng",
            log_reader.read,
            logs.starts,
            first="s",
            begins=logs.begins,
            ends=logs.ends,
            together=True,
            restarts=logs.restarts,
        ),
    ),
    packages=("stress-ng",),
    programs=("stress-ng",),
    versions={"stress_ng_version": "stress-ng"},
)
