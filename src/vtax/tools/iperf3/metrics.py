"""What iperf3 measures: what arrives a second, and what was lost on the way."""

from vtax.model.metric import Kind, Metric

THROUGHPUT = Metric(
    name="throughput",
    unit="bit/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="payload that reached the receiver a second, all streams together",
)
RETRANSMITS = Metric(name="retransmits", unit="1", kind=Kind.COUNT, meaning="TCP segments that the sender sent again")
JITTER = Metric(name="jitter", unit="s", kind=Kind.COST, meaning="UDP: smoothed change of the transit time (RFC 1889)")
LOST = Metric(
    name="lost_fraction", unit="1", kind=Kind.PROPORTION, meaning="UDP: packets lost, of those the receiver knows of"
)
METRICS = (THROUGHPUT, RETRANSMITS, JITTER, LOST)
