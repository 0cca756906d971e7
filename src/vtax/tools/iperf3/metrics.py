"""What iperf3 measures: throughput at the receiver, and losses."""

from vtax.model.metric import Kind, Metric

THROUGHPUT = Metric(
    name="throughput",
    unit="bit/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="payload received per second, all streams together",
)
RETRANSMITS = Metric(name="retransmits", unit="1", kind=Kind.COUNT, meaning="TCP segments that the sender sent again")
JITTER = Metric(name="jitter", unit="s", kind=Kind.COST, meaning="UDP: smoothed change of the transit time (RFC 1889)")
LOST = Metric(
    name="lost_fraction",
    unit="1",
    kind=Kind.PROPORTION,
    meaning="UDP: share of packets lost, of those known to the receiver",
)
METRICS = (THROUGHPUT, RETRANSMITS, JITTER, LOST)
