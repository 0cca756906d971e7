"""HPC Challenge, and HPL alone (xhpl): both from the source of Debian's hpcc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.hpcc import logs
from vtax.tools.hpcc.benchmark import Hpcc
from vtax.tools.hpcc.hpl import Hpl
from vtax.tools.hpcc.metrics import MESSAGES
from vtax.tools.hpcc.reader import read
from vtax.tools.hpcc.systems import read_hpl
from vtax.tools.tool import Build, LogFormat, Messages, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.hpcc import audit, audit_linpack, blas

    return rows_of(audit, audit_linpack, blas)


if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.tools.hpcc.figures import FIGURES

    return FIGURES


TOOL = Tool(
    name="hpcc",
    benchmarks=(Hpcc(), Hpl()),
    logs=(
        LogFormat("hpcc", read, logs.starts, first="T#H", ends=logs.ends, holds=("hpl", "stream, untitled", "gups")),
        LogFormat("hpl", read_hpl, logs.starts_hpl, first="H"),
        LogFormat("hpl, NVIDIA", read_hpl, logs.starts_nvidia, first="H", ends=logs.ends_hpl, holds=("hpl",)),
    ),
    packages=("hpcc",),
    programs=("hpcc", "xhpl"),
    hashed=("hpcc", "xhpl"),
    same_work=("HPL",),
    messages={
        "hpcc": Messages(
            "MinPingPongLatency",
            "AvgPingPongLatency",
            "MaxPingPongLatency",
            tuple(figure.metric.name for figure in MESSAGES),
        )
    },
    versions={"hpcc_version": "hpcc", "hpl_version": "hpl"},
    audit=_audit,
    builds=(Build("hpcc_compiled", "hpcc was compiled on"), Build("FFT_API", "the FFT of hpcc is")),
    figures=_figures,
)
