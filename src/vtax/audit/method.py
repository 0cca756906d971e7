"""R01 to R03, R06, R07, R10: whether the campaign was carried out as its plan says, on the same ground for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, takewhile

from vtax.analysis.records import VERDICT_FROM
from vtax.audit.network import ONE_MACHINE
from vtax.evidence.campaign import Evidence, blocker, canonical, shown, unknown, unobserved, values_of, warning
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity
from vtax.model.trial import Status, TrialRecord


@row(
    "R01",
    Severity.BLOCKER,
    "fewer than six complete rounds",
    why="no distribution-free 95 % interval exists for fewer than six pairs, so this is a pilot",
    remedy=f"set rounds to {VERDICT_FROM} or more and run a new campaign",
    source="the records of the campaign; imported runs are no rounds",
)
def few_rounds(evidence: Evidence) -> Iterator[Finding | str]:
    """R01: fewer complete rounds of an entry than a verdict needs. Once for the campaign when no entry has enough."""
    planned = len({cell.round for cell in evidence.plan.cells})
    counts = complete_rounds(evidence)
    short = {place: count for place, count in counts.items() if count < VERDICT_FROM}
    needed = f"a verdict needs {VERDICT_FROM}, because no 95 % interval exists for fewer pairs, so this is a pilot"
    remedy = f"set rounds to {VERDICT_FROM} or more and run a new campaign"
    if len(short) == len(counts):
        most = max(counts.values(), default=0)
        told = f"{'at most ' if len(set(counts.values())) > 1 else ''}{most} of {planned} planned rounds are complete"
        yield blocker("R01", f"{told}; {needed}", remedy)
        return
    for (environment, label), count in short.items():
        message = f"{count} of {planned} planned rounds of {label} are complete in {environment} and the baseline"
        yield blocker("R01", f"{message}; {needed}", remedy, environment, label)
    if not short:
        yield f"{min(counts.values())} of {planned} planned rounds or more are complete in each entry"


def complete_rounds(evidence: Evidence) -> dict[tuple[str, str], int]:
    """Of each environment and entry: in how many rounds the environment and the baseline both have a result of it, on
    the nodes where that is fewest."""
    baseline = evidence.plan.study.baseline
    planned = {(work.environment, work.id): work.label for work in evidence.plan.work}
    rounds: dict[tuple[str, str], set[int]] = {}
    for trial in evidence.trials:
        if trial.status is Status.OK and not trial.warmup:
            rounds.setdefault((trial.environment, trial.work), set()).add(trial.round)
    found: dict[tuple[str, str], int] = {}
    for (environment, work), label in planned.items():
        if environment != baseline and (baseline, work) in planned:
            both = rounds.get((environment, work), set()) & rounds.get((baseline, work), set())
            found[environment, label] = min(len(both), found.get((environment, label), len(both)))
    return found


@row(
    "R02",
    Severity.BLOCKER,
    "cells or trials ran in another order than planned",
    why="what changes with time (heat, load, disks) is then no longer balanced between environments",
    remedy="repeat the campaign with `vtax run`, which follows the plan; do not start cells by hand",
    source="when every trial began, against the plan; imported logs rarely tell when they were written",
)
def order(evidence: Evidence) -> Iterator[Finding | str]:
    """R02: cells or trials ran in another order than planned, so that drift may look like an effect."""
    started = {trial.id: trial.started for trial in evidence.trials}
    cells = {
        cell.id: min(started[trial.id] for trial in cell.trials if trial.id in started)
        for cell in evidence.plan.cells
        if any(trial.id in started for trial in cell.trials)
    }
    remedy = "repeat the campaign with `vtax run`, which follows the plan; do not start cells by hand"
    found = []
    if swapped := first_out_of_order(tuple(cells), cells):
        message = f"cell {swapped[1]} ran before {swapped[0]}, which the plan has first"
        found.append(f"{message}: what changes with time is no longer balanced between environments")
    for cell in evidence.plan.cells:
        ids = tuple(trial.id for trial in cell.trials if trial.id in started)
        if swapped := first_out_of_order(ids, started):
            message = f"trial {swapped[1]} ran before {swapped[0]}, which the plan has first"
            found.append(f"{message}: what the one leaves behind (caches, heat) differs between rounds")
            break
    yield from (blocker("R02", message, remedy) for message in found)
    if cells and not found:
        yield f"{len(cells)} cells and {len(started)} trials ran in the order of the plan"


def first_out_of_order(planned: tuple[str, ...], started: dict[str, float]) -> tuple[str, str] | None:
    """The first neighbours of the plan of which the second began before the first."""
    pairs = pairwise(planned)
    return next(((one, two) for one, two in pairs if started[two] < started[one]), None)


@row(
    "R07",
    Severity.WARNING,
    "runs are missing or failed, or a cluster was lost on the way",
    why="what is left may be the lucky ones",
    remedy="read the logs of these trials, remove the cause, and run a new campaign",
    source="the records against the plan; of imported logs those that were refused",
)
def missing_runs(evidence: Evidence) -> Iterator[Finding | str]:
    """R07: runs that are missing or failed, and clusters that were lost on the way."""
    records = {trial.id: trial for trial in evidence.trials}
    labels = {(work.environment, work.id): work.label for work in evidence.plan.work}
    planned: Counter[tuple[str, str]] = Counter()
    reasons: dict[tuple[str, str], list[str]] = {}
    for cell in evidence.plan.cells:
        for trial in (trial for trial in cell.trials if not trial.warmup):
            where = (cell.environment, labels.get((cell.environment, trial.work), trial.work))
            planned[where] += 1
            record = records.get(trial.id)
            if record is None or record.status is not Status.OK:
                reasons.setdefault(where, []).append(reason(record))
    found = [
        warning(
            "R07",
            f"{len(why)} of {planned[environment, label]} runs of {label} in {environment} gave no result "
            f"({shown([f'{count} {text}' for text, count in Counter(why).most_common()])}): what is left may be the "
            "lucky ones",
            "read the logs of these trials, remove the cause, and run a new campaign",
            environment,
            label,
        )
        for (environment, label), why in reasons.items()
    ]
    again = rebuilt(evidence)
    yield from (*found, *again)
    if planned and not found and not again:
        yield f"all {planned.total()} runs have a result, each cell on one cluster"


def reason(record: TrialRecord | None) -> str:
    """Why a run has no result, in one line."""
    if record is None:
        return "not recorded"
    said = record.failure.strip().splitlines()
    return f"{record.status.value}: {said[0]}" if said else record.status.value


def rebuilt(evidence: Evidence) -> tuple[Finding, ...]:
    """R07 also: cells whose cluster was made again halfway."""
    again = [cell for cell in evidence.cells if cell.instance > 1]
    return tuple(
        warning(
            "R07",
            f"the cluster of cell {cell.cell} was lost and made again: its trials did not all run on one instance",
            "find out why it was lost: the cell's record names the reason",
            cell.environment,
        )
        for cell in again
    )


@row(
    "R03",
    Severity.BLOCKER,
    "the plan changed, or rounds were added after a look that it does not have",
    why="who looks and then goes on until the result pleases has no 5 % risk left: the interval is not valid",
    remedy="run a new campaign with the rounds and looks that are wanted",
    source="the hash of the plan: its own, that which campaign.json, every record of a trial and every look named when "
    "they were written; the rounds that ran, and the log of looks; imported runs have no plan",
)
def optional_stopping(evidence: Evidence) -> Iterator[Finding | str]:
    """R03: a sealed plan, and looks only where it has them."""
    yield from changed_plan(evidence)
    planned = {cell.round for cell in evidence.plan.cells}
    ran = {trial.round for trial in evidence.trials if trial.status is not Status.NOT_RUN}
    if beyond := sorted(ran - planned):
        yield blocker("R03", f"round {shown(beyond)} ran, and the plan has {len(planned)} rounds")
    foreign = [look for look in evidence.looks or () if look not in allowed_looks(evidence)]
    if foreign:
        message = f"results were looked at after round {shown(sorted(foreign))}; the plan has looks after "
        yield blocker("R03", message + (shown(sorted(allowed_looks(evidence))) or "none"))
    if unnoted := sorted(due_looks(evidence).difference(evidence.looks or ())):
        kept = "looks.json is missing" if evidence.looks is None else "looks.json does not tell of them"
        yield unknown("R03", f"the plan has looks after {shown(unnoted)}, these rounds are over, and {kept}")
    elif evidence.looks is None:
        yield "no look was due yet, and no log of looks was kept"
    else:
        yield f"looks after {shown(sorted(evidence.looks)) or 'no round'}"


def changed_plan(evidence: Evidence) -> Iterator[Finding | str]:
    """R03: whether the plan is the one that the campaign began with."""
    seal = evidence.seal
    if seal is None or seal.intact is None:
        yield unknown("R03", "whether the plan is still the sealed one was not looked at")
        return
    if not seal.intact:
        yield blocker("R03", f"the plan is not the one that was sealed with sha256 {seal.plan[:12]}")
    for name, hashes in seal.others.items():
        message = f"{name} have" if name.startswith("records") else f"{name} has"
        message += f" sha256 {shown([one[:12] for one in hashes])} of the plan, which is {seal.plan[:12]}"
        yield blocker("R03", f"{message}: it was changed after it had been written there")
    if seal.silent:
        missing = f"{shown(list(seal.silent))} of an older version do not name the plan, so one that was changed and "
        yield unknown("R03", f"{missing}sealed again would look the same")
    elif seal.frozen == "yes":
        yield f"the plan is the one that was sealed before the first run, sha256 {seal.plan[:12]}"


def due_looks(evidence: Evidence) -> frozenset[int]:
    """The looks of the plan of which all rounds are over, whatever became of their trials."""
    recorded = {trial.id for trial in evidence.trials}
    rounds: dict[int, bool] = {}
    for cell in evidence.plan.cells:
        rounds[cell.round] = rounds.get(cell.round, True) and all(trial.id in recorded for trial in cell.trials)
    over = len(list(takewhile(bool, (rounds[number] for number in sorted(rounds)))))
    return frozenset(look for look in evidence.plan.study.looks if look <= over)


def allowed_looks(evidence: Evidence) -> frozenset[int]:
    """The rounds after which the plan has a look; the last round always is one."""
    return frozenset((*evidence.plan.study.looks, max((cell.round for cell in evidence.plan.cells), default=0)))


@row(
    "R06",
    Severity.BLOCKER,
    "each environment has machines of its own",
    why="then the difference of two machines cannot be told from that of two environments, and no test helps",
    remedy="run all environments on the same machine, or rotate machines between them",
    source="the machine that vtax ran on, at every cell; imported logs do not tell",
)
def confounded(evidence: Evidence) -> Iterator[Finding | str]:
    """R06: environments fixed to machines."""
    machines: dict[str, set[str]] = {}
    for cell in evidence.provisioned:
        told = [cell.host_facts[name] for name in ("hostname", "cpu_model", "dmi_product") if name in cell.host_facts]
        if told and evidence.provider(cell.environment) in ONE_MACHINE:
            machines.setdefault(cell.environment, set()).add(shown(told))
    for environment in (name for name in evidence.environments if name not in machines):
        yield unknown("R06", "the machine that it ran on is not known", environment)
    ours = machines.get(evidence.reference, set())
    for environment in evidence.compared:
        theirs = machines.get(environment, set())
        if ours and theirs and not ours & theirs:
            message = f"{environment} ran on {shown(sorted(theirs))}, {evidence.reference} on {shown(sorted(ours))}"
            yield blocker("R06", message, "", environment)
        elif ours and theirs:
            yield f"{environment} and {evidence.reference} ran on {shown(sorted(ours & theirs))}"


@row(
    "R10",
    Severity.BLOCKER,
    "environments or rounds started from different root file systems",
    why="then what is compared was built from different sources",
    remedy="one image for all: `vtax image build`, and a new campaign",
    source="the hash of the package database on every node (and T01's hashes of programs); imported logs do not tell",
)
def one_source(evidence: Evidence) -> Iterator[Finding | str]:
    """R10: the same packages on all nodes, in all rounds."""
    for environment in unobserved(evidence, "packages_sha256"):
        yield unknown("R10", "the packages of its nodes were not hashed", environment)
    told: dict[str, set[str]] = {}
    for environment in evidence.environments:
        for values in values_of(evidence, environment, "packages_sha256").values():
            told.setdefault(environment, set()).update(canonical(value).strip('"')[:12] for value in values)
    ours = told.get(evidence.reference, set())
    for environment, theirs in told.items():
        if len(theirs) > 1:
            yield blocker(
                "R10", f"the nodes of {environment} have different packages: {shown(sorted(theirs))}", "", environment
            )
        elif ours and theirs != ours:
            message = f"the packages of {environment} are {shown(sorted(theirs))}, of {evidence.reference} "
            message += f"{shown(sorted(ours))}"
            yield blocker("R10", message, "", environment)
        else:
            yield f"{environment}: packages {shown(sorted(theirs))}"
