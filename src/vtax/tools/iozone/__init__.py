"""iozone: rates of file operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.iozone import logs
from vtax.tools.iozone.benchmark import Iozone
from vtax.tools.iozone.metrics import ALL, HEADLINES
from vtax.tools.iozone.reader import UNITS, headerless, read
from vtax.tools.tool import LogFormat, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.iozone import audit

    return rows_of(audit)


if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.tools.iozone.figures import FIGURES

    return FIGURES


TOOL = Tool(
    name="iozone",
    benchmarks=(Iozone(),),
    logs=(
        LogFormat(
            "iozone", read, logs.starts, first='\t "I', begins=logs.starts, ends=logs.ends, together=True, units=UNITS
        ),
        LogFormat(
            "iozone, no header",
            headerless,
            logs.starts_headerless,
            first='0123456789 \t\v\f,;"Ww',
            outside=True,
            units=UNITS,
        ),
    ),
    packages=("iozone3",),
    programs=("iozone",),
    orders={"operation": (*HEADLINES, *(name for name in ALL if name not in HEADLINES))},
    versions={"iozone_version": "iozone"},
    audit=_audit,
    figures=_figures,
)
