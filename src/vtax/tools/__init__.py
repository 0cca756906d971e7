"""The benchmarks that vtax knows, by name. A new one is a file here, a line below and a folder of recorded outputs.

Third parties add theirs through the entry point group `vtax.benchmarks`; one that cannot be loaded is reported and
left out, the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from vtax.errors import PLUGIN_FAILURES
from vtax.tools.benchmark import Benchmark

BUILT_IN = {
    "hpcc": "vtax.tools.hpcc.benchmark:Hpcc",
    "hpl": "vtax.tools.hpcc.hpl:Hpl",
    "sysbench-cpu": "vtax.tools.sysbench.benchmark:SysbenchCpu",
    "sysbench-memory": "vtax.tools.sysbench.benchmark:SysbenchMemory",
    "sysbench-fileio": "vtax.tools.sysbench.benchmark:SysbenchFileio",
    "stress-ng": "vtax.tools.stress_ng.benchmark:StressNg",
    "iozone": "vtax.tools.iozone.benchmark:Iozone",
    "iperf3": "vtax.tools.iperf3.benchmark:Iperf3",
    "ping": "vtax.tools.ping.benchmark:Ping",
}
GROUP = "vtax.benchmarks"


@cache
def _found() -> tuple[Mapping[str, Benchmark], tuple[str, ...]]:
    known: dict[str, Benchmark] = {}
    for name, place in BUILT_IN.items():
        module, attribute = place.split(":")
        known[name] = cast(Benchmark, getattr(import_module(module), attribute)())
    broken = []
    for entry in entry_points(group=GROUP):
        try:
            benchmark = cast(Benchmark, entry.load()())
            for attribute in Benchmark.__annotations__:
                getattr(benchmark, attribute)  # or it would fail later, for everybody
            known.setdefault(benchmark.name, benchmark)
        except PLUGIN_FAILURES as error:
            broken.append(f"plug-in {entry.name} ({entry.value}) is left out: {type(error).__name__}: {error}")
    return known, tuple(broken)


def benchmarks() -> Mapping[str, Benchmark]:
    """Every benchmark by its name."""
    return _found()[0]


def packages() -> tuple[str, ...]:
    """The Debian packages of the benchmarks, each once."""
    return tuple(dict.fromkeys(package for one in benchmarks().values() if (package := getattr(one, "package", ""))))


def broken_plugins() -> tuple[str, ...]:
    """One sentence for each plug-in that could not be loaded."""
    return _found()[1]
