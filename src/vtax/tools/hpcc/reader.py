"""hpcc: the summary of each run in a `hpccoutf.txt`, checked against what the tests themselves printed above it.

hpcc appends to its file, so it may hold several runs, aborted ones among them. Where a summary is damaged, a value
counts only when its test's section has the same value.

Of an aborted run the completed sections are taken, with the label `run=aborted`, which no other run's figures have.

Facts, besides those of `systems`: `aborted` (true, or absent), `hpcc_version`, `hpcc_release` (`1.5.0.f`, of the
summary), `hpcc_compiled` (date), `host`, `clock_granularity_s` (of STREAM's timer), `success` (hpcc's verdict on its
results), `residual_missing` (no check of HPL's solution, or one that failed), `counts` (counts, errors, residuals by
their keys), `MPI_Wtick` (s), `STREAM_Threads`, `omp_get_max_threads`, `HPLMaxProcs`, `FFT_API`,
`MPIRandomAccess_Algorithm`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from vtax.tools.commands import command_facts
from vtax.tools.hpcc.metrics import CHECKS, FIGURES, HPL_RESIDUAL, MESSAGES, STAR_FFT, SUCCESS, Figure
from vtax.tools.hpcc.sections import completed, counterpart, sections_of
from vtax.tools.hpcc.systems import CHECK, ROW, System, closed, describe, outcomes, systems
from vtax.tools.reading import Line, Reading, Section, Value, first, near_miss, number

BEGIN, END = "Begin of Summary section.", "End of Summary section."
VERSION = re.compile(r"HPC Challenge Benchmark version (\d{1,3}\.\d{1,3}\.\d{1,3}\w?)")
COMPILED = re.compile(r"^Compiled on (.{1,40})$")
GRANULARITY = re.compile(r"clock granularity/precision appears to be (\d{1,9}) microseconds")
HOST = re.compile(r"^Hostname: '(.{1,80})'$")
TIME = re.compile(r"^Current time \((\d{1,12})\) is ")
PAIR = re.compile(r"^(\w{1,80})=(.{0,80})$")
EXACT = 5e-4  # six digits against the digits of a section
RELEASE = ("VersionMajor", "VersionMinor", "VersionMicro", "VersionRelease")
WORK = {"n": "HPL_N", "nb": "HPL_NB", "p": "HPL_nprow", "q": "HPL_npcol", "ranks": "CommWorldProcs"}
ERRORS = 0.01  # of the words of a table, which RandomAccess allows
OVER = "End of HPC Challenge tests."
ABORTED = {"run": "aborted"}  # label of what is from sections alone
Summary = Mapping[str, tuple[int, str]]  # key -> line and value


def read(section: Section) -> Reading:
    """One run of hpcc."""
    lines = section.lines
    reading = Reading("hpcc", facts=command_facts(lines))
    for name, pattern in (("hpcc_version", VERSION), ("hpcc_compiled", COMPILED), ("host", HOST)):
        if match := first(pattern, lines):
            reading.facts[name] = match[1]
    if match := first(GRANULARITY, lines):
        reading.facts["clock_granularity_s"] = int(match[1]) / 1e6
    times = [int(match[1]) for line in lines if (match := TIME.match(line.text))]
    if times:
        reading.started, reading.elapsed_s = float(times[0]), float(max(times) - times[0])
    solved = systems(lines)
    describe(reading, solved, lines)
    begins = [place for place, line in enumerate(lines) if line.text == BEGIN]
    ends = [place for place, line in enumerate(lines) if line.text == END]
    if not begins or not ends:
        why = "it has no summary: aborted" if not begins else "its summary has no end: cut off"
        _sections_alone(reading, section, solved, lines[: begins[0]] if begins else lines, why)
        return reading
    if len(begins) > 1 or len(ends) > 1 or ends[0] < begins[0]:
        reading.refuse(lines[begins[0]].number, "all values of this run", "more than one summary in one run", 0)
        return reading
    reading.ended = sum(line.text == OVER for line in lines[ends[0] :]) == 1
    summary, damaged = _summary(reading, lines[begins[0] + 1 : ends[0]])
    _describe(reading, summary)
    if not reading.facts["success"]:
        line, what = lines[begins[0]].number, "no line Success"
        if "Success" in summary:
            line, what = summary["Success"][0], f"Success={summary['Success'][1]}"
        reading.refuse(line, "all values of this run", f"hpcc found its results wrong: {what}", 0)
        return reading
    solved = _systems(reading, section, solved)
    body = sections_of(lines[: begins[0]])
    _figures(reading, summary, body, solved, damaged)
    _checks(reading, section, summary, body, solved)
    _counts(reading, summary, damaged)
    return reading


def _sections_alone(reading: Reading, section: Section, solved: list[System], lines: Sequence[Line], why: str) -> None:
    """What the sections that were completed say, marked: no summary confirms it, and the run may have gone wrong."""
    body = completed(lines)
    reading.facts["aborted"] = True
    known = _systems(reading, section, solved) if "HPL" in body else []
    best = max((one for one in known if not one.problem), key=lambda one: one.flop_rate, default=None)
    if best is not None:
        reading.params = dict(zip(("n", "nb", "p", "q"), best.size, strict=True))
    for figure in (*FIGURES, *MESSAGES):
        if figure.key == "PTRANS_time":
            continue  # no section has it
        other = counterpart(figure, body, known)
        if other is not None and other.value > 0:
            metric = figure.metric.model_copy(update={"primary": False})
            reading.values.append(Value(metric, other.value * figure.scale, other.line, ABORTED))
    names = ", ".join(body) or "none"
    what = "the figures of its summary" if reading.values else "all values of this run"
    reading.refuse(section.end, what, f"{why}; completed sections: {names}", 0)


def _summary(reading: Reading, lines: tuple[Line, ...]) -> tuple[Summary, bool]:
    """What the summary says, and whether anything in it is not as hpcc writes it."""
    summary: dict[str, tuple[int, str]] = {}
    twice: set[str] = set()
    damaged = False
    for line in lines:
        pair = PAIR.match(line.text)
        if pair is None:
            reading.refuse(line.number, line.text or "(empty line)", "not a line of a summary: it is damaged here", 0)
            damaged = True
        elif pair[1] in summary or pair[1] in twice:
            reading.refuse(line.number, pair[1], "it appears twice in the summary")
            summary.pop(pair[1], None)
            twice.add(pair[1])
            damaged = True
        else:
            summary[pair[1]] = (line.number, pair[2])
    return summary, damaged


def _describe(reading: Reading, summary: Summary) -> None:
    """The work: matrix, blocks, grid and processes. Facts: version, verdict, counts, timer, FFT, threads."""
    for name, key in WORK.items():
        if key in summary and summary[key][1].isdecimal() and len(summary[key][1]) < 12:
            reading.params[name] = int(summary[key][1])
    ranks = reading.params.get("ranks")
    reading.ranks = ranks if isinstance(ranks, int) else 1
    reading.facts["success"] = "Success" in summary and summary["Success"][1] == "1"
    if release := ".".join(summary[key][1] for key in RELEASE if key in summary):
        reading.facts["hpcc_release"] = release
    names = [metric.name for metric in CHECKS if metric.name in summary]
    counts = {name: counted for name in names if (counted := number(summary[name][1])) is not None}
    reading.facts["counts"] = dict(counts)
    for key in ("MPI_Wtick", "STREAM_Threads", "omp_get_max_threads", "HPLMaxProcs"):
        if key in summary and (value := number(summary[key][1])) is not None:
            reading.facts[key] = value
    for key in ("FFT_API", "MPIRandomAccess_Algorithm"):
        if key in summary:
            reading.facts[key] = summary[key][1]


def _systems(reading: Reading, section: Section, solved: list[System]) -> list[System]:
    """The systems that HPL's own lines prove; its figures are in the summary, and checked against these."""
    if not solved or not closed(reading, section, solved, values=0):
        return []
    for one in solved:
        if one.problem:
            reading.refuse(one.wrong, "a system of HPL", one.problem, 0)
    outcomes(reading, section, solved)
    return solved


def _figures(
    reading: Reading, summary: Summary, body: dict[str, list[Line]], solved: list[System], damaged: bool
) -> None:
    """Every figure of the summary that nothing contradicts."""
    for figure in _expected(reading, summary):
        if figure.key not in summary:
            reading.refuse(first_line(summary), figure.key, "it is missing in the summary")
            continue
        line, text = summary[figure.key]
        value = number(text)
        if value is None or value == 0:
            reading.refuse(line, f"{figure.key}={text}", "not a number above zero: the test did not run, or is damaged")
            continue
        other = counterpart(figure, body, solved)
        if other is None and damaged:
            reading.refuse(line, figure.key, "the summary is damaged, and no section of the test confirms the value")
        elif other is not None and abs(other.value - value) > other.half + EXACT * value:
            reason = f"the summary says {text}, the section of the test {other.value:.6g}"
            reading.refuse(line if other.value else other.line, figure.key, reason)
        elif note := _invalid(figure, summary):
            reading.refuse(line, figure.key, note)
        else:
            reading.values.append(Value(figure.metric, value * figure.scale, line))


def _expected(reading: Reading, summary: Summary) -> tuple[Figure, ...]:
    """The figures that a run of so many processes has: a single one sends no messages."""
    processes = reading.params.get("ranks")
    if processes is None and "CommWorldProcs" in summary:
        line, text = summary["CommWorldProcs"]
        reading.refuse(
            line, f"CommWorldProcs={text}", "not a number of processes: there may be messages", len(MESSAGES)
        )
    elif processes != 1:
        return (*FIGURES, *MESSAGES)
    elif sent := [figure.key for figure in MESSAGES if number(summary.get(figure.key, (0, ""))[1])]:
        line, _ = summary["CommWorldProcs"]
        reading.refuse(line, "CommWorldProcs=1", f"one process has no {sent[0]}", len(sent))
    return FIGURES


def first_line(summary: Summary) -> int:
    return min((line for line, _ in summary.values()), default=0)


def _invalid(figure: Figure, summary: Summary) -> str:
    """Why a figure of RandomAccess does not count: too many words of its table are wrong."""
    if not figure.key.startswith("MPIRandomAccess"):
        return ""
    fraction = summary.get(figure.key.replace("_GUPs", "_ErrorsFraction"))
    errors = number(fraction[1]) if fraction else None
    if errors is None:
        return "the summary does not say how many words are wrong"
    return "" if errors <= ERRORS else f"{errors:.2%} of the words are wrong, 1 % are allowed"


def _checks(
    reading: Reading, section: Section, summary: Summary, body: dict[str, list[Line]], solved: list[System]
) -> None:
    """What hpcc found when it checked its results: its verdict, HPL's residual, the error of the Fourier transform."""
    begin = first_line(summary)
    reading.values.append(Value(SUCCESS, 1.0, summary["Success"][0]))
    if solved and all(one.residual >= 0 for one in solved):
        worst = max(solved, key=lambda one: one.residual)
        reading.values.append(Value(HPL_RESIDUAL, worst.residual, worst.checked))
    else:
        line = near_miss(section.lines, ROW, CHECK) or begin
        reading.refuse(line, HPL_RESIDUAL.name, "no residual check of HPL, or one that failed")
        reading.facts["residual_missing"] = True
    errors = [line for line in body.get("StarFFT", []) if line.text.startswith("max(|x-x0|):")]
    value = number(errors[0].text.partition(":")[2].strip()) if len(errors) == 1 else None
    if value is not None:
        reading.values.append(Value(STAR_FFT, value, errors[0].number))
    else:
        why = "not a number" if len(errors) == 1 else f"{len(errors)} lines say it, instead of one"
        reading.refuse(errors[0].number if errors else begin, STAR_FFT.name, why)


def _counts(reading: Reading, summary: Summary, damaged: bool) -> None:
    """What the summary counts besides the figures."""
    for metric in CHECKS:
        if metric.name not in summary:
            reading.refuse(first_line(summary), metric.name, "it is missing in the summary")
            continue
        line, text = summary[metric.name]
        counted = number(text)
        if counted is None:
            reading.refuse(line, f"{metric.name}={text}", "not a number: the test did not run, or is damaged")
        elif damaged:
            why = "the summary is damaged, and nothing else confirms the value"
            reading.refuse(line, f"{metric.name}={text}", why)
        else:
            reading.values.append(Value(metric, counted, line))
