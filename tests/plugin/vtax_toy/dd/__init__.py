"""dd of coreutils: how fast blocks of zeros are copied to nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.evidence.row import Row, rows_of
from vtax.tools.tool import LogFormat, Tool
from vtax_toy.dd.benchmark import Dd
from vtax_toy.dd.reader import read, starts

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _audit() -> tuple[Row, ...]:
    from vtax_toy.dd import audit

    return rows_of(audit)


def _figures() -> tuple[ToolFigures, ...]:
    from vtax_toy.dd.figures import FIGURES

    return FIGURES


TOOL = Tool(
    name="dd",
    benchmarks=(Dd(),),
    logs=(LogFormat("dd", read, starts, first="0123456789"),),
    packages=("coreutils",),
    programs=("dd",),
    audit=_audit,
    figures=_figures,
)
