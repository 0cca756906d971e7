"""HPL alone (xhpl): every row that has its own residual check, which must have passed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from vtax.tools.commands import command_facts
from vtax.tools.hpcc.hpl import HPL, HPL_TIME, RESIDUAL
from vtax.tools.hpcc.linpack import operations
from vtax.tools.reading import Line, Reading, Section, Value, first, number

ROW = re.compile(
    r"^(W[RC]\w{1,20}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +(\d{1,12}\.\d\d) +(\d\.\d{3,4}e[+-]\d\d)$"
)
CHECK = re.compile(r"^\|\|Ax-b\|\|_oo ?/.{1,100}= +(\S{1,30}) \.\.\.\.\.\. (PASSED|FAILED)$")
VERSION = re.compile(r"^HPLinpack (\d{1,2}\.\d{1,2})")
OF_HPCC = re.compile(r"^(?:Begin|End) of \w{1,40} section\.$")
FINISHED = re.compile(r"^Finished +(\d{1,9}) tests? with the following results:$")
FAILED = re.compile(r"^ +(\d{1,9}) tests completed and failed residual checks")
HEAD = "T/V                N"


class Row(NamedTuple):
    """A solved system: its place, size, grid, rate and residual. `problem` says why it cannot be used."""

    line: int
    n: int
    nb: int
    p: int
    q: int
    time_s: float
    flop_rate: float
    residual: float
    problem: str
    checked: int = 0  # the line of its check


def rows(lines: Iterable[Line]) -> list[Row]:
    """Every row of HPL's table, each with the checks that follow it before the next row."""
    found: list[Row] = []
    for line in lines:
        if row := ROW.match(line.text):
            n, nb, p, q = map(int, row.group(2, 3, 4, 5))
            rate = float(row[7]) * 1e9
            printed = float(row[6])
            time_s = operations(n) / rate if rate > 0 else 0.0
            fits = rate > 0 and abs(time_s - printed) <= 0.0051 + 6e-4 * time_s
            problem = "no residual check follows it" if fits else f"{printed} s do not fit its rate"
            found.append(Row(line.number, n, nb, p, q, time_s, rate, -1.0, problem))
        elif found and (check := CHECK.match(line.text)):
            found[-1] = _checked(found[-1], check)._replace(checked=line.number)
    return found


def _checked(row: Row, check: re.Match[str]) -> Row:
    residual = number(check[1])
    if check[2] == "FAILED" or residual is None or residual >= 16:
        return row._replace(problem=f"the residual check failed ({check[1]})")
    worst = max(residual, row.residual)
    problem = "" if row.problem.startswith("no residual") else row.problem
    return row._replace(residual=worst, problem=problem)


def read(section: Section) -> Reading:
    """One run of xhpl. A row without a check, or with a failed one, is refused."""
    reading = Reading("hpl", facts=command_facts(section.lines))
    if version := first(VERSION, section.lines):
        reading.facts["hpl_version"] = version[1]
    if first(OF_HPCC, section.lines):
        reason = "it is part of an output of hpcc whose beginning is missing"
        reading.refuse(section.first, "all values of this run", reason, 0)
        return reading
    found = rows(section.lines)
    if not found:
        reading.refuse(section.first, "all values of this run", "it has no row of results: aborted?", 0)
    seen: set[tuple[int, int, int, int]] = set()
    for row in found:
        size = row[1:5]
        if size in seen:
            reading.refuse(row.line, f"n={row.n} nb={row.nb}", "this size stands there twice in one run", 3)
            reading.values = [value for value in reading.values if value.labels != _labels(row)]
            continue
        seen.add(size)
        if row.problem:
            reading.refuse(row.line, f"n={row.n} nb={row.nb}", row.problem, 3)
            continue
        for metric, value in ((HPL, row.flop_rate), (HPL_TIME, row.time_s)):
            reading.values.append(Value(metric, value, row.line, _labels(row)))
        reading.values.append(Value(RESIDUAL, row.residual, row.checked, _labels(row)))
    finished = first(FINISHED, section.lines)
    if finished and int(finished[1]) != len(found):
        reading.drop(f"HPL counts {finished[1]} tests, {len(found)} have a row: whose check is whose?", section.last)
    elif not finished and found:
        reading.refuse(section.last, "rows", "the run has no end: later sizes are missing", 0)
    reading.facts["residuals_failed"] = sum("failed" in row.problem for row in found)
    reading.facts["hpl_rows"] = len(found)
    if found:
        largest = max(found, key=lambda row: row.n)
        reading.facts["hpl_time_s"] = largest.time_s
        reading.facts["hpl"] = {"n": largest.n, "nb": largest.nb, "p": largest.p, "q": largest.q}
        reading.ranks = largest.p * largest.q
    return reading


def _labels(row: Row) -> dict[str, str]:
    return {"n": str(row.n), "nb": str(row.nb), "p": str(row.p), "q": str(row.q)}
