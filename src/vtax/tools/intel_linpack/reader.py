"""Intel's Optimized LINPACK Benchmark: a row for every trial, and a summary with mean and maximum of every size.

A size counts where its trials' times give their rates, all passed the check, and the summary is what its rows say.

Facts: `threads`, `cpu_frequency_hz`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from vtax.model.nodes import Scope
from vtax.tools.commands import command_facts
from vtax.tools.intel_linpack.metrics import AVERAGE, MAXIMAL, RATE, RESIDUAL, TIME
from vtax.tools.reading import Line, Reading, Section, Value, near_miss

ROW = re.compile(
    r"^(\d{1,7}) +(\d{1,7}) +(\d{1,6}) +(\d{1,9}\.\d{3}) +(\d{1,7}\.\d{4})"
    r" +\d\.\d{6}e[+-]\d\d +(\d\.\d{6}e[+-]\d\d) +(pass|fail)$"
)
SUMMARY = re.compile(r"^(\d{1,7}) +(\d{1,7}) +(\d{1,6}) +(\d{1,7}\.\d{4}) +(\d{1,7}\.\d{4})$")
THREADS = re.compile(r"^Number of threads: (\d{1,6})$")
FREQUENCY = re.compile(r"^CPU frequency: {1,8}(\d{1,3}\.\d{3}) GHz$")
PASSED = "Residual checks PASSED"
EVERYTHING = "all values of this run"
Size = tuple[int, int, int]


class Trial(NamedTuple):
    """A row: its time in s, its rate in Gflop/s and its residual; why it does not count."""

    line: int
    time_s: float
    rate: float
    residual: float
    problem: str


def starts(line: str) -> bool:
    return line.startswith("Intel(R) Optimized LINPACK Benchmark")


def read(section: Section) -> Reading:
    """One run, of one size or of several."""
    lines = [line._replace(text=line.text.rstrip()) for line in section.lines]
    reading = Reading("intel-linpack", facts=command_facts(lines), scope=Scope.NODE)
    for pattern, name, scale in ((THREADS, "threads", 1), (FREQUENCY, "cpu_frequency_hz", 1e9)):
        if found := {match[1] for line in lines if (match := pattern.match(line.text))}:
            reading.facts[name] = max(float(one) for one in found) * scale
    if threads := reading.facts.get("threads"):
        reading.params["threads"] = reading.facts["threads"] = int(float(str(threads)))
    trials, summary = _rows(lines)
    for size in dict.fromkeys((*trials, *summary)):
        _size(reading, size, trials[size], summary[size])
    if not trials:
        reading.refuse(near_miss(lines, ROW) or section.end, EVERYTHING, "it has no results: aborted", 0)
    elif not any(line.text == PASSED for line in lines):
        reading.drop("no line says that the residual checks passed: aborted, cut off, or failed", section.end)
    else:
        reading.ended = any(line.text == "End of tests" for line in lines)
    return reading


def _rows(lines: list[Line]) -> tuple[dict[Size, list[Trial]], dict[Size, list[tuple[int, float, float]]]]:
    trials: dict[Size, list[Trial]] = defaultdict(list)
    summary: dict[Size, list[tuple[int, float, float]]] = defaultdict(list)
    for line in lines:
        if row := ROW.match(line.text):
            n, lda, align = map(int, row.group(1, 2, 3))
            time_s, rate = float(row[4]), float(row[5])
            done = (2 / 3 * n**3 + 2 * n**2) / 1e9
            low, high = (rate - 6e-5) * (time_s - 6e-4), (rate + 6e-5) * (time_s + 6e-4)
            problem = (
                "" if low <= done * 1.00001 and done * 0.99999 <= high else f"{time_s} s do not fit {rate} Gflop/s"
            )
            if row[7] == "fail":
                problem = "its residual check failed"
            trials[n, lda, align].append(Trial(line.number, time_s, rate, float(row[6]), problem))
        elif row := SUMMARY.match(line.text):
            n, lda, align = map(int, row.group(1, 2, 3))
            summary[n, lda, align].append((line.number, float(row[4]), float(row[5])))
    return trials, summary


def _size(reading: Reading, size: Size, trials: list[Trial], summary: list[tuple[int, float, float]]) -> None:
    """The values of one size, where its rows and its summary agree."""
    labels = {"n": str(size[0]), **({"lda": str(size[1])} if size[1] != size[0] else {})}
    if wrong := next((one for one in trials if one.problem), None):
        reading.refuse(wrong.line, f"n={size[0]}", wrong.problem, 2 + 3 * len(trials))
        return
    if len(summary) != 1 or not trials:
        line = summary[0][0] if summary else trials[0].line
        reading.refuse(line, f"n={size[0]}", f"{len(trials)} trials and {len(summary)} lines in the summary", 2)
        return
    line, mean, most = summary[0]
    rates = [one.rate for one in trials]
    if abs(mean - sum(rates) / len(rates)) > 1.01e-4 or most != max(rates):
        reading.refuse(line, f"n={size[0]}", f"the summary is not that of the {len(rates)} trials above", 2)
        return
    if min(rates) <= 0 or min(one.time_s for one in trials) <= 0:
        reading.refuse(line, f"n={size[0]}", "a time or a rate of zero", 2)
        return
    reading.values += [Value(AVERAGE, mean * 1e9, line, labels), Value(MAXIMAL, most * 1e9, line, labels)]
    for place, one in enumerate(trials, start=1):
        own = {**labels, "trial": str(place)}
        reading.values.append(Value(RATE, one.rate * 1e9, one.line, own))
        reading.values.append(Value(TIME, one.time_s, one.line, own))
        reading.values.append(Value(RESIDUAL, one.residual, one.line, own))
