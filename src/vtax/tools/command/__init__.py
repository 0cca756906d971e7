"""command: any command of a study's author, in one node or between nodes, with metrics that the study declares."""

from __future__ import annotations

from vtax.tools.command.benchmark import Command
from vtax.tools.command.logs import FORMATS
from vtax.tools.tool import Tool

TOOL = Tool(
    name="command",
    benchmarks=(Command(),),
    logs=FORMATS,
    programs=("vtax-run", "vtax-supervise"),
    reads_with_others=True,
)
