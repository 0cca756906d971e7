"""What Intel's Optimized LINPACK Benchmark measures."""

from vtax.model.metric import Kind, Metric

AVERAGE = Metric(
    name="Average",
    unit="flop/s",
    kind=Kind.RATE_FIXED_WORK,
    primary=True,
    meaning="2/3 n³ + 2 n² operations of a dense linear system by its time, mean over the trials of one size",
)
MAXIMAL = Metric(name="Maximal", unit="flop/s", kind=Kind.RATE_FIXED_WORK, meaning="the fastest trial of one size")
RATE = Metric(name="GFlops", unit="flop/s", kind=Kind.RATE_FIXED_WORK, meaning="one trial")
TIME = Metric(name="Time", unit="s", kind=Kind.COST, meaning="one trial")
RESIDUAL = Metric(name="Residual_norm", unit="1", kind=Kind.COUNT, meaning="scaled residual of one trial")
METRICS = (AVERAGE, MAXIMAL, RATE, TIME, RESIDUAL)
