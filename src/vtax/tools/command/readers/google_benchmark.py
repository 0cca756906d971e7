"""google-benchmark's JSON (`--benchmark_format=json`): times, rates and counters of each benchmark.

Of repetitions the mean counts: of the runs where they are there, otherwise (`--benchmark_report_aggregates_only`) as
the program printed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from statistics import fmean

from vtax.model.metric import Kind, Metric
from vtax.tools.command.json_path import Node
from vtax.tools.command.readers.reader import Reader, Wanted, Wants, labelled, must_agree, read_document
from vtax.tools.documents import Unfit
from vtax.tools.reading import Reading, Section, Value
from vtax.units import in_base_units

REAL = Metric(name="real_time", unit="s", kind=Kind.COST, meaning="wall time of one iteration")
CPU = Metric(name="cpu_time", unit="s", kind=Kind.COST, meaning="CPU time of one iteration")
ITEMS = Metric(name="items_per_second", unit="1/s", kind=Kind.RATE_FIXED_WORK, meaning="items per second")
BYTES = Metric(name="bytes_per_second", unit="byte/s", kind=Kind.RATE_FIXED_WORK, meaning="bytes per second")
USUAL = {one.name: Wanted(one, Fraction(1)) for one in (REAL, CPU, ITEMS, BYTES)}
TIMES = ("real_time", "cpu_time")
TIME_UNITS = {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 10**3), "s": Fraction(1)}
MEAN = "mean"


def read(section: Section, wants: Wants) -> Reading:
    place = next((at for at, line in enumerate(section.lines) if line.text.startswith("{")), 0)

    def take(reading: Reading, top: Node) -> None:
        _take(reading, top, wants or USUAL)

    return read_document("google-benchmark", section._replace(lines=section.lines[place:]), take)


def _take(reading: Reading, top: Node, wants: Wants) -> None:
    context = top.at("context")
    for fact, key in (("benchmark_version", "library_version"), ("benchmark_build", "library_build_type")):
        if node := context.get(key):
            reading.facts[fact] = node.string()[:60]
    runs: dict[str, list[Node]] = {}
    means: dict[str, Node] = {}
    for row in top.at("benchmarks").every():
        name = _name(row)
        if row.get("error_occurred"):
            raise Unfit(row.line, f"{name[:100]} failed: {row.at('error_message').string()[:100]}")
        kind = row.get("run_type")
        if kind is None or kind.value == "iteration":
            runs.setdefault(name, []).append(row)
        elif row.at("aggregate_name").value == MEAN:
            means[name] = row
    if not runs and not means:
        raise Unfit(0, "no benchmark has runs, or a mean of them")
    names = dict.fromkeys((*runs, *means))
    found = [(name, list(_values(runs.get(name, []), means.get(name), wants))) for name in names]
    if not any(values for _, values in found):
        raise Unfit(0, f"no benchmark has {' or '.join(wants)}")
    labelled(reading, "benchmark", ((name, values) for name, values in found if values))


def _name(row: Node) -> str:
    return (row.get("run_name") or row.at("name")).string()


def _values(runs: list[Node], mean: Node | None, wants: Wants) -> Iterator[Value]:
    for row in runs:
        if (said := row.get("repetitions")) and said.value != len(runs):
            raise Unfit(said.line, f"{len(runs)} rows of {_name(row)[:100]}, and {said.where} is {said.value!r}")
    rows = runs or ([mean] if mean else [])
    for key, wanted in wants.items():
        nodes = [node for row in rows if (node := row.get(key))]
        if not nodes:
            continue
        if len(nodes) != len(rows):
            raise Unfit(nodes[0].line, f"only {len(nodes)} of {len(rows)} repetitions have {key}")
        value = fmean(node.number() for node in nodes)
        if mean is not None and runs:
            must_agree(mean.at(key), value, f"the mean of {len(nodes)} repetitions is")
        factor = _factor(rows) if key in TIMES and key in USUAL and wanted is USUAL[key] else wanted.factor
        yield Value(wanted.metric, in_base_units(value, factor), nodes[0].line if len(nodes) == 1 else 0)


def _factor(rows: list[Node]) -> Fraction:
    """What the times of repetitions are in."""
    unit, *others = [row.at("time_unit") for row in rows]
    if other := next((one for one in others if one.value != unit.value), None):
        raise Unfit(other.line, f"{other.where} is {other.value!r}, of another repetition {unit.value!r}")
    if unit.value not in TIME_UNITS:
        raise Unfit(unit.line, f"{unit.where} is {unit.value!r}, not one of {', '.join(TIME_UNITS)}")
    return TIME_UNITS[unit.value]


GOOGLE_BENCHMARK = Reader("google-benchmark", read, (REAL, CPU, ITEMS, BYTES), free=True)
