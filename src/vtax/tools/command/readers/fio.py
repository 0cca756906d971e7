"""fio's JSON (`--output-format=json`), from version 3 on: rates and latencies of what each job read and wrote.

Rates are checked against the bytes, operations and times of the same job. What fio notes above the document is left
out.
"""

from __future__ import annotations

from collections.abc import Iterator

from vtax.model.metric import Kind, Metric
from vtax.tools.command.json_path import Node
from vtax.tools.command.readers.reader import Reader, Wants, labelled, must_agree, read_document
from vtax.tools.documents import Unfit
from vtax.tools.reading import Reading, Section, Value

RATE, QUANTILE = Kind.RATE_FIXED_TIME, Kind.LATENCY_QUANTILE
DIRECTIONS = {"read": "read", "write": "written", "trim": "trimmed"}
QUANTILES = {"50.000000": ("p50", "half"), "99.000000": ("p99", "99 %"), "99.900000": ("p99.9", "99.9 %")}
MILLISECOND = 1e-3  # of a job's time, which fio rounds to whole ones
NOTES = ("fio: ", "note: ", "job", "Warning")


def _metrics(way: str, done: str) -> Iterator[Metric]:
    yield Metric(name=f"{way}_bandwidth", unit="byte/s", kind=RATE, meaning=f"bytes {done} per second")
    yield Metric(name=f"{way}_iops", unit="1/s", kind=RATE, meaning=f"blocks {done} per second")
    yield Metric(name=f"{way}_latency_mean", unit="s", kind=Kind.COST, meaning=f"mean time until a block is {done}")
    for name, share in QUANTILES.values():
        meaning = f"{share} of the blocks were {done} in this time, from their submission on"
        yield Metric(name=f"{way}_latency_{name}", unit="s", kind=QUANTILE, meaning=meaning)


METRICS = {metric.name: metric for way, done in DIRECTIONS.items() for metric in _metrics(way, done)}


def read(section: Section, _wants: Wants) -> Reading:
    place = next((at for at, line in enumerate(section.lines) if line.text.startswith("{")), 0)
    return read_document("fio", section._replace(lines=section.lines[place:]), _take)


def _take(reading: Reading, top: Node) -> None:
    version = top.at("fio version").string()
    if not version.startswith("fio-3."):
        raise Unfit(top.at("fio version").line, f"it is of {version!r}, and only fio-3 is known")
    reading.facts["fio_version"] = version[:60]
    jobs = list(top.at("jobs").every())
    names = [job.at("jobname").string() for job in jobs]
    labelled(reading, "job", zip(_apart(names), (list(_job(job)) for job in jobs), strict=True))


def _apart(names: list[str]) -> list[str]:
    """The names of jobs, numbered where several have one (`numjobs` without `group_reporting`)."""
    return [f"{name} {names[: at + 1].count(name)}" if names.count(name) > 1 else name for at, name in enumerate(names)]


def _job(job: Node) -> Iterator[Value]:
    error = job.at("error")
    if error.value != 0:
        raise Unfit(error.line, f"{error.where} is {error.value!r}: the job failed")
    found = [value for way in DIRECTIONS for value in _direction(job, way)]
    if not found:
        raise Unfit(job.line, f"{job.where} neither read nor wrote anything")
    yield from found


def _direction(job: Node, way: str) -> Iterator[Value]:
    part = job.get(way)
    if part is None or part.at("total_ios").number() == 0:
        return
    runtime_s = part.at("runtime").number() * 1e-3
    if runtime_s < 10 * MILLISECOND:
        raise Unfit(part.at("runtime").line, f"{part.where} lasted {runtime_s * 1e3:g} ms: too short for a rate")
    slack = 1.1 * MILLISECOND / runtime_s + 1e-4
    rate, iops = part.at("bw_bytes"), part.at("iops")
    must_agree(rate, part.at("io_bytes").number() / runtime_s, "bytes and time give", slack)
    must_agree(iops, part.at("total_ios").number() / runtime_s, "operations and time give", slack)
    yield Value(METRICS[f"{way}_bandwidth"], rate.number(), rate.line)
    yield Value(METRICS[f"{way}_iops"], iops.number(), iops.line)
    yield from _latencies(part, way)


def _latencies(part: Node, way: str) -> Iterator[Value]:
    """Times in ns: their mean from submission to completion, and quantiles of completion."""
    total = part.at("lat_ns")
    if total.at("N").number() > 0:  # 0 with --disable_lat
        mean = total.at("mean")
        low, high = total.at("min"), total.at("max")
        if not low.number() <= mean.number() <= high.number():
            raise Unfit(mean.line, f"{mean.where} is not between the shortest and the longest time")
        yield Value(METRICS[f"{way}_latency_mean"], mean.number() / 1e9, mean.line)
    quantiles = part.at("clat_ns").get("percentile")
    before = 0.0
    for key, (name, _) in QUANTILES.items() if quantiles else ():
        node = quantiles.get(key) if quantiles else None
        if node is None:  # another list of percentiles was asked for
            continue
        if node.number() < before:
            raise Unfit(node.line, f"{node.where} is less than a smaller percentile")
        before = node.number()
        if before > 0:  # 0 with --disable_clat
            yield Value(METRICS[f"{way}_latency_{name}"], before / 1e9, node.line)


FIO = Reader("fio", read, tuple(METRICS.values()))
