"""pyperf's JSON, version 1.0 of its format: the values of all runs of each benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, median

from vtax.model.metric import Kind, Metric
from vtax.tools.command.json_path import Node
from vtax.tools.command.readers.reader import Reader, Wants, labelled, read_document
from vtax.tools.documents import Unfit
from vtax.tools.reading import Reading, Section, Value

MEAN = Metric(name="time_mean", unit="s", kind=Kind.COST, meaning="mean time of one loop over all values")
MEDIAN = Metric(name="time_median", unit="s", kind=Kind.COST, meaning="median time of one loop over all values")
MEMORY = Metric(name="memory", unit="byte", kind=Kind.COST, meaning="mean memory (pyperf --track-memory)")


def read(section: Section, _wants: Wants) -> Reading:
    return read_document("pyperf", section, _take)


def _take(reading: Reading, top: Node) -> None:
    version = top.at("version")
    if version.value != "1.0":
        raise Unfit(version.line, f"its format is {version.value!r}, and only 1.0 is known")
    common = top.get("metadata")
    several = list(top.at("benchmarks").every())
    if written := _text(several[0], common, "perf_version"):
        reading.facts["pyperf_version"] = written[:60]
    labelled(reading, "benchmark", ((_text(one, common, "name"), list(_benchmark(one, common))) for one in several))


def _text(one: Node, common: Node | None, key: str) -> str:
    """What the metadata of a benchmark, of its runs or of the whole file say; "" where they do not."""
    runs = one.get("runs")
    first = runs.get(0) if runs else None
    for place in (one, first):
        own = place.get("metadata") if place else None
        if own and (node := own.get(key)):
            return node.string()
    node = common.get(key) if common else None
    return node.string() if node else ""


def _benchmark(one: Node, common: Node | None) -> Iterator[Value]:
    """Its values: all that its runs have, but for those of the run that only finds how many loops to run."""
    values = [
        value for run in one.at("runs").every() if (found := run.get("values")) is not None for value in found.every()
    ]
    if not values:
        raise Unfit(one.line, f"no run of {one.where} has values")
    numbers, line = [value.number() for value in values], values[0].line if len(values) == 1 else 0
    unit = _text(one, common, "unit") or "second"
    if unit == "byte":
        yield Value(MEMORY, fmean(numbers), line)
        return
    if unit != "second":
        raise Unfit(one.line, f"{one.where} is in {unit!r}, which is neither a time nor bytes")
    yield Value(MEAN, fmean(numbers), line)
    yield Value(MEDIAN, median(numbers), line)


PYPERF = Reader("pyperf", read, (MEAN, MEDIAN, MEMORY))
