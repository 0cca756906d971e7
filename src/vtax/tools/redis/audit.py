"""B01: whether servers keep their data alike."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.alike import same
from vtax.evidence.campaign import Evidence, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Result, row
from vtax.model.finding import Severity


@row(
    "B01",
    Severity.BLOCKER,
    "a server keeps its data in another way",
    short="other persistence",
    why="a server that writes its data to disk does other work than one that keeps them in memory",
    remedy="give every server the same settings for snapshots, logs and flushes, and compare again",
    source="what a client prints about the configuration of its server",
    benchmarks=("redis-benchmark",),
    needs=Needs("what the server says about persistence", facts=("persistence",)),
)
def persistence(evidence: Evidence) -> Iterator[Result]:
    """B01: whether servers persist alike."""
    known = {
        entry: shown(list(dict.fromkeys(str(facts["persistence"]) for facts in evidence.facts(trials, "persistence"))))
        for entry, trials in evidence.entries().items()
    }
    yield from same(evidence, known)
