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

ASKED = "-+m"


@row(
    "D09",
    Severity.WARNING,
    "iozone's distributed mode, with one client",
    short="one client of a distributed test",
    why="the option (-+m) says that several nodes took part; with one process the figures are of one client, whatever "
    "the run is called",
    remedy="give -t as many processes as the file of -+m has lines, on different nodes",
    source='the line "Network distribution mode enabled." and the number of processes of throughput mode',
    note="vtax's own: entries of imported logs are called by their options, so the label repeats the claim",
    benchmarks=("iozone",),
    about=lambda trial: bool(trial.params.get("distributed")),
)
def one_client(evidence: Evidence) -> Iterator[Result]:
    """D09: a run that is called distributed and had one process."""
    for (environment, label), trials in evidence.entries("iozone").items():
        counts = {
            int(one.labels["processes"])
            for trial in trials
            for one in evidence.measured.get(trial.id, ())
            if one.labels.get("processes", "").isdecimal()
        }
        clients = max(counts, default=0 if trials[0].params.get("mode") == "throughput" else 1)
        ranks = max((int(n) for trial in trials if isinstance(n := trial.params.get("ranks"), int)), default=1)
        if clients > 1 or ranks > 1:
            yield f"{label} in {environment}: {max(clients, ranks)} processes"
        elif clients == 1:
            message = f"{label} in {environment} ran in iozone's distributed mode ({ASKED}) with one client"
            yield Failed(message, environment, label)
        else:
            yield Undecided(f"{label} in {environment}: not recorded: the number of clients", environment, label)


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
