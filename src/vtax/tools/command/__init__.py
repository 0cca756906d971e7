"""command: any command of a study's author, in one node or between nodes, with metrics that the study declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vtax.tools.command.benchmark import Command
from vtax.tools.command.logs import FORMATS
from vtax.tools.tool import Tool

if TYPE_CHECKING:
    from vtax.evidence.row import Row


def _audit() -> tuple[Row, ...]:
    from vtax.evidence.row import rows_of
    from vtax.tools.command import audit

    return rows_of(audit)


TOOL = Tool(
    name="command",
    benchmarks=(Command(),),
    logs=FORMATS,
    programs=("vtax-run", "vtax-supervise"),
    reads_with_others=True,
    audit=_audit,
)
