"""X01: whether enough was copied to tell."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity

FEWEST_BYTES = 64 * 2**20


@row(
    "X01",
    Severity.WARNING,
    "dd copied less than 64 MiB",
    short="too little copied",
    why="starting dd then takes a large part of the time",
    remedy="raise `blocks`",
    source="the last line of dd",
    benchmarks=("dd",),
    needs=Needs("how much dd copied", facts=("copied_bytes",)),
)
def too_little(evidence: Evidence) -> Iterator[Result]:
    for (environment, label), trials in evidence.entries().items():
        least = min(facts["copied_bytes"] for facts in evidence.facts(trials, "copied_bytes"))
        if least < FEWEST_BYTES:
            yield Failed(f"{label} in {environment} copied {least} bytes", environment, label)
        else:
            yield f"{label} in {environment}: at least {least} bytes"
