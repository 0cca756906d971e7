"""Which runs of an import count, and each of them as a trial of the campaign. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from vtax.importing.layout import slug
from vtax.importing.logs import TEXT
from vtax.importing.report import Run, labels_text
from vtax.model.nodes import Scope
from vtax.model.trial import Imported, Status, StepRecord, TrialRecord
from vtax.tools.commands import words_of

SAME = 0.02  # of two sides of one network test


def count_once(runs: Sequence[Run], old: Iterable[TrialRecord]) -> None:
    """If both ends logged one test, it counts once, by the client's log where there is one.

    Runs are of one test when the fact `connection` of both is the same: the addresses and ports of its ends.
    """
    tests: dict[tuple[str, str], list[Run]] = defaultdict(list)
    before = {
        (trial.environment, str(trial.imported.facts["connection"])): trial.imported
        for trial in old
        if trial.imported and "connection" in trial.imported.facts
    }
    for run in runs:
        if "connection" in run.reading.facts and not run.left_out:
            tests[run.environment, str(run.reading.facts["connection"])].append(run)
    for key, sides in tests.items():
        if key in before:
            earlier = f"{before[key].file} line {before[key].first_line}"
            for run in sides:
                run.left_out = f"the other side of the test in {earlier}, which is imported already"
            continue
        ordered = sorted(sides, key=lambda run: (not run.count, run.reading.facts.get("side") != "client"))
        for run in ordered[1:]:
            side = run.reading.facts.get("side", "other side")
            run.left_out = (
                f"the same test as {ordered[0].where}, seen from the {side}: counted once{_differing(ordered[0], run)}"
            )


def _differing(one: Run, other: Run) -> str:
    """What to add where two sides of one test saw different results, of which the first value is the main one."""
    if not (one.values and other.values) or one.values[0]["metric"] != other.values[0]["metric"]:
        return ""
    ours, theirs = one.values[0]["value"], other.values[0]["value"]
    alike = abs(ours - theirs) <= SAME * max(ours, theirs)
    return "" if alike else f", though they differ: {ours:.4g} and {theirs:.4g} {one.values[0]['unit']}"


def records_of(runs: Sequence[Run], old: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The records of all runs. Those of the same work are numbered by time where all have one, else by file."""
    counted: Counter[tuple[str, ...]] = Counter()
    for trial in old:
        if trial.imported is not None:
            direction, stated = str(trial.imported.facts.get("direction", "")), labels_text(trial.imported.labels)
            key: tuple[str, ...] = (trial.environment, trial.label, direction, trial.imported.source, stated)
            counted[key] = max(counted[key], trial.round)
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        if run.record is None:
            groups[run.work].append(run)
    numbers: dict[int, int] = {}
    for key, group in groups.items():
        timed = all(run.reading.started is not None for run in group)
        ordered = sorted(group, key=lambda run: run.reading.started or 0.0) if timed else sorted(group, key=_round)
        for run in ordered:
            counted[key] += 1
            numbers[id(run)] = counted[key]
    return [run.record or _record(run, numbers[id(run)]) for run in runs]


def _round(run: Run) -> int:
    """What a column of a table says; the same for all others, which stay in the order of their files."""
    stated = run.reading.facts.get("round", 0)
    return stated if isinstance(stated, int) else 0


def work_id(*parts: str) -> str:
    """A name for what repeats each other. A long one ends with a digest, so that two long ones stay two."""
    text = " ".join(filter(None, parts))
    return slug(text) if len(text) <= 60 else f"{slug(text[:50])}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _record(run: Run, number: int) -> TrialRecord:
    """One run as a trial."""
    reading, (reader, first, last) = run.reading, run.section
    cell = f"{run.environment}.r{number:03d}"
    facts: dict[str, JsonValue] = {**reading.facts, "ranks": reading.ranks, "direction": reading.direction}
    if reading.started is not None:
        facts["started"] = reading.started
    refused = tuple(f"line {r.line}: {r.what}: {r.reason}" for r in reading.refusals)
    command = str(facts.get("command") or facts.get("invoked") or "")
    started, elapsed_s = max(0.0, reading.started or 0.0), reading.elapsed_s or 0.0  # 0 where not logged
    step = StepRecord(
        step=0,
        node=reading.nodes[0] if reading.nodes else run.source or "log",
        argv=tuple(words_of(command)) if command else (),
        exit_code=0,
        timed_out=False,
        background=False,
        started=started,
        elapsed_s=elapsed_s,
        stdout=TEXT,
        stderr=TEXT,
    )
    return TrialRecord(
        id=run.trial,
        environment=run.environment,
        round=number,
        cell=cell,
        work=work_id(reading.label, reading.direction, run.source, labels_text(run.labels)),
        benchmark=reading.benchmark,
        label=reading.label,
        scope=reading.scope if reading.nodes or reading.scope is not Scope.PAIRS else Scope.CLUSTER,
        nodes=reading.nodes,
        iteration=1,
        warmup=False,
        params=reading.params,
        status=Status.OK if run.count else Status.FAILED,
        failure="" if run.count else f"nothing could be taken from {run.where}: {'; '.join(refused)[:400]}",
        started=started,
        elapsed_s=elapsed_s,
        steps=(step,),
        imported=Imported(
            file=run.file,
            sha256=run.sha256,
            raw=run.raw,
            first_line=first,
            last_line=last,
            reader=reader,
            facts=facts,
            refused=refused,
            source=run.source,
            pieces=run.pieces,
            labels=run.labels,
            unit=run.unit,
            table=run.table,
        ),
    )
