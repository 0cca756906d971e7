"""K01: how the processes were scheduled that a tool measures with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vtax.audit.subjects import reporting
from vtax.evidence.alike import same
from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity

POLICY = "policy"
USUAL = "SCHED_OTHER"


@row(
    "K01",
    Severity.BLOCKER,
    "another scheduling policy, or not on one CPU, in some environments only",
    short="unequal scheduling",
    why="a real-time process wakes up before all others; a switch between two CPUs is a message, not a switch",
    remedy="start it with the same policy everywhere, and let it choose its CPU (sched_setaffinity)",
    source="what the program says of itself, or chrt of the process that becomes it",
    note="a note where all environments have it alike, and it is not the usual policy, or not on one CPU where the "
    "program chooses one",
    benchmarks=reporting(POLICY),
    needs=Needs("the scheduling policy of the process", facts=(POLICY,)),
)
def scheduling(evidence: Evidence) -> Iterator[Result]:
    """K01: the policy that was obtained, and whether the process stayed on one CPU."""
    ways: dict[tuple[str, str], str] = {}
    unusual: set[tuple[str, str]] = set()
    for key, trials in evidence.entries().items():
        several = dict.fromkeys(_way(facts) for facts in evidence.facts(trials, POLICY))
        ways[key] = " or ".join(several)
        if any(not one.startswith(USUAL) or one.endswith("any CPU") for one in several):
            unusual.add(key)
    results = list(same(evidence, ways))
    unequal = {one.entry for one in results if isinstance(one, Failed)}
    yield from (one for one in results if isinstance(one, Failed))
    for name, label in ways:
        if label not in unequal:
            said = f"{label} in {name}: {ways[name, label]}"
            yield Failed(said, name, label, Severity.INFO) if (name, label) in unusual else said


def _way(facts: Mapping[str, Any]) -> str:
    where = {True: ", on one CPU", False: ", on any CPU"}.get(facts.get("pinned", ""), "")
    return f"{facts[POLICY]}{where}"
