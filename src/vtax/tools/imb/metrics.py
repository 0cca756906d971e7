"""What the Intel MPI Benchmarks measure, by the words in the heads of their tables."""

from vtax.model.metric import Kind, Metric

TIME = Metric(name="t", unit="s", kind=Kind.COST, meaning="time of one operation of a size (PingPong: one way)")
TIME_MIN = Metric(name="t_min", unit="s", kind=Kind.COST, meaning="the same of the fastest rank")
TIME_MAX = Metric(name="t_max", unit="s", kind=Kind.COST, meaning="the same of the slowest rank")
TIME_AVG = Metric(name="t_avg", unit="s", kind=Kind.COST, meaning="the same, mean over ranks")
BANDWIDTH = Metric(
    name="bandwidth", unit="byte/s", kind=Kind.RATE_FIXED_WORK, meaning="bytes of messages of a size a second"
)
METRICS = (TIME, TIME_MIN, TIME_MAX, TIME_AVG, BANDWIDTH)
COLUMNS = {
    "t[usec]": TIME,
    "t_min[usec]": TIME_MIN,
    "t_max[usec]": TIME_MAX,
    "t_avg[usec]": TIME_AVG,
    "Mbytes/sec": BANDWIDTH,
}
