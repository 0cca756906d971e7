"""What netperf prints for requests and responses (TCP_RR, UDP_RR): the usual table, or the columns that `-o` asks for.

A transaction is a request and its response. Quantiles come only with `-o`, in whole microseconds. Tests of streams are
recognised and left out.

Facts: `protocol`; from the usual table `request_bytes` and `response_bytes`; from columns `time_rounding` (half a
microsecond as a share of the smallest quantile) and `rounded` (the metrics that are).
"""

from __future__ import annotations

import re

from vtax.model.metric import Kind, Metric
from vtax.tools.reading import Reading, Section, Value, agree, near_miss, number

BANNER = re.compile(r"^(?:MIGRATED )?(TCP|UDP) (REQUEST/RESPONSE|STREAM|MAERTS)\b.{0,40}TEST\b")
TABLE = re.compile(
    r"^\d{1,12}\s{1,10}\d{1,12}\s{1,10}(\d{1,12})\s{1,10}(\d{1,12})\s{1,10}(\d{1,9}\.\d{1,3})\s{1,10}(\d{1,12}\.\d\d)\s{0,3}$"
)
MICROSECOND = 1e6  # in a second
ROUNDED_US = 0.5
RATE = Metric(
    name="transaction_rate",
    unit="1/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="requests that were answered per second, one after the other",
)


def _quantile(name: str, share: str, primary: bool = False) -> Metric:
    meaning = f"{share} of the requests were answered in this time"
    return Metric(name=name, unit="s", kind=Kind.LATENCY_QUANTILE, primary=primary, meaning=meaning)


COLUMNS = {
    "Mean Latency Microseconds": Metric(
        name="latency_mean", unit="s", kind=Kind.COST, meaning="mean time until a request is answered"
    ),
    "50th Percentile Latency Microseconds": _quantile("latency_p50", "half"),
    "90th Percentile Latency Microseconds": _quantile("latency_p90", "90 %"),
    "99th Percentile Latency Microseconds": _quantile("latency_p99", "99 %", primary=True),
    "Maximum Latency Microseconds": _quantile("latency_max", "all"),
}
METRICS = (RATE, *COLUMNS.values())
RATES = ("Transaction Rate Tran/s", "Throughput")


def starts(line: str) -> bool:
    return BANNER.match(line) is not None


def read(section: Section) -> Reading:
    """One run."""
    reading = Reading("netperf")
    banners = [found for line in section.lines if (found := BANNER.match(line.text))]
    if len(banners) != 1:
        reading.refuse(0, "all values", f"{len(banners)} tests in one output" if banners else "no test of netperf", 0)
        return reading
    reading.facts["protocol"] = banners[0][1]
    reading.params["test"] = f"{banners[0][1]}_RR"
    if banners[0][2] != "REQUEST/RESPONSE":
        reading.no_test = "it is a test of streams, not of requests"
        return reading
    for line, following in zip(section.lines, section.lines[1:], strict=False):
        if line.text.startswith(("Throughput,", "Transaction Rate Tran/s,", "Mean Latency")):
            _columns(reading, line.text.split(","), following.text.split(","), following.number)
    for line in section.lines:
        if found := TABLE.match(line.text):
            reading.facts |= {"request_bytes": int(found[1]), "response_bytes": int(found[2])}
            reading.values.append(Value(RATE, float(found[4]), line.number))
    if len([value for value in reading.values if value.metric is RATE]) == 1:
        reading.ended = True
    elif not reading.refusals:
        reading.values.clear()
        reading.refuse(near_miss(section.lines, TABLE), "all values", "there is not one line with its results", 0)
    return reading


def _columns(reading: Reading, names: list[str], cells: list[str], line: int) -> None:
    """A row of what `-o` asks for, which has as many cells as its header."""
    values = {name: number(cell.strip()) for name, cell in zip(names, cells, strict=False)}
    if len(names) != len(cells) or None in values.values() or not all(name in values for name in RATES):
        reading.refuse(line, "all values", "its row is cut, damaged, or lacks the rate of transactions", len(names))
        return
    rates = [values[name] or 0.0 for name in RATES]
    if not agree(rates[0], rates[1], 1e-4):
        reading.refuse(line, RATE.name, f"the rates are {rates[0]:g} and {rates[1]:g}")
        return
    reading.values.append(Value(RATE, rates[0], line))
    for name, metric in COLUMNS.items():
        found = values.get(name)
        if found:
            reading.values.append(Value(metric, found / MICROSECOND, line))
    several = [value for value in reading.values if value.metric.kind is Kind.LATENCY_QUANTILE]
    quantiles = [value.value for value in several]
    if quantiles:
        reading.facts["time_rounding"] = ROUNDED_US / MICROSECOND / min(quantiles)
        reading.facts["rounded"] = [value.metric.name for value in several]
    mean = values.get("Mean Latency Microseconds")
    if quantiles != sorted(quantiles) or (mean and not agree(mean * rates[0], MICROSECOND, 0.2)):
        reading.values.clear()
        reading.refuse(line, "all values", "quantiles decrease, or the mean does not fit the rate", len(names))
