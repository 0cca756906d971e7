"""kernel-paths: system calls, switches, faults, processes and wake-ups, by a small program of vtax.

It is compiled on the nodes from one file of C, statically, so every environment runs the same bytes whatever C library
it has. It measures on one CPU and chooses the length of its batches itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.command.workload import Workload
from vtax.tools.kernel_paths.metrics import METRICS
from vtax.tools.kernel_paths.reader import read
from vtax.tools.tool import LogFormat, Tool

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _starts(line: str) -> bool:
    return line.startswith("{")


def _ends(line: str) -> bool:
    return line.startswith("}")


def _audit() -> tuple[Row, ...]:
    from vtax.tools.kernel_paths import audit

    return rows_of(audit)


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.figures.entry import ToolFigures
    from vtax.figures.quantiles import quantiles

    return (ToolFigures("kernel-paths", quantiles),)


TOOL = Tool(
    name="kernel-paths",
    benchmarks=(Workload("kernel-paths", "Compute", METRICS, facts=("policy",)),),
    logs=(
        LogFormat(
            "kernel-paths",
            read,
            _starts,
            first="{",
            ends=_ends,
            together=True,
            mark='"kernel-paths"',
            whole=lambda document: "kernel-paths" in document,
        ),
    ),
    workloads=__name__,
    audit=_audit,
    figures=_figures,
)
