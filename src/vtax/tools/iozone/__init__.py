"""iozone: rates of file operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.tools.iozone import log_reader
from vtax.tools.iozone.benchmark import Iozone
from vtax.tools.tool import LogFormat, Tool, never

if TYPE_CHECKING:
    from vtax.figures.entry import ToolFigures


def _figures() -> tuple[ToolFigures, ...]:
    from vtax.tools.iozone.figures import FIGURES

    return FIGURES


TOOL = Tool(
    name="iozone",
    benchmarks=(Iozone(),),  # type: ignore[arg-type]
    logs=(LogFormat("iozone", log_reader.read, never), LogFormat("iozone, no header", log_reader.headerless, never)),
    packages=("iozone3",),
    programs=("iozone",),
    versions={"iozone_version": "iozone"},
    figures=_figures,
)
