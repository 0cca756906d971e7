"""H01, H04 to H07: whether hpcc and xhpl solved their problems, and what their figures are figures of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from vtax.audit.programs import BLAS_BENCHMARKS
from vtax.evidence import logs
from vtax.evidence.campaign import Evidence, blocker, unknown, values_of, warning
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity
from vtax.model.trial import Status, TrialRecord
from vtax.units import format_bytes, format_quantity

RESIDUAL = re.compile(r"^(?:\|\|Ax-b\|\|_oo/.*?|\|\|Ax-b\|\|.*?)= *\S+ \.+ (PASSED|FAILED)", re.MULTILINE)
ROWS = re.compile(r"^(W[RC]\w+) +\d", re.MULTILINE)
STREAM = ("Copy", "Scale", "Add", "Triad")
AGGREGATE = 1.5  # one process of many is not this much faster than one alone
MOST = 0.75  # of the figures: noise lifts some of them, a total lifts nearly all
CACHES = 4  # STREAM asks for arrays of four times the last cache
ERRORS = 0.01  # of the updates, which RandomAccess allows
RESIDUAL_LIMIT = 16.0  # of PTRANS, scaled
FFT_LIMIT = 1e-6  # of a value of about one; a right transform has about 1e-15


@row(
    "H01",
    Severity.BLOCKER,
    "a run of HPL or hpcc is numerically wrong, or was not checked",
    why="a wrong solution is no speed; it counts as a failed run",
    remedy="look at the memory (memtest), the BLAS and overclocking",
    source="the residual that xhpl prints and `Success` of hpcc, also in imported logs",
    benchmarks=BLAS_BENCHMARKS,
)
def residuals(evidence: Evidence) -> Iterator[Finding | str]:
    """H01: residuals that failed, or that nobody printed."""
    labels: dict[tuple[str, str], list[TrialRecord]] = {}
    for one in evidence.trials:
        if one.benchmark in BLAS_BENCHMARKS and one.status is not Status.NOT_RUN and not one.warmup:
            labels.setdefault((one.environment, one.label), []).append(one)
    for (environment, label), trials in labels.items():
        wrong = [one for one in trials if "FAILED" in verdicts(one)]
        silent = [one for one in trials if one.status is Status.OK and not verdicts(one)]
        if wrong:
            message = (
                f"{len(wrong)} of {len(trials)} runs of {label} in {environment} failed their own check of the result"
            )
            yield blocker("H01", message, "", environment, label)
        if any(one.texts for one in silent):
            message = f"{len(silent)} of {len(trials)} runs of {label} in {environment} print no check of the result"
            yield blocker("H01", message, "", environment, label)
        elif silent:
            yield unknown("H01", f"the output of {len(silent)} runs of {label} is not there", environment, label)
        if not wrong and not silent:
            yield f"{label} in {environment}: all {len(trials)} runs passed their check"


def verdicts(record: TrialRecord) -> set[str]:
    """PASSED, FAILED, both or neither: of residuals, and of hpcc's own word."""
    found = set(logs.found(RESIDUAL, record))
    success = logs.summary(record).get("Success")
    return found | ({"PASSED" if success == "1" else "FAILED"} if success is not None else set())


@row(
    "H04",
    Severity.WARNING,
    "hpcc solved HPL several times",
    why="its summary keeps only the best of them: a maximum, not a mean",
    remedy="give hpcc one size and one grid; sweep with xhpl (`hpl`), which reports every row",
    source="the rows in hpcc's HPL section, also in imported logs",
    benchmarks=("hpcc",),
)
def best_of_many(evidence: Evidence) -> Iterator[Finding | str]:
    """H04: several rows of HPL in one run of hpcc."""
    for (environment, label), trials in evidence.entries("hpcc").items():
        rows = max(len(ROWS.findall(logs.text_of(trial))) for trial in trials)
        if rows > 1:
            message = f"HPL of {label} in {environment} is the best of {rows} rows"
            yield warning("H04", message, "", environment, label, metrics=("HPL", "HPL_time"))
        elif rows == 1:
            yield f"{label} in {environment}: one row"
        else:
            yield unknown("H04", f"the output of {label} has no HPL section", environment, label)


@row(
    "H05",
    Severity.BLOCKER,
    "a figure of each process is larger than one process alone reaches",
    why="Star figures are per process, with all at once: one that is above the single process is a total, or another "
    "unit",
    remedy="read Star figures per process; multiply by the processes for a total of the nodes",
    source="Star against Single figures of the same run, also in imported logs",
    benchmarks=("hpcc",),
)
def star_figures(evidence: Evidence) -> Iterator[Finding | str]:
    """H05: Star figures that cannot be per process."""
    for (environment, label), trials in evidence.entries("hpcc").items():
        names = {one.metric for trial in trials for one in evidence.measured.get(trial.id, ())}
        stars = sorted(name for name in names if name.startswith("Star") and f"Single{name[4:]}" in names)
        counts = {count for trial in trials if (count := logs.number(logs.summary(trial).get("CommWorldProcs")))}
        processes = max(counts, default=None)
        if not stars:
            yield unknown("H05", f"{label} has no pair of Star and Single figures", environment, label)
        levels = {name: median(evidence.values(environment, label, name)) for name in stars}
        ratios = {
            name: each / median(evidence.values(environment, label, f"Single{name[4:]}"))
            for name, each in levels.items()
        }
        many = processes is not None and processes > 1
        total = sum(ratio > AGGREGATE for ratio in ratios.values())
        if many and total and total >= MOST * len(ratios):
            worst = max(ratios, key=lambda name: ratios[name])
            message = f"{total} of {len(ratios)} Star figures of {label} in {environment} are above what one process "
            message += f"alone reaches ({worst}: {ratios[worst]:.2f} times): they are no figures of each process"
            yield blocker("H05", message, "", environment, label, metrics=tuple(stars))
        elif stars and processes:
            said = f"{label} in {environment}: {len(stars)} Star figures are per process"
            if triad := levels.get("StarSTREAM_Triad"):
                said += f"; StarSTREAM_Triad is {format_quantity(triad * processes, 'byte/s')} for all {processes:.0f}"
            yield said


@row(
    "H06",
    Severity.BLOCKER,
    "STREAM's arrays are smaller than four times the last cache",
    why="what fits into a cache measures the cache; below the size of the cache that is all that it measures",
    remedy="raise N: hpcc's arrays are a third of a process's part of the matrix",
    source="`STREAM_VectorSize` and processes of the log, also an imported one; the last cache of host and nodes",
    benchmarks=("hpcc",),
)
def stream_arrays(evidence: Evidence) -> Iterator[Finding | str]:
    """H06: STREAM in a cache. A blocker below one cache, a warning below four."""
    for (environment, label), trials in evidence.entries("hpcc").items():
        keys = logs.summary(trials[0])
        words, processes = logs.number(keys.get("STREAM_VectorSize")), logs.number(keys.get("CommWorldProcs"))
        cache = last_cache(evidence, environment)
        if not words or not processes or cache is None:
            missing = "the size of the last cache" if words and processes else "the size of STREAM's arrays"
            yield unknown("H06", f"{missing} is not known", environment, label)
            continue
        machines = 1 if evidence.capabilities(environment).shares_machine else max(1, len(trials[0].nodes))
        for prefix, count in (("Single", 1.0), ("Star", processes / machines)):
            size = 8 * words * count
            said = f"{prefix}STREAM of {label} in {environment}: arrays of {format_bytes(int(size))}, last cache "
            said += format_bytes(cache)
            metrics = tuple(f"{prefix}STREAM_{name}" for name in STREAM)
            if size < cache:
                yield blocker("H06", f"{said}: the cache is measured", "", environment, label, metrics=metrics)
            elif size < CACHES * cache:
                message = f"{said}: a part of them stays in the cache"
                yield warning("H06", message, "", environment, label, metrics=metrics)
            else:
                yield said


def last_cache(evidence: Evidence, environment: str) -> int | None:
    """Bytes of the last level of cache that its CPUs share: the host's, or what nodes see where that is larger."""
    host = evidence.host_facts(environment).get("last_cache_bytes")
    sizes = [size for values in values_of(evidence, environment, "last_cache_bytes").values() for size in values]
    return max([*sizes, *([host] if host else [])], default=None)


@row(
    "H07",
    Severity.BLOCKER,
    "RandomAccess, FFT or PTRANS are wrong or were cut short",
    why="more than 1 % wrong updates or a residual above the limit make the result invalid; a run that hit its time "
    "limit "
    "did only a part of its updates",
    remedy="look at the memory and at the number of processes; lower N where the time limit was hit",
    source="hpcc's summary, also in imported logs",
    benchmarks=("hpcc",),
)
def other_checks(evidence: Evidence) -> Iterator[Finding | str]:
    """H07: what hpcc checks beside HPL."""
    for (environment, label), trials in evidence.entries("hpcc").items():
        found = {fault: metric for trial in trials for fault, metric in faults(logs.summary(trial))}
        for (message, cut), metric in found.items():
            said = warning if cut else blocker  # rates of a cut run are of fewer updates, but of right ones
            yield said("H07", f"{label} in {environment}: {message}", "", environment, label, metrics=(metric,))
        if not any("PTRANS_residual" in logs.summary(trial) for trial in trials):
            yield unknown("H07", f"the output of {label} has no summary", environment, label)
        elif not found:
            yield f"{label} in {environment}: errors and residuals are within their limits"


def faults(keys: dict[str, str]) -> Iterator[tuple[tuple[str, bool], str]]:
    """((what is wrong, whether the run was only cut short), metric)."""
    for name in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        wrong = logs.number(keys.get(f"{name}_ErrorsFraction"))
        if wrong is not None and wrong > ERRORS:
            yield (f"{wrong:.1%} of the updates of {name} are wrong", False), name
        size, done = (logs.number(keys.get(f"{name}_{part}")) for part in ("N", "ExeUpdates"))
        if size is not None and done is not None and 0 <= done < 4 * size:
            yield (f"{name} hit its time limit after {done / (4 * size):.0%} of its updates", True), name
    for key, metric, limit in (("PTRANS_residual", "PTRANS", RESIDUAL_LIMIT), ("MPIFFT_maxErr", "MPIFFT", FFT_LIMIT)):
        left = logs.number(keys.get(key))
        if left is not None and left > limit:
            yield (f"{key} is {left:g}, the limit {limit:g}", False), metric
