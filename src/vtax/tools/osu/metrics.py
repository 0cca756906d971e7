"""What the OSU Micro-Benchmarks measure, by the words in the head of their tables."""

from vtax.model.metric import Kind, Metric

LATENCY = Metric(name="latency", unit="s", kind=Kind.COST, meaning="time of one operation of a size; one way, of two")
LATENCY_AVG = Metric(
    name="latency_avg", unit="s", kind=Kind.COST, meaning="time of a collective operation, mean over ranks"
)
LATENCY_MIN = Metric(name="latency_min", unit="s", kind=Kind.COST, meaning="the same of the fastest rank")
LATENCY_MAX = Metric(name="latency_max", unit="s", kind=Kind.COST, meaning="the same of the slowest rank")
BANDWIDTH = Metric(
    name="bandwidth", unit="byte/s", kind=Kind.RATE_FIXED_WORK, meaning="bytes of messages of a size a second"
)
MESSAGES = Metric(name="message_rate", unit="1/s", kind=Kind.RATE_FIXED_WORK, meaning="messages of a size a second")
METRICS = (LATENCY, LATENCY_AVG, LATENCY_MIN, LATENCY_MAX, BANDWIDTH, MESSAGES)
COLUMNS = {  # words of the head, without a blank before the unit -> metric, and how many base units one of them is
    "Latency(us)": (LATENCY, 1e-6),
    "Avg Latency(us)": (LATENCY_AVG, 1e-6),
    "Min Latency(us)": (LATENCY_MIN, 1e-6),
    "Max Latency(us)": (LATENCY_MAX, 1e-6),
    "Bandwidth(MB/s)": (BANDWIDTH, 1e6),
    "Bi-Bandwidth(MB/s)": (BANDWIDTH, 1e6),
    "MB/s": (BANDWIDTH, 1e6),
    "Messages/s": (MESSAGES, 1.0),
}
