"""sysbench: prime numbers, memory, files."""

from vtax.tools.sysbench import log_reader
from vtax.tools.sysbench.benchmark import SysbenchCpu, SysbenchFileio, SysbenchMemory
from vtax.tools.tool import LogFormat, Tool, never

TOOL = Tool(
    name="sysbench",
    benchmarks=(SysbenchCpu(), SysbenchMemory(), SysbenchFileio()),  # type: ignore[arg-type]
    logs=(LogFormat("sysbench", log_reader.read, never),),
    packages=("sysbench",),
    programs=("sysbench",),
    versions={"sysbench_version": "sysbench"},
)
