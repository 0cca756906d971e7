"""sysbench: prime numbers, memory, files."""

from vtax.tools.sysbench import logs
from vtax.tools.sysbench.benchmark import SysbenchCpu, SysbenchFileio, SysbenchMemory
from vtax.tools.sysbench.reader import read
from vtax.tools.tool import Build, LogFormat, Tool

TOOL = Tool(
    name="sysbench",
    benchmarks=(SysbenchCpu(), SysbenchMemory(), SysbenchFileio()),
    logs=(LogFormat("sysbench", read, logs.starts, first="s", begins=logs.starts, ends=logs.ends, together=True),),
    packages=("sysbench",),
    programs=("sysbench",),
    versions={"sysbench_version": "sysbench"},
    file_names={
        "test": {
            "seqwr": "sequential write (creation)",
            "seqrewr": "sequential rewrite",
            "seqrd": "sequential read",
            "rndrd": "random read",
            "rndwr": "random write",
            "rndrw": "random r/w",
        }
    },
    builds=(Build("sysbench_lua", "sysbench uses", decisive=False),),
)
