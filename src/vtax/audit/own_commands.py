"""W: what could not be counted of own commands from outside in every environment."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.campaign import Evidence
from vtax.evidence.outside import asked
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity
from vtax.model.outside import MEMORY_PEAK

NOT_ASKED = "no entry asks for it"


def _absent(evidence: Evidence, *, memory: bool) -> Iterator[Result]:
    """What was asked for in each entry, all of it or the reasons why it has no metric."""
    wanted: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for trial, name in asked(evidence.plan, evidence.trials):
        if (name == MEMORY_PEAK) == memory:
            lacking = "" if name in trial.outside else trial.not_outside.get(name, "it was not counted")
            wanted.setdefault((trial.label, name), []).append((trial.environment, lacking))
    for (label, name), runs in wanted.items():
        reasons = sorted({f"{environment}: {lacking}" for environment, lacking in runs if lacking})
        if reasons:
            message = f"{label} has no {name} in any environment, because not all could count it; {'; '.join(reasons)}"
            yield Failed(message, entry=label, metrics=(name,))
        else:
            yield f"{label}: {name} was counted in every run"


def _any(evidence: Evidence, *, memory: bool) -> str:
    known = (name == MEMORY_PEAK for _, name in asked(evidence.plan, evidence.trials))
    return "" if any(one == memory for one in known) else NOT_ASKED


@row(
    "W03",
    Severity.INFO,
    "the memory's peak was not counted in every environment",
    short="no peak of the memory",
    why="a peak that some environments lack has no counterpart there, and a mark of earlier runs would be wrong",
    remedy="run vtax as root; guests need Linux 6.12, and a run on one node; `max_rss` is there in all",
    source="control groups of the nodes, and of all programs of a guest, whose peak begins anew with each run",
    applies=lambda evidence: _any(evidence, memory=True),
    whole=True,
)
def memory_peak(evidence: Evidence) -> Iterator[Result]:
    """W03: the largest use of memory by the nodes, during each run."""
    yield from _absent(evidence, memory=True)


@row(
    "W04",
    Severity.WARNING,
    "an event that the study asks for was not counted in every environment",
    short="events that were not counted",
    why="an event that one environment cannot count has no counterpart there: a zero in its place, or what other "
    "processes did, would be a wrong number",
    remedy="choose events that all environments count (those of the kernel, such as context-switches), run vtax as "
    "root, or a machine whose processors count events for guests of a hypervisor too",
    source="perf_event_open on the control groups of nodes and the processes of machines, from outside",
    applies=lambda evidence: _any(evidence, memory=False),
    whole=True,
)
def events(evidence: Evidence) -> Iterator[Result]:
    """W04: the events of `perf`, during each run."""
    yield from _absent(evidence, memory=False)
