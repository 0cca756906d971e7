"""What GUPS measures."""

from vtax.model.metric import Kind, Metric

UPDATES = Metric(
    name="GUPS",
    unit="update/s",
    kind=Kind.RATE_FIXED_WORK,
    primary=True,
    meaning="updates of random words of a table in memory per second, all threads together",
)
REAL_TIME = Metric(name="real_time", unit="s", kind=Kind.COST, meaning="wall time of all updates")
CPU_TIME = Metric(name="cpu_time", unit="s", kind=Kind.COST, meaning="CPU time of all updates, as the program has it")
ERRORS = Metric(name="errors", unit="1", kind=Kind.COUNT, meaning="words of the table with a wrong value")
METRICS = (UPDATES, REAL_TIME, CPU_TIME, ERRORS)
