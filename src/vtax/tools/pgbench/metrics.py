"""What pgbench reports: transactions per second, and how long they and their statements took."""

from vtax.model.metric import Kind, Metric

TPS = Metric(
    name="tps",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="transactions that succeeded per second, without the time to connect",
)
TPS_FIXED_WORK = TPS.model_copy(update={"kind": Kind.RATE_FIXED_WORK})  # with -t
TPS_CONNECTING = Metric(
    name="tps_connecting",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    meaning="the same with a new connection for each transaction (-C), or with the time to connect",
)
LATENCY_AVERAGE = Metric(name="latency_average", unit="s", kind=Kind.COST, meaning="mean time of a transaction")
LATENCY_STDDEV = Metric(name="latency_stddev", unit="s", kind=Kind.COST, meaning="how much transactions differ in time")
CONNECTION_TIME = Metric(
    name="connection_time", unit="s", kind=Kind.COST, meaning="time until all clients were connected; with -C of one"
)
SCHEDULE_LAG = Metric(
    name="schedule_lag", unit="s", kind=Kind.COST, meaning="how late transactions began, with a rate limit (-R)"
)
STATEMENT_LATENCY = Metric(name="statement_latency", unit="s", kind=Kind.COST, meaning="mean time of a statement (-r)")
FAILED = Metric(
    name="failed_fraction", unit="1", kind=Kind.PROPORTION, meaning="share of transactions that failed for good"
)
RETRIED = Metric(
    name="retried_fraction", unit="1", kind=Kind.PROPORTION, meaning="share of transactions that needed another try"
)
LATE = Metric(name="late_fraction", unit="1", kind=Kind.PROPORTION, meaning="share above the latency limit (-L)")
METRICS = (
    TPS,
    TPS_CONNECTING,
    LATENCY_AVERAGE,
    LATENCY_STDDEV,
    CONNECTION_TIME,
    SCHEDULE_LAG,
    STATEMENT_LATENCY,
    FAILED,
    RETRIED,
    LATE,
)
