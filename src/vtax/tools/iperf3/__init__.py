"""iperf3: throughput of TCP and UDP between two nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.tools.iperf3 import json_log_reader, log_reader
from vtax.tools.iperf3.benchmark import Iperf3
from vtax.tools.tool import LogFormat, Tool, never

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.tools.iperf3.figures import FIGURES

    return FIGURES


TOOL = Tool(
    name="iperf3",
    benchmarks=(Iperf3(),),  # type: ignore[arg-type]
    logs=(LogFormat("iperf3", log_reader.read, never), LogFormat("iperf3 json", json_log_reader.read, never)),
    packages=("iperf3",),
    programs=("iperf3",),
    versions={"iperf3_version": "iperf3"},
    figures=_figures,
)
