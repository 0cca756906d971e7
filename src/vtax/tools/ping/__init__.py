"""ping of iputils: round-trip times and packet loss between two nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.ping.benchmark import Ping
from vtax.tools.ping.reader import read, read_windows, starts, starts_windows
from vtax.tools.tool import LogFormat, Tool

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _audit() -> tuple[Row, ...]:
    from vtax.tools.ping import audit

    return rows_of(audit)


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.tools.ping.figures import FIGURES

    return FIGURES


TOOL = Tool(
    name="ping",
    benchmarks=(Ping(),),
    logs=(
        LogFormat("ping", read, starts, first="P", unread={r" time=": "single answers of ping"}),
        LogFormat("ping of Windows", read_windows, starts_windows, first="PEHDB"),
    ),
    packages=("iputils-ping",),
    programs=("ping",),
    audit=_audit,
    figures=_figures,
)
