"""R01 to R03, R06, R07, R10: whether the campaign was carried out as its plan says, on the same ground for all."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, groupby, pairwise, takewhile

from vtax.analysis.order import trials_in_order
from vtax.analysis.records import VERDICT_FROM
from vtax.evidence.campaign import Evidence, canonical, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import Status, TrialRecord

HOUR = 3600.0


@row(
    "R01",
    Severity.BLOCKER,
    "fewer than six complete rounds, or runs that are not rounds",
    short="too few rounds",
    why="no distribution-free 95 % interval exists for fewer than six pairs, so this is a pilot",
    remedy=f"set rounds to {VERDICT_FROM} or more and run a new campaign: `vtax run` makes fresh clusters in "
    "randomised rounds",
    source="the records of the campaign; in logs the number of runs",
)
def few_rounds(evidence: Evidence) -> Iterator[Result]:
    """R01: fewer complete rounds of an entry than a verdict needs. Once for the campaign when no entry has enough."""
    if evidence.plan.origin is Origin.IMPORTED:
        yield from repeated_runs(evidence)
        return
    planned = len({cell.round for cell in evidence.plan.cells})
    counts = complete_rounds(evidence)
    if not counts and len(evidence.plan.environments) == 1:
        yield "no two environments are compared"
        return
    brief = {name for name, _ in counts if rounds_of(evidence, name) < VERDICT_FROM <= planned}
    if brief < {name for name, _ in counts}:  # by the plan: no verdict was to be had there
        counts = {place: count for place, count in counts.items() if place[0] not in brief}
    short = {place: count for place, count in counts.items() if count < VERDICT_FROM}
    needed = f"a verdict needs {VERDICT_FROM}, because no 95 % interval exists for fewer pairs, so this is a pilot"
    if len(short) == len(counts):
        most = max(counts.values(), default=0)
        said = f"{'at most ' if len(set(counts.values())) > 1 else ''}{most} of {planned} planned rounds are complete"
        yield Failed(f"{said}; {needed}")
        return
    for (environment, label), count in short.items():
        message = f"{count} of {rounds_of(evidence, environment)} planned rounds of {label} are complete in "
        message += f"{environment} and {evidence.counterpart(label)}"
        yield Failed(f"{message}; {needed}", environment, label)
    if not short:
        yield f"{min(counts.values())} of {planned} planned rounds or more are complete in each entry"


def rounds_of(evidence: Evidence, environment: str) -> int:
    """How many rounds of an environment were due."""
    return len({cell.round for cell in evidence.plan.cells if cell.environment == environment})


def repeated_runs(evidence: Evidence) -> Iterator[Failed]:
    """Of logs: runs are not rounds, however many there are."""
    most: dict[str, int] = {}
    for trial in evidence.trials:
        most[trial.environment] = max(most.get(trial.environment, 0), trial.round)
    if most:
        said = shown([f"at most {count} in {name}" for name, count in most.items()])
        yield Failed(
            f"these are runs of the same work ({said}), not fresh instances in randomised rounds; a verdict needs "
            f"{VERDICT_FROM} of those, so this is a pilot"
        )


def complete_rounds(evidence: Evidence) -> dict[tuple[str, str], int]:
    """Of each environment and entry: in how many rounds the environment and what it is compared with both have a result
    of it, on the nodes where that is fewest; of several machines, on the one that has most."""
    planned = {(work.environment, work.id): work.label for work in evidence.plan.work}
    rounds: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for trial in evidence.trials:
        if trial.status is Status.OK and not trial.warmup:
            block = (evidence.machine_of.get(trial.cell, ""), trial.round)
            rounds.setdefault((trial.environment, trial.work), set()).add(block)
    found: dict[tuple[str, str], int] = {}
    for (environment, work), label in planned.items():
        baseline = evidence.counterpart(label)
        if environment not in (baseline, evidence.plan.study.baseline) and (baseline, work) in planned:
            both = rounds.get((environment, work), set()) & rounds.get((baseline, work), set())
            most = max(Counter(machine for machine, _ in both).values(), default=0)
            found[environment, label] = min(most, found.get((environment, label), most))
    return found


@row(
    "R02",
    Severity.BLOCKER,
    "environments were not measured in turns, or not in the planned order",
    short="another order than planned",
    why="what changes with time (heat, load, disks) is then not balanced between environments, and is part of the "
    "difference",
    remedy="repeat the campaign with `vtax run`, which follows the plan; do not start cells by hand",
    source="when every trial began, against the plan; in logs the times that they name, which few do",
    note="a warning where trials were to alternate between environments and a cluster could not be paused: cells ran "
    "one after the other, in the planned order",
    whole=True,
)
def order(evidence: Evidence) -> Iterator[Result]:
    """R02: cells or trials ran in another order than planned, so that drift may look like an effect."""
    if evidence.plan.origin is Origin.IMPORTED:
        yield from windows(evidence)
        return
    noted = {(work.environment, work.id) for work in evidence.plan.work if work.provisioning}  # without a run
    started = {trial.id: trial.started for trial in evidence.trials if (trial.environment, trial.work) not in noted}
    found: list[str] = []
    blocks: dict[str, list[str]] = {}
    for machine in dict.fromkeys(cell.machine for cell in evidence.plan.cells):  # they work at the same time
        own = {
            n: ran for n, ids in planned_blocks(evidence, machine) if (ran := [one for one in ids if one in started])
        }
        began = {name: min(started[one] for one in ids) for name, ids in own.items()}
        if swapped := first_out_of_order(tuple(own), began):
            found.append(f"{swapped[1]} ran before {swapped[0]}, which the plan has first")
        blocks |= own
    for ids in blocks.values():
        if swapped := first_out_of_order(tuple(ids), started):
            message = f"trial {swapped[1]} ran before {swapped[0]}, which the plan has first"
            found.append(f"{message}: what the one leaves behind (caches, heat) differs between rounds")
            break
    yield from map(Failed, found)
    yield from whole_cells(evidence)
    if blocks and not found:
        kind = "rounds of alternating trials" if evidence.plan.interleave == "trial" else "cells"
        yield f"{len(blocks)} {kind} and {len(started)} trials ran in the order of the plan"


def planned_blocks(evidence: Evidence, machine: str) -> Iterator[tuple[str, list[str]]]:
    """What follows one another by the plan on a machine, with its trials in order: rounds in which trials alternate
    between environments, or else single cells."""
    mine = [cell for cell in evidence.plan.cells if cell.machine == machine]
    apart = [cell for cell in evidence.cells if cell.not_interleaved]
    whole = {cell.round for cell in apart if evidence.machine_of.get(cell.cell, "") == machine}
    for number, group in groupby(mine, key=lambda cell: cell.round):
        cells = tuple(group)
        if evidence.plan.interleave == "trial" and number not in whole:
            yield (
                f"round {number}{f' on {machine}' if machine else ''}",
                [trial.id for _, trial in trials_in_order(cells)],
            )
        else:
            yield from ((f"cell {cell.id}", [trial.id for trial in cell.trials]) for cell in cells)


def whole_cells(evidence: Evidence) -> Iterator[Failed]:
    """Rounds in which trials should alternate and did not. Then whole cells are compared in all rounds."""
    reasons = {cell.round: cell.not_interleaved for cell in evidence.cells if cell.not_interleaved}
    if reasons:
        message = f"in {len(reasons)} of {len({cell.round for cell in evidence.plan.cells})} rounds environments were "
        message += f"measured one after the other, not in alternating trials: {shown(sorted(set(reasons.values())))}; "
        message += "so whole cells are compared in all rounds"
        remedy = "nothing is wrong with these rounds, but intervals are wider; make pausing possible, or set "
        yield Failed(message, severity=Severity.WARNING, remedy=remedy + 'interleave = "cell"')


def first_out_of_order(planned: tuple[str, ...], started: dict[str, float]) -> tuple[str, str] | None:
    """The first neighbours of the plan of which the second began before the first."""
    pairs = pairwise(planned)
    return next(((one, two) for one, two in pairs if started[two] < started[one]), None)


def windows(evidence: Evidence) -> Iterator[Failed]:
    """Of logs: environments that were measured one after the other, or at unknown times."""
    spans: dict[str, list[float]] = {}
    for trial in evidence.trials:
        for facts in evidence.facts((trial,), "started"):
            spans.setdefault(trial.environment, []).append(float(facts["started"]))
    apart = [
        f"{one} {day(min(spans[one]))} to {day(max(spans[one]))}, {two} {day(min(spans[two]))} to "
        f"{day(max(spans[two]))}"
        for one, two in combinations(sorted(spans), 2)
        if min(spans[two]) > max(spans[one]) + HOUR or min(spans[one]) > max(spans[two]) + HOUR
    ]
    if apart:
        yield Failed(f"environments were measured in separate windows of time: {shown(apart)}")
    elif len(evidence.plan.environments) > 1:
        yield Failed("the logs do not show that environments were measured in turns")


def day(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment))


@row(
    "R07",
    Severity.WARNING,
    "runs are missing or failed, or a cluster was lost on the way",
    short="missing or failed runs",
    why="the remaining runs may be the lucky ones",
    remedy="read the logs of these trials, remove the cause, and run a new campaign",
    source="the records against the plan; of imported logs those that were refused",
    whole=True,
)
def missing_runs(evidence: Evidence) -> Iterator[Result]:
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
    for (environment, label), why in reasons.items():
        listed = shown([f"{count} {text}" for text, count in Counter(why).most_common()])
        message = f"{len(why)} of {planned[environment, label]} runs of {label} in {environment} gave no result"
        yield Failed(f"{message} ({listed})", environment, label)
    again = [cell for cell in evidence.cells if cell.instance > 1]
    for lost in again:
        message = f"the cluster of cell {lost.cell} was lost and made again: its trials did not all run on one instance"
        remedy = "find out why it was lost: the cell's record names the reason"
        yield Failed(message, lost.environment, remedy=remedy)
    if planned and not reasons and not again:
        yield f"all {planned.total()} runs have a result, each cell on one cluster"


def reason(record: TrialRecord | None) -> str:
    """Why a run has no result, in one line."""
    if record is None:
        return "not recorded"
    said = record.failure.strip().splitlines()
    return f"{record.status.value}: {said[0]}" if said else record.status.value


@row(
    "R03",
    Severity.BLOCKER,
    "the plan changed, or rounds were added after an interim analysis that it does not have",
    short="a changed plan",
    why="checking results and continuing until they please exceeds the 5 % risk: the interval is not valid",
    remedy="run a new campaign with the rounds and looks that are wanted",
    source="the hash of the plan: its own, and that which campaign.json, every record of a trial and every interim "
    "analysis named when they were written; the rounds that ran, and the log of interim analyses",
    needs=Needs("the hash of the plan", origin=Origin.RUN),
    note="unknown for campaigns of versions that wrote the hash of the plan into `plan.json` and `looks.json` alone",
    whole=True,
)
def optional_stopping(evidence: Evidence) -> Iterator[Result]:
    """R03: a sealed plan, and looks only where it has them."""
    yield from changed_plan(evidence)
    planned = {cell.round for cell in evidence.plan.cells}
    ran = {trial.round for trial in evidence.trials if trial.status is not Status.NOT_RUN}
    if beyond := sorted(ran - planned):
        yield Failed(f"round {shown(beyond)} ran, and the plan has {len(planned)} rounds")
    foreign = [look for look in evidence.looks or () if look not in allowed_looks(evidence)]
    if foreign:
        message = f"results were looked at after round {shown(sorted(foreign))}; the plan has looks after "
        yield Failed(message + (shown(sorted(allowed_looks(evidence))) or "no round"))
    if unnoted := sorted(due_looks(evidence).difference(evidence.looks or ())):
        kept = "looks.json is missing" if evidence.looks is None else "looks.json does not have them"
        yield Undecided(f"the plan has looks after {shown(unnoted)}, these rounds are over, and {kept}")
    elif evidence.looks is None:
        yield "no look was due yet, and no log of looks was kept"
    else:
        yield f"looks after {shown(sorted(evidence.looks)) or 'no round'}"


def changed_plan(evidence: Evidence) -> Iterator[Result]:
    """R03: whether the plan is the one that the campaign began with."""
    seal = evidence.seal
    if seal is None or seal.intact is None:
        yield Undecided("not recorded: whether the plan is still the sealed one")
        return
    if not seal.intact:
        yield Failed(f"the plan is not the one that was sealed with sha256 {seal.plan[:12]}")
    for name, hashes in seal.others.items():
        message = f"{name} have" if name.startswith("records") else f"{name} has"
        message += f" sha256 {shown([one[:12] for one in hashes])} of the plan, which is {seal.plan[:12]}"
        yield Failed(f"{message}: it was changed after it had been written there")
    if seal.silent:
        missing = f"{shown(list(seal.silent))} of an older version do not name the plan, so one that was changed and "
        yield Undecided(f"{missing}sealed again would look the same")
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
    "every environment has a different machine",
    short="a machine for each environment",
    why="then the difference of two machines cannot be distinguished from that of two environments, and no test helps",
    remedy="run all environments on the same machine, or rotate machines between them",
    source="the machine that vtax ran on, at every cell",
    needs=Needs("the machine that its nodes ran on", origin=Origin.RUN),
)
def confounded(evidence: Evidence) -> Iterator[Result]:
    """R06: environments fixed to machines."""
    machines: dict[str, set[str]] = {}
    placed = {cell.id: cell for cell in evidence.plan.cells}
    for cell in evidence.provisioned:
        known = [cell.host_facts[name] for name in ("hostname", "cpu_model", "dmi_product") if name in cell.host_facts]
        planned = placed.get(cell.cell)
        if planned is not None and (planned.machine or planned.placement):  # by their names in the study
            known = [" ".join(planned.placement.values()) or planned.machine]
        spread = planned is not None and bool(planned.placement)
        if known and (spread or evidence.capabilities(cell.environment).shares_machine):
            machines.setdefault(cell.environment, set()).add(shown(known))
    existing = [name for name in evidence.environments if evidence.capabilities(name).away]
    for environment in (name for name in evidence.environments if name not in (*machines, *existing)):
        yield Undecided(f"{environment}: not recorded: the machine that its nodes ran on", environment)
    ours = machines.get(evidence.reference, set())
    for environment in evidence.compared:
        if environment in existing or evidence.reference in existing:
            yield _on_existing(evidence, environment)
            continue
        theirs = machines.get(environment, set())
        if ours and theirs and not ours & theirs:
            message = f"{environment} ran on {shown(sorted(theirs))}, {evidence.reference} on {shown(sorted(ours))}"
            yield Failed(message, environment)
        elif ours and theirs:
            yield f"{environment} and {evidence.reference} ran on {shown(sorted(ours & theirs))}"


def _on_existing(evidence: Evidence, environment: str) -> Result:
    """Nodes that exist are machines of their own, which a user compares because of that."""
    own, base = (evidence.option(name, "nodes") for name in (environment, evidence.reference))
    if own and own == base:
        return f"{environment} and {evidence.reference} ran on the same nodes"
    both = f"{environment} and {evidence.reference} ran on different machines, unless one has the other's as guests"
    return Failed(
        f"{both}: a difference is that of machine and environment together", environment, "", Severity.WARNING
    )


@row(
    "R10",
    Severity.BLOCKER,
    "environments or rounds started from different root file systems",
    short="different root file systems",
    why="then what is compared was built from different sources",
    remedy="use one image for all: `vtax image build`, and run a new campaign",
    source="the hash of the package database on every node (and T01's hashes of programs)",
    needs=Needs("the hash of the packages of its nodes", node=("packages_sha256",), origin=Origin.RUN),
)
def one_source(evidence: Evidence) -> Iterator[Result]:
    """R10: the same packages on all nodes, in all rounds."""
    hashes: dict[str, set[str]] = {}
    for environment in evidence.environments:
        for values in values_of(evidence, environment, "packages_sha256").values():
            hashes.setdefault(environment, set()).update(canonical(value).strip('"')[:12] for value in values)
    ours = hashes.get(evidence.reference, set())
    for environment, theirs in hashes.items():
        listed = shown(sorted(theirs))
        if len(theirs) > 1:
            yield Failed(f"the nodes of {environment} have different packages: {listed}", environment)
        elif ours and theirs != ours:
            message = f"the packages of {environment} are {listed}, of {evidence.reference} {shown(sorted(ours))}"
            yield Failed(message, environment)
        else:
            yield f"{environment}: packages {listed}"
