"""C10: how much of what trials seem to cost the machine is its own background."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from vtax.evidence.campaign import Evidence
from vtax.evidence.machine_cost import SHORTEST_S, measured_steps, spent_on
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.evidence.stolen import TICKS_S
from vtax.model.cluster import CellRecord
from vtax.model.finding import Severity
from vtax.model.machine_cost import MACHINE_METRICS
from vtax.model.trial import TrialRecord

LARGE = 0.1  # of what the machine spent during a run


@row(
    "C10",
    Severity.WARNING,
    "the machine's own background is more than a tenth of what runs cost it",
    short="background in the machine's CPU time",
    why="what runs on the machine anyway is in its CPU time and energy, in all environments alike: the numbers are "
    "larger than those of the work alone, and their ratios nearer to 1",
    remedy="stop what else runs, or take the machine's CPU time as an upper bound; nothing is subtracted",
    source="the CPU time of the machine while a new cluster settles and nothing of vtax runs, next to that while the "
    "measured commands run",
    applies=lambda evidence: not_counted(evidence),
    note="what an idle cluster itself needs, such as a guest's timers, is part of this background too",
)
def background(evidence: Evidence) -> Iterator[Result]:
    """C10: CPUs in use while a cluster is idle, and during the runs of each entry."""
    for (environment, label), trials in evidence.entries().items():
        where, cells = f"{label} in {environment}", evidence.provisioned
        idle = [used for cell in cells if cell.environment == environment and (used := idle_cpus(cell)) is not None]
        spent = [used for trial in trials if (used := used_cpus(evidence, trial)) is not None]
        if not spent:
            yield f"{where}: shorter than {SHORTEST_S:g} s, or not counted"
        elif not idle:
            message = f"{where}: not recorded: what the machine does while a cluster is idle"
            yield Undecided(message, environment, label, metrics=tuple(sorted(MACHINE_METRICS)))
        else:
            share = median(idle) / median(spent)
            said = f"{where}: {median(spent):.2f} CPUs in use, {median(idle):.2f} with an idle cluster ({share:.0%})"
            if share > LARGE:
                yield Failed(said, environment, label, metrics=tuple(sorted(MACHINE_METRICS)))
            else:
                yield said


def not_counted(evidence: Evidence) -> str:
    """Why runs have no cost to this machine; "" when they have."""
    if elsewhere := [name for name in evidence.environments if evidence.capabilities(name).away]:
        return f"the nodes of {elsewhere[0]} are elsewhere, so no entry has such metrics"
    return "" if any(one.step_counters for one in evidence.trials) else "no run counted its cost"


def idle_cpus(cell: CellRecord) -> float | None:
    """CPUs in use on average while a new cluster settled; None where that was not recorded."""
    idle = cell.idle
    if not idle.get("seconds") or not {"busy_ticks", "steal_ticks"} <= idle.keys():
        return None
    return (idle["busy_ticks"] - idle["steal_ticks"]) / TICKS_S / idle["seconds"]


def used_cpus(evidence: Evidence, trial: TrialRecord) -> float | None:
    """CPUs in use on average during the measured steps of a run; None where they were too short."""
    reading = evidence.readings.get(trial.id)
    steps = [step for several, _ in measured_steps(trial, reading) for step in several] if reading else []
    spent = spent_on(trial, steps)
    return spent.cpu_s / spent.seconds if spent and spent.seconds >= SHORTEST_S and spent.cpu_s > 0 else None
