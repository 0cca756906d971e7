"""The linear systems that HPL solved, in the output of xhpl and in that of hpcc; the reader of xhpl.

Facts: `systems` (of each solved system `n`, `nb`, `p`, `q`, and `time_s` and `flop_rate` where they can be),
`residuals_failed` and `residuals_passed` (systems by the check of their solution), `hpl_version`, and
`single_copy_failures` (messages of Open MPI that it cannot copy from another process's memory; absent without any).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vtax.tools.commands import command_facts
from vtax.tools.hpcc.linpack import operations
from vtax.tools.hpcc.metrics import HPL, HPL_TIME, RESIDUAL
from vtax.tools.reading import Line, Reading, Section, Value, first, near_miss, number

# Builds of Intel and NVIDIA print more decimals, blanks at the end, and the rate of one GPU in brackets
ROW = re.compile(
    r"^(W[RC]\w{1,20}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +(\S{1,20}) +(\S{1,20})(?: +\( *\S{1,20}\))? *$"
)
TIME = re.compile(r"\d{1,12}\.\d{2,9}", re.ASCII)
GFLOPS = re.compile(r"\d\.\d{3,9}e[+-]\d\d", re.ASCII)
CHECK = re.compile(r"^\|\|Ax-b\|\|_oo ?/(.{1,100})= +(\S{1,30}) +\.\.\.\.\.\. (PASSED|FAILED) *$")
LIMIT = 16.0  # of a scaled residual, in every input file of HPL
FINISHED = re.compile(r"^Finished +(\d{1,9}) tests? with the following results: *$")
OUTCOMES = tuple(
    re.compile(rf"^ +(\d{{1,9}}) tests {words}")
    for words in ("completed and passed residual checks", "completed and failed residual checks", "skipped because of")
)
END = "End of Tests."
VERSION = re.compile(r"^HPL(?:inpack|-NVIDIA) (\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)")
OF_HPCC = re.compile(r"^(?:Begin|End) of \w{1,40} section\.$")
COPY_FAILED = re.compile(r"Read -1, expected \d{1,20}|process_vm_readv")
NO_CHECK = "no residual check follows it"


class System(NamedTuple):
    """A solved system, in base units. `problem`, on line `wrong`, says why it cannot be used."""

    line: int
    size: tuple[int, int, int, int]  # N, NB, P, Q
    flop_rate: float
    time_s: float  # worked out from the rate, as the printed one has two decimals
    residual: float = -1.0  # the worst of its checks
    checked: int = 0  # the line of that check
    failed: bool = False
    wrong: int = 0
    problem: str = ""
    variant: str = ""  # how it was solved, as HPL writes it: WR11C2R4

    @property
    def labels(self) -> dict[str, str]:
        return dict(zip(("n", "nb", "p", "q"), map(str, self.size), strict=True))


def systems(lines: Iterable[Line]) -> list[System]:
    """Every row of HPL's table, with the checks that follow it before the next row."""
    found: list[tuple[Line, re.Match[str], list[tuple[Line, re.Match[str]]]]] = []
    for line in lines:
        if row := ROW.match(line.text):
            found.append((line, row, []))
        elif found and (check := CHECK.match(line.text)):
            found[-1][2].append((line, check))
    return [_checked(_solved(line, row), checks) for line, row, checks in found]


def _solved(line: Line, row: re.Match[str]) -> System:
    n, nb, p, q = map(int, row.group(2, 3, 4, 5))
    time, rate = row.group(6, 7)
    one = System(line.number, (n, nb, p, q), 0.0, 0.0, wrong=line.number, variant=row[1])
    if not TIME.fullmatch(time) or not GFLOPS.fullmatch(rate) or float(rate) == 0:
        return one._replace(problem=f"{time} s and {rate} Gflop/s are not a time and a rate above zero")
    printed_s, flop_rate = float(time), float(rate) * 1e9
    time_s = operations(n) / flop_rate
    # Both are rounded, to 0.01 s and to four digits at least; rates of three digits are less precise
    digits = len(rate.partition("e")[0].partition(".")[2])
    off = 0.51 * 10.0 ** -len(time.partition(".")[2]) + (6e-4 if digits <= 4 else 0.6 * 10.0**-digits) * time_s
    fits = abs(time_s - printed_s) <= off
    problem = "" if fits else f"{printed_s} s do not fit its rate, which means {time_s:.2f} s"
    return one._replace(flop_rate=flop_rate, time_s=time_s, problem=problem)


def _checked(one: System, checks: Sequence[tuple[Line, re.Match[str]]]) -> System:
    formulas: set[str] = set()
    for line, check in checks:
        residual = number(check[2])
        if check[3] == "FAILED" or residual is None or residual >= LIMIT:
            problem = f"the residual check failed ({check[2]})"
            return one._replace(failed=True, wrong=line.number, problem=problem, residual=-1.0)
        if check[1] in formulas and not one.problem:
            one = one._replace(wrong=line.number, problem="a residual check appears twice below it")
        formulas.add(check[1])
        if residual > one.residual:
            one = one._replace(residual=residual, checked=line.number)
    return one if checks or one.problem else one._replace(problem=NO_CHECK)


def describe(reading: Reading, found: Sequence[System], lines: Iterable[Line]) -> None:
    """The facts that xhpl and hpcc share."""
    names = ("n", "nb", "p", "q")
    reading.facts["systems"] = [
        {**dict(zip(names, one.size, strict=True)), "time_s": one.time_s, "flop_rate": one.flop_rate} for one in found
    ]
    reading.facts["residuals_failed"] = sum(one.failed for one in found)
    reading.facts["residuals_passed"] = sum(one.residual >= 0 for one in found)
    copy_failures(reading, lines)


def copy_failures(reading: Reading, lines: Iterable[Line]) -> None:
    """What Open MPI says when it may not read the memory of another process."""
    if failures := sum(COPY_FAILED.search(line.text) is not None for line in lines):
        reading.facts["single_copy_failures"] = failures


def closed(reading: Reading, section: Section, found: Sequence[System], values: int) -> bool:
    """Whether HPL's closing lines count as many systems as there are rows, of `values` each; refuses what differs."""
    lines = section.lines
    places = [place for place, line in enumerate(lines) if FINISHED.match(line.text)]
    if not places or all(line.text.rstrip() != END for line in lines):
        line = (0 if places else near_miss(lines, FINISHED)) or section.end
        reading.refuse(line, "later systems", "HPL has no closing lines: sizes may be missing", 0)
    counts = {int(match[1]) for place in places if (match := FINISHED.match(lines[place].text))}
    if counts - {len(found)}:
        reason = f"HPL counts {min(counts - {len(found)})} tests, {len(found)} have a row: whose check is whose?"
        reading.refuse(near_miss(lines, ROW), "all systems of this run", reason, values * len(found))
        return False
    return True


def outcomes(reading: Reading, section: Section, found: Sequence[System]) -> None:
    """Refuses closing lines that count other outcomes than the rows have."""
    failed = sum(one.failed for one in found)
    for place in [place for place, line in enumerate(section.lines) if FINISHED.match(line.text)]:
        block = section.lines[place + 1 : place + 4]
        for pattern, expected in zip(OUTCOMES, (len(found) - failed, failed, 0), strict=True):
            counts = [(line, match) for line in block if (match := pattern.match(line.text))]
            if len(counts) != 1:
                reading.refuse(near_miss(block, *OUTCOMES), "closing lines of HPL", "one of them is missing", 0)
            elif int(counts[0][1][1]) != expected:
                reading.refuse(counts[0][0].number, counts[0][0].text.strip(), f"the rows above say {expected}", 0)


def read_hpl(section: Section) -> Reading:
    """One run of xhpl. A system without a check, or with a failed one, is refused."""
    reading = Reading("hpl", facts=command_facts(section.lines))
    if version := first(VERSION, section.lines):
        reading.facts["hpl_version"] = version[1]
    if first(OF_HPCC, section.lines):
        reason = "it is part of an output of hpcc whose beginning is missing"
        reading.refuse(section.first, "all values of this run", reason, 0)
        return reading
    found = systems(section.lines)
    describe(reading, found, section.lines)
    reading.ended = any(line.text.rstrip() == END for line in section.lines)
    if found:
        _, _, p, q = max((one.size for one in found), key=lambda size: size[0])
        reading.ranks = p * q
    else:
        reading.refuse(near_miss(section.lines, ROW) or section.end, "all values of this run", "it has no results", 0)
        return reading
    if closed(reading, section, found, values=3):
        _take(reading, found)
        outcomes(reading, section, found)
    return reading


def _take(reading: Reading, found: Sequence[System]) -> None:
    """The values of every system that appears once and was solved rightly. Of a size that was solved in several ways,
    each is a system, with the way as its label."""
    sizes, ways = [one.size for one in found], [(one.size, one.variant) for one in found]
    for one in found:
        labels = {**one.labels, **({"variant": one.variant} if sizes.count(one.size) > 1 else {})}
        words = " ".join(f"{name}={value}" for name, value in labels.items())
        if ways.count((one.size, one.variant)) > 1:
            reading.refuse(one.line, words, "this size appears twice in one run", 3)
        elif one.problem:
            reading.refuse(one.wrong, words, one.problem, 3)
        else:
            for metric, value in ((HPL, one.flop_rate), (HPL_TIME, one.time_s)):
                reading.values.append(Value(metric, value, one.line, labels))
            reading.values.append(Value(RESIDUAL, one.residual, one.checked, labels))
