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
TRANSFER = Metric(name="transfer", unit="byte", kind=Kind.COUNT, meaning="payload received, all streams together")
SENT = Metric(name="transfer_sent", unit="byte", kind=Kind.COUNT, meaning="payload that the sender took, all streams")
RATE_SENT = Metric(
    name="throughput_sent",
    unit="bit/s",
    kind=Kind.RATE_FIXED_TIME,
    meaning="payload per second that the sender took, before any of it arrived",
)
METRICS = (THROUGHPUT, RETRANSMITS, JITTER, LOST)
INTERVALS = {  # of logs only: one value for each interval, with its times as label
    "throughput": THROUGHPUT.model_copy(
        update={"name": "throughput_interval", "primary": False, "meaning": "payload per second in one interval"}
    ),
    "transfer": TRANSFER.model_copy(update={"name": "transfer_interval", "meaning": "payload in one interval"}),
    "retransmits": RETRANSMITS.model_copy(update={"name": "retransmits_interval"}),
    "jitter": JITTER.model_copy(update={"name": "jitter_interval"}),
    "lost_fraction": LOST.model_copy(update={"name": "lost_fraction_interval"}),
}
