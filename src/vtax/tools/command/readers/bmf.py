"""Bencher Metric Format: `{"benchmark": {"measure": {"value": 1.0, "lower_value": 0.9, "upper_value": 1.1}}}`.

`latency` is in ns and `throughput` in operations a second, which is the default of both; any other measure has the
unit and the kind that a study declares for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from vtax.model.metric import Kind, Metric
from vtax.tools.command.json_path import Node
from vtax.tools.command.readers.reader import Reader, Wanted, Wants, labelled, read_document
from vtax.tools.documents import Unfit
from vtax.tools.reading import Reading, Section, Value

LATENCY = Metric(name="latency", unit="s", kind=Kind.COST, meaning="time of one operation")
THROUGHPUT = Metric(name="throughput", unit="op/s", kind=Kind.RATE_FIXED_WORK, meaning="operations per second")
USUAL = {"latency": Wanted(LATENCY, Fraction(1, 10**9)), "throughput": Wanted(THROUGHPUT, Fraction(1))}
BOUNDS = ("lower_value", "upper_value")


def read(section: Section, wants: Wants) -> Reading:
    def take(reading: Reading, top: Node) -> None:
        _take(reading, top, wants or USUAL)

    return read_document("bmf", section, take)


def _take(reading: Reading, top: Node, wants: Wants) -> None:
    if not isinstance(top.value, dict):
        raise Unfit(top.line, "not an object of benchmarks")
    found = [(name, list(_values(top.at(name), wants))) for name in top.value]
    found = [(name, values) for name, values in found if values]
    if not found:
        names = sorted({key for one in top.value.values() if isinstance(one, dict) for key in one})
        raise Unfit(0, f"no benchmark has {' or '.join(wants)}; there is {', '.join(names[:8]) or 'nothing'}")
    labelled(reading, "benchmark", found)


def _values(benchmark: Node, wants: Wants) -> Iterator[Value]:
    for measure, wanted in wants.items():
        part = benchmark.get(measure)
        if part is None:
            if not isinstance(benchmark.value, dict):
                raise Unfit(benchmark.line, f"{benchmark.where} is not an object of measures")
            continue
        node = part.at("value")
        low, high = (part.get(key) for key in BOUNDS)
        if (low and low.number() > node.number()) or (high and high.number() < node.number()):
            raise Unfit(node.line, f"{node.where} is not between its lower and its upper value")
        yield wanted.value(node.number(), node.line, {})


BMF = Reader("bmf", read, (LATENCY, THROUGHPUT), free=True)
