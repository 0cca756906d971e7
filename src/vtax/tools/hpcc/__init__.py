"""HPC Challenge, and HPL alone (xhpl): both from the source of Debian's hpcc."""

from vtax.evidence.row import Row, rows_of
from vtax.tools.hpcc import hpl_log_reader, log_reader, logs
from vtax.tools.hpcc.benchmark import Hpcc
from vtax.tools.hpcc.hpl import Hpl
from vtax.tools.tool import Build, LogFormat, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.hpcc import blas

    return rows_of(blas)


TOOL = Tool(
    name="hpcc",
    benchmarks=(Hpcc(), Hpl()),  # type: ignore[arg-type]
    logs=(
        LogFormat("hpcc", log_reader.read, logs.starts, first="T#H", ends=logs.ends, holds=("hpl",)),
        LogFormat("hpl", hpl_log_reader.read, logs.starts_hpl, first="H"),
    ),
    packages=("hpcc",),
    programs=("hpcc", "xhpl"),
    versions={"hpcc_version": "hpcc", "hpl_version": "hpl"},
    audit=_audit,
    builds=(Build("hpcc_compiled", "hpcc was compiled on"), Build("FFT_API", "the FFT of hpcc is")),
)
