"""H01, H04 to H07, M04: whether hpcc and xhpl solved their problems, which ones, and what their figures are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence, against_first, differences, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.nodes import Scope
from vtax.model.plan import Origin
from vtax.model.trial import Status, TrialRecord
from vtax.tools.hpcc.metrics import FIGURES
from vtax.units import format_bytes, format_quantity

PROGRAMS = ("hpcc", "hpl")
STARS = tuple(figure.metric.name for figure in FIGURES if figure.metric.name.startswith("Star"))
NAMED = ("StarDGEMM", "StarSTREAM_Triad", "StarRandomAccess", "StarFFT")  # one of each test
UNIT = {figure.metric.name: figure.metric.unit for figure in FIGURES}
STREAM = ("Copy", "Scale", "Add", "Triad")
AGGREGATE = 1.5  # one process of many is not this much faster than one alone
MOST = 0.75  # of the figures: noise lifts some of them, a total lifts nearly all
CACHES = 4  # STREAM asks for arrays of four times the last cache
ERRORS = 0.01  # of the updates, which RandomAccess allows
UPDATES = 4  # of each word, when the time limit of RandomAccess is not hit
LIMITS = (  # PTRANS is scaled; a transform of values of about one has an error of about 1e-15
    ("PTRANS_residual", "PTRANS", 16.0),
    ("MPIFFT_maxErr", "MPIFFT", 1e-6),
)


@row(
    "H01",
    Severity.BLOCKER,
    "a run of HPL or hpcc is numerically wrong, or was not checked",
    short="wrong or unchecked results",
    why="a wrong solution is not a result; it counts as a failed run",
    remedy="check the memory (memtest), the BLAS and overclocking",
    source="the residual that xhpl prints and `Success` of hpcc",
    benchmarks=PROGRAMS,
)
def residuals(evidence: Evidence) -> Iterator[Result]:
    """H01: residuals that failed, or that were not printed."""
    labels: dict[tuple[str, str], list[TrialRecord]] = {}
    for one in evidence.trials:
        if one.benchmark in PROGRAMS and one.status is not Status.NOT_RUN and not one.warmup:
            labels.setdefault((one.environment, one.label), []).append(one)
    for (environment, label), trials in labels.items():
        wrong = [one for one in trials if any(map(failed, evidence.facts_of(one)))]
        silent = [
            one
            for one in trials
            if one not in wrong and one.status is Status.OK and not any(map(checked, evidence.facts_of(one)))
        ]
        unread = [one for one in silent if not evidence.facts_of(one)]
        of_all = f"of {len(trials)} runs of {label} in {environment}"
        if wrong:
            logs = [evidence.name_of(one) for one in wrong if one.imported is not None]
            message = f"{len(wrong)} {of_all} failed their own check of the result{f' ({shown(logs)})' if logs else ''}"
            yield Failed(message, environment, label)
        if len(silent) > len(unread):
            yield Failed(f"{len(silent) - len(unread)} {of_all} print no check of the result", environment, label)
        elif unread:
            yield Undecided(
                f"{label} in {environment}: the output of {len(unread)} runs is missing", environment, label
            )
        if not wrong and not silent:
            yield f"{label} in {environment}: all {len(trials)} runs passed their check"


def failed(facts: Mapping[str, Any]) -> bool:
    """Whether a residual or hpcc itself says that the result is wrong, or a summary has no residual to prove it."""
    return bool(facts.get("residuals_failed") or facts.get("success") is False or facts.get("residual_missing"))


def checked(facts: Mapping[str, Any]) -> bool:
    return bool(facts.get("residuals_passed") or facts.get("success"))


@row(
    "H04",
    Severity.WARNING,
    "hpcc solved HPL several times",
    short="the best of several runs of HPL",
    why="its summary keeps only the best of them: a maximum, not a mean",
    remedy="give hpcc one size and one grid; sweep with xhpl (`hpl`), which reports every row",
    source="the rows in hpcc's HPL section",
    note="a note where an environment and what it is compared with have it alike: it is then about what the number "
    "means",
    benchmarks=("hpcc",),
    needs=Needs("the rows of HPL", facts=("systems",)),
)
def best_of_many(evidence: Evidence) -> Iterator[Result]:
    """H04: several rows of HPL in one run of hpcc."""
    best: dict[tuple[str, str], Failed | None] = {}
    for (environment, label), trials in evidence.entries("hpcc").items():
        rows = max((len(facts["systems"]) for facts in evidence.facts(trials, "systems")), default=0)
        if rows > 1:
            message = f"HPL of {label} in {environment} is the best of {rows} rows"
            best[environment, label] = Failed(message, environment, label, metrics=("HPL", "HPL_time"))
        elif rows == 1:
            best[environment, label] = None
            yield f"{label} in {environment}: one row"
        else:
            yield Undecided(f"{label} in {environment}: its output has no HPL section", environment, label)
    yield from weighed(evidence, best, Severity.WARNING)


@row(
    "H05",
    Severity.BLOCKER,
    "a figure of each process is larger than one process alone reaches",
    short="figures of single processes",
    why="Star figures are per process, with all at once: one that is above the single process is a total, or another "
    "unit",
    remedy="read Star figures per process; multiply by the processes for a total of the nodes",
    source="Star against Single figures of the same run",
    benchmarks=("hpcc",),
    needs=Needs("Star figures", metrics=STARS),
)
def star_figures(evidence: Evidence) -> Iterator[Result]:
    """H05: Star figures that cannot be per process. In logs it is worth saying that they are, of every test."""
    for (environment, label), trials in evidence.entries("hpcc").items():
        names = {one.metric for trial in trials for one in evidence.measured.get(trial.id, ())}
        stars = sorted(name for name in names if name.startswith("Star") and f"Single{name[4:]}" in names)
        processes = processes_of(evidence, trials)
        levels = {name: median(evidence.values(environment, label, name)) for name in stars}
        ratios = {
            name: each / median(evidence.values(environment, label, f"Single{name[4:]}"))
            for name, each in levels.items()
        }
        total = sum(ratio > AGGREGATE for ratio in ratios.values())
        if processes > 1 and total and total >= MOST * len(ratios):
            worst = max(ratios, key=lambda name: ratios[name])
            message = f"{total} of {len(ratios)} Star figures of {label} in {environment} are above what one process "
            message += f"alone reaches ({worst}: {ratios[worst]:.2f} times): they are not figures of each process"
            yield Failed(message, environment, label, metrics=tuple(stars))
        elif each := {name: median(evidence.values(environment, label, name)) for name in STARS if name in names}:
            said = f"{label} in {environment}: {len(each)} Star figures are per process"
            said += "".join(f"; {_of_all(name, each[name], processes)}" for name in NAMED if name in each)
            if evidence.plan.origin is Origin.IMPORTED and processes != 1:
                yield Failed(said, environment, label, Severity.INFO, "multiply only to compare with a whole machine")
            else:
                yield said


def processes_of(evidence: Evidence, trials: Sequence[TrialRecord]) -> float:
    """How many processes ran, by the summary or by what the run asked for; 0 where neither says it."""
    known = [counts["CommWorldProcs"] for counts in counted(evidence, trials, "CommWorldProcs")]
    asked = [float(n) for trial in trials if isinstance(n := trial.params.get("ranks"), int) and n > 1]
    return max((*known, *asked), default=0)


def _of_all(name: str, each: float, processes: float) -> str:
    """A figure of each process, and what it comes to for all, where their number is known."""
    unit = UNIT[name]
    total = f", {format_quantity(each * processes, unit)} for all {processes:.0f}" if processes else ""
    return f"{name} is {format_quantity(each, unit)} each{total}"


def counted(evidence: Evidence, trials: Sequence[TrialRecord], *names: str) -> list[Mapping[str, float]]:
    """The counts, errors and residuals of hpcc's summaries that have all of `names`, by key."""
    every = (facts["counts"] for facts in evidence.facts(trials, "counts"))
    return [counts for counts in every if all(counts.get(name) is not None for name in names)]


@row(
    "H06",
    Severity.BLOCKER,
    "STREAM's arrays are smaller than four times the last cache",
    short="STREAM inside the cache",
    why="what fits into a cache measures the cache; below the size of the cache that is all that it measures",
    remedy="raise N: hpcc's arrays are a third of a process's part of the matrix; leave out `n` of STREAM alone",
    source="`STREAM_VectorSize` and processes of hpcc, `Array size` of STREAM; the last cache of host and nodes",
    benchmarks=("hpcc", "stream"),
    needs=Needs("the size of STREAM's arrays", facts=("counts", "array_bytes")),
    note="blocks where only one of two environments measures its cache; where both do, it warns below the size of the "
    "cache, and is a note up to four times of it: the figures are then of a cache, in all environments alike, and so "
    "is their ratio",
)
def stream_arrays(evidence: Evidence) -> Iterator[Result]:
    """H06: STREAM in a cache. Worse below one cache than below four."""
    inside: dict[str, dict[tuple[str, str], Failed | None]] = {}
    partly: dict[str, dict[tuple[str, str], Failed | None]] = {}
    for (environment, label), trials in evidence.entries("hpcc", "stream").items():
        known = arrays(evidence, environment, trials)
        cache = cache_behind(evidence, trials) or last_cache(evidence, environment)
        if not known or cache is None:
            missing = "the size of the last cache" if known else "the size of STREAM's arrays"
            yield Undecided(f"{label} in {environment}: not recorded: {missing}", environment, label)
            continue
        for name, size, metrics in known:
            said = f"{name} of {label} in {environment}: arrays of {format_bytes(size)}, last cache "
            said += format_bytes(cache)
            in_cache, in_part = inside.setdefault(name, {}), partly.setdefault(name, {})
            in_cache[environment, label] = in_part[environment, label] = None
            if size < cache:
                message = f"{said}: the cache is measured"
                in_cache[environment, label] = Failed(message, environment, label, metrics=metrics)
            elif size < CACHES * cache:
                message = f"{said}: a part of them stays in the cache"
                in_part[environment, label] = Failed(message, environment, label, Severity.WARNING, metrics=metrics)
            else:
                yield said
    for several in inside.values():
        yield from weighed(evidence, several, Severity.BLOCKER, alike=Severity.WARNING)
    for several in partly.values():
        yield from weighed(evidence, several, Severity.WARNING)


def arrays(
    evidence: Evidence, environment: str, trials: Sequence[TrialRecord]
) -> list[tuple[str, int, tuple[str, ...]]]:
    """What each STREAM of an entry is called, the smallest array that its processes on one machine have together, and
    its metrics; () for all of them."""
    if sizes := [facts["array_bytes"] for facts in evidence.facts(trials, "array_bytes")]:
        return [("STREAM", min(sizes), ())]
    known = counted(evidence, trials[:1], "STREAM_VectorSize", "CommWorldProcs")
    machines = 1 if evidence.capabilities(environment).shares_machine else max(1, len(trials[0].nodes))
    return [
        (f"{prefix}STREAM", int(8 * counts["STREAM_VectorSize"] * count), tuple(f"{prefix}STREAM_{x}" for x in STREAM))
        for counts in known
        for prefix, count in (("Single", 1.0), ("Star", counts["CommWorldProcs"] / machines))
    ]


def cache_behind(evidence: Evidence, trials: Sequence[TrialRecord]) -> int | None:
    """Bytes of the last-level caches behind the CPUs of the nodes that ran alone, as the plan has them: of a machine
    with several such caches a node has a part."""
    used = {name for trial in trials if trial.scope is Scope.NODE for name in trial.nodes}
    known = [node.last_cache_bytes for node in evidence.plan.shape.nodes if node.name in used]
    return max((size for size in known if size), default=None)


def last_cache(evidence: Evidence, environment: str) -> int | None:
    """Bytes of the last level of cache that its CPUs share: the host's, or what nodes see where that is larger."""
    host = evidence.host_facts(environment).get("last_cache_bytes")
    sizes = [size for values in values_of(evidence, environment, "last_cache_bytes").values() for size in values]
    return max([*sizes, *([host] if host else [])], default=None)


@row(
    "H07",
    Severity.BLOCKER,
    "RandomAccess, FFT or PTRANS are wrong or were cut short",
    short="failed or shortened tests of hpcc",
    why="more than 1 % wrong updates or a residual above the limit make the result invalid; a run that hit its time "
    "limit did only a part of its updates",
    remedy="check the memory and at the number of processes; lower N where the time limit was hit",
    source="hpcc's summary",
    benchmarks=("hpcc",),
    needs=Needs("the counts of hpcc's summary", facts=("counts",)),
    note="a warning for a run of RandomAccess that hit its time limit: its rate is of fewer updates, but of right ones",
)
def other_checks(evidence: Evidence) -> Iterator[Result]:
    """H07: what hpcc checks besides HPL."""
    for (environment, label), trials in evidence.entries("hpcc").items():
        summaries = counted(evidence, trials)
        found = {fault: metric for counts in summaries for fault, metric in faults(counts)}
        for (message, cut), metric in found.items():
            severity = Severity.WARNING if cut else None  # rates of a cut run are of fewer updates, but of right ones
            yield Failed(f"{label} in {environment}: {message}", environment, label, severity, metrics=(metric,))
        if not any("PTRANS_residual" in counts for counts in summaries):
            yield Undecided(f"{label} in {environment}: its output has no summary", environment, label)
        elif not found:
            yield f"{label} in {environment}: errors and residuals are within their limits"


def faults(counts: Mapping[str, float]) -> Iterator[tuple[tuple[str, bool], str]]:
    """((what is wrong, whether the run was only cut short), metric)."""
    for name in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        wrong = counts.get(f"{name}_ErrorsFraction")
        if wrong is not None and wrong > ERRORS:
            yield (f"{wrong:.1%} of the updates of {name} are wrong", False), name
        size, done = (counts.get(f"{name}_{part}") for part in ("N", "ExeUpdates"))
        if size and done is not None and done < UPDATES * size:
            yield (f"{name} hit its time limit after {done / (UPDATES * size):.0%} of its updates", True), name
    for key, metric, limit in LIMITS:
        left = counts.get(key)
        if left is not None and left > limit:
            yield (f"{key} is {left:g}, the limit {limit:g}", False), metric


@row(
    "M04",
    Severity.BLOCKER,
    "another MPI, another version of the program, or another problem and grid",
    short="another problem or program",
    why="then two programs or two problems are compared",
    remedy="give all environments the same root file system and the same parameters",
    source="`mpirun --version` of the nodes; versions, N, NB, P and Q as hpcc and xhpl print them",
    benchmarks=PROGRAMS,
    needs=Needs("the version of the program and the grid", facts=("systems",)),
)
def problem(evidence: Evidence) -> Iterator[Result]:
    """M04: MPI, versions, sizes and grids."""
    for one in differences(evidence, "mpi_version"):
        message = f"MPI is {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in {one.base}"
        yield from (
            Failed(message, one.environment, label, against=one.base) for label in evidence.labels_of(*PROGRAMS)
        )
    known = {}
    for (environment, label), trials in evidence.entries(*PROGRAMS).items():
        solved = sorted({line for facts in evidence.facts(trials, "systems") for line in solved_by(facts)})
        if solved:
            known[environment, label] = shown(solved)
        else:
            message = f"{label} in {environment}: its output names no version and no grid"
            yield Undecided(message, environment, label)
    for environment, label, theirs, first, ours in against_first(evidence, known):
        yield Failed(f"{label} solved {theirs} in {environment}, {ours} in {first}", environment, label)
    if evidence.plan.origin is Origin.IMPORTED:
        yield from nothing_in_common(evidence)
    yield from (f"{label} in {environment}: {said}" for (environment, label), said in known.items())


def solved_by(facts: Mapping[str, Any]) -> Iterator[str]:
    """The version and the solved problems of a run of hpcc or xhpl."""
    hpcc, hpl = facts.get("hpcc_release", facts.get("hpcc_version")), facts.get("hpl_version")
    version = f"hpcc {hpcc}, " if hpcc else f"HPL {hpl}, " if hpl else ""
    for one in facts["systems"]:
        yield f"{version}N={one['n']} NB={one['nb']} P={one['p']} Q={one['q']}"


def nothing_in_common(evidence: Evidence) -> Iterator[Failed]:
    """Logs of other work than the reference's: its label says what it is, so no two labels are the same."""
    for benchmark in PROGRAMS:
        labels: dict[str, set[str]] = {}
        for trial in evidence.trials:
            if trial.benchmark == benchmark:
                labels.setdefault(trial.environment, set()).add(trial.label)
        ours = labels.get(evidence.reference, set())
        for environment, theirs in labels.items():
            if ours and not theirs & ours:
                message = f"no problem was solved in both: {shown(sorted(theirs))} in {environment}, "
                message += f"{shown(sorted(ours))} in {evidence.reference}"
                yield Failed(message, environment, benchmark, remedy="same N, NB, P, Q and ranks everywhere")
