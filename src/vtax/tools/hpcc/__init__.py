"""HPC Challenge, and HPL alone (xhpl): both from the source of Debian's hpcc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.tools.hpcc import hpl_log_reader, log_reader
from vtax.tools.hpcc.benchmark import Hpcc
from vtax.tools.hpcc.hpl import Hpl
from vtax.tools.tool import LogFormat, Tool, never

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.tools.hpcc.figures import FIGURES

    return FIGURES


TOOL = Tool(
    name="hpcc",
    benchmarks=(Hpcc(), Hpl()),  # type: ignore[arg-type]
    logs=(LogFormat("hpcc", log_reader.read, never), LogFormat("hpl", hpl_log_reader.read, never)),
    packages=("hpcc",),
    programs=("hpcc", "xhpl"),
    versions={"hpcc_version": "hpcc", "hpl_version": "hpl"},
    figures=_figures,
)
