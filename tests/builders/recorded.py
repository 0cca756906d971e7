"""Recorded outputs: one folder under `tests/data/<benchmark>/<case>/` is one trial of one benchmark.

`provenance.toml` says where it came from and which file is which step's output; `expected.json` holds the measurements
that a person worked out from the text. The label `target` follows from the record, so it is not repeated there.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vtax.model.measurement import Measurement
from vtax.model.nodes import Scope
from vtax.model.trial import Status, StepRecord, TrialRecord
from vtax.tools import benchmarks
from vtax.tools.trials import accepted, measurements_of, read_trial

DATA = Path(__file__).parents[1] / "data"
PROVENANCE = ("tool", "tool_version", "distribution", "command", "environment", "date")


class Value(NamedTuple):
    """What is compared of a measurement."""

    metric: str
    value: float
    unit: str
    labels: Mapping[str, str]


def cases() -> list[Path]:
    """Every recorded trial of a benchmark, in a stable order."""
    return sorted(path.parent for name in benchmarks() for path in (DATA / name).glob("*/provenance.toml"))


def case_id(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def load(folder: Path) -> TrialRecord:
    """The record of the trial in `folder`, with its texts. Raises KeyError when the provenance is incomplete."""
    facts = tomllib.loads((folder / "provenance.toml").read_text(encoding="utf-8"))
    for key in PROVENANCE:
        if not str(facts[key]).strip():
            raise KeyError(f"{folder}: {key} is empty")
    texts: dict[str, str] = {}
    steps = tuple(_step(folder, step, facts["command"], texts) for step in facts["steps"])
    return TrialRecord(
        id=f"recorded-{folder.name}",
        environment="recorded",
        round=1,
        cell="cell",
        work="work",
        benchmark=facts["benchmark"],
        label=facts["benchmark"],
        scope=Scope(facts["scope"]),
        nodes=tuple(facts["nodes"]),
        iteration=1,
        warmup=False,
        params=facts["params"],
        status=Status.OK,
        started=0.0,
        elapsed_s=1.0,
        steps=steps,
        texts=texts,
    )


def _step(folder: Path, step: Mapping[str, Any], command: str, texts: dict[str, str]) -> StepRecord:
    stem = f"{step['step']}-{step['node']}"
    stdout, stderr = step.get("stdout", ""), step.get("stderr", "")
    outputs: dict[str, str] = dict(step.get("outputs", {}))
    for name in (stdout, stderr, *outputs.values()):
        if name:
            # Not read_text: it would turn the "\r" of a tool into "\n".
            texts[name] = (folder / name).read_bytes().decode("utf-8")
    for name in (stdout or f"{stem}.stdout", stderr or f"{stem}.stderr"):
        texts.setdefault(name, "")
    return StepRecord(
        step=step["step"],
        node=step["node"],
        argv=tuple(step.get("argv", command.split())),
        exit_code=step.get("exit_code", 0),
        timed_out=False,
        background=step.get("background", False),
        started=0.0,
        elapsed_s=1.0,
        stdout=stdout or f"{stem}.stdout",
        stderr=stderr or f"{stem}.stderr",
        outputs=outputs,
    )


def with_text(record: TrialRecord, name: str, text: str) -> TrialRecord:
    """The same trial, had the file `name` held `text`."""
    return record.model_copy(update={"texts": {**record.texts, name: text}})


def parse(record: TrialRecord) -> tuple[Measurement, ...]:
    """The measurements of a trial. Raises ParseError where its output was refused."""
    return measurements_of(record, accepted(record))


def series(record: TrialRecord, name: str) -> tuple[tuple[float, ...], ...]:
    """The rows of a time series of a trial, from all its outputs."""
    outputs = read_trial(record).outputs
    return tuple(row for output in outputs if name in output.series for row in output.series[name].rows)


def expected(folder: Path) -> list[Value]:
    """The measurements worked out by hand, sorted as `values` sorts them."""
    rows = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return _sorted([Value(row["metric"], float(row["value"]), row["unit"], row.get("labels", {})) for row in rows])


def values(measurements: Sequence[Measurement]) -> list[Value]:
    """What is compared of measurements, sorted by metric and labels."""
    return _sorted(
        [
            Value(item.metric, item.value, item.unit, {k: v for k, v in item.labels.items() if k != "target"})
            for item in measurements
        ]
    )


def _sorted(rows: list[Value]) -> list[Value]:
    return sorted(rows, key=lambda row: (row.metric, sorted(row.labels.items()), row.value))


def difference(got: Sequence[Value], wanted: Sequence[Value]) -> str:
    """The first thing that differs, for the message of a failing test; "" when nothing does."""
    for ours, theirs in zip(got, wanted, strict=False):
        if ours[::2] != theirs[::2] or ours.labels != theirs.labels:
            return f"got {ours}, wanted {theirs}"
        if not math.isclose(ours.value, theirs.value, rel_tol=1e-12, abs_tol=0.0):
            return f"got {ours}, wanted the value {theirs.value!r}"
    if len(got) != len(wanted):
        return f"got {len(got)} measurements, wanted {len(wanted)}"
    return ""
