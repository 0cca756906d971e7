"""hpcc: the summary of each run in a `hpccoutf.txt`, checked against what the tests themselves printed above it.

hpcc appends to its file, so it may hold several runs, aborted ones among them. Where a summary is damaged, a value
counts only when the section of its own test says the same.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vtax.tools.commands import command_facts
from vtax.tools.hpcc.benchmark import CHECKS, FIGURES, MESSAGES, RESIDUAL, STAR_FFT, SUCCESS, Figure
from vtax.tools.hpcc.hpl_log_reader import Row, rows
from vtax.tools.reading import Line, Reading, Section, Value, first, number

BEGIN, END = "Begin of Summary section.", "End of Summary section."
VERSION = re.compile(r"HPC Challenge Benchmark version (\d{1,3}\.\d{1,3}\.\d{1,3}\w?)")
COMPILED = re.compile(r"^Compiled on (.{1,40})$")
HOST = re.compile(r"^Hostname: '(.{1,80})'$")
TIME = re.compile(r"^Current time \((\d{1,12})\) is ")
SECTION = re.compile(r"^(Begin|End) of (\w{1,40}) section\.$")
PAIR = re.compile(r"^(\w{1,80})=(.{0,80})$")
NUM = r"(\d{1,20}(?:\.\d{1,20})?(?:e[+-]\d\d)?)"
TRIPLE = rf" {{1,10}}{NUM} / {{1,10}}{NUM} / {{1,10}}{NUM} "
MESSAGE = {
    "PingPongLatency": (re.compile(rf"^Latency +min / avg / max:{TRIPLE}msecs$"), 1e3),
    "PingPongBandwidth": (re.compile(rf"^Bandwidth +min / avg / max:{TRIPLE}MByte/s$"), 1e-3),
}
RING = re.compile(rf"^On (naturally|randomly) +ordered ring: latency= +{NUM} msec, bandwidth= +{NUM} MB/s$")
WORK = {"n": "HPL_N", "nb": "HPL_NB", "p": "HPL_nprow", "q": "HPL_npcol", "ranks": "CommWorldProcs"}
EXACT = 5e-4  # six digits against the digits of a section
TRANSPOSED = re.compile(r"^WALL +(?:\d{1,9} +){6}\d{1,9}\.\d\d (PASSED|FAILED) +(\d{1,9}\.\d{3}) +(\S{1,12})$")


class Said(NamedTuple):
    """A number as the section of its test printed it, and half of its last digit."""

    value: float
    half: float


def said(text: str, scale: float = 1.0) -> Said:
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2]) - (int(exponent) if exponent else 0)
    return Said(float(text) * scale, 0.5001 * 10.0**-digits * scale)


def read(section: Section) -> Reading:
    """One run of hpcc."""
    lines = section.lines
    reading = Reading("hpcc", facts=command_facts(lines))
    for name, pattern in (("hpcc_version", VERSION), ("hpcc_compiled", COMPILED), ("host", HOST)):
        if match := first(pattern, lines):
            reading.facts[name] = match[1]
    times = [int(match[1]) for line in lines if (match := TIME.match(line.text))]
    if times:
        reading.started, reading.elapsed_s = float(times[0]), float(max(times) - times[0])
    solved = rows(lines)
    begins = [place for place, line in enumerate(lines) if line.text == BEGIN]
    ends = [place for place, line in enumerate(lines) if line.text == END]
    _hpl_facts(reading, solved)
    if not begins or not ends:
        why = "it has no summary: aborted" if not begins else "its summary has no end: cut off"
        reading.refuse(section.last, "all values of this run", why, 0)
        return reading
    if len(begins) > 1 or len(ends) > 1 or ends[0] < begins[0]:
        reading.refuse(lines[begins[0]].number, "all values of this run", "more than one summary in one run", 0)
        return reading
    summary, damaged = _summary(reading, lines[begins[0] + 1 : ends[0]])
    _params(reading, summary)
    if "Success" not in summary or summary["Success"][1] != "1":
        what = f"Success={summary['Success'][1]}" if "Success" in summary else "no line Success"
        reading.facts["success"] = False
        reading.refuse(lines[begins[0]].number, "all values of this run", f"hpcc found its results wrong: {what}", 0)
        return reading
    reading.facts["success"] = True
    _figures(reading, summary, sections_of(lines[: begins[0]]), solved, damaged)
    _counts(reading, summary, lines, solved, damaged)
    return reading


def _hpl_facts(reading: Reading, solved: list[Row]) -> None:
    reading.facts["hpl_rows"] = len(solved)
    reading.facts["residuals_failed"] = sum("failed" in row.problem for row in solved)
    if solved:
        best = max(solved, key=lambda row: row.flop_rate)
        reading.facts["hpl"] = {"n": best.n, "nb": best.nb, "p": best.p, "q": best.q}
        reading.facts["hpl_time_s"] = best.time_s


def _summary(reading: Reading, lines: tuple[Line, ...]) -> tuple[dict[str, tuple[int, str]], bool]:
    """Key -> line and value, and whether anything in it is not as hpcc writes it."""
    summary: dict[str, tuple[int, str]] = {}
    twice: set[str] = set()
    damaged = False
    for line in lines:
        pair = PAIR.match(line.text)
        if pair is None:
            reading.refuse(line.number, line.text or "(empty line)", "not a line of a summary: it is damaged here", 0)
            damaged = True
        elif pair[1] in summary or pair[1] in twice:
            reading.refuse(line.number, pair[1], "it stands twice in the summary")
            summary.pop(pair[1], None)
            twice.add(pair[1])
            damaged = True
        else:
            summary[pair[1]] = (line.number, pair[2])
    return summary, damaged


def _params(reading: Reading, summary: dict[str, tuple[int, str]]) -> None:
    """The work: matrix, blocks, grid and processes. Facts: timer, FFT, threads."""
    for name, key in (
        ("n", "HPL_N"),
        ("nb", "HPL_NB"),
        ("p", "HPL_nprow"),
        ("q", "HPL_npcol"),
        ("ranks", "CommWorldProcs"),
    ):
        if key in summary and summary[key][1].isdecimal() and len(summary[key][1]) < 12:
            reading.params[name] = int(summary[key][1])
    ranks = reading.params.get("ranks")
    reading.ranks = ranks if isinstance(ranks, int) else 1
    for key in ("MPI_Wtick", "STREAM_Threads", "omp_get_max_threads", "HPLMaxProcs", "STREAM_VectorSize"):
        if key in summary and (value := number(summary[key][1])) is not None:
            reading.facts[key] = value
    for key in ("FFT_API", "MPIRandomAccess_Algorithm"):
        if key in summary:
            reading.facts[key] = summary[key][1]


def sections_of(lines: tuple[Line, ...]) -> dict[str, list[str]]:
    """The lines of every test's section, by its name."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if mark := SECTION.match(line.text):
            name = mark[2] if mark[1] == "Begin" else ""
            found.setdefault(mark[2], [])
        elif name:
            found[name].append(line.text)
    return found


def _figures(
    reading: Reading, summary: dict[str, tuple[int, str]], body: dict[str, list[str]], solved: list[Row], damaged: bool
) -> None:
    """Every figure of the summary that nothing contradicts."""
    alone = reading.ranks == 1 and "CommWorldProcs" in summary
    for figure in FIGURES if alone else (*FIGURES, *MESSAGES):
        if figure.key not in summary:
            reading.refuse(reading_line(summary), figure.key, "it is missing in the summary")
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
            reading.refuse(line, figure.key, f"the summary says {text}, the section of the test {other.value:.6g}")
        elif note := _invalid(figure, summary):
            reading.refuse(line, figure.key, note)
        else:
            reading.values.append(Value(figure.metric, value * figure.scale, line))


def reading_line(summary: dict[str, tuple[int, str]]) -> int:
    return min((line for line, _ in summary.values()), default=0)


def _invalid(figure: Figure, summary: dict[str, tuple[int, str]]) -> str:
    """Why a figure of RandomAccess does not count: too many words of its table are wrong."""
    if not figure.key.startswith("MPIRandomAccess"):
        return ""
    fraction = summary.get(figure.key.replace("_GUPs", "_ErrorsFraction"))
    errors = number(fraction[1]) if fraction else None
    if errors is None:
        return "the summary does not say how many words are wrong"
    return "" if errors <= 0.01 else f"{errors:.2%} of the words are wrong, 1 % are allowed"


def counterpart(figure: Figure, body: dict[str, list[str]], solved: list[Row]) -> Said | None:
    """What the section of a test printed for the same figure; None when it cannot be found there."""
    key = figure.key
    if key.startswith("HPL_"):
        good = [row for row in solved if not row.problem]
        if not good:
            return None
        best = max(good, key=lambda row: row.flop_rate)
        if key == "HPL_time":
            return Said(best.time_s, 0.01 + 6e-4 * best.time_s)
        return Said(best.flop_rate / 1e12, 6e-4 * best.flop_rate / 1e12)
    name = re.sub(r"_(?:Gflops|GUPs|GBs|GBytes|usec|Copy|Scale|Add|Triad)$", "", key)
    if key == "PTRANS_GBs":
        rates = [said(found[2]) for text in body.get("PTRANS", []) if (found := TRANSPOSED.match(text))]
        return min(rates, default=None)
    if "PingPong" in key or "Ring" in key:
        return _message(key, body.get("LatencyBandwidth", []))
    kernel = key.rpartition("_")[2] if "STREAM" in key else ""
    return _alone(key, kernel, body.get(name, []))


def _alone(key: str, kernel: str, lines: list[str]) -> Said | None:
    """The figure of one test in its own section."""
    of = {"Gflops": "Gflop/s", "GUPs": "GUP/s"}.get(key.rpartition("_")[2], f"{kernel} GB/s")
    if key.startswith("Star"):
        patterns = [rf"^Average {re.escape(of)} {NUM}$"]
    elif key.startswith("Single"):
        patterns = [rf"^Single (?:DGEMM |FFT |STREAM )?{re.escape(of)} {NUM}$"]
    else:
        patterns = [rf"^{NUM} Billion\(10\^9\) Updates    per second \[GUP/s\]$", rf"^Gflop/s: +{NUM}$"]
    found = [match[1] for text in lines for pattern in patterns if (match := re.match(pattern, text))]
    return said(found[0]) if len(found) == 1 else None


def _message(key: str, lines: list[str]) -> Said | None:
    """Latency and bandwidth from "Detailed benchmark results"."""
    starts = [place for place, text in enumerate(lines) if text.startswith("Detailed benchmark results")]
    if len(starts) != 1:
        return None
    detail = lines[starts[0] : starts[0] + 8]
    if "Ring" in key:
        kind = "naturally" if key.startswith("Naturally") else "randomly"
        found = [match for text in detail if (match := RING.match(text)) and match[1] == kind]
        if len(found) != 1:
            return None
        return said(found[0][2], 1e3) if "Latency" in key else said(found[0][3], 1e-3)
    for name, (pattern, scale) in MESSAGE.items():
        if name in key:
            triples = [match for text in detail if (match := pattern.match(text))]
            place = {"Min": 1, "Avg": 2, "Max": 3}[key[:3]]
            return said(triples[0][place], scale) if len(triples) == 1 else None
    return None


def _counts(
    reading: Reading,
    summary: dict[str, tuple[int, str]],
    lines: tuple[Line, ...],
    solved: list[Row],
    damaged: bool,
) -> None:
    """What is counted and checked beside the figures."""
    begin = next(line.number for line in lines if line.text == BEGIN)
    reading.values.append(Value(SUCCESS, 1.0, summary["Success"][0]))
    good = [row for row in solved if row.residual >= 0]
    if good and len(good) == len(solved):
        worst = max(good, key=lambda row: row.residual)
        reading.values.append(Value(RESIDUAL, worst.residual, worst.checked))
    else:
        reading.refuse(begin, RESIDUAL.name, "no residual check of HPL, or one that failed")
        reading.facts["residual_missing"] = True
    fft = [text for text in sections_of(lines).get("StarFFT", []) if text.startswith("max(|x-x0|):")]
    if len(fft) == 1 and (value := number(fft[0].partition(":")[2].strip())) is not None:
        where = next(line.number for line in reversed(lines) if line.text == fft[0])
        reading.values.append(Value(STAR_FFT, value, where))
    for metric in CHECKS:
        if metric.name not in summary:
            reading.refuse(begin, metric.name, "it is missing in the summary")
            continue
        line, text = summary[metric.name]
        counted = number(text)
        if counted is None or damaged:
            why = (
                "it is no number" if counted is None else "the summary is damaged, and nothing else confirms the value"
            )
            reading.refuse(line, f"{metric.name}={text}", why)
            continue
        reading.values.append(Value(metric, counted, line))
    for name in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        size, made = summary.get(f"{name}_N"), summary.get(f"{name}_ExeUpdates")
        if size and made and size[1].isdecimal() and made[1].isdecimal() and int(size[1][:18]) > 0:
            reading.facts[f"{name}_updates_a_word"] = round(int(made[1][:18]) / int(size[1][:18]), 3)
