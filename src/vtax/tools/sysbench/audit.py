"""S03: whether the numbers of sysbench are of the same work."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.evidence.settings import alone, differing, sentences, settings_of
from vtax.model.finding import Severity

BENCHMARKS = ("sysbench-cpu", "sysbench-memory", "sysbench-fileio")


@row(
    "S03",
    Severity.BLOCKER,
    "sysbench of another version, or with other settings",
    short="other settings of sysbench",
    why="0.x counts other things under the same names, and events of another prime limit or block size are other work; "
    "1.x runs for a time, so its total time is constant",
    remedy="fix one version and one set of options, and compare events per second",
    source="sysbench's banner and its list of options",
    benchmarks=BENCHMARKS,
    needs=Needs("the version and the options of sysbench", facts=("sysbench_version",)),
)
def settings(evidence: Evidence) -> Iterator[Result]:
    """S03: whether every environment ran the same sysbench."""
    known = settings_of(evidence, "sysbench_version")
    for (environment, label), each in known.items():
        if any(version.startswith("0.") for version in each["version"].split(", ")):
            yield Failed(f"{label} in {environment} is sysbench {each['version']}", environment, label)
    yield from differing(evidence, known)
    for benchmark in BENCHMARKS:
        yield from alone(evidence, benchmark)
    yield from sentences(known)
