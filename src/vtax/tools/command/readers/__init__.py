"""Ready-made readers by name: formats of other programs, and the logs of every tool that vtax knows."""

from __future__ import annotations

from vtax.model.metric import Metric
from vtax.tools import log_formats, tools
from vtax.tools.command.readers.bmf import BMF
from vtax.tools.command.readers.google_benchmark import GOOGLE_BENCHMARK
from vtax.tools.command.readers.hyperfine import HYPERFINE
from vtax.tools.command.readers.openmetrics import OPENMETRICS
from vtax.tools.command.readers.pyperf import PYPERF
from vtax.tools.command.readers.pytest_benchmark import PYTEST_BENCHMARK
from vtax.tools.command.readers.reader import Reader, Wanted, Wants
from vtax.tools.reading import Reading, Section

__all__ = ["READERS", "Reader", "Wanted", "Wants", "reader_names", "reader_of"]

READERS = {one.name: one for one in (HYPERFINE, PYPERF, BMF, OPENMETRICS, GOOGLE_BENCHMARK, PYTEST_BENCHMARK)}


def reader_names() -> tuple[str, ...]:
    """The names of all readers, sorted; those of logs come from the tools."""
    return tuple(sorted({*READERS, *log_formats()}))


def reader_of(name: str) -> Reader | None:
    """The reader of a name; None when there is none."""
    if name in READERS:
        return READERS[name]
    tool = next((tool for tool in tools() if any(known.name == name for known in tool.logs)), None)
    if tool is None:
        return None
    known = log_formats()[name]
    metrics: dict[str, Metric] = {}
    for benchmark in tool.benchmarks:
        for metric in benchmark.metrics:
            metrics.setdefault(metric.name, metric)

    def read(section: Section, _wants: Wants) -> Reading:
        return (known.essential or known.read)(section)

    return Reader(name, read, tuple(metrics.values()))
