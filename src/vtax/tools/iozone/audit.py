"""D01: whether iozone's numbers are bytes or operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vtax.evidence.campaign import Evidence, shown
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import Status
from vtax.tools.iozone.reader import OPS, UNKNOWN


@row(
    "D01",
    Severity.BLOCKER,
    "iozone's operations per second read as kB/s",
    short="a misread unit of iozone",
    why="the same table holds either, and only the line above it says which",
    remedy="keep iozone's header with its table; without it the unit is unknown and stays so",
    source="the line above iozone's table, and its command line",
    benchmarks=("iozone",),
)
def unit(evidence: Evidence) -> Iterator[Result]:
    """D01: what the numbers of iozone are."""
    entries: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    problems: dict[tuple[str, str], str] = {}
    for trial in evidence.trials:
        if trial.benchmark == "iozone" and trial.status is not Status.NOT_RUN and not trial.warmup:
            where, known = (trial.environment, trial.label), evidence.facts((trial,), "unit")
            entries.setdefault(where, []).extend(known)
            for why in (
                facts.get("unit_problem", "its header is missing") for facts in known if facts["unit"] == UNKNOWN
            ):
                problems.setdefault(where, f"{evidence.name_of(trial)}: {why}")
    for (environment, label), several in entries.items():
        units, of = sorted({str(facts["unit"]) for facts in several}), f"{label} in {environment}"
        by_command = any("-O" in str(facts.get("invoked", "")).split() for facts in several)
        if not units:
            yield Undecided(f"{of}: its output is missing", environment, label)
        elif UNKNOWN in units:
            message = f"tables of {of} have no unit and are not used ({problems[environment, label]})"
            yield Failed(message, environment, label)
        elif by_command and OPS not in units:
            yield Failed(f"{of} ran with -O, and its table says {shown(units)}", environment, label)
        elif len(units) > 1:
            yield Failed(f"{of} mixes {shown(units)}", environment, label)
        elif evidence.plan.origin is Origin.IMPORTED and OPS in units:
            message, remedy = f"{of} is in operations a second (-O), not kB/s: read as such", "leave -O out to get kB/s"
            yield Failed(message, environment, label, Severity.INFO, remedy)
        else:
            yield f"{of}: {shown(units)}"
