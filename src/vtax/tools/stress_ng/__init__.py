"""stress-ng: synthetic load, counted in bogus operations."""

from vtax.evidence.row import Row, rows_of
from vtax.tools.stress_ng.benchmark import StressNg
from vtax.tools.stress_ng.messages import begins, ends, restarts, starts
from vtax.tools.stress_ng.reader import read
from vtax.tools.tool import Build, LogFormat, Tool
from vtax.tools.unread import unread


def _audit() -> tuple[Row, ...]:
    from vtax.tools.stress_ng import audit

    return rows_of(audit)


TOOL = Tool(
    name="stress-ng",
    benchmarks=(StressNg(),),
    logs=(
        LogFormat("stress-ng", read, starts, "s", begins, ends, together=True, restarts=restarts),
        unread(
            "stress-ng yaml",
            "stress-ng",
            " ",
            r" {1,12}stress-ng-version: ",
            "this is what stress-ng writes with --yaml, which vtax does not read: give what it prints with --metrics",
        ),
    ),
    packages=("stress-ng",),
    programs=("stress-ng",),
    versions={"stress_ng_version": "stress-ng"},
    builds=(Build("compiler", "stress-ng was compiled with"),),
    audit=_audit,
)
