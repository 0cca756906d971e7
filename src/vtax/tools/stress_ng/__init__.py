"""stress-ng: synthetic load, counted in bogus operations."""

from vtax.evidence.row import Row, rows_of
from vtax.tools.stress_ng import logs
from vtax.tools.stress_ng.benchmark import StressNg
from vtax.tools.stress_ng.reader import read
from vtax.tools.tool import Build, LogFormat, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.stress_ng import audit

    return rows_of(audit)


TOOL = Tool(
    name="stress-ng",
    benchmarks=(StressNg(),),
    logs=(
        LogFormat(
            "stress-ng",
            read,
            logs.starts,
            first="s",
            begins=logs.begins,
            ends=logs.ends,
            together=True,
            restarts=logs.restarts,
        ),
    ),
    packages=("stress-ng",),
    programs=("stress-ng",),
    versions={"stress_ng_version": "stress-ng"},
    builds=(Build("compiler", "stress-ng was compiled with"),),
    audit=_audit,
)
