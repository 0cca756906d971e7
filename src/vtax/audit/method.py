"""R: whether the campaign was carried out as its plan says."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from vtax.audit.evidence import Evidence, blocker, shown, warning
from vtax.model import Finding, Status, TrialRecord

ROUNDS_FOR_A_VERDICT = 6  # below it no distribution-free 95 % interval exists for pairs


def few_rounds(evidence: Evidence) -> tuple[Finding, ...]:
    """R01: fewer complete rounds than a verdict needs."""
    done = {trial.id for trial in evidence.trials if trial.status is Status.OK}
    planned = {cell.round for cell in evidence.plan.cells}
    broken = {cell.round for cell in evidence.plan.cells if any(t.id not in done for t in cell.trials if not t.warmup)}
    complete = len(planned - broken)
    if complete >= ROUNDS_FOR_A_VERDICT:
        return ()
    message = (
        f"{complete} of {len(planned)} planned rounds are complete; a verdict needs {ROUNDS_FOR_A_VERDICT}, because no "
        "95 % interval exists for fewer pairs, so this is a pilot"
    )
    return (blocker("R01", message, f"set rounds to {ROUNDS_FOR_A_VERDICT} or more and run a new campaign"),)


def order(evidence: Evidence) -> tuple[Finding, ...]:
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
    return tuple(blocker("R02", message, remedy) for message in found)


def first_out_of_order(planned: tuple[str, ...], started: dict[str, float]) -> tuple[str, str] | None:
    """The first neighbours of the plan of which the second began before the first."""
    pairs = pairwise(planned)
    return next(((one, two) for one, two in pairs if started[two] < started[one]), None)


def missing_runs(evidence: Evidence) -> tuple[Finding, ...]:
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
    return (*found, *rebuilt(evidence))


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
