"""M08: whether the same program starts the ranks in every environment."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.audit.subjects import MPI
from vtax.evidence.campaign import Evidence, against_first, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.launchers import COMMANDS, started
from vtax.model.finding import Severity
from vtax.model.plan import Origin


@row(
    "M08",
    Severity.WARNING,
    "ranks are started by another launcher than in the baseline",
    short="another launcher of ranks",
    why="a launcher decides how long a start takes, which environment variables ranks see, and by what they find each "
    "other: a part of any difference may be the launcher and not virtualization",
    remedy="use one launcher everywhere (leave `launcher` out), or add the host with the other one as an environment "
    "of its own, so that both steps are measured alone",
    source="the command line of the launcher",
    benchmarks=MPI,
    needs=Needs("the command line of the launcher", programs=COMMANDS, origin=Origin.RUN),
)
def launcher(evidence: Evidence) -> Iterator[Result]:
    """M08: what started the ranks of every entry."""
    used: dict[tuple[str, str], str] = {}
    for (environment, label), trials in evidence.entries().items():
        commands = (started(step.argv) for trial in trials for step in trial.steps)
        if known := {command.launcher for command in commands if command}:
            used[environment, label] = shown(sorted(known))
    for environment, label, theirs, first, ours in against_first(evidence, used):
        yield Failed(f"{label}: {theirs} in {environment}, {ours} in {first}", environment, label)
    yield from (f"{label} in {environment}: {name}" for (environment, label), name in used.items())
