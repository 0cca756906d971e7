"""P01: whether clients of pgbench wait for each other's rows."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.alike import A_NOTE, Condition, judged
from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Result, row
from vtax.model.finding import Severity
from vtax.tools.pgbench.reader import READS_ONLY


@row(
    "P01",
    Severity.WARNING,
    "pgbench has fewer branches than clients",
    short="scale below clients",
    why="every TPC-B-like transaction updates one of as many branches as the scale says: with more clients than "
    "branches they wait for each other's locks, and the rate is that of the waiting",
    remedy="a scale of at least the number of clients, better ten times that",
    source="the scaling factor and the number of clients that pgbench prints",
    note=A_NOTE,
    benchmarks=("pgbench",),
    needs=Needs("the scale and the clients of pgbench", facts=("scale",)),
)
def scale(evidence: Evidence) -> Iterator[Result]:
    """P01: the scale against the clients; scripts that only read do not wait."""
    found = {}
    for key, trials in evidence.entries().items():
        for facts in evidence.facts(trials, "scale", "clients", "script"):
            short = facts["scale"] < facts["clients"] and facts["script"] != READS_ONLY
            if short or key not in found:
                found[key] = Condition(f"a scale of {facts['scale']} for {facts['clients']} clients", short)
    yield from judged(evidence, found, Severity.WARNING)
