"""The metrics of an entry tried on outputs that somebody has, without running anything. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from vtax.tools.benchmark import Tried
from vtax.tools.command.extract import USAGE, extract
from vtax.tools.command.metric_table import MetricTable
from vtax.tools.command.params import CommandParams
from vtax.tools.patterns import compile_pattern
from vtax.tools.reading import Reading
from vtax.wording import listed

PRINTED = ("stdout", "stderr")


def tried(params: CommandParams, texts: Mapping[str, str], label: str) -> Tried:
    """What the entry reads from `texts`, by the names that outputs have ("stdout", "stderr", a file); the rest of its
    metrics is `untried`, because the output that it is in was not given."""
    given = [table for table in params.metrics if table.builtin is None and table.source in texts]
    outputs = {name: text for name, text in texts.items() if name != USAGE}
    readings = dict(extract(given, outputs, label).readings)
    untried = [_untried(table) for table in params.metrics if table not in given]
    _judge(params, outputs, readings, untried)
    success = params.running.success
    judged = PRINTED if success.match or success.refuse else ()
    unused = [name for name in outputs if name not in readings and name not in judged]
    for name in unused:
        readings[name] = Reading(label)
        there = listed(sorted({table.source for table in params.metrics if table.builtin is None}))
        readings[name].refuse(0, name, f"no metric of {label} is read from it; they are read from {there}", 0)
    return Tried(readings, tuple(untried))


def _untried(table: MetricTable) -> str:
    name = table.name or table.builtin or f"what {table.reader} reads"
    if table.builtin is not None:
        return f"{name}: measured while the command runs"
    return f"{name}: no sample of {table.source}"


def _judge(params: CommandParams, texts: Mapping[str, str], readings: dict[str, Reading], untried: list[str]) -> None:
    """Whether the patterns of `success` accept the samples of what is printed."""
    success = params.running.success
    printed = {name: texts[name] for name in PRINTED if name in texts}
    for name, text in printed.items():
        if success.refuse and compile_pattern(success.refuse).found(text):
            reading = readings.setdefault(name, Reading("", ended=True))
            reading.refuse(0, "success.refuse", f"{success.refuse} is there, so this run has failed", 0)
    if success.match and not any(compile_pattern(success.match).found(text) for text in printed.values()):
        if len(printed) < len(PRINTED):
            untried.append(f"success.match: {success.match} is not in the samples of {listed(list(printed)) or 'none'}")
            return
        reading = readings.setdefault("stdout", Reading("", ended=True))
        reading.refuse(0, "success.match", f"{success.match} is in neither output, so this run has failed", 0)
