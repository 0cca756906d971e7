"""What memcslap reports: how fast its threads got or set keys."""

from vtax.model.metric import Kind, Metric

OPERATIONS_RATE = Metric(
    name="operations_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_WORK,
    primary=True,
    meaning="keys that all threads together got or set per second, from their number and the time",
)
LOAD_RATE = Metric(
    name="load_rate", unit="1/s", kind=Kind.RATE_FIXED_WORK, meaning="keys per second that one thread set beforehand"
)
METRICS = (OPERATIONS_RATE, LOAD_RATE)
