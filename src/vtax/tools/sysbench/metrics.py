"""What sysbench measures. Tests stop after a time, so rates are what counts."""

from vtax.model.metric import Kind, Metric

EVENTS_RATE = Metric(
    name="events_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="how often per second all threads of a node found the primes up to `max_prime`",
)
LATENCY_AVG = Metric(name="latency_avg", unit="s", kind=Kind.COST, meaning="mean time of one event in one thread")
LATENCY_P95 = Metric(
    name="latency_p95", unit="s", kind=Kind.LATENCY_QUANTILE, meaning="95 % of the events took no longer than this"
)
LATENCY_MIN = Metric(name="latency_min", unit="s", kind=Kind.COST, meaning="the shortest event")
LATENCY_MAX = Metric(name="latency_max", unit="s", kind=Kind.COST, meaning="the longest event")
LATENCY_SUM = Metric(
    name="latency_sum",
    unit="s",
    kind=Kind.COUNT,
    meaning="time that all threads together spent in events: about threads x time, so not a speed",
)
TOTAL_TIME = Metric(
    name="total_time",
    unit="s",
    kind=Kind.COST,
    primary=True,
    meaning="time for a fixed number of events (sysbench before 1.0; later versions stop after a time)",
)
MEMORY_THROUGHPUT = Metric(
    name="throughput",
    unit="byte/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="bytes that all threads of a node read or wrote in memory per second; small blocks stay in the caches",
)
MEMORY_OPERATIONS = Metric(
    name="operations_rate", unit="1/s", kind=Kind.RATE_FIXED_TIME, meaning="blocks read or written in memory per second"
)
FILE_READ = Metric(
    name="throughput_read", unit="byte/s", kind=Kind.RATE_FIXED_TIME, primary=True, meaning="bytes read from files"
)
FILE_WRITTEN = Metric(
    name="throughput_write",
    unit="byte/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="bytes written to files, including the time of the fsync calls between them; in the mixed test a fixed "
    "share of what is read, and then not primary",
)
FILE_OPERATIONS = Metric(
    name="operations_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    meaning="file operations per second, by kind: read, write, fsync",
)
TRANSACTIONS_RATE = Metric(
    name="transactions_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="transactions of a database that were committed per second",
)
QUERIES_RATE = Metric(
    name="queries_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    meaning="SQL statements per second; before 1.0 without BEGIN",
)
LATENCY_P99 = Metric(
    name="latency_p99", unit="s", kind=Kind.LATENCY_QUANTILE, meaning="99 % of the events took no longer than this"
)
FAILED = Metric(
    name="failed_fraction",
    unit="1",
    kind=Kind.PROPORTION,
    meaning="transactions that were rolled back and tried again (deadlocks, ignored errors), of all that were begun",
)
OLTP = (TRANSACTIONS_RATE, QUERIES_RATE, LATENCY_AVG, LATENCY_P95, LATENCY_P99, LATENCY_MIN, LATENCY_MAX, FAILED)
