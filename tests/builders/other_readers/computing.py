"""STREAM, HPL, GUPS, Intel's LINPACK and stress-ng by plain words."""

from __future__ import annotations

from collections import defaultdict


def words_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.split("\n")]


def number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def stream(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text):
        if len(words) == 5 and words[0].endswith(":"):
            rate, mean_s = number(words[1]), number(words[2])
            if rate is not None and mean_s is not None:
                found[words[0][:-1]] |= {rate * 1e6, rate * 1e9}
                found[f"{words[0][:-1]}_time"].add(mean_s)
    return found


def hpl(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text):
        if len(words) >= 7 and words[0].startswith("W"):
            n, rate = number(words[1]), number(words[6])
            if n and rate:
                found["HPL"].add(rate * 1e9)
                found["HPL_time"].add((2 / 3 * n**3 + 3 / 2 * n**2) / (rate * 1e9))
        if "||Ax-b||_oo" in "".join(words):
            found["residual"] |= {value for word in words if (value := number(word)) is not None}
    return found


def gups(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text):
        line = " ".join(words)
        if "Updates per second" in line and (value := number(words[0])) is not None:
            found["GUPS"].add(value * 1e9)
        for start, name in (("Real time used", "real_time"), ("CPU time used", "cpu_time")):
            if line.startswith(start) and len(words) > 4 and (value := number(words[4])) is not None:
                found[name].add(value)
        if line.startswith("Found") and len(words) > 1 and (value := number(words[1])) is not None:
            found["errors"].add(value)
    return found


def intel_linpack(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text):
        numbers = [number(word) for word in words]
        if len(words) == 8 and None not in numbers[:7]:
            found["Time"].add(numbers[3] or 0)
            found["GFlops"].add((numbers[4] or 0) * 1e9)
            found["Residual_norm"].add(numbers[6] or 0)
        if len(words) == 5 and None not in numbers:
            found["Average"].add((numbers[3] or 0) * 1e9)
            found["Maximal"].add((numbers[4] or 0) * 1e9)
    return found


def stress_ng(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for words in words_of(text):
        numbers = [number(word) for word in words]
        for start in range(len(words) - 5):
            row = numbers[start : start + 6]
            if None not in row:
                found["bogo_ops"].add(row[0] or 0)
                found["bogo_ops_rate_real"].add(row[4] or 0)
                found["bogo_ops_rate_cpu"].add(row[5] or 0)
    return found
