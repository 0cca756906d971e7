"""W01, W02: what own commands left running; outputs that the study expects to be the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vtax.evidence.campaign import Evidence
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity
from vtax.model.nodes import Phase
from vtax.tools.command.benchmark import OUTPUT_FACT
from vtax.wording import listed


@row(
    "W01",
    Severity.WARNING,
    "a command left programs running when it ended",
    short="work outside the measured time",
    why="what a command leaves running works after its time was taken, and may differ between environments: its wall "
    "time is not that of the whole work",
    remedy="let the command wait for what it starts; a server belongs to `services`, in the foreground",
    source="vtax-supervise, which ends and names what is left of every own command",
    benchmarks=("command",),
)
def left_running(evidence: Evidence) -> Iterator[Result]:
    """W01: programs that were left, by environment and entry."""
    for (environment, label), trials in evidence.entries().items():
        runs = [step for one in trials for step in one.steps if step.phase is Phase.RUN and not step.background]
        names = sorted({name for step in runs for name in step.left})
        if names:
            times = sum(bool(step.left) for step in runs)
            message = f"{label} in {environment}: {listed(names)}, in {times} of {len(runs)} runs"
            yield Failed(message, environment, label)
        else:
            yield f"{label} in {environment}: nothing was left"


@row(
    "W02",
    Severity.BLOCKER,
    "a command printed something else in another environment",
    short="different output",
    why="a command that prints another result did other work: a difference in its time is not the environment's",
    remedy="find out what differs (the outputs are in the campaign's trials); parts that always differ, such as times, "
    "belong into `volatile`",
    source="the sha256 of what runs with `same_output` printed, without what `volatile` matches",
    benchmarks=("command",),
    applies=lambda evidence: "" if digests(evidence) else "no entry has `same_output`",
)
def same_output(evidence: Evidence) -> Iterator[Result]:
    """W02: the outputs of each entry, those of the baseline against those of every other environment."""
    baseline = evidence.plan.study.baseline
    for label, found in digests(evidence).items():
        if varying := [environment for environment, several in found.items() if len(several) > 1]:
            for environment in varying:
                message = f"{label} printed {len(found[environment])} different outputs in {environment} alone"
                yield Failed(message, environment, label)
            continue
        for environment, several in found.items():
            if baseline in found and several != found[baseline]:
                yield Failed(f"{label} printed something else in {environment} than in {baseline}", environment, label)
            else:
                yield f"{label} in {environment}: the same output in all runs"


def digests(evidence: Evidence) -> Mapping[str, Mapping[str, set[str]]]:
    """Of each entry whose output is to be the same: the different outputs in each environment."""
    found: dict[str, dict[str, set[str]]] = {}
    for (environment, label), trials in evidence.entries().items():
        if several := {str(facts[OUTPUT_FACT]) for facts in evidence.facts(trials, OUTPUT_FACT)}:
            found.setdefault(label, {})[environment] = several
    return found
