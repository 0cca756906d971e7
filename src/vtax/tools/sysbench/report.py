"""What every sysbench 1.x test prints at its end: total time, events, latency, fairness.

General statistics:
    total time:                          1.0005s
    total number of events:              1664

Latency (ms):
         avg:                                    0.60
         95th percentile:                        0.67
         sum:                                  999.15

Threads fairness:
    execution time (avg/stddev):   0.9992/0.00
"""

from __future__ import annotations

import re

from vtax.model.metric import Kind, Metric
from vtax.model.record import Record
from vtax.model.trial import StepRecord, TrialRecord
from vtax.tools.benchmark import found, number, refuse
from vtax.tools.excerpts import blame

VERSION = re.compile(r"^sysbench (1\.\d+\.\d+)\b.*$", re.MULTILINE)  # 0.x counted other things under the same names
TOTAL_TIME = re.compile(r"^ +total time: +([\d.]+)s$", re.MULTILINE)
EVENTS = re.compile(r"^ +total number of events: +(\d+)$", re.MULTILINE)
LATENCY = re.compile(
    r"^Latency \(ms\):\n"
    r" +min: +[\d.]+\n +avg: +([\d.]+)\n +max: +[\d.]+\n +95th percentile: +([\d.]+)\n +sum: +([\d.]+)$",
    re.MULTILINE,
)
END = re.compile(r"^ +execution time \(avg/stddev\): +[\d.]+/[\d.]+\n", re.MULTILINE)
ROUNDING = 0.005000001  # half of the last digit that sysbench prints

LATENCY_SUM = Metric(
    name="latency_sum",
    unit="s",
    kind=Kind.COUNT,
    meaning="time that all threads together spent in events: about threads x time, so not a speed",
)


class Report(Record):
    """One run. `latency_avg_s` is the sum over the events: sysbench prints the mean to 10 µs only."""

    text: str
    time_s: float
    events: int
    latency_avg_s: float
    latency_p95_s: float
    latency_sum_s: float


def report_of(record: TrialRecord, done: StepRecord) -> Report:
    """The general part of a finished run's output. Raises ParseError for an unfinished one or one without events."""
    text = record.texts[done.stdout]
    found(VERSION, text, record)
    found(END, text, record)
    (time_s,) = found(TOTAL_TIME, text, record)
    (events,) = found(EVENTS, text, record)
    latencies = found(LATENCY, text, record)
    average, p95, total = (number(each, record) for each in latencies)
    if int(events) == 0 or number(time_s, record) == 0:
        raise refuse(record, "no event took place", blame(events, time_s))
    if abs(total / int(events) - average) > ROUNDING:
        what = f"a mean latency of {average} ms does not fit {total} ms in {events} events"
        raise refuse(record, what, blame(latencies[0], latencies[2]))
    return Report(
        text=text,
        time_s=number(time_s, record),
        events=int(events),
        latency_avg_s=total / 1000 / int(events),
        latency_p95_s=p95 / 1000,
        latency_sum_s=total / 1000,
    )


def positive(text: str, record: TrialRecord, what: str) -> float:
    """A rate above zero: a test that ran has one. Raises ParseError otherwise."""
    value = number(text, record)
    if value <= 0:
        raise refuse(record, f"{what} is {text}", text)
    return value


def runs(record: TrialRecord) -> tuple[StepRecord, ...]:
    """The timed step on each of its nodes: `fileio` has one before it and one after it."""
    timed = [done for done in record.steps if "run" in done.argv]
    if not timed:
        raise refuse(record, "no step of this trial ran sysbench", "")
    return tuple(timed)
