"""fio: storage by block size, queue depth and pattern, with quantiles of its latency. It runs as a command."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.command.workload import Workload
from vtax.tools.fio import text
from vtax.tools.fio.metrics import METRICS
from vtax.tools.fio.reader import read
from vtax.tools.tool import LogFormat, Tool
from vtax.tools.unread import unread

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def starts_document(line: str) -> bool:
    return line.startswith("{")


def ends_document(line: str) -> bool:
    return line.startswith("}")


def _audit() -> tuple[Row, ...]:
    from vtax.tools.fio import audit

    return rows_of(audit)


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.figures.entry import ToolFigures
    from vtax.figures.quantiles import quantiles

    return (ToolFigures("fio", quantiles),)


TOOL = Tool(
    name="fio",
    benchmarks=(Workload("fio", "Storage", tuple(METRICS.values())),),
    logs=(
        LogFormat(
            "fio",
            read,
            starts_document,
            first="{",
            ends=ends_document,
            together=True,
            mark='"fio version"',
            whole=lambda document: "fio version" in document,
        ),
        LogFormat(
            "fio text",
            read,
            text.starts,
            first=string.ascii_letters + string.digits + "_-./",
            ends=text.ends,
            together=True,
            unread={
                r"^\s{1,12}\|.{0,60}th=\[": "percentiles of fio that are not taken",
                r"^\s{1,12}iops\s{0,12}: min=": "least, mean and most of fio's rates",
            },
        ),
        unread(
            "fio terse",
            "fio",
            "2345",
            r"[2-5];fio-\d",
            "this is fio's terse output, which vtax does not read: give --output-format=json or what fio prints",
        ),
    ),
    commands=("fio",),
    versions={"fio_version": "fio"},
    workloads=__name__,
    audit=_audit,
    figures=_figures,
)
