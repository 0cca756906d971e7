"""iperf3: throughput of TCP and UDP between two nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.iperf3 import logs
from vtax.tools.iperf3.benchmark import Iperf3
from vtax.tools.iperf3.reader import read
from vtax.tools.tool import LogFormat, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.iperf3 import audit

    return rows_of(audit)


if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.tools.iperf3.figures import FIGURES

    return FIGURES


TOOL = Tool(
    name="iperf3",
    benchmarks=(Iperf3(),),
    logs=(
        LogFormat("iperf3", read, logs.starts, first="CA", titles=logs.titles),
        LogFormat(
            "iperf3 json",
            read,
            logs.starts_document,
            first="{",
            ends=logs.ends_document,
            together=True,
            mark='"test_start"',
        ),
    ),
    packages=("iperf3",),
    programs=("iperf3",),
    commands=("iperf",),
    versions={"iperf3_version": "iperf3"},
    audit=_audit,
    file_names={"protocol": {"tcp": "tcp", "udp": "udp"}},
    figures=_figures,
)
