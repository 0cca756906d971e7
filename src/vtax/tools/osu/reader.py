"""OSU Micro-Benchmarks: one table of message sizes. Its head says what the columns are, and in which units.

The table has no last line, so one that was cut between two lines is not recognised as cut. Numbers have two decimals:
one with fewer is refused. The headline is the smallest size of latencies, and the largest of bandwidths.

Facts: `osu_version`, `osu_test`.
"""

from __future__ import annotations

import re

from vtax.tools.commands import command_facts
from vtax.tools.osu.metrics import COLUMNS
from vtax.tools.reading import Line, Reading, Section, Value

TITLE = re.compile(r"^# OSU (MPI(?:-CUDA|-ROCM)? [A-Za-z_/ -]{3,60}?) Test v(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)$")
HEAD = re.compile(r"^# Size {2,}\S")
NAMES = re.compile(r"\s(?:(?:Avg|Min|Max) )?[A-Z][A-Za-z/-]{1,20}(?: ?\((?:us|MB/s)\)|/s)?(?=\s|$)")
SKIPPED = ("Iterations",)
EVERYTHING = "all values of this run"


def starts(line: str) -> bool:
    return line.startswith("# OSU MPI") and TITLE.match(line) is not None


def read(section: Section) -> Reading:
    """One table."""
    lines = section.lines
    reading = Reading("osu", facts=command_facts(lines))
    title = next((match for line in lines if (match := TITLE.match(line.text))), None)
    if title is None:
        reading.refuse(section.end, EVERYTHING, "its first line is missing", 0)
        return reading
    reading.facts |= {"osu_test": title[1], "osu_version": title[2]}
    reading.params["test"] = title[1].lower()
    if isinstance(asked := reading.facts.get("ranks_asked"), int):
        reading.params["ranks"] = asked
    heads = [place for place, line in enumerate(lines) if HEAD.match(line.text)]
    if len(heads) != 1:
        reading.refuse(section.end, EVERYTHING, f"it has {len(heads)} heads of a table, instead of one", 0)
        return reading
    head = lines[heads[0]]
    titles = head.text.removeprefix("# Size")
    names = [name.strip().replace(" (", "(") for name in NAMES.findall(titles)]
    if rest := NAMES.sub("", titles).split():
        reading.refuse(head.number, EVERYTHING, f"a column that vtax does not know: {rest[0]}", 0)
        return reading
    if unknown := [name for name in names if name not in COLUMNS and name not in SKIPPED]:
        reading.refuse(head.number, EVERYTHING, f"a column that vtax does not know: {unknown[0]}", 0)
        return reading
    _rows(reading, lines[heads[0] + 1 :], names)
    return reading


def _rows(reading: Reading, lines: tuple[Line, ...], names: list[str]) -> None:
    sizes: list[int] = []
    for line in lines:
        words = line.text.split()
        if not words or not words[0].isdecimal():
            if sizes and words:
                break  # what is below the table
            continue
        size = int(words[0][:18])
        whole = all(
            word.isdecimal() if name in SKIPPED else re.fullmatch(r"\d{1,12}\.\d\d", word)
            for name, word in zip(names, words[1:], strict=False)
        )
        if len(words) != 1 + len(names) or not whole:
            reading.refuse(line.number, line.text, "not a size and a number for every column: damaged, or cut off")
        elif sizes and size <= sizes[-1]:
            reading.refuse(line.number, line.text, "sizes do not grow: rows are there twice, or changed places")
        else:
            sizes.append(size)
            _row(reading, line, size, zip(names, words[1:], strict=True))
    if not sizes:
        reading.refuse(0, EVERYTHING, "the table has no rows: aborted", 0)
        return
    best = {"s": str(min(sizes)), "byte/s": str(max(sizes))}
    reading.values = [
        one._replace(metric=one.metric.model_copy(update={"primary": one.labels["size"] == best.get(one.metric.unit)}))
        if one.metric.name in ("latency", "latency_avg", "bandwidth")
        else one
        for one in reading.values
    ]
    reading.ended = not reading.refusals


def _row(reading: Reading, line: Line, size: int, cells: zip[tuple[str, str]]) -> None:
    for name, word in cells:
        if name in SKIPPED:
            continue
        metric, scale = COLUMNS[name]
        if float(word) > 0:
            reading.values.append(Value(metric, float(word) * scale, line.number, {"size": str(size)}))
        else:
            reading.refuse(line.number, name, "0.00: too small for the digits that are printed")
