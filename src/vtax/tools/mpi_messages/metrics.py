"""What messages between ranks of MPI cost."""

from __future__ import annotations

from vtax.model.metric import Kind, Metric

HALF = "half the time of a message of 8 bytes and its answer"
LATENCY = {
    "p50": Metric(
        name="latency_p50",
        unit="s",
        kind=Kind.LATENCY_QUANTILE,
        primary=True,
        meaning=f"{HALF}: half of them took no longer",
    ),
    "p99": Metric(name="latency_p99", unit="s", kind=Kind.LATENCY_QUANTILE, meaning=f"{HALF}: 99 % took no longer"),
    "most": Metric(name="latency_max", unit="s", kind=Kind.LATENCY_QUANTILE, meaning=f"{HALF}: the longest"),
}
BANDWIDTH = Metric(
    name="bandwidth",
    unit="byte/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="bytes of messages of 1 MiB per second, 16 at a time, one way",
)
ALLREDUCE = Metric(name="allreduce", unit="s", kind=Kind.COST, meaning="time of a sum of 8 bytes over all ranks")
ALLREDUCE_LARGE = Metric(
    name="allreduce_large", unit="s", kind=Kind.COST, meaning="time of a sum of 64 KiB over all ranks"
)
METRICS = (*LATENCY.values(), BANDWIDTH, ALLREDUCE, ALLREDUCE_LARGE)
