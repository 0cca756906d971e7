"""What a tool is whose runs are commands: no class of its own, but metrics, a reader, and entries in `workloads/`.

    TOOL = Tool("fio", benchmarks=(Workload("fio", "Storage", METRICS),), logs=..., workloads=__name__)

An entry of such a tool has the keys of an own command. That it names the tool, and not `command`, puts its results next
to those of imported logs: one section of the report, the same figures and rows of the audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from vtax.errors import Mistake
from vtax.model.metric import Metric
from vtax.model.study import BenchmarkSpec
from vtax.tools.command.benchmark import Command
from vtax.tools.command.checks import mistakes
from vtax.tools.command.params import CommandParams


class Workload(Command):
    """A tool's entries: `metrics` are those of its reader, and `group` is the part of the machine that it measures.

    `programs` are those of the base image that they need besides; `facts` are those of its reader that rows of the
    audit ask for which are about every tool that reports them.
    """

    def __init__(
        self,
        name: str,
        group: str,
        metrics: tuple[Metric, ...],
        programs: tuple[str, ...] = (),
        facts: tuple[str, ...] = (),
    ) -> None:
        self.name, self.group, self.metrics = name, group, metrics
        self.requires = (*Command.requires, *programs)
        self.facts = facts

    def metrics_of(self, params: Mapping[str, JsonValue]) -> tuple[Metric, ...]:
        """Those of an entry; those of the reader for a log, whose parameters are not those of a command."""
        return super().metrics_of(params) if "metrics" in params else self.metrics

    def mistakes(self, params: CommandParams, spec: BenchmarkSpec, *, workload: bool) -> Iterable[Mistake]:
        return mistakes(params, spec, workload=workload)
