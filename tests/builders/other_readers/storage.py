"""iozone's table and sysbench by plain words."""

from __future__ import annotations

from collections import defaultdict

from builders.other_readers.computing import number, words_of


def iozone(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text.replace('"', " ").replace(",", " ")):
        numbers = [number(word) for word in words]
        known = [value for value in numbers if value is not None]
        for value in known[1:]:
            found["throughput"] |= {value * 1024, *(value * record * 1024 for record in known[:2])}
            found["operations_rate"].add(value)
    return found


LATENCIES = {"min:": "latency_min", "avg:": "latency_avg", "max:": "latency_max", "sum:": "latency_sum"}


def sysbench(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    sums: set[float] = set()
    counts: set[float] = set()
    sizes = {1.0}
    rates: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text.replace("(", "( ").replace("MiB/sec)", "MiB/sec )")):
        line, last = " ".join(words), number(words[-1].removesuffix("s")) if words else None
        numbers = [value for word in words if (value := number(word)) is not None]
        if "block size" in line.lower():
            kibibytes = [number(word.removesuffix("KiB")) for word in words if word.endswith("KiB")]
            sizes |= {value * 1024 for value in kibibytes if value}
        if last is None and not numbers:
            continue
        if "events per second" in line:
            found["events_rate"].add(numbers[-1])
        if "total number of events" in line:
            counts.add(numbers[-1])
        if words[0] in LATENCIES and numbers:
            found[LATENCIES[words[0]]].add(numbers[-1] / 1000)
            sums |= {numbers[-1] / 1000} if words[0] == "sum:" else set()
        if "percentile" in line and numbers:
            found[f"latency_p{words[0].rstrip('sthndr')}"].add(numbers[-1] / 1000)
        if "transferred" in line:
            found["throughput"] |= {value * 2**20 for value in numbers}
        if "per second)" in line:
            found["operations_rate"] |= set(numbers)
        for kind in ("reads/s:", "writes/s:", "fsyncs/s:"):
            if words[0] == kind and numbers:
                rates[kind].add(numbers[-1])
                found["operations_rate"].add(numbers[-1])
    found["latency_avg"] |= {total / count for total in sums for count in counts if count}
    found["throughput_read"] |= {rate * size for rate in rates["reads/s:"] for size in sizes}
    found["throughput_write"] |= {rate * size for rate in rates["writes/s:"] for size in sizes}
    return found
