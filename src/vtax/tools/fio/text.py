"""What fio prints for people, from version 2.0 to 3.x: the summary of each job.

    4k: (g=0): rw=randread, bs=(R) 4096B-4096B, ..., ioengine=libaio, iodepth=32       a run begins
    4k: (groupid=0, jobs=1): err= 0: pid=15163: Thu Oct  8 10:45:06 2026               a job
      read: IOPS=26.5k, BW=104MiB/s (109MB/s)(1035MiB/10001msec)                        fio 3
      read : io=16384MB, bw=511875KB/s, iops=499 , runt= 32776msec                      fio 2: KB are KiB
         lat (nsec): min=2514, max=84448, avg=3525.67, stdev=836.26
        clat percentiles (nsec):
         | 99.00th=[ 3536], 99.50th=[ 5024], 99.90th=[14144], 99.95th=[15296],
         issued rwts: total=2650261,0,0,0 short=0,0,0,0 dropped=0,0,0,0
    Run status group 0 (all jobs):                                                     all jobs are above

Rates with a suffix have three digits, so the number of operations over the time takes their place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from vtax.model.metric import Metric
from vtax.tools.fio.document import apart
from vtax.tools.fio.metrics import DIRECTIONS, METRICS, QUANTILES
from vtax.tools.reading import Line, Reading, Section, Value

HEADER = re.compile(
    r"^(.{1,200}): \(g=(\d{1,6})\): rw=(\w{1,20}), bs=(.{1,200}), ioengine=([\w-]{1,40}), iodepth=(\d{1,9})$"
)
RESULT = re.compile(r"^(.{1,200}): \(groupid=(\d{1,6}), jobs=(\d{1,9})\): err=\s{0,3}(\d{1,6})\b")
VERSION = re.compile(r"^(?:fio-)?(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?(?:-[\w-]{1,40})?)$")
NUMBER = r"(\d{1,15}(?:\.\d{1,6})?)"
NEW = re.compile(
    rf"^\s{{1,8}}(read|write|trim)\s*: IOPS={NUMBER}([kMG]?), BW={NUMBER}([KMGT]?i?)B/s \([^)]{{1,40}}\)"
    rf"\({NUMBER}([KMGT]?i?)B/(\d{{1,12}})msec\)"
)
OLD = re.compile(
    rf"^\s{{1,8}}(read|write|trim)\s*: io={NUMBER}([KMGT]?)B, bw={NUMBER}([KMGT]?)B/s, iops={NUMBER}([kMG]?)\s?, "
    r"runt=\s{0,12}(\d{1,12})msec"
)
LATENCY = re.compile(
    rf"^\s{{1,8}}lat \((nsec|usec|msec|sec)\)\s*: min=\s*{NUMBER}([kMG]?), max=\s*{NUMBER}([kMG]?), "
    rf"avg=\s*{NUMBER}([kMG]?), stdev="
)
QUANTILES_START = re.compile(r"^\s{1,8}clat percentiles \((nsec|usec|msec|sec)\):$")
QUANTILE = re.compile(rf"{NUMBER}th=\[\s*{NUMBER}([kMG]?)\]")
ISSUED = re.compile(
    r"^\s{1,8}issued (?:rwts|rwt)?\s*: total=(?:r=)?(\d{1,15})[,/](?:w=)?(\d{1,15})[,/](?:d=)?(\d{1,15})"
)
STATUS = "Run status group "
ALIKE = re.compile(  # lines that have to be one of those above
    r"^\s{1,8}(?:(?:read|write|trim)\s*:|lat \(\w{1,5}\)\s*: min=|clat percentiles|issued )"
)
THOUSANDS: Mapping[str, float] = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
SECONDS: Mapping[str, float] = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3, "sec": 1.0}
ROUNDED = 0.01  # of three digits
WAYS = tuple(DIRECTIONS)


def starts(line: str) -> bool:
    """The first line of a run, or of a job where the lines above it are missing."""
    return (": (g=" in line and HEADER.match(line) is not None) or (
        ": (groupid=" in line and RESULT.match(line) is not None
    )


def ends(line: str) -> bool:
    return line.startswith(STATUS)


@dataclass
class Job:
    """One job while its lines are read. `issued` are its operations, by direction."""

    name: str
    line: int
    failed: int
    values: list[Value] = field(default_factory=list)
    runtimes: dict[str, float] = field(default_factory=dict)
    rounded: dict[str, int] = field(default_factory=dict)  # direction -> index of a rate with three digits
    way: str = ""
    unit: float = 0.0  # of the percentiles that are being read, in s; 0 outside them


def read(section: Section) -> Reading:
    """One run: the summaries of its jobs."""
    reading = Reading("fio")
    jobs: list[Job] = []
    headers: list[re.Match[str]] = []
    for line in section.lines:
        if found := HEADER.match(line.text):
            headers.append(found)
        elif found := RESULT.match(line.text):
            jobs.append(Job(found[1], line.number, int(found[4])))
        elif not jobs and headers and (found := VERSION.match(line.text)):
            reading.facts["fio_version"] = found[1]
        elif jobs and line.text.startswith(STATUS):
            reading.ended = True
        elif jobs and not reading.ended:
            _take(reading, jobs[-1], line)
    _note(reading, headers, len(jobs))
    names = apart([job.name for job in jobs])
    for name, job in zip(names, jobs, strict=True):
        labels = {"job": name} if len(jobs) > 1 else {}
        if job.failed:
            reading.refuse(job.line, name, f"err= {job.failed}: the job failed", len(job.values))
        elif not job.values:
            reading.refuse(job.line, name, "it neither read nor wrote anything that can be read", 0)
        else:
            reading.values += [value._replace(labels=labels) for value in job.values]
    return reading


def _note(reading: Reading, headers: list[re.Match[str]], jobs: int) -> None:
    """What the lines above the results say of all jobs alike."""
    named = {"rw": 3, "bs": 4, "ioengine": 5, "iodepth": 6}
    options = {name: headers[0][at] for name, at in named.items() if len({one[at] for one in headers}) == 1}
    if options:
        options["bs"] = _block(options["bs"]) if "bs" in options else ""
        reading.facts["fio_options"] = {name: value for name, value in options.items() if value}
        reading.params |= {name: value for name, value in options.items() if value}
    if jobs > 1:
        reading.params["jobs"] = jobs


def _block(text: str) -> str:
    """One size of blocks, such as 4K, where a header has the same for everything; else what it has."""
    sizes = set(re.findall(r"\d{1,9}(?:\.\d)?(?:[KMG]i?)?B?", text))
    one = sizes.pop() if len(sizes) == 1 else text
    return {"4096B": "4k"}.get(one, re.sub(r"^(\d{1,9})(?:\.0)?([KMG])(?:iB)?$", lambda m: m[1] + m[2].lower(), one))


def _take(reading: Reading, job: Job, line: Line) -> None:
    """A line of a job's summary."""
    text = line.text
    if found := NEW.match(text) or OLD.match(text):
        job.unit, job.way = 0.0, found[1]
        _rates(reading, job, found, line.number)
    elif found := QUANTILES_START.match(text):
        job.unit = SECONDS[found[1]]
    elif job.unit and text.lstrip().startswith("|"):
        _quantiles(reading, job, text, line.number)
    elif found := LATENCY.match(text):
        job.unit = 0.0
        low, high, mean = (float(found[at]) * THOUSANDS[found[at + 1]] for at in (2, 4, 6))
        if job.way and mean > 0:
            if not low <= mean * (1 + ROUNDED) or not mean <= high * (1 + ROUNDED):
                reading.refuse(line.number, f"{job.way}_latency_mean", "not between the shortest and the longest time")
            else:
                _add(job, "latency_mean", mean * SECONDS[found[1]], line.number)
    elif found := ISSUED.match(text):
        _exact(reading, job, [int(found[at]) for at in (1, 2, 3)], line.number)
    elif ALIKE.match(text):
        reading.refuse(line.number, text.strip(), "it is not what fio prints there", 0)
    else:
        job.unit = 0.0


def _rates(reading: Reading, job: Job, found: re.Match[str], line: int) -> None:
    new = found.re is NEW
    iops, letter, bandwidth, scale, amount, moved = (
        (found[2], found[3], found[4], found[5], found[6], found[7])
        if new
        else (found[6], found[7], found[4], found[5], found[2], found[3])
    )
    runtime_s = int(found[8]) / 1000
    bytes_s = float(bandwidth) * _bytes(scale, new)
    if runtime_s <= 0.01 or not float(iops) or not bytes_s:
        why = (
            f"{job.way}: {runtime_s:g} s are too short for a rate" if runtime_s <= 0.01 else f"{job.way}: nothing done"
        )
        reading.refuse(line, job.name, why, 2)
        return
    told = float(amount) * _bytes(moved, new) / runtime_s
    if abs(told - bytes_s) > ROUNDED * bytes_s + 2048:
        reading.refuse(line, f"{job.way}_bandwidth", f"amount and time give {told:.6g} byte/s, not {bytes_s:.6g}")
        return
    job.runtimes[job.way] = runtime_s
    _add(job, "bandwidth", bytes_s, line)
    if letter or float(iops) < 100:
        job.rounded[job.way] = len(job.values)
    _add(job, "iops", float(iops) * THOUSANDS[letter], line)


def _bytes(scale: str, new: bool) -> float:
    """fio 3 says KiB; fio 2 says KB and means KiB."""
    power = "KMGT".find(scale[:1]) + 1 if scale else 0
    return float((1000 if new and scale and not scale.endswith("i") else 1024) ** power)


def _exact(reading: Reading, job: Job, issued: list[int], line: int) -> None:
    """Compare the printed rates with the operations that were issued, which may be a few more than were completed."""
    for way, count in zip(WAYS, issued, strict=True):
        at = next((i for i, value in enumerate(job.values) if value.metric.name == f"{way}_iops"), None)
        if at is None:
            continue
        printed, exact = job.values[at].value, count / job.runtimes[way]
        if abs(printed - exact) > 1 + 2 * ROUNDED * printed:
            reading.refuse(line, f"{way}_iops", f"operations and time give {exact:.6g}/s, not {printed:g}")
            job.values = [value for value in job.values if not value.metric.name.startswith(way)]
        elif way in job.rounded:
            job.values[at] = job.values[at]._replace(value=exact, line=line)


def _quantiles(reading: Reading, job: Job, text: str, line: int) -> None:
    if len(QUANTILE.findall(text)) != text.count("["):
        reading.refuse(line, text.strip(), "it is not what fio prints there", 0)
        return
    for found in QUANTILE.finditer(text):
        name = next((name for percent, (name, _) in QUANTILES.items() if float(percent) == float(found[1])), None)
        if name and float(found[2]):
            _add(job, f"latency_{name}", float(found[2]) * THOUSANDS[found[3]] * job.unit, line)


def _add(job: Job, name: str, value: float, line: int) -> None:
    metric: Metric = METRICS[f"{job.way}_{name}"]
    job.values.append(Value(metric, value, line))
