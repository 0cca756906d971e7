"""mpi-messages: latency, bandwidth and allreduce between ranks of MPI, by a small program of vtax.

It is compiled on the nodes from one file of C and started by mpirun, with one rank on each node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.tools.command.workload import Workload
from vtax.tools.mpi_messages.metrics import METRICS
from vtax.tools.mpi_messages.reader import read
from vtax.tools.tool import LogFormat, Tool

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _starts(line: str) -> bool:
    return line.startswith("{")


def _ends(line: str) -> bool:
    return line.startswith("}")


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.figures.entry import ToolFigures
    from vtax.figures.quantiles import quantiles

    return (ToolFigures("mpi-messages", quantiles),)


TOOL = Tool(
    name="mpi-messages",
    benchmarks=(Workload("mpi-messages", "Network", METRICS, programs=("mpirun", "vtax-rank")),),
    logs=(
        LogFormat(
            "mpi-messages",
            read,
            _starts,
            first="{",
            ends=_ends,
            together=True,
            mark='"mpi-messages"',
            whole=lambda document: "mpi-messages" in document,
        ),
    ),
    workloads=__name__,
    figures=_figures,
)
