"""sysbench: prime numbers, memory, files."""

from vtax.evidence.row import Row, rows_of
from vtax.tools.sysbench import logs
from vtax.tools.sysbench.benchmark import MODES, SysbenchCpu, SysbenchFileio, SysbenchMemory
from vtax.tools.sysbench.reader import read
from vtax.tools.tool import Build, LogFormat, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.sysbench import audit

    return rows_of(audit)


TOOL = Tool(
    name="sysbench",
    benchmarks=(SysbenchCpu(), SysbenchMemory(), SysbenchFileio()),
    logs=(LogFormat("sysbench", read, logs.starts, first="s", begins=logs.starts, ends=logs.ends, together=True),),
    packages=("sysbench",),
    programs=("sysbench",),
    versions={"sysbench_version": "sysbench"},
    file_names={"test": MODES},
    builds=(Build("sysbench_lua", "sysbench uses", decisive=False),),
    audit=_audit,
)
