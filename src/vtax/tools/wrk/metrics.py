"""What wrk reports: requests per second, and how long an answer took."""

from vtax.model.metric import Kind, Metric

REQUESTS_RATE = Metric(
    name="requests_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="answers per second, those with an error status among them",
)
TRANSFER_RATE = Metric(
    name="transfer_rate",
    unit="byte/s",
    kind=Kind.RATE_FIXED_TIME,
    meaning="bytes received per second, headers included",
)
LATENCY_AVG = Metric(name="latency_avg", unit="s", kind=Kind.COST, meaning="mean time from a request to its answer")
LATENCY_MAX = Metric(name="latency_max", unit="s", kind=Kind.COST, meaning="slowest answer")
QUANTILES = {
    share: Metric(
        name=f"latency_p{share}",
        unit="s",
        kind=Kind.LATENCY_QUANTILE,
        meaning=f"{share} % of the answers took no longer than this (--latency)",
    )
    for share in ("50", "75", "90", "99")
}
FAILED = Metric(
    name="failed_fraction",
    unit="1",
    kind=Kind.PROPORTION,
    meaning="answers with an error status and errors of sockets, as a share of the answers",
)
METRICS = (REQUESTS_RATE, TRANSFER_RATE, LATENCY_AVG, LATENCY_MAX, *QUANTILES.values(), FAILED)
