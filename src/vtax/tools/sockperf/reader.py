"""What sockperf prints for a client (ping-pong): half the time of a message to the server and back, in quantiles.

sockperf divides round trips by two. With `--full-rtt` it does not; such a run is refused, because its numbers mean
something else. What a server prints has no numbers.

Facts: `sockperf_version`, `total_time_s` (by its own clock), `observations`, `dropped`, `duplicated`, `out_of_order`.
"""

from __future__ import annotations

import re

from vtax.model.metric import Kind, Metric
from vtax.tools.reading import ESCAPES, Reading, Section, Value, near_miss

NUMBER = r"(\d{1,12}\.\d{1,6})"
BANNER = re.compile(r"^sockperf: == version #(\S{1,40}) ==\s?$")
MEAN = re.compile(rf"^sockperf: ====> avg-latency={NUMBER} \(std-dev=")
SUMMARY = re.compile(rf"^sockperf: Summary: (Latency|Round trip) is {NUMBER} usec")
TOTAL = re.compile(r"^sockperf: \[Total Run\] RunTime=(\d{1,9}\.\d{3}) sec;")
COUNTED = re.compile(r"^sockperf: Total (\d{1,15}) observations;")
LOST = re.compile(
    r"^sockperf: # dropped messages = (\d{1,15}); # duplicated messages = (\d{1,15}); "
    r"# out-of-order messages = (\d{1,15})$"
)
QUANTILE = re.compile(rf"^sockperf: ---> percentile {NUMBER} =\s{{0,20}}{NUMBER}$")
MOST = re.compile(rf"^sockperf: ---> <MAX> observation =\s{{0,20}}{NUMBER}$")
LEAST = re.compile(rf"^sockperf: ---> <MIN> observation =\s{{0,20}}{NUMBER}$")
MICROSECOND = 1e6  # in a second
HALF = "half the time of a message and its answer"


def _quantile(name: str, share: str, primary: bool = False) -> Metric:
    meaning = f"{HALF}: {share}"
    return Metric(name=name, unit="s", kind=Kind.LATENCY_QUANTILE, primary=primary, meaning=meaning)


LATENCY_MEAN = Metric(name="latency_mean", unit="s", kind=Kind.COST, meaning=f"{HALF}: the mean")
QUANTILES = {
    50.0: _quantile("latency_p50", "half of the messages took no longer", primary=True),
    99.0: _quantile("latency_p99", "99 % of the messages took no longer", primary=True),
    99.9: _quantile("latency_p99.9", "99.9 % of the messages took no longer"),
}
LATENCY_MAX = _quantile("latency_max", "the longest")
METRICS = (LATENCY_MEAN, *QUANTILES.values(), LATENCY_MAX)
PATTERNS = (MEAN, SUMMARY, COUNTED, LOST, QUANTILE, MOST, LEAST)


def starts(line: str) -> bool:
    return BANNER.match(ESCAPES.sub("", line)) is not None


def read(section: Section) -> Reading:
    """One run of a client."""
    reading = Reading("sockperf")
    found: dict[Metric, tuple[float, int]] = {}
    banners, answered, least = 0, False, False
    for line in section.lines:
        text = ESCAPES.sub("", line.text).rstrip()
        if banner := BANNER.match(text):
            banners += 1
            reading.facts["sockperf_version"] = banner[1]
        elif "[SERVER] listen on" in text:
            reading.no_test = "it is what a server printed, which has no numbers"
        elif text.startswith("sockperf: ERROR"):
            reading.refuse(line.number, text, "sockperf says that it failed", 0)
        elif summary := SUMMARY.match(text):
            answered = True
            if summary[1] != "Latency":
                reading.refuse(line.number, text, "--full-rtt: these are whole round trips", 0)
        elif total := TOTAL.match(text):
            reading.facts["total_time_s"] = float(total[1])
        elif counted := COUNTED.match(text):
            reading.facts["observations"] = int(counted[1])
        elif lost := LOST.match(text):
            names = ("dropped", "duplicated", "out_of_order")
            reading.facts |= {name: int(lost[at]) for at, name in enumerate(names, start=1)}
        elif mean := MEAN.match(text):
            found[LATENCY_MEAN] = float(mean[1]), line.number
        elif quantile := QUANTILE.match(text):
            if metric := QUANTILES.get(float(quantile[1])):
                found[metric] = float(quantile[2]), line.number
        elif most := MOST.match(text):
            found[LATENCY_MAX] = float(most[1]), line.number
        elif LEAST.match(text):
            least = True
    if reading.no_test:
        return reading
    if banners > 1:
        reading.refuse(0, "all values", "two runs in one output", len(found))
        return reading
    complete = answered and least and len(found) == len(METRICS) and "dropped" in reading.facts
    reading.ended = complete and "observations" in reading.facts
    if not reading.ended:
        reading.refuse(near_miss(section.lines, *PATTERNS), "all values", "lines of the summary are missing", 0)
        return reading
    order = [found[metric][0] for metric in (*QUANTILES.values(), LATENCY_MAX)]
    if order != sorted(order):
        reading.refuse(found[LATENCY_MAX][1], "quantiles", "a quantile is less than a smaller one", len(found))
        return reading
    reading.values += [Value(metric, value / MICROSECOND, line) for metric, (value, line) in found.items()]
    return reading
