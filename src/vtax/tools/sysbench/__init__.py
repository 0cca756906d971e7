"""sysbench: prime numbers, memory, files, and transactions of a database, which run as a command."""

from vtax.evidence.row import Row, rows_of
from vtax.tools.command.workload import Workload
from vtax.tools.sysbench.benchmark import SysbenchCpu, SysbenchFileio, SysbenchMemory
from vtax.tools.sysbench.details import read_log
from vtax.tools.sysbench.lines import ends, starts
from vtax.tools.sysbench.metrics import OLTP
from vtax.tools.sysbench.reader import read
from vtax.tools.sysbench.settings import MODES
from vtax.tools.tool import Build, LogFormat, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.sysbench import audit

    return rows_of(audit)


TOOL = Tool(
    name="sysbench",
    benchmarks=(
        SysbenchCpu(),
        SysbenchMemory(),
        SysbenchFileio(),
        Workload("sysbench-oltp", "Servers", OLTP, facts=("least_flushes",)),
    ),
    logs=(
        LogFormat(
            "sysbench",
            read_log,
            starts,
            first="s",
            begins=starts,
            ends=ends,
            together=True,
            essential=read,
            unread={r"^ *\d+\.\d+ \|": "sysbench's histogram", r"^\[ \d+s \]": "sysbench's intermediate reports"},
        ),
    ),
    packages=("sysbench",),
    programs=("sysbench",),
    versions={"sysbench_version": "sysbench"},
    file_names={"test": {mode: test for mode, (test, _) in MODES.items()}},
    builds=(Build("sysbench_lua", "sysbench uses", decisive=False),),
    audit=_audit,
    workloads=__name__,
)
