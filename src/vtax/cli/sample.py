"""vtax plan --sample: the metrics of a study's own commands, tried on outputs that a person has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vtax.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from vtax.model.study import BenchmarkSpec, Study
    from vtax.tools.benchmark import Tried
    from vtax.tools.reading import Value

SAMPLE = re.compile(r"^([a-z][a-z0-9-]{0,60})(?:/([A-Za-z0-9_][A-Za-z0-9_./+-]{0,300}))?=(.{1,4000})", re.DOTALL)
HELP = (
    "Try metrics on an output that you have, instead of planning: FILE, LABEL=FILE, or LABEL/OUTPUT=FILE where OUTPUT "
    "is stderr or a file that the command leaves."
)
LARGEST = 64 * 2**20
STDOUT = "stdout"
SHOWN = 3  # lines of an output without a better place
WIDEST = 110
DIGITS = 6


class Entry(NamedTuple):
    """An entry of a study, the samples for it, and what came of them."""

    spec: BenchmarkSpec
    texts: Mapping[str, str]
    tried: Tried


def try_samples(study: Study, samples: Sequence[str]) -> list[Entry]:
    """Every entry with samples. Raises UsageError for a label without metrics to try and for a file that cannot be
    read."""
    known = _entries(study)
    texts: dict[str, dict[str, str]] = {}
    for sample in samples:
        label, output, path = _parts(sample, known)
        if output in texts.setdefault(label, {}):
            raise UsageError(f"--sample: {label} has two samples of {output}", remedy="give one file for each output")
        texts[label][output] = _text(Path(path))
    found = []
    for label, own in texts.items():
        benchmark, spec = known[label]
        params = benchmark.params.model_validate(dict(spec.params))
        found.append(Entry(spec, own, benchmark.tried(params, own, label)))
    return found


def _entries(study: Study) -> dict[str, tuple[Any, BenchmarkSpec]]:
    """The entries whose metrics the study declares, by label."""
    from vtax.tools import benchmarks

    every = benchmarks()
    return {
        spec.label: (every[spec.name], spec)
        for spec in study.benchmarks
        if spec.name in every and hasattr(every[spec.name], "tried")
    }


def _parts(sample: str, known: Mapping[str, object]) -> tuple[str, str, str]:
    """Label, output and file of one --sample."""
    from vtax.wording import listed

    labels = listed(sorted(known))
    if not known:
        raise UsageError("--sample: no entry of the study has metrics of its own", remedy="see docs/own-workloads.md")
    parts = SAMPLE.fullmatch(sample)
    if parts and (parts[1] in known or not Path(sample).exists()):
        if parts[1] not in known:
            raise UsageError(f"--sample: there is no entry {parts[1]!r} with own metrics", remedy=f"there is {labels}")
        return parts[1], parts[2] or STDOUT, parts[3]
    if len(known) > 1:
        raise UsageError(f"--sample {sample}: of which entry?", remedy=f"write LABEL={sample}; there is {labels}")
    return next(iter(known)), STDOUT, sample


def _text(path: Path) -> str:
    from vtax import files

    try:
        return files.read_given(path, LARGEST).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(
            f"--sample: {path} cannot be read: {error.strerror}",
            remedy=f"give a regular file of at most {LARGEST // 2**20} MiB with what the command printed",
        ) from error


def fits(entries: Iterable[Entry]) -> bool:
    """Whether nothing was refused."""
    return not any(reading.refusals for entry in entries for reading in entry.tried.readings.values())


def as_json(entries: Sequence[Entry]) -> dict[str, JsonValue]:
    """The same for programs."""
    return {"fits": fits(entries), "entries": [_as_json(entry) for entry in entries]}


def _as_json(entry: Entry) -> JsonValue:
    readings = entry.tried.readings.items()
    return {
        "label": entry.spec.label,
        "values": [
            {
                "metric": value.metric.name,
                "value": value.value,
                "unit": value.metric.unit,
                "kind": value.metric.kind.value,
                "direction": value.metric.direction.value,
                "primary": value.metric.primary,
                "labels": dict(value.labels),
                "from": source,
                "line": value.line,
            }
            for source, reading in readings
            for value in reading.values
        ],
        "refused": [
            {"from": source, "line": one.line, "what": one.what, "reason": one.reason}
            for source, reading in readings
            for one in reading.refusals
        ],
        "untried": list(entry.tried.untried),
    }


def lines_of(entries: Sequence[Entry]) -> list[str]:
    """A table for each entry, and below it what was looked for in vain and what was there."""
    return [line for entry in entries for line in (*_table(entry), *_refused(entry), "")][:-1]


def _table(entry: Entry) -> Iterator[str]:
    from vtax.cli.console import table
    from vtax.wording import plural

    rows = [_row(source, value) for source, reading in entry.tried.readings.items() for value in reading.values]
    yield f"{entry.spec.label}: {len(rows)} {plural(len(rows), 'number')}"
    if rows:
        yield from table(rows, ("metric", "value", "unit", "better", "decides", "found")).split("\n")
    for sentence in entry.tried.untried:
        yield f"not tried: {sentence}"


def _row(source: str, value: Value) -> tuple[str, ...]:
    from vtax.units import format_number, scale_of
    from vtax.wording import labels_text

    metric = value.metric
    factor, unit = scale_of(value.value, metric.unit)
    name = f"{metric.name} ({labels_text(value.labels)})" if value.labels else metric.name
    where = f"{source}, line {value.line}" if value.line else f"{source}, several lines"
    better = metric.direction.value.removesuffix(" is better")
    return name, format_number(value.value / factor, DIGITS), unit, better, "yes" if metric.primary else "", where


def _refused(entry: Entry) -> Iterator[str]:
    for source, reading in entry.tried.readings.items():
        for one in reading.refusals:
            yield f"no number: {source}{f':{one.line}' if one.line else ''}: {one.what}: {one.reason}"
            yield from _there(entry.texts.get(source, ""), one.line)


def _there(text: str, line: int) -> Iterator[str]:
    """The line that a refusal is about, or the last ones of the output."""
    lines = text.removesuffix("\n").split("\n") if text else []
    first = line if line else max(1, len(lines) - SHOWN + 1)
    for number in range(first, (first if line else len(lines)) + 1):
        if number <= len(lines):
            yield f"  {number:>5} | {lines[number - 1][:WIDEST]}"
