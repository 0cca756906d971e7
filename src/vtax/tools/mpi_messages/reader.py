"""What `mpi-messages` writes, vtax's own small program (tools/mpi_messages/workloads/mpi-messages.c): JSON.

Latencies are quantiles of single round trips, halved; bandwidth and allreduce are medians of batches. A batch of
allreduces that was too short for the clock is refused, and so are sizes that are not those of the metrics.

Facts: `mpi_library`, `ranks`, `clock_step_s` (the smallest step that the clock was seen to make).
"""

from __future__ import annotations

from collections.abc import Iterator

from vtax.tools.command.json_path import Node
from vtax.tools.command.readers.reader import only_document, read_document
from vtax.tools.documents import Unfit
from vtax.tools.mpi_messages.metrics import ALLREDUCE, ALLREDUCE_LARGE, BANDWIDTH, LATENCY
from vtax.tools.reading import Reading, Section, Value

NANOSECONDS = 1e9  # in a second
STEPS = 1000  # of the clock that a batch has at least
FEWEST_BATCHES, FEWEST_TRIPS = 5, 100
SMALL, LARGE, REDUCED = 8, 2**20, 2**16  # bytes
FORM = 1


def read(section: Section) -> Reading:
    """One run."""
    return read_document("mpi-messages", section._replace(lines=only_document(section.lines)), _take)


def _take(reading: Reading, top: Node) -> None:
    form = top.at("mpi-messages")
    if form.value != FORM:
        raise Unfit(form.line, f"form {form.value!r}, and only {FORM} is known")
    step = top.at("clock_step_ns").number()
    ranks = top.at("ranks").number()
    reading.facts |= {
        "mpi_library": top.at("library").string()[:60],
        "ranks": int(ranks),
        "clock_step_s": step / NANOSECONDS,
    }
    reading.params["ranks"] = int(ranks)
    reading.values += _latency(top.at("latency"))
    reading.values += _bandwidth(top.at("bandwidth"))
    for metric, size in ((ALLREDUCE, SMALL), (ALLREDUCE_LARGE, REDUCED)):
        node = top.at(metric.name)
        _size(node, size)
        median = _median(node, "ns", "batches")
        batch = node.at("least_ns").number() * node.at("operations").number()
        if batch < STEPS * step / 2:  # half: the shortest may be shorter than the batch that the length was chosen with
            raise Unfit(node.line, f"{node.where}: a batch of {batch:.0f} ns is too short for steps of {step:g} ns")
        reading.values.append(Value(metric, median / NANOSECONDS, node.at("median_ns").line))


def _latency(node: Node) -> Iterator[Value]:
    _size(node, SMALL)
    if node.at("round_trips").number() < FEWEST_TRIPS:
        raise Unfit(node.line, f"fewer than {FEWEST_TRIPS} round trips")
    before = 0.0
    for key, metric in LATENCY.items():
        found = node.at(f"{key}_ns")
        time = found.number()
        if time < before or time == 0:
            raise Unfit(found.line, f"{key}_ns is {time:g}: less than a smaller quantile, or nothing")
        before = time
        yield Value(metric, time / NANOSECONDS, found.line)


def _bandwidth(node: Node) -> Iterator[Value]:
    _size(node, LARGE)
    yield Value(BANDWIDTH, _median(node, "byte_s", "windows"), node.at("median_byte_s").line)


def _size(node: Node, size: int) -> None:
    if node.at("bytes").number() != size:
        raise Unfit(node.at("bytes").line, f"{node.where}: not {size} bytes")


def _median(node: Node, unit: str, several: str) -> float:
    """The median of so many batches, which has to be between the least and the most."""
    least, median, most = (node.at(f"{key}_{unit}").number() for key in ("least", "median", "most"))
    if not 0 < least <= median <= most:
        raise Unfit(node.line, f"{node.where}: the median is not between the least and the most")
    if node.at(several).number() < FEWEST_BATCHES:
        raise Unfit(node.line, f"{node.where}: fewer than {FEWEST_BATCHES} {several}")
    return median
