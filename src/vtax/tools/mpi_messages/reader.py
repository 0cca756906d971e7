"""What `mpi-messages` writes, vtax's own small program (tools/mpi_messages/workloads/mpi-messages.c): JSON.

Latencies are quantiles of single round trips, halved; bandwidth and allreduce are medians of batches. A batch of
allreduces that was too short for the clock is refused, and so are sizes that are not those of the metrics.

Facts: `mpi_library`, `ranks`, `clock_step_s` (the smallest step that the clock was seen to make).
"""

from __future__ import annotations

from collections.abc import Iterator

from vtax.tools.command.json_path import Node
from vtax.tools.command.own_programs import NANOSECONDS, check_form, median, quantiles, time_of_one
from vtax.tools.command.readers.reader import only_document, read_document
from vtax.tools.documents import Unfit
from vtax.tools.mpi_messages.metrics import ALLREDUCE, ALLREDUCE_LARGE, BANDWIDTH, LATENCY
from vtax.tools.reading import Reading, Section, Value

FEWEST_TRIPS = 100
SMALL, LARGE, REDUCED = 8, 2**20, 2**16  # bytes


def read(section: Section) -> Reading:
    """One run."""
    return read_document("mpi-messages", section._replace(lines=only_document(section.lines)), _take)


def _take(reading: Reading, top: Node) -> None:
    check_form(top, "mpi-messages")
    step_ns = top.at("clock_step_ns").number()
    ranks = int(top.at("ranks").number())
    reading.facts |= {
        "mpi_library": top.at("library").string()[:60],
        "ranks": ranks,
        "clock_step_s": step_ns / NANOSECONDS,
    }
    reading.params["ranks"] = ranks
    reading.values += _latency(top.at("latency"))
    bandwidth = top.at("bandwidth")
    _size(bandwidth, LARGE)
    found = median(bandwidth, "byte_s", "windows")
    reading.values.append(Value(BANDWIDTH, found, bandwidth.at("median_byte_s").line))
    for metric, size in ((ALLREDUCE, SMALL), (ALLREDUCE_LARGE, REDUCED)):
        node = top.at(metric.name)
        _size(node, size)
        reading.values.append(time_of_one(node, metric, step_ns))


def _latency(node: Node) -> Iterator[Value]:
    _size(node, SMALL)
    if node.at("round_trips").number() < FEWEST_TRIPS:
        raise Unfit(node.line, f"fewer than {FEWEST_TRIPS} round trips")
    yield from quantiles(node, LATENCY)


def _size(node: Node, size: int) -> None:
    if node.at("bytes").number() != size:
        raise Unfit(node.at("bytes").line, f"{node.where}: not {size} bytes")
