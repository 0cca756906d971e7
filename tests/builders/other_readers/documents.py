"""JSON results by their keys alone: hyperfine, pyperf, google-benchmark and fio."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any

from builders.other_readers.computing import number

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
WAYS = ("read", "write", "trim")


def documents(text: str) -> Iterator[dict[str, Any]]:
    """Every object that begins at a brace and can be read from there, outside of those before it."""
    at = text.find("{")
    while at >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict):
                yield value
        at = text.find("{", end)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """An object and all that are inside of it."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield value
    yield from chain.from_iterable(map(objects, inside))


def every(text: str) -> list[dict[str, Any]]:
    return [one for document in documents(text) for one in objects(document)]


def numbers(several: Any) -> list[float]:
    return [float(one) for one in several if isinstance(one, (int, float))] if isinstance(several, list) else []


def half(several: list[float]) -> set[float]:
    """The middle one, or the mean of the two in the middle."""
    ordered = sorted(several)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return {sum(middle) / len(middle)} if middle else set()


def hyperfine(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for one in every(text):
        for key in ("mean", "median", "min", "user", "system"):
            if isinstance(one.get(key), (int, float)):
                found[f"time_{key}"].add(one[key])
    return found


def pyperf(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for one in every(text):
        if isinstance(one.get("runs"), list):
            several = [value for run in one["runs"] if isinstance(run, dict) for value in numbers(run.get("values"))]
            if several:
                mean = {sum(several) / len(several)}
                found["time_mean"] |= mean
                found["memory"] |= mean
                found["time_median"] |= half(several)
    return found


def google_benchmark(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    rows = [one for one in every(text) if "name" in one or "run_name" in one]
    names = {str(row.get("run_name", row.get("name"))) for row in rows}
    for name in names:
        mine = [row for row in rows if str(row.get("run_name", row.get("name"))) == name]
        runs = [row for row in mine if row.get("run_type", "iteration") == "iteration"]
        for several in (runs, *([row] for row in mine)):
            for key in ("real_time", "cpu_time", "items_per_second", "bytes_per_second"):
                scales = [SECONDS.get(str(row.get("time_unit")), 0.0) if "time" in key else 1.0 for row in several]
                scaled = [
                    row[key] * scale
                    for row, scale in zip(several, scales, strict=True)
                    if isinstance(row.get(key), (int, float))
                ]
                if scaled:
                    found[key].add(sum(scaled) / len(scaled))
    return found


def fio(text: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for job in every(text):
        for way in WAYS:
            part = job.get(way)
            if not isinstance(part, dict):
                continue
            for key, name in (("bw_bytes", "bandwidth"), ("iops", "iops")):
                if isinstance(part.get(key), (int, float)):
                    found[f"{way}_{name}"].add(part[key])
            moved, lasted = part.get("io_bytes"), part.get("runtime")
            if isinstance(moved, int) and isinstance(lasted, int) and lasted:
                found[f"{way}_bandwidth"].add(moved / (lasted / 1000))
            mean = part.get("lat_ns", {}).get("mean")
            if isinstance(mean, (int, float)):
                found[f"{way}_latency_mean"].add(mean / 1e9)
            for text_, value in part.get("clat_ns", {}).get("percentile", {}).items():
                if (percent := number(text_)) is not None and isinstance(value, (int, float)):
                    found[f"{way}_latency_p{percent:g}"].add(value / 1e9)
    return found
