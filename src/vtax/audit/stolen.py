"""C05: whether CPU time that others took could be what a comparison shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vtax.analysis.estimate.pairs import Pair
from vtax.analysis.estimate.stolen import StolenDifference
from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.evidence.stolen import STOLEN, difference, lost, stolen_from_nodes
from vtax.model.finding import Severity
from vtax.model.machine_cost import MACHINE_METRICS
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord

TOO_MUCH = 0.25  # of all CPU time: what ran was another machine
TIMELESS = frozenset({"byte"})  # units of what does not depend on how fast anything ran

Entries = dict[tuple[str, str], list[TrialRecord]]


@row(
    "C05",
    Severity.BLOCKER,
    "the hypervisor took CPU time away (steal), and more from one of two environments, or more than a quarter",
    short="CPU time stolen",
    why="what is stolen from both alike is noise, and in the interval of their ratio; what is stolen from one of them "
    "makes it look slower, however many rounds there are",
    remedy="run on a host that is not shared, or at a quieter time",
    source="/proc/stat of the machine around every trial, of the CPUs of the trial, and that of nodes under the "
    "machine's own kernel, for each entry over all its rounds",
    needs=Needs("how much CPU time was stolen", counters=("steal_ticks", "trial_steal_ticks"), origin=Origin.RUN),
    note="blocks where the difference of two environments certainly is not zero, could move their ratio by more than "
    "half the margin, and favours what is claimed; see [Stolen time](#stolen-time). Else a warning above 0.5 %. What a "
    "guest with its own kernel counts as stolen is what its emulator and the nodes on its CPU took, which is part of "
    "what is measured, and a note",
)
def steal(evidence: Evidence) -> Iterator[Result]:
    """C05: CPU time that the machine lost during the trials, in each entry and in what it is compared with."""
    entries = evidence.entries()
    against = {key: (evidence.counterpart(key[1]), key[1]) for key in entries}
    comparisons = sum(key != other and other in entries for key, other in against.items())
    for key, trials in entries.items():
        share = lost(evidence, trials)
        yield from waited(evidence, key, trials, share or 0.0)
        if share is None:
            missing = f"{key[1]} in {key[0]}: not recorded: how much CPU time the machine lost"
            yield Undecided(missing, key[0], key[1])
        elif share > TOO_MUCH:
            message = f"{key[1]} in {key[0]}: {share:.1%} of the CPU time was stolen: what ran was another machine"
            yield Failed(message, key[0], key[1])
        elif key == against[key] or against[key] not in entries:
            yield f"{share:.2%} of the CPU time was stolen from {key[1]} in {key[0]}"
        else:
            yield from compared(evidence, entries, key, share, comparisons)


def compared(
    evidence: Evidence, entries: Entries, key: tuple[str, str], share: float, comparisons: int
) -> Iterator[Result]:
    """What was stolen from an entry and from the same entry in what it is compared with."""
    environment, label = key
    baseline = evidence.counterpart(label)
    base = entries[baseline, label]
    theirs = lost(evidence, base)
    apart = difference(evidence, entries[key], base, comparisons)
    said = f"{label}: {share:.1%} of the CPU time was stolen in {environment}"
    said += "" if theirs is None else f", {theirs:.1%} in {baseline}"
    if apart is not None and apart.low is not None and apart.high is not None:
        said += f"; the difference is {percent(apart.mean)} points [{percent(apart.low)}, {percent(apart.high)}]"
    metrics = explained(evidence, key, apart)
    if metrics:
        half = f"{50 * evidence.plan.study.margin:g} %"
        message = f"{said}, which could be more than half the margin ({half}) of what is measured"
        yield Failed(message, environment, label, metrics=metrics)
    elif max(share, theirs or 0.0) > STOLEN:
        yield Failed(said, environment, label, Severity.WARNING)
    else:
        yield said


def percent(share: float) -> str:
    return f"{100 * share:+.1f}"


def explained(evidence: Evidence, key: tuple[str, str], apart: StolenDifference | None) -> tuple[str, ...]:
    """The metrics of an entry of which a difference of stolen time could explain what is claimed."""
    if apart is None or not (apart.lost or apart.spared):
        return ()
    delta = evidence.plan.study.equivalence.delta
    mine: Sequence[Pair] = [
        one
        for one in evidence.numbers.pairs
        if (one.level.environment, one.level.label) == key
        and one.has_ratio
        and one.level.unit not in TIMELESS
        and one.level.metric not in MACHINE_METRICS  # of which stolen time is no part
    ]
    return tuple(dict.fromkeys(one.level.metric for one in mine if apart.explains(one.effect, delta)))


def waited(evidence: Evidence, key: tuple[str, str], trials: Sequence[TrialRecord], share: float) -> Iterator[Failed]:
    """That a guest waited for its CPUs, beyond what the machine lost."""
    environment, label = key
    guest = evidence.capabilities(environment).own_kernel
    time = stolen_from_nodes(evidence, trials) if guest else None
    if time is not None and time - share > STOLEN:
        message = f"{label} in {environment}: a guest waited for its CPUs in {time:.1%} of their time, beyond what the "
        message += "machine lost: time that the emulator, or nodes that share the CPU, took"
        remedy = "nothing to do: it is part of what this environment costs"
        yield Failed(message, environment, label, Severity.INFO, remedy)
