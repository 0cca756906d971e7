"""HPC Challenge, and HPL alone (xhpl): both from the source of Debian's hpcc."""

from vtax.tools.hpcc import hpl_log_reader, log_reader
from vtax.tools.hpcc.benchmark import Hpcc
from vtax.tools.hpcc.hpl import Hpl
from vtax.tools.tool import LogFormat, Tool, never

TOOL = Tool(
    name="hpcc",
    benchmarks=(Hpcc(), Hpl()),  # type: ignore[arg-type]
    logs=(LogFormat("hpcc", log_reader.read, never), LogFormat("hpl", hpl_log_reader.read, never)),
    packages=("hpcc",),
    programs=("hpcc", "xhpl"),
    versions={"hpcc_version": "hpcc", "hpl_version": "hpl"},
)
