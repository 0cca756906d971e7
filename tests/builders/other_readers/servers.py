"""The tools of workloads by plain words: every number that a line could mean, in every unit that it could have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

from builders.other_readers.computing import number, words_of
from builders.other_readers.documents import every

WRITTEN = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
SIZES = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
Numbers = dict[str, set[float]]


def in_line(line: str) -> list[float]:
    return [float(found[0]) for found in WRITTEN.finditer(line)]


def anything(*names: str, scales: tuple[float, ...], take: Callable[[str], bool]) -> Callable[[str], Numbers]:
    """A reader for which each number of the lines that it takes may be any of these metrics, in any of these units."""

    def read(text: str) -> Numbers:
        numbers = {
            value * scale for line in text.split("\n") if take(line) for value in in_line(line) for scale in scales
        }
        return dict.fromkeys(names, numbers)

    return read


def netperf(text: str) -> Numbers:
    found: Numbers = defaultdict(set)
    for line in text.split("\n"):
        cells = {value for cell in line.replace(",", " ").split() if (value := number(cell)) is not None}
        found["transaction_rate"] |= cells
        for name in ("mean", "p50", "p90", "p99", "min", "max"):
            found[f"latency_{name}"] |= {value * 1e-6 for value in cells}
    return found


def sockperf(text: str) -> Numbers:
    found: Numbers = defaultdict(set)
    for line in text.split("\n"):
        numbers = in_line(line)
        if "avg-latency" in line or "Latency is" in line:
            found["latency_mean"] |= {value * 1e-6 for value in numbers}
        if "<MAX>" in line:
            found["latency_max"].add(numbers[-1] * 1e-6 if numbers else -1)
        if "percentile" in line and "=" in line and len(numbers) == 2:
            found[f"latency_p{numbers[0]:g}"].add(numbers[1] * 1e-6)
    return found


def wrk(text: str) -> Numbers:
    found: Numbers = defaultdict(set)
    requests: set[float] = set()
    failed = {0.0}
    for words in words_of(text):
        line = " ".join(words)
        spans = {
            float(one[1]) * TIMES[one[2]]
            for word in words
            if (one := re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)", word))
        }
        if line.startswith("Requests/sec"):
            found["requests_rate"] |= set(in_line(line))
        if line.startswith("Transfer/sec"):
            found["transfer_rate"] |= {
                float(one[1]) * SIZES[one[2]]
                for word in words
                if (one := re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?B)", word))
            }
        if "Latency" in words or (words and words[0].endswith("%")):
            quantile = words[0].rstrip("%")
            for name in ("latency_avg", "latency_max", f"latency_p{quantile.removesuffix('.000')}"):
                found[name] |= spans
        if "requests in" in line:
            requests |= set(in_line(line))
        if "errors:" in line or "responses:" in line:
            failed |= {sum(in_line(line)), *in_line(line)}
    sums = failed | {one + other for one in failed for other in failed}
    found["failed_fraction"] |= {
        one / all_ for one in sums for all_ in requests | {r + s for r in requests for s in sums} if all_
    }
    return found


def pgbench(text: str) -> Numbers:
    found: Numbers = defaultdict(set)
    counts: set[float] = {0.0}
    for line in text.split("\n"):
        numbers = set(in_line(line))
        if "tps" in line:
            found["tps"] |= numbers
            found["tps_connecting"] |= numbers
        for word, name in (
            ("latency average", "latency_average"),
            ("latency stddev", "latency_stddev"),
            ("connection time", "connection_time"),
            ("schedule lag", "schedule_lag"),
        ):
            if word in line:
                found[name] |= {value / 1000 for value in numbers}
        if "transactions" in line:
            counts |= numbers
    sums = counts | {one + other for one in counts for other in counts}
    shares = {one / other for one in counts for other in sums if other}
    for name in ("failed_fraction", "retried_fraction", "late_fraction", "skipped_fraction"):
        found[name] |= shares
    return found


def redis(text: str) -> Numbers:
    found: Numbers = defaultdict(set)
    for line in text.replace("\r", "\n").split("\n"):
        numbers = set(in_line(line))
        if "requests per second" in line or line.startswith('"'):
            found["requests_rate"] |= numbers
        for name in ("avg", "min", "p50", "p95", "p99", "max"):
            found[f"latency_{name}"] |= {value / 1000 for value in numbers}
    return found


def memcslap(text: str) -> Numbers:
    found: Numbers = defaultdict(set)
    for line in text.split("\n"):
        numbers = in_line(line)
        if line.startswith("Time to") and len(numbers) > 1 and numbers[-1]:
            rates = {keys / numbers[-1] for keys in numbers[:-1]}
            found["operations_rate"] |= rates
            found["load_rate"] |= rates
    return found


def openssl(text: str) -> Numbers:
    numbers = {value for line in text.split("\n") if (value := number(line.rpartition(":")[2])) is not None}
    return {"throughput": numbers}


def kernel_paths(text: str) -> Numbers:
    found: Numbers = defaultdict(set)
    for one in every(text):
        for name, inside in one.items():
            for key, value in inside.items() if isinstance(inside, dict) else ():
                if isinstance(value, (int, float)):
                    found[name].add(value * 1e-9)
                    found[f"{name}_{key.removesuffix('_ns')}"].add(value * 1e-9)
                    found["wakeup_late_" + key.removesuffix("_ns").replace("most", "max").replace("_", ".")].add(
                        value * 1e-9
                    )
    return found


def mpi_messages(text: str) -> Numbers:
    found: Numbers = defaultdict(set)
    for one in every(text):
        for name, inside in one.items():
            for key, value in inside.items() if isinstance(inside, dict) else ():
                if isinstance(value, (int, float)):
                    scale = 1e-9 if key.endswith("_ns") else 1.0
                    found[name].add(value * scale)
                    found[f"{name}_{key.removesuffix('_ns').replace('most', 'max')}"].add(value * scale)
    return found


hackbench = anything("time", scales=(1.0,), take=lambda line: line.startswith("Time:"))
sevenzip = anything(
    "rating",
    "compress_rating",
    "decompress_rating",
    "compress_speed",
    "decompress_speed",
    scales=(1e6, 1024.0),
    take=lambda line: line.startswith(("Avr:", "Tot:")),
)


def fio_text(text: str) -> Numbers:
    """Every number of every line in every unit, and operations and bytes over each time that is printed."""
    found: Numbers = defaultdict(set)
    times_s = {float(one) / 1000 for one in re.findall(r"(\d+)msec", text)}
    for line in text.split("\n"):
        numbers = set(in_line(line))
        for way in ("read", "write", "trim"):
            if "IOPS=" in line or "iops=" in line or "issued" in line:
                scaled = {value * scale for value in numbers for scale in (1.0, 1e3, 1e6, 2**10, 2**20, 2**30)}
                found[f"{way}_iops"] |= scaled | {value / time for value in numbers for time in times_s if time}
                found[f"{way}_bandwidth"] |= scaled | {value / time for value in scaled for time in times_s if time}
            if "lat " in line or "th=[" in line:
                spans = {value * scale for value in numbers for scale in (1e-9, 1e-6, 1e-3, 1.0)}
                for name in ("mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99"):
                    found[f"{way}_latency_{name}"] |= spans
    return found


def oltp(text: str) -> Numbers:
    found: Numbers = defaultdict(set)
    counts: set[float] = {0.0}
    for line in text.split("\n"):
        numbers = set(in_line(line))
        if "per sec" in line:
            found["transactions_rate"] |= numbers
            found["queries_rate"] |= numbers
            counts |= numbers
        for name in ("latency_avg", "latency_min", "latency_max", "latency_p95", "latency_p99"):
            found[name] |= {value / 1000 for value in numbers}
    found["failed_fraction"] = {one / (one + other) for one in counts for other in counts if one + other}
    return found
