"""Intel MPI Benchmarks: a table for every benchmark and number of processes, up to the line that closes the run.

Mbytes are 2^20 bytes before version 2018 and 10^6 bytes since; which of the two is seen where size and time of a
PingPong's rows give only one of them. Bandwidths of other tables are taken with that unit, or not at all.

Facts: `imb_version`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from vtax.tools.commands import command_facts
from vtax.tools.imb.metrics import BANDWIDTH, COLUMNS, TIME, TIME_AVG
from vtax.tools.reading import Line, Reading, Section, Value, agree

TITLE = re.compile(r"^# {1,8}Intel ?\(R\) MPI Benchmarks? (?:Suite )?V?(\d{1,4}(?:\.\d{1,3}){0,2})")
BENCHMARK = re.compile(r"^# Benchmarking (\w{1,40}) *$")
PROCESSES = re.compile(r"^# #processes = (\d{1,7}) *$")
HEAD = re.compile(r"^ *#bytes #repetitions ")
NUMBER = re.compile(r"\d{1,12}\.\d\d")
END = "# All processes entering MPI_Finalize"
EVERYTHING = "all values of this run"
UNITS = {1e6: "10^6", 2.0**20: "2^20"}


@dataclass
class Table:
    """One table: its rows are line, size in bytes, and the words of its columns."""

    name: str
    processes: int
    columns: list[str]
    rows: list[tuple[Line, int, list[str]]] = field(default_factory=list)


def starts(line: str) -> bool:
    return "Intel" in line and TITLE.match(line) is not None


def ends(line: str) -> bool:
    return line.startswith(END)


def read(section: Section) -> Reading:
    """One run with all of its tables."""
    lines = section.lines
    reading = Reading("imb", facts=command_facts(lines))
    title = next((match for line in lines if (match := TITLE.match(line.text))), None)
    if title is None:
        reading.refuse(section.end, EVERYTHING, "its first line is missing", 0)
        return reading
    reading.facts["imb_version"] = title[1]
    tables = _tables(reading, lines)
    if not any(line.text.startswith(END) for line in lines):
        reading.refuse(section.end, EVERYTHING, "its last line is missing: aborted, or cut off", 0)
        return reading
    if not any(table.rows for table in tables):
        reading.refuse(section.end, EVERYTHING, "it has no results", 0)
        return reading
    keys = [(table.name, table.processes) for table in tables]
    megabyte = _megabyte(tables)
    for table in tables:
        if keys.count((table.name, table.processes)) > 1:
            where = table.rows[0][0].number if table.rows else section.first
            reading.refuse(where, table.name, "a table of this benchmark and as many processes is there twice")
        else:
            _take(reading, table, megabyte)
    reading.ended = not reading.refusals
    return reading


def _tables(reading: Reading, lines: tuple[Line, ...]) -> list[Table]:
    tables: list[Table] = []
    name, processes, open_ = "", 0, False
    for line in lines:
        words = line.text.split()
        if found := BENCHMARK.match(line.text):
            name, processes, open_ = found[1], 0, False
        elif found := PROCESSES.match(line.text):
            processes = int(found[1])
        elif name and processes and HEAD.match(line.text):
            if unknown := [word for word in words[2:] if word not in COLUMNS and word not in ("defects",)]:
                reading.refuse(line.number, name, f"a column that vtax does not know: {unknown[0]}")
                continue
            tables.append(Table(name, processes, words[2:]))
            open_ = True
        elif open_ and words and not line.text.startswith("#"):
            if len(words) == 2 + len(tables[-1].columns) and words[0].isdecimal() and words[1].isdecimal():
                tables[-1].rows.append((line, int(words[0][:18]), words[2:]))
            else:
                reading.refuse(line.number, line.text, "not a row of its table: damaged, or cut off")
        elif not words and open_ and tables[-1].rows:
            open_ = False
    return tables


def _megabyte(tables: list[Table]) -> float:
    """How many bytes a megabyte is, by all rows of PingPong with more than 1000 bytes; 0 where they do not agree."""
    fits = dict.fromkeys(UNITS, 0)
    for table in tables:
        if table.name != "PingPong" or table.columns[:2] != ["t[usec]", "Mbytes/sec"]:
            continue
        for _, size, words in table.rows:
            if size < 1000 or not all(map(NUMBER.fullmatch, words[:2])) or float(words[0]) < 1:
                continue
            for scale in UNITS:
                fits[scale] += agree(size / float(words[0]) * 1e6 / scale, float(words[1]), 0.02)
    best = max(fits, key=lambda scale: fits[scale])
    return best if fits[best] and sum(count > 0 for count in fits.values()) == 1 else 0.0


def _fits(size: int, said: dict[str, float], megabyte: float) -> bool:
    """Whether size and time of a PingPong give its bandwidth, where they are large enough to show it."""
    time_us = said.get("t[usec]", 0.0)
    if not megabyte or size < 1000 or time_us < 1:
        return True
    return agree(size / time_us * 1e6 / megabyte, said.get("Mbytes/sec", 0.0), 0.02)


def _take(reading: Reading, table: Table, megabyte: float) -> None:
    """Every number of a table that is complete; latencies of the smallest size are the headline."""
    smallest = min((size for _, size, _ in table.rows), default=0)
    sizes = [size for _, size, _ in table.rows]
    for line, size, words in table.rows:
        labels = {"benchmark": table.name, "processes": str(table.processes), "size": str(size)}
        if sizes.count(size) > 1 or not all(map(NUMBER.fullmatch, words)):
            reading.refuse(line.number, line.text, "this size is there twice, or a number is not complete", len(words))
            continue
        said = dict(zip(table.columns, map(float, words), strict=True))
        low, mean, high = (said.get(f"{name}[usec]", 0.0) for name in ("t_min", "t_avg", "t_max"))
        if not low <= mean <= high:
            reading.refuse(line.number, line.text, "the mean is not between minimum and maximum", len(words))
            continue
        if table.name == "PingPong" and not _fits(size, said, megabyte):
            reading.refuse(line.number, line.text, "size, time and bandwidth do not fit", len(words))
            continue
        for column, number in said.items():
            metric = COLUMNS.get(column)
            if metric is None or number <= 0 or (metric is BANDWIDTH and not megabyte):
                continue
            scale = megabyte if metric is BANDWIDTH else 1e-6
            headline = metric in (TIME, TIME_AVG) and size == smallest
            own = metric.model_copy(update={"primary": headline})
            reading.values.append(Value(own, number * scale, line.number, labels))
