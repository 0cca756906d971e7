"""What ping measures: round trips and lost packets."""

from vtax.model.metric import Kind, Metric

RTT_MIN = Metric(name="rtt_min", unit="s", kind=Kind.COST, meaning="fastest round trip")
RTT_AVG = Metric(name="rtt_avg", unit="s", kind=Kind.COST, primary=True, meaning="mean round trip")
RTT_MAX = Metric(name="rtt_max", unit="s", kind=Kind.COST, meaning="slowest round trip")
RTT_MDEV = Metric(
    name="rtt_mdev", unit="s", kind=Kind.COST, meaning="deviation as iputils computes it: sqrt(mean(x²) - mean(x)²)"
)
LOST = Metric(name="lost_fraction", unit="1", kind=Kind.PROPORTION, meaning="share of packets sent that had no reply")
METRICS = (RTT_MIN, RTT_AVG, RTT_MAX, RTT_MDEV, LOST)
