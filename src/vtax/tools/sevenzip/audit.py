"""Z01 and Z02: threads of 7-Zip that waited for CPUs, and data that fit into a cache."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.alike import A_NOTE, Condition, judged
from vtax.evidence.campaign import Evidence, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Result, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin

WHOLE = 0.9  # of a CPU for every thread: below it, threads waited
ABOUT = ("sevenzip",)


@row(
    "Z01",
    Severity.WARNING,
    "threads of 7-Zip had less than 90 % of a CPU",
    short="threads waited for CPUs",
    why="its speeds are by the clock, so they include the time in which other programs, or its own threads, had it",
    remedy="use no more threads than the node has CPUs (-mmt), and let nothing else run",
    source="the usage that 7-Zip prints, over its threads",
    note=A_NOTE,
    benchmarks=ABOUT,
    needs=Needs("the usage of the CPU", facts=("cpu_share",)),
)
def waited(evidence: Evidence) -> Iterator[Result]:
    """Z01: the share of a CPU that every thread had."""
    found = {}
    for key, trials in evidence.entries().items():
        shares = sorted(facts["cpu_share"] for facts in evidence.facts(trials, "cpu_share"))
        middle = shares[len(shares) // 2]
        found[key] = Condition(f"each of its threads had {100 * middle:.0f} % of a CPU", middle < WHOLE)
    yield from judged(evidence, found, Severity.WARNING)


@row(
    "Z02",
    Severity.WARNING,
    "7-Zip's data fit into the last cache",
    short="data within a cache",
    why="then memory is not part of the rating, and a smaller share of a cache weighs more than usual",
    remedy="use a larger dictionary (-md22 and more)",
    source="the RAM usage that 7-Zip prints, against the last cache of the nodes' CPUs",
    note=A_NOTE,
    benchmarks=ABOUT,
    needs=Needs(
        "7-Zip's RAM usage, and the last cache", node=("last_cache_bytes",), facts=("ram_bytes",), origin=Origin.RUN
    ),
)
def within_cache(evidence: Evidence) -> Iterator[Result]:
    """Z02: what 7-Zip works on, against the largest last cache of a node."""
    found = {}
    for (environment, label), trials in evidence.entries().items():
        used = min(facts["ram_bytes"] for facts in evidence.facts(trials, "ram_bytes"))
        nodes = {name for trial in trials for name in trial.nodes}
        known = values_of(evidence, environment, "last_cache_bytes")
        sizes = [int(size) for node, several in known.items() if node in nodes for size in several]
        if sizes:
            said = f"{used / 2**20:.0f} MiB of data, where the last cache has {max(sizes) / 2**20:.3g} MiB"
            found[environment, label] = Condition(said, used <= max(sizes))
    yield from judged(evidence, found, Severity.WARNING)
