"""fio's JSON. Version 2 has times in µs and bytes in KiB, version 3 in ns and bytes; 3.0 and 3.1 have no `bw_bytes`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from vtax.tools.command.json_path import Node
from vtax.tools.command.readers.reader import labelled, must_agree, read_document
from vtax.tools.documents import Unfit
from vtax.tools.fio.metrics import DIRECTIONS, METRICS, QUANTILES
from vtax.tools.reading import Reading, Section, Value

MILLISECOND = 1e-3  # of a job's time, which fio rounds to whole ones
KIB = 1024
SIZE = re.compile(r"(\d{1,15})([kmgt]?)(?:i?b)?")
COARSE = 100  # a rate that fio 2 printed as a whole number below this is too far off
OPTIONS = (  # of jobs, that decide the work
    *("rw", "readwrite", "bs", "iodepth", "ioengine", "direct", "buffered", "size", "numjobs", "runtime", "fsync"),
    *("rwmixread", "sync", "rate_iops", "thinktime", "invalidate", "filename", "directory"),
)


class Form(NamedTuple):
    """How a version writes: the names of latencies, their unit in s, and that of amounts of data in bytes."""

    completion: str
    total: str
    second: float
    block: int


FORMS = {"fio-2.": Form("clat", "lat", 1e6, KIB), "fio-3.": Form("clat_ns", "lat_ns", 1e9, 1)}


def read(section: Section) -> Reading:
    """One document."""
    return read_document("fio", section, _take)


def _take(reading: Reading, top: Node) -> None:
    version = top.at("fio version").string()
    form = next((form for start, form in FORMS.items() if version.startswith(start)), None)
    if form is None:
        raise Unfit(top.at("fio version").line, f"it is of {version!r}, and only fio-2 and fio-3 are known")
    reading.facts["fio_version"] = version.removeprefix("fio-")[:60]
    jobs = list(top.at("jobs").every())
    options = _common(top, jobs)
    if options:
        reading.facts["fio_options"] = options
        reading.params |= {name: options[name] for name in OPTIONS[:6] if name in options}
        reading.facts |= _files(options)
    written = [part for job in jobs if (part := job.get("write")) and part.get("io_bytes")]
    reading.facts["written_bytes"] = sum(part.at("io_bytes").number() * form.block for part in written)
    names = [job.at("jobname").string() for job in jobs]
    found = [list(_job(job, form)) for job in jobs]
    if (
        len(
            {
                _quantiles(value for value in values if value.metric.name.startswith(way))
                for values in found
                for way in DIRECTIONS
            }
            - {None}
        )
        > 1
    ):
        raise Unfit(0, "some jobs have percentiles that others lack")
    labelled(reading, "job", zip(apart(names), found, strict=True))


def _quantiles(values: Iterable[Value]) -> frozenset[str] | None:
    """Which quantiles a direction of a job has; None where it did nothing."""
    names = [value.metric.name.partition("_")[2] for value in values]
    return frozenset(name for name in names if name.startswith("latency_p")) if names else None


def _common(top: Node, jobs: list[Node]) -> dict[str, JsonValue]:
    """The options that all jobs have alike, as they were given."""
    every = [{**_options(top.get("global options")), **_options(job.get("job options"))} for job in jobs]
    return {name: value for name, value in every[0].items() if all(one.get(name) == value for one in every)}


def _files(options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Whether files were opened past the page cache, and how large they are, in words that all tools have."""
    direct = options.get("direct", "0") == "1" or options.get("buffered", "1") == "0"
    size = SIZE.fullmatch(str(options.get("size", "")).lower())
    bytes_of = {"file_bytes": int(size[1]) * KIB ** (" kmgt".index(size[2] or " "))} if size else {}
    return {"direct_io": direct, **bytes_of}


def _options(node: Node | None) -> Mapping[str, JsonValue]:
    if node is None or not isinstance(node.value, dict):
        return {}
    return {name: str(node.value[name])[:200] for name in OPTIONS if name in node.value}


def apart(names: list[str]) -> list[str]:
    """The names of jobs, numbered where several have one (`numjobs` without `group_reporting`)."""
    return [f"{name} {names[: at + 1].count(name)}" if names.count(name) > 1 else name for at, name in enumerate(names)]


def _job(job: Node, form: Form) -> Iterator[Value]:
    error = job.at("error")
    if error.value != 0:
        raise Unfit(error.line, f"{error.where} is {error.value!r}: the job failed")
    found = [value for way in DIRECTIONS for value in _direction(job, way, form)]
    if not found:
        raise Unfit(job.line, f"{job.where} neither read nor wrote anything")
    yield from found


def _direction(job: Node, way: str, form: Form) -> Iterator[Value]:
    part = job.get(way)
    if part is None or part.at("io_bytes").number() == 0:
        return
    runtime_s = part.at("runtime").number() * 1e-3
    if runtime_s < 10 * MILLISECOND:
        raise Unfit(part.at("runtime").line, f"{part.where} lasted {runtime_s * 1e3:g} ms: too short for a rate")
    slack = 1.1 * MILLISECOND / runtime_s + 1e-4
    rate, iops, total = part.get("bw_bytes"), part.at("iops"), part.get("total_ios")
    moved = part.at("io_bytes").number() * form.block / runtime_s
    coarse = part.at("bw")
    _near(coarse, moved / KIB, "bytes and time give", slack, 1.0)
    if rate is not None:
        must_agree(rate, moved, "bytes and time give", slack)
        yield Value(METRICS[f"{way}_bandwidth"], rate.number(), rate.line)
    else:  # in whole KiB/s
        yield Value(METRICS[f"{way}_bandwidth"], moved, part.at("io_bytes").line)
    if total is not None:
        _near(iops, total.number() / runtime_s, "operations and time give", slack, 1.0 if form.block > 1 else 0.0)
    elif iops.number() < COARSE:
        raise Unfit(iops.line, f"{iops.where} is the whole number {iops.number():g}: too coarse for a rate")
    yield Value(METRICS[f"{way}_iops"], iops.number(), iops.line)
    yield from _latencies(part, way, form)


def _near(node: Node, value: float, words: str, slack: float, step: float) -> None:
    """Raises Unfit where a number, which was rounded to a multiple of `step`, is not what others say that it is."""
    if abs(node.number() - value) > step + slack * value:
        raise Unfit(node.line, f"{node.where} is {node.number():.10g}, and {words} {value:.10g}")


def _latencies(part: Node, way: str, form: Form) -> Iterator[Value]:
    """Their mean from submission to completion, and quantiles of completion."""
    total = part.at(form.total)
    mean, low, high = (total.at(name) for name in ("mean", "min", "max"))
    if mean.number() > 0:  # 0 with --disable_lat
        if not low.number() <= mean.number() <= high.number():
            raise Unfit(mean.line, f"{mean.where} is not between the shortest and the longest time")
        yield Value(METRICS[f"{way}_latency_mean"], mean.number() / form.second, mean.line)
    quantiles = part.at(form.completion).get("percentile")
    before = 0.0
    for percent, (name, _) in QUANTILES.items() if quantiles else ():
        node = quantiles.get(f"{float(percent):.6f}") if quantiles else None
        if node is None:  # another list of percentiles was asked for
            continue
        if node.number() < before:
            raise Unfit(node.line, f"{node.where} is less than a smaller percentile")
        before = node.number()
        if before > 0:  # 0 with --disable_clat
            yield Value(METRICS[f"{way}_latency_{name}"], before / form.second, node.line)
