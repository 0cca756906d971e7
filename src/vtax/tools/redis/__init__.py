"""redis-benchmark: requests to a Redis or Valkey server, with their latencies. It runs as a command."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.command.workload import Workload
from vtax.tools.redis.metrics import METRICS
from vtax.tools.redis.reader import read, starts
from vtax.tools.tool import LogFormat, Tool
from vtax.tools.unread import unread

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _audit() -> tuple[Row, ...]:
    from vtax.tools.redis import audit

    return rows_of(audit)


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.figures.entry import ToolFigures
    from vtax.figures.quantiles import quantiles

    return (ToolFigures("redis-benchmark", quantiles),)


TOOL = Tool(
    name="redis-benchmark",
    benchmarks=(Workload("redis-benchmark", "Servers", METRICS),),
    logs=(
        LogFormat("redis-benchmark", read, starts, first=' ="' + string.ascii_letters),
        unread(
            "memtier",
            "memtier",
            "[A",
            r"\[RUN #\d{1,6}\] Preparing benchmark client|ALL STATS$",
            "this is the output of memtier_benchmark, which vtax does not read",
        ),
    ),
    commands=("redis-benchmark", "valkey-benchmark"),
    workloads=__name__,
    audit=_audit,
    figures=_figures,
)
