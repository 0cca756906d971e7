"""The commands that a study's author wrote, as every plan shows them: they are code."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vtax.model.plan import Plan, Step


def own_commands(plan: Plan) -> list[str]:
    """Every command that the study's author wrote, once: they are code, so a plan is never shown without them."""
    from vtax.tools import benchmarks

    known, found = benchmarks(), dict[str, None]()
    for work in plan.work:
        if getattr(known.get(work.benchmark), "own_code", False):
            found |= dict.fromkeys(f"  {work.label}: {line}" for step in work.steps for line in _step_lines(step))
    if not found:
        return []
    return ["", "commands of the study's author, which run on the nodes as root unless vtax-run has a --user:", *found]


def _step_lines(step: Step) -> Iterator[str]:
    """What a step does on its nodes, each on one line, whatever its words contain."""
    nodes = ",".join(step.nodes)
    for file in step.inputs:
        if file.sha256:
            yield f"{nodes}: writes {file.name} (sha256 {file.sha256})"
    phase = "service" if step.service else step.phase.value
    yield f"{nodes}: {phase}: {one_line(step.argv)}"
    if step.service and step.service.ready and step.service.ready.command:
        yield f"{nodes}: until the service is ready: {one_line(step.service.ready.command)}"


def one_line(argv: Sequence[str]) -> str:
    """A command that cannot look like several lines of a plan."""
    return shlex.join(argv).replace("\n", "\\n")
