"""vtax's own tables of measurements (`vtax export`), as trials again. Pure.

Every row keeps all that it says, its trial and its source too. What the source held is not in a table, so in a campaign
that is made of it a file of the same name holds the rows that came from there, one JSON object each (which
`tools.trials` reads again).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from vtax.errors import UsageError
from vtax.model.measurement import Measurement
from vtax.model.nodes import Scope
from vtax.model.trial import Imported, Status, StepRecord, TrialRecord
from vtax.tools.trials import TABLE

TRIAL = re.compile(r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,150}/[A-Za-z0-9][\w.+-]{0,150}", re.ASCII)
NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,150}", re.ASCII)
ALIKE = ("environment", "round", "cell", "iteration", "warmup", "benchmark", "label")  # in all rows of one trial
RESERVED = "record.json"


def format_of(head: bytes) -> str:
    """Which of vtax's tables begins like this; "" for everything else."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if re.match(rb'\s*\{"schema": ?"vtax-measurements/', head):
        return "jsonl"
    return "csv" if head.removeprefix(b"\xef\xbb\xbf").startswith(b"schema,environment,round,cell,trial,") else ""


def trials_of(
    rows: Sequence[Measurement], name: str, sha256: str, raw: str
) -> list[tuple[TrialRecord, Mapping[str, str]]]:
    """The trials that the rows of a table are of, in order, each with its files. Raises UsageError with the bad row."""
    found: dict[str, list[int]] = {}
    cells: dict[str, tuple[str, int]] = {}
    seen: dict[tuple[str, str, str, str], int] = {}
    for place, row in enumerate(rows):
        first = rows[found.setdefault(row.trial, [place])[0]]
        key = (row.trial, row.metric, json.dumps(dict(row.labels), sort_keys=True), row.source)
        before = seen.setdefault(key, place)
        problem = _problem(row, first)
        if not problem and before != place:
            problem = f"it is of the same thing as row {before + 1}"
        if not problem and cells.setdefault(row.cell, (row.environment, row.round)) != (row.environment, row.round):
            problem = f"cell {row.cell} is of another environment or round in a row above"
        if problem:
            raise UsageError(f"{name}: row {place + 1} is not a measurement: {problem}", remedy="export it again")
        if place != found[row.trial][0]:
            found[row.trial].append(place)
    return [_trial(rows, places, name, sha256, raw) for places in found.values()]


def _problem(row: Measurement, first: Measurement) -> str:
    """What is wrong with a row by itself, or compared with the first row of its trial; "" when nothing is."""
    file = row.source.removeprefix(f"trials/{row.trial}/")
    if TRIAL.fullmatch(row.trial) is None:
        return f"{row.trial!r} is not a name of a trial"
    if NAME.fullmatch(file) is None or file == RESERVED:
        return f"{row.source!r} is not a file of trial {row.trial}"
    for name in ("cell", "environment"):
        if NAME.fullmatch(getattr(row, name)) is None:
            return f"{getattr(row, name)!r} is not a name of {'a cell' if name == 'cell' else 'an environment'}"
    if row.round < 1 or row.iteration < 1:
        return "rounds and iterations count from 1"
    if row.value <= 0 and row.kind.has_ratio:
        return f"{row.metric} is {row.value:g} {row.unit}, and a {row.kind} is above zero"
    other = [name for name in ALIKE if getattr(row, name) != getattr(first, name)]
    return f"trial {row.trial} has another {other[0]} in a row above" if other else ""


def _trial(
    rows: Sequence[Measurement], places: Sequence[int], name: str, sha256: str, raw: str
) -> tuple[TrialRecord, Mapping[str, str]]:
    first = rows[places[0]]
    files: dict[str, list[str]] = {}
    for place in places:
        line = json.dumps({"row": place + 1, **rows[place].model_dump(mode="json")})
        files.setdefault(rows[place].source.rpartition("/")[2], []).append(line)
    target = first.labels.get("target", "")
    steps = tuple(
        StepRecord(
            step=number,
            node="table",
            argv=(),
            exit_code=0,
            timed_out=False,
            background=False,
            started=0.0,
            elapsed_s=0.0,
            stdout=file,
            stderr=file,
        )
        for number, file in enumerate(files)
    )
    record = TrialRecord(
        id=first.trial,
        environment=first.environment,
        round=first.round,
        cell=first.cell,
        work=re.sub(r"[^A-Za-z0-9._-]+", "-", f"{first.label} {target}").strip(".-")[:60] or "x",
        benchmark=first.benchmark,
        label=first.label,
        scope=_scope(target, first),
        nodes=(),
        iteration=first.iteration,
        warmup=first.warmup,
        params={},
        status=Status.OK,
        started=0.0,
        elapsed_s=0.0,
        steps=steps,
        imported=Imported(
            file=name,
            sha256=sha256,
            raw=raw,
            first_line=places[0] + 1,
            last_line=places[-1] + 1,
            reader=TABLE,
        ),
    )
    return record, {file: "\n".join(lines) + "\n" for file, lines in files.items()}


def _scope(target: str, row: Measurement) -> Scope:
    """The scope that the name of a target tells."""
    if target in (Scope.WORKERS, Scope.CLUSTER):
        return Scope(target)
    if target.endswith(".shared"):
        return Scope.SHARED
    return Scope.PAIRS if "client" in row.labels else Scope.NODE
