"""What stress-ng measures: bogus operations. One is whatever one stressor's loop does, so a rate compares environments
under the same stressor, method and version of stress-ng, and nothing else."""

from vtax.model.metric import Kind, Metric

BOGO_OPS = Metric(name="bogo_ops", unit="1", kind=Kind.COUNT, meaning="operations of all workers in the run")
RATE_REAL = Metric(
    name="bogo_ops_rate_real",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="operations per second of wall time: of one stressor, method and version only",
)
RATE_CPU = Metric(
    name="bogo_ops_rate_cpu",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    meaning="operations per second of CPU time (user + system): hides time in which a worker did not run",
)
METRICS = (BOGO_OPS, RATE_REAL, RATE_CPU)
