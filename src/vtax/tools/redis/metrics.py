"""What redis-benchmark reports of a test: requests per second and the latency of a request."""

from vtax.model.metric import Kind, Metric

REQUESTS_RATE = Metric(
    name="requests_rate", unit="1/s", kind=Kind.RATE_FIXED_WORK, primary=True, meaning="requests answered per second"
)
LATENCY_AVG = Metric(name="latency_avg", unit="s", kind=Kind.COST, meaning="mean time from a request to its answer")
LATENCY_MIN = Metric(name="latency_min", unit="s", kind=Kind.COST, meaning="fastest answer")
LATENCY_P50 = Metric(name="latency_p50", unit="s", kind=Kind.LATENCY_QUANTILE, meaning="half of the answers took less")
LATENCY_P95 = Metric(name="latency_p95", unit="s", kind=Kind.LATENCY_QUANTILE, meaning="95 % of the answers took less")
LATENCY_P99 = Metric(name="latency_p99", unit="s", kind=Kind.LATENCY_QUANTILE, meaning="99 % of the answers took less")
LATENCY_MAX = Metric(name="latency_max", unit="s", kind=Kind.COST, meaning="slowest answer")
LATENCIES = (LATENCY_AVG, LATENCY_MIN, LATENCY_P50, LATENCY_P95, LATENCY_P99, LATENCY_MAX)
METRICS = (REQUESTS_RATE, *LATENCIES)
