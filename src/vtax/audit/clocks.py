"""O03, O04: whether a second inside a node is a second outside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vtax.audit.subjects import ran
from vtax.evidence.campaign import Evidence, differences, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord

DRIFT = 500e-6  # of the time that passed
STEP_S = 0.1  # by which the wall clock and the time since the boot part when the clock is set
WRONG = 0.01  # of a run's time
COARSE_S = 1e-6  # message latencies are of microseconds


@row(
    "O03",
    Severity.BLOCKER,
    "the clock source differs, a clock runs at another speed than the host's, or MPI's timer is too coarse",
    short="unequal clocks",
    why="every rate is a count divided by a time: a clock that is 1 % slow makes a guest 1 % faster",
    remedy="give the guest a stable clock (kvm-clock, invariant TSC), and pause the host's NTP during the campaign",
    source="the node's and the host's clocks before and after every trial, and within trials alone where clusters are "
    "paused between them, since the clock of a paused guest stands still and is then set; nodes under the host's own "
    "kernel have its clock; the tick of MPI's timer where a tool prints it",
    note="a drift is proven only beyond the doubt with which two clocks can be read; unknown only where even 1 % could "
    "hide in that doubt",
    needs=(
        Needs("the clocks of its nodes and of the host, read together", origin=Origin.RUN),
        Needs("the tick of MPI's timer", facts=("MPI_Wtick",), each="environment", origin=Origin.IMPORTED),
    ),
)
def clock(evidence: Evidence) -> Iterator[Result]:
    """O03: clock sources, drift between node and host, clocks that were set, and the timer of MPI."""
    yield from mpi_timer(evidence)
    for one in differences(evidence, "clock_source"):
        message = f"the clock source is {shown(one.theirs)} in {one.environment} and {shown(one.reference)} in "
        message += f"{one.base}: reading the time costs more in one of them, and may be less exact"
        remedy = "give the guest a stable TSC, and compare times with those taken outside"
        yield Failed(message, one.environment, severity=Severity.WARNING, remedy=remedy, against=one.base)
    for environment in evidence.environments if evidence.plan.origin is Origin.RUN else ():
        if set_by := steps(evidence, environment):
            yield Failed(f"the clock of {environment} was set by {set_by:.2f} s during a trial", environment)
        if of_the_host(evidence, environment):
            yield f"{environment} runs under the host's kernel and has its clock"
            continue
        drifts = [found for trials in by_cell(evidence, environment) for found in drift(evidence, trials)]
        if not drifts:
            yield Undecided(f"{environment}: not recorded: the clocks of its nodes and of the host", environment)
            continue
        proven = max(abs(rate) - doubt for rate, doubt in drifts)
        rate, doubt = min(drifts, key=lambda found: found[1])
        said = f"{environment}: the clock of a node gains {rate * 1e6:+.0f} ± {doubt * 1e6:.0f} ppm on the host's"
        if proven > DRIFT:
            yield Failed(said, environment)
        elif abs(rate) + doubt > WRONG:
            yield Undecided(f"{said}: cells are too short to tell drift from delay", environment)
        else:
            yield said


def mpi_timer(evidence: Evidence) -> Iterator[Result]:
    """A timer of MPI that is too coarse for what was timed, or differs from the reference's."""
    ticks = evidence.values_by_environment("MPI_Wtick")
    for environment, theirs in ticks.items():
        ours, coarsest = ticks.get(evidence.reference, theirs), max(map(float, theirs))
        said = f"MPI's timer in {environment} ticks every {coarsest:g} s"
        for benchmark in evidence.benchmarks_with("MPI_Wtick", environment):
            if coarsest > COARSE_S:
                message, remedy = f"{said}: latencies of microseconds are below it", "use an MPI with a finer timer"
                yield Failed(message, environment, benchmark, Severity.WARNING, remedy)
            elif set(theirs) != set(ours):
                message = f"{said}, in {evidence.reference} every {shown(ours)} s"
                yield Failed(message, environment, benchmark, Severity.WARNING, "use one MPI")
            else:
                yield said


def of_the_host(evidence: Evidence, environment: str) -> bool:
    """Whether all its nodes run under the kernel of the machine that vtax ran on: by the number of its boot."""
    boots = {str(value) for values in values_of(evidence, environment, "boot_id").values() for value in values}
    cells = [cell for cell in evidence.cells if cell.environment == environment]
    machines = [facts for cell in cells for facts in (cell.host_facts, *cell.machine_facts.values())]
    host = {str(facts.get("boot_id", "")) for facts in machines}
    return bool(boots) and boots <= host


def by_cell(evidence: Evidence, environment: str) -> list[list[TrialRecord]]:
    """The trials of every cell of an environment that have counters, in the order of time."""
    cells: dict[str, list[TrialRecord]] = {}
    for trial in sorted(evidence.trials, key=lambda one: one.started):
        if trial.environment == environment and evidence.counters.get(trial.id):
            cells.setdefault(trial.cell, []).append(trial)
    return list(cells.values())


def drift(evidence: Evidence, trials: list[TrialRecord]) -> Iterator[tuple[float, float]]:
    """(drift, its uncertainty), as shares of the time between them, of every node from its first reading in a cell to
    its last; where the cluster was paused between its trials, within these alone: its clock stood still meanwhile, and
    was set."""
    for node in dict.fromkeys(node for trial in trials for node in evidence.counters[trial.id]):
        readings = [
            (trial.started + trial.elapsed_s, counted)
            for trial in trials
            if {"clock_offset_s", "clock_doubt_s", "host_clock_s"}
            <= (counted := evidence.counters[trial.id].get(node, {})).keys()
        ]
        if not readings:
            continue
        if any(trial.pause for trial in trials):
            yield within([counted for _, counted in readings])
            continue
        (began, first), (ended, last) = readings[0], readings[-1]
        if first is last:
            passed, gained = last["host_clock_s"], last.get("clock_s", 0.0) - last["host_clock_s"]
        else:
            passed, gained = ended - began, last["clock_offset_s"] - first["clock_offset_s"]
        if passed > 0:
            yield gained / passed, (first["clock_doubt_s"] + last["clock_doubt_s"]) / passed


def within(readings: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """Drift and its uncertainty over several trials together. The errors of their readings are independent, and each is
    anywhere in its range: twice the root of the squares of these ranges is more than three standard deviations."""
    passed = sum(counted["host_clock_s"] for counted in readings)
    gained = sum(counted.get("clock_s", counted["host_clock_s"]) - counted["host_clock_s"] for counted in readings)
    doubts = [counted["clock_doubt_s"] for counted in readings]
    doubt = min(sum(doubts), 2 * math.hypot(*doubts))
    return (gained / passed, doubt / passed) if passed > 0 else (0.0, math.inf)


def steps(evidence: Evidence, environment: str) -> float:
    """The largest difference between the wall clock and the time since the boot over one trial, beyond 0.1 s and what
    may pass between reading the one and the other."""
    gaps = [
        (abs(counted["clock_s"] - counted["uptime_s"]), 2 * counted.get("clock_doubt_s", 0.0))
        for trial in evidence.trials
        if trial.environment == environment
        for counted in evidence.counters.get(trial.id, {}).values()
        if {"clock_s", "uptime_s"} <= counted.keys()
    ]
    return max((gap for gap, between in gaps if gap > STEP_S + between), default=0.0)


@dataclass(frozen=True)
class Timed:
    """The same time on a node's clock and outside, and how far apart both may be found though they are equal."""

    inside_s: float
    outside_s: float
    doubt_s: float

    @property
    def apart_s(self) -> float:
        return abs(self.inside_s - self.outside_s)

    @property
    def wrong(self) -> bool:
        """Whether they differ, however they were read."""
        return self.apart_s > self.doubt_s and self.apart_s > WRONG * self.outside_s

    @property
    def agrees(self) -> bool:
        """Whether they are equal, and a difference would have been seen."""
        return self.doubt_s <= WRONG * self.outside_s and self.apart_s <= WRONG * self.outside_s


@row(
    "O04",
    Severity.BLOCKER,
    "a tool's own time and the time outside disagree",
    short="times that disagree",
    why="then time inside the node is not real time, and every figure of it is wrong by that factor",
    remedy="check the node's clock (O03); pause nothing while it measures",
    source="the node's clock and the host's around every trial, and the time that tools report, against the time of "
    "their command outside; nodes under the host's "
    "own kernel have its clock; a log has one side only",
    needs=Needs("times inside and outside", origin=Origin.RUN),
    about=ran,
    note="unknown where 1 % could hide in the doubt with which times are known: trials of some seconds in an emulated "
    "machine, whose answers take long, are too short for it",
)
def elapsed(evidence: Evidence) -> Iterator[Result]:
    """O04: more time inside than outside, or clocks that part during a trial."""
    for (environment, label), trials in evidence.entries().items():
        times = [each for trial in trials for each in (*reported(evidence, trial), *clocks(evidence, trial))]
        wrong = [each for each in times if each.wrong]
        agreeing = sum(each.agrees for each in times)
        if wrong:
            worst = max(wrong, key=lambda each: each.apart_s)
            message = f"{label} in {environment}: {worst.inside_s:.2f} s by the node's clock, {worst.outside_s:.2f} s "
            yield Failed(f"{message}outside", environment, label)
        elif of_the_host(evidence, environment):
            yield f"{environment} runs under the host's kernel and has its clock"
        elif agreeing:
            said = f"{label} in {environment}: {agreeing} of {len(times)} times are known to {WRONG:.0%}"
            yield f"{said} and agree with those outside"
        elif times:
            doubts = [each.doubt_s / each.outside_s for each in times]
            missing = f"{label} in {environment}: its time inside and outside is known to {min(doubts):.1%} at best "
            missing += f"({max(doubts):.0%} at worst), and a clock may be wrong by {WRONG:.0%} unseen"
            yield Undecided(missing, environment, label)
        else:
            yield Undecided(f"{label} in {environment}: not recorded: times inside and outside", environment, label)


def reported(evidence: Evidence, trial: TrialRecord) -> Iterator[Timed]:
    """The time that a tool reports, and how long its command took outside. A command also starts and ends, so it may
    take longer than the tool reports, by an unknown amount."""
    known = evidence.readings.get(trial.id)
    for step in (step for step in trial.steps if not step.background and step.elapsed_s > 0 and step.argv):
        outputs = [one for one in known.outputs if one.file in (step.stdout, step.stderr)] if known else []
        times = [float(str(one.facts["total_time_s"])) for one in outputs if "total_time_s" in one.facts]
        if times:
            yield Timed(max(times), step.elapsed_s, max(0.0, step.elapsed_s - max(times)))


def clocks(evidence: Evidence, trial: TrialRecord) -> Iterator[Timed]:
    """What passed on each node's clock and on the host's around a trial."""
    for counted in evidence.counters.get(trial.id, {}).values():
        if {"clock_s", "host_clock_s", "clock_doubt_s"} <= counted.keys() and counted["host_clock_s"] > 0:
            yield Timed(counted["clock_s"], counted["host_clock_s"], counted["clock_doubt_s"])
