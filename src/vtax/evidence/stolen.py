"""How much CPU time others took (steal), from the counters of the machine and of the nodes around every trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vtax.evidence.campaign import Evidence
from vtax.model.trial import TrialRecord

STOLEN = 0.005  # of all CPU time: less is noise
THROTTLED = 0.01  # of all periods of a quota


def stolen(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share of CPU time in which workers did not run though they could have, whatever used it; None where nothing
    counted it."""
    known = (stolen_from_machine(evidence, trials), stolen_from_nodes(evidence, trials))
    return max((share for share in known if share is not None), default=None)


def lost(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share of CPU time that others took from the machine during trials of one environment; None where nothing
    counted it. A guest's own count is of what its machine does, and not of what was done to that."""
    if any(evidence.capabilities(trial.environment).own_kernel for trial in trials):
        return stolen_from_machine(evidence, trials)
    return stolen(evidence, trials)


def stolen_from_machine(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share that the machine lost during trials: of their CPUs where these were counted and their nodes stay on
    them, else of all. None for nodes that are elsewhere."""
    here = [trial.host_counters for trial in trials if evidence.capabilities(trial.environment).shares_machine]
    pinned = all(stays(evidence, trial.environment) for trial in trials)
    own = [one for one in here if pinned and "trial_cpu_ticks" in one]
    whole = [one for one in here if not pinned or "trial_cpu_ticks" not in one]
    return share_of([*ticks(own, "trial_"), *ticks(whole, "")])


def stays(evidence: Evidence, environment: str) -> bool:
    """Whether its nodes run on the CPUs of the plan alone."""
    return evidence.option(environment, "pin") is not False and evidence.option(environment, "cpu_limit") != "quota"


def stolen_from_nodes(evidence: Evidence, trials: Sequence[TrialRecord]) -> float | None:
    """The share that the nodes themselves counted as stolen, on the node where it was largest."""
    nodes = dict.fromkeys(node for trial in trials for node in evidence.counters.get(trial.id, {}))
    counted = {node: [evidence.counters.get(trial.id, {}).get(node, {}) for trial in trials] for node in nodes}
    shares = [share_of(ticks(each, "")) for each in counted.values()]
    return max((share for share in shares if share is not None), default=None)


def ticks(counters: Iterable[Mapping[str, float]], kind: str) -> list[tuple[float, float]]:
    """(stolen, all) ticks of every reading that has both."""
    names = f"{kind}steal_ticks", f"{kind}cpu_ticks"
    return [(one[names[0]], one[names[1]]) for one in counters if one.keys() >= set(names)]


def share_of(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The share of stolen ticks in all of them together; None where none passed."""
    every = sum(total for _, total in pairs)
    return sum(taken for taken, _ in pairs) / every if every > 0 else None
