"""pytest-benchmark's JSON (`--benchmark-json=FILE`): the statistics of each test."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.model.metric import Kind, Metric
from vtax.tools.command.json_path import Node
from vtax.tools.command.readers.reader import Reader, Wants, labelled, must_agree, read_document
from vtax.tools.documents import Unfit
from vtax.tools.reading import Reading, Section, Value

MEAN = Metric(name="time_mean", unit="s", kind=Kind.COST, meaning="mean time of a round")
MEDIAN = Metric(name="time_median", unit="s", kind=Kind.COST, meaning="median time of a round")
MIN = Metric(name="time_min", unit="s", kind=Kind.COST, meaning="shortest time of a round")


def read(section: Section, _wants: Wants) -> Reading:
    return read_document("pytest-benchmark", section, _take)


def _take(reading: Reading, top: Node) -> None:
    reading.facts["pytest_benchmark_version"] = top.at("version").string()[:60]
    several = top.at("benchmarks").every()
    labelled(reading, "test", ((one.at("fullname").string(), list(_test(one))) for one in several))


def _test(one: Node) -> Iterator[Value]:
    """Its times, checked against each other: total, rounds, operations a second and order."""
    stats = one.at("stats")
    mean, middle, low, high = (stats.at(key) for key in ("mean", "median", "min", "max"))
    must_agree(mean, stats.at("total").number() / max(1.0, stats.at("rounds").number()), "total and rounds give")
    if mean.number() > 0:
        must_agree(stats.at("ops"), 1 / mean.number(), "one over the mean is")
    for node in (mean, middle):
        if not low.number() <= node.number() * (1 + 1e-9) or not node.number() <= high.number() * (1 + 1e-9):
            raise Unfit(node.line, f"{node.where} is not between the shortest and the longest time")
    for metric, node in ((MEAN, mean), (MEDIAN, middle), (MIN, low)):
        yield Value(metric, node.number(), node.line)


PYTEST_BENCHMARK = Reader("pytest-benchmark", read, (MEAN, MEDIAN, MIN))
