"""The tools that vtax knows: a folder each, and a line below. What they measure with are their benchmarks.

Third parties add theirs through the entry point group `vtax.tools`, which names a `Tool`; one that cannot be loaded is
reported and left out, the others go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from vtax.errors import PLUGIN_FAILURES

if TYPE_CHECKING:
    from pydantic import JsonValue

    from vtax.model.metric import Metric
    from vtax.model.study import BenchmarkSpec
    from vtax.tools.benchmark import Benchmark
    from vtax.tools.tool import LogFormat, Tool

BUILT_IN = (
    "vtax.tools.hpcc",
    "vtax.tools.sysbench",
    "vtax.tools.stress_ng",
    "vtax.tools.iozone",
    "vtax.tools.iperf3",
    "vtax.tools.ping",
    "vtax.tools.startup",
    "vtax.tools.stream",
    "vtax.tools.gups",
    "vtax.tools.intel_linpack",
    "vtax.tools.nuttcp",
    "vtax.tools.osu",
    "vtax.tools.imb",
    "vtax.tools.command",
    "vtax.tools.fio",
    "vtax.tools.redis",
    "vtax.tools.pgbench",
    "vtax.tools.wrk",
    "vtax.tools.memcslap",
    "vtax.tools.kernel_paths",
    "vtax.tools.mpi_messages",
    "vtax.tools.sockperf",
    "vtax.tools.netperf",
    "vtax.tools.hackbench",
    "vtax.tools.sevenzip",
    "vtax.tools.openssl_speed",
)
GROUP = "vtax.tools"


@dataclass(frozen=True, eq=False)
class Registry:
    """The tools that were found, what is said of plug-ins that could not be loaded, and the formats by their names."""

    tools: tuple[Tool, ...]
    broken: tuple[str, ...]
    formats: Mapping[str, LogFormat]


@cache
def _found() -> Registry:
    known: list[Tool] = [import_module(place).TOOL for place in BUILT_IN]
    broken = []
    for entry in entry_points(group=GROUP):
        try:
            tool = _checked(entry.load())
            taken = {name for other in known for name in (other.name, *(one.name for one in other.benchmarks))}
            if not taken & {tool.name, *(one.name for one in tool.benchmarks)}:
                known.append(tool)
        except PLUGIN_FAILURES as error:
            broken.append(f"plug-in {entry.name} ({entry.value}) is left out: {type(error).__name__}: {error}")
    formats: dict[str, LogFormat] = {}
    for one in (one for tool in known for one in tool.logs):
        formats.setdefault(one.name, one)  # built-in ones come first
    return Registry(tuple(known), tuple(broken), formats)


def _checked(loaded: object) -> Tool:
    """What an entry point names, complete: what it lacks would fail later, for everyone."""
    from vtax.tools.benchmark import ATTRIBUTES
    from vtax.tools.tool import Tool

    if not isinstance(loaded, Tool):
        raise TypeError(f"{loaded!r} is not a vtax.tools.tool.Tool")
    for benchmark in loaded.benchmarks:
        for attribute in ATTRIBUTES:
            getattr(benchmark, attribute)
    loaded.audit()
    loaded.figures()
    return loaded


def tools() -> tuple[Tool, ...]:
    """Every tool, those of vtax first."""
    return _found().tools


def benchmarks() -> Mapping[str, Benchmark]:
    """Every benchmark by its name."""
    return {benchmark.name: benchmark for tool in tools() for benchmark in tool.benchmarks}


def tool_of(benchmark: str) -> Tool | None:
    """The tool that has a benchmark of this name; None when none has."""
    return next((tool for tool in tools() if any(one.name == benchmark for one in tool.benchmarks)), None)


def alike(benchmark: str, metric: str) -> frozenset[str]:
    """The benchmarks whose figures of a metric may be compared with those of `benchmark`, itself among them."""
    tool = tool_of(benchmark)
    if tool is None or metric not in tool.same_work:
        return frozenset({benchmark})
    return frozenset(one.name for one in tool.benchmarks if any(own.name == metric for own in one.metrics))


def log_formats() -> Mapping[str, LogFormat]:
    """Every format of logs by its name."""
    return _found().formats


def registry() -> Registry:
    """All that is known, the same object until plug-ins are looked for again."""
    return _found()


def versions() -> Mapping[str, str]:
    """Fact of a log -> the package whose version it is."""
    return {fact: package for tool in tools() for fact, package in tool.versions.items()}


def packages() -> tuple[str, ...]:
    """The Debian packages of all tools, each once."""
    return tuple(dict.fromkeys(package for tool in tools() for package in tool.packages))


def programs() -> tuple[str, ...]:
    """The programs of all tools that the root file system must have, each once."""
    return tuple(dict.fromkeys(program for tool in tools() for program in tool.programs))


def hashed() -> tuple[str, ...]:
    """The programs of all tools whose contents are recorded, each once."""
    return tuple(dict.fromkeys(program for tool in tools() for program in tool.hashed))


def commands() -> tuple[str, ...]:
    """The names under which programs of tools are started, in logs of others too."""
    return tuple(dict.fromkeys(name for tool in tools() for name in (*tool.programs, *tool.commands)))


def metrics_of(benchmark: str, params: Mapping[str, JsonValue]) -> tuple[Metric, ...]:
    """The metrics that an entry with these parameters may report; none of a benchmark that is not known here."""
    known = benchmarks().get(benchmark)
    if known is None:
        return ()
    by_entry = getattr(known, "metrics_of", None)
    found: tuple[Metric, ...] = known.metrics if by_entry is None else by_entry(params)
    return found


def declared_metrics(entries: Iterable[BenchmarkSpec]) -> dict[str, tuple[Metric, ...]]:
    """The metrics that entries of a study may report, by their labels."""
    return {spec.label: metrics_of(spec.name, spec.params) for spec in entries}


def broken_plugins() -> tuple[str, ...]:
    """One sentence for each plug-in that could not be loaded."""
    return _found().broken
