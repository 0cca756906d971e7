"""What nuttcp measures, as the receiver counted it."""

from vtax.model.metric import Kind, Metric

THROUGHPUT = Metric(
    name="throughput", unit="bit/s", kind=Kind.RATE_FIXED_TIME, primary=True, meaning="payload received per second"
)
TRANSFER = Metric(name="transfer", unit="byte", kind=Kind.COUNT, meaning="payload received")
RETRANSMITS = Metric(name="retransmits", unit="1", kind=Kind.COUNT, meaning="TCP segments that were sent again")
RTT = Metric(name="rtt", unit="s", kind=Kind.COST, meaning="round-trip time of the connection, from the kernel")
LOST = Metric(name="lost_fraction", unit="1", kind=Kind.PROPORTION, meaning="UDP: share of packets that were lost")
METRICS = (THROUGHPUT, TRANSFER, RETRANSMITS, RTT, LOST)
