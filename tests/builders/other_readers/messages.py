"""OSU's and Intel's MPI benchmarks, and hpcc's summary, by plain words."""

from __future__ import annotations

from collections import defaultdict

from builders.other_readers.computing import hpl, number, words_of

OSU = {  # a word of the head that only one column has -> metric, base units of one
    "Avg": ("latency_avg", 1e-6),
    "Min": ("latency_min", 1e-6),
    "Max": ("latency_max", 1e-6),
    "Latency": ("latency", 1e-6),
    "Bandwidth": ("bandwidth", 1e6),
    "Bi-Bandwidth": ("bandwidth", 1e6),
    "MB/s": ("bandwidth", 1e6),
    "Messages/s": ("message_rate", 1.0),
}
MICROSECONDS = ("t", "t_min", "t_max", "t_avg")
RATES = {  # the end of a name in hpcc's summary -> base units of one
    "Tflops": 1e12,
    "Gflops": 1e9,
    "GUPs": 1e9,
    "GBs": 1e9,
    "GBytes": 1e9,
    "usec": 1e-6,
}


def osu(text: str) -> dict[str, set[float]]:
    """Every number of every row, in every unit that a column of any head has."""
    found: dict[str, set[float]] = defaultdict(set)
    heads = [line for line in text.split("\n") if line.startswith("# Size")]
    meant = {known for head in heads for word in head.replace("(", " ").split() for known in [OSU.get(word)] if known}
    for words in words_of(text):
        numbers = [value for word in words[1:] if (value := number(word)) is not None]
        for name, scale in meant:
            found[name] |= {value * scale for value in numbers}
    return found


def imb(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text):
        numbers = [value for word in words[2:] if (value := number(word)) is not None]
        for name in MICROSECONDS:
            found[name] |= {value * 1e-6 for value in numbers}
        found["bandwidth"] |= {value * scale for value in numbers for scale in (1e6, 2.0**20)}
    return found


STREAM = ("Copy", "Scale", "Add", "Triad")
PAIRS = ("MinPingPong", "AvgPingPong", "MaxPingPong", "NaturallyOrderedRing", "RandomlyOrderedRing")
PRINTED = {
    "msec": 1e-3,
    "MByte/s": 1e6,
    "MB/s": 1e6,
    "Gflop/s": 1e9,
    "GUP/s": 1e9,
    "[GUP/s]": 1e9,
    "GB/s": 1e9,
    "PASSED": 1e9,
    "msecs": 1e-3,
}


def hpcc(text: str) -> dict[str, set[float]]:
    """What the summary's lines say, and all numbers of each section, in the unit of their line."""
    found: dict[str, set[float]] = defaultdict(set, {name: set(values) for name, values in hpl(text).items()})
    section = ""
    for line in text.split("\n"):
        words = [word.strip(":,") for word in line.replace("=", " ").split()]
        shown = {value for word in words if (value := number(word)) is not None}
        if words[:2] == ["Begin", "of"] and len(words) > 3:
            section = words[2]
        if "||Ax-b||_oo" in line:
            found["HPL_residual"] |= shown
        if "max(" in line.replace(" ", "").lower():
            found["StarFFT_maxErr"] |= shown
        for unit in PRINTED.keys() & set(words):
            names = [section, *(f"{section}_{one}" for one in STREAM if one in words)]
            if section == "LatencyBandwidth":
                names = [f"{pair}{'Latency' if 'msec' in unit else 'Bandwidth'}" for pair in PAIRS]
            for name in names:
                found[name] |= {value * PRINTED[unit] for value in shown}
        name, equals, word = line.strip().partition("=")
        value = number(word)
        if not equals or value is None:
            continue
        first, _, unit = name.rpartition("_")
        for known in (name, name.lower(), first):
            found[known] |= {value, value * RATES.get(unit, 1e9 if "STREAM" in name else 1.0)}
    return found
