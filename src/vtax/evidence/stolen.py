"""How much CPU time others took (steal), from the counters of the machine and of the nodes around every trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from vtax.analysis.estimate.stolen import StolenDifference, Ticks, stolen_difference
from vtax.evidence.campaign import Evidence
from vtax.model.trial import TrialRecord

STOLEN = 0.005  # of all CPU time: less is noise
THROTTLED = 0.01  # of all periods of a quota
TICKS_S = 100  # a CPU counts as many a second, on every Linux

Run = tuple[int, str, str, int]  # round, machine, work, iteration
Counted = Callable[[Evidence, TrialRecord], Sequence[Ticks]]


def stolen(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share of CPU time in which workers did not run though they could have, whatever used it; None where nothing
    counted it."""
    known = (share_of(ticks(evidence, trials, machine_ticks)), stolen_from_nodes(evidence, trials))
    return max((share for share in known if share is not None), default=None)


def lost(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share of CPU time that others took from the machine during trials of one environment; None where nothing
    counted it. A guest's own count is of what its machine does, and not of what was done to that."""
    if any(evidence.capabilities(trial.environment).own_kernel for trial in trials):
        return share_of(ticks(evidence, trials, machine_ticks))
    return stolen(evidence, trials)


def stolen_from_nodes(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share that the nodes themselves counted as stolen, on the node where it was largest."""
    by_node: dict[str, list[Ticks]] = {}
    for trial in trials:
        for node, counters in evidence.counters.get(trial.id, {}).items():
            by_node.setdefault(node, []).extend(_ticks(counters, "", trial))
    shares = map(share_of, by_node.values())
    return max((share for share in shares if share is not None), default=None)


def difference(
    evidence: Evidence, trials: Sequence[TrialRecord], base: Sequence[TrialRecord], comparisons: int
) -> StolenDifference | None:
    """How much more was stolen from an entry than from the same entry in its baseline, over the runs that both have;
    None where the two were not counted in the same way.

    The machine counted for both, or their nodes did under its kernel; of two answers the larger difference. The
    interval holds for all of so many `comparisons` together.
    """
    kernels = {evidence.capabilities(trial.environment).own_kernel for trial in (*trials, *base)}
    sources: tuple[Counted, ...] = (machine_ticks, node_ticks) if kernels == {False} else (machine_ticks,)
    found = []
    for counted in sources:
        runs = [{_run(evidence, trial): counted(evidence, trial) for trial in side} for side in (trials, base)]
        common = [key for key in runs[0].keys() & runs[1].keys() if runs[0][key] and runs[1][key]]
        sides = [_by_round({key: side[key] for key in sorted(common)}) for side in runs]
        if (one := stolen_difference(sides[0], sides[1], comparisons)) is not None:
            found.append(one)
    return max(found, key=lambda one: abs(one.mean), default=None)


def _run(evidence: Evidence, trial: TrialRecord) -> Run:
    """What a run has in common with the one that it is paired with."""
    return trial.round, evidence.machine_of.get(trial.cell, ""), trial.work, trial.iteration


def _by_round(runs: Mapping[Run, Sequence[Ticks]]) -> dict[int, list[Ticks]]:
    found: dict[int, list[Ticks]] = {}
    for (number, *_), several in runs.items():
        found.setdefault(number, []).extend(several)
    return found


def machine_ticks(evidence: Evidence, trial: TrialRecord) -> tuple[Ticks, ...]:
    """What the machine counted during a trial: on its CPUs where these were counted and its nodes stay on them, else
    on all. Nothing for nodes that are elsewhere."""
    if not evidence.capabilities(trial.environment).shares_machine:
        return ()
    own = stays(evidence, trial.environment) and "trial_cpu_ticks" in trial.host_counters
    return tuple(_ticks(trial.host_counters, "trial_" if own else "", trial))


def node_ticks(evidence: Evidence, trial: TrialRecord) -> tuple[Ticks, ...]:
    """What the nodes counted during a trial."""
    every = evidence.counters.get(trial.id, {}).values()
    return tuple(one for counters in every for one in _ticks(counters, "", trial))


def stays(evidence: Evidence, environment: str) -> bool:
    """Whether its nodes run on the CPUs of the plan alone."""
    return evidence.option(environment, "pin") is not False and evidence.option(environment, "cpu_limit") != "quota"


def ticks(evidence: Evidence, trials: Iterable[TrialRecord], counted: Counted) -> list[Ticks]:
    return [one for trial in trials for one in counted(evidence, trial)]


def _ticks(counters: Mapping[str, float], kind: str, trial: TrialRecord) -> Iterator[Ticks]:
    """A reading, if it has both counts. A count of all ticks says on how many CPUs it was."""
    names = f"{kind}steal_ticks", f"{kind}cpu_ticks"
    if counters.keys() >= set(names):
        total = counters[names[1]]
        yield Ticks(counters[names[0]], total, max(1, round(total / (TICKS_S * max(trial.elapsed_s, 1 / TICKS_S)))))


def share_of(several: Sequence[Ticks]) -> float | None:
    """The share of stolen ticks in all of them together; None where none passed."""
    every = sum(one.total for one in several)
    return sum(one.stolen for one in several) / every if every > 0 else None
