"""dd of coreutils: how fast blocks of zeros are copied to nowhere."""

from typing import Any

from vtax.evidence.row import Row
from vtax.tools.tool import LogFormat, Tool
from vtax_toy.dd.benchmark import Dd
from vtax_toy.dd.reader import copied, read, starts


def _audit() -> tuple[Row, ...]:
    from vtax_toy.dd.audit import ROWS

    return ROWS


def _figures() -> tuple[Any, ...]:
    from vtax_toy.dd.figures import FIGURES

    return FIGURES


TOOL = Tool(
    name="dd",
    benchmarks=(Dd(),),
    logs=(LogFormat("dd", read, starts, first="0123456789", ends=copied),),
    packages=("coreutils",),
    programs=("dd",),
    audit=_audit,
    figures=_figures,
)
