"""What fio's jobs read, wrote and trimmed: rates, and quantiles of the time until a block is done."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.model.metric import Kind, Metric

RATE, QUANTILE = Kind.RATE_FIXED_TIME, Kind.LATENCY_QUANTILE
DIRECTIONS = {"read": "read", "write": "written", "trim": "trimmed"}
QUANTILES = {"50": ("p50", "half"), "99": ("p99", "99 %"), "99.9": ("p99.9", "99.9 %")}  # in percent


def _metrics(way: str, done: str) -> Iterator[Metric]:
    decides = way != "trim"
    yield Metric(name=f"{way}_bandwidth", unit="byte/s", kind=RATE, meaning=f"bytes {done} per second")
    yield Metric(name=f"{way}_iops", unit="1/s", kind=RATE, primary=decides, meaning=f"blocks {done} per second")
    yield Metric(name=f"{way}_latency_mean", unit="s", kind=Kind.COST, meaning=f"mean time until a block is {done}")
    for name, share in QUANTILES.values():
        meaning = f"{share} of the blocks were {done} in this time, from their submission on"
        yield Metric(name=f"{way}_latency_{name}", unit="s", kind=QUANTILE, meaning=meaning)


METRICS = {metric.name: metric for way, done in DIRECTIONS.items() for metric in _metrics(way, done)}
