"""U: whether the numbers are what their names say: unit, direction, and a run of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from statistics import median

from vtax.evidence.campaign import Evidence, canonical, shown, values_of
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction, Kind
from vtax.model.plan import Origin
from vtax.model.reading import TrialReading
from vtax.model.trial import TrialRecord
from vtax.tools import tool_of

NEAR = 0.01
FACTORS = {"1000": 1000.0, "1024": 1024.0, "10⁶": 1e6, "2²⁰": 2.0**20}
OF_BITS = {"8 (bits and bytes)": 8.0}  # only of figures that count either
BITS = frozenset({"bit", "byte"})
VERY_NEAR = 0.001  # for factors that a true difference may have as well
SMALL_FACTORS = {
    "1.024 (kilo and kibi)": 1.024,
    "1.049 (mega and mebi)": 1.048576,
    "1.074 (giga and gibi)": 1.073741824,
}
SEVERAL = 3  # series that must agree before a factor means anything
UNIFORM_KINDS = frozenset({Kind.COST, Kind.RATE_FIXED_TIME, Kind.RATE_FIXED_WORK, Kind.LATENCY_QUANTILE})
DIGITS = 4  # values with fewer may agree by chance
FEWEST_LINES = 2  # with such values: one of them alone is equal by chance in a campaign with many runs

Series = tuple[str, tuple[tuple[str, str], ...]]  # metric and labels


@row(
    "U01",
    Severity.BLOCKER,
    "environments differ by the factor between two units",
    short="units mixed up",
    why="GB/s against Gbit/s or GiB/s, and k of 1000 against 1024, look like a large difference and are a reader's "
    "mistake",
    remedy="check the raw output of both, and the unit that each tool printed",
    source="the measurements, and the hash of the packages on every node: the same program that was read by the same "
    "reader has the same unit on both sides, and then this is a warning; in logs the versions that programs print",
    note="asks for the factor in all figures of a unit together, at least three, for 8 only where they count bits or "
    "bytes, and for factors near 1 to 0.1 %: true differences of 8 times and of 2 % occur, and would be called "
    "mistakes; a warning where one program and one reader gave both sides their unit",
)
def unit_factors(evidence: Evidence) -> Iterator[Result]:
    """U01: all series of one unit under one label apart by the same factor.

    Asked of single metrics, a true difference meets 8 or 1.024 ± 1 % far too often, so all series of a unit must have
    the factor, at least three of them, and the small factors to 0.1 %.
    """
    groups = levels(evidence.measurements)
    names = list(dict.fromkeys(environment for environment, *_ in groups))
    first = evidence.reference if evidence.reference in names else next(iter(names), "")
    for (environment, benchmark, label, unit), series in groups.items():
        ours = groups.get((first, benchmark, label, unit), {})
        both = [key for key in series if key in ours]
        if environment == first or not both:
            continue
        ratios = [series[key] / ours[key] for key in both]
        if factor := common_factor(ratios, unit):
            message = f"{label} in {environment}: all {len(both)} figures in {unit} are {factor} times those in {first}"
            alike = one_program(evidence, benchmark, (environment, first))
            if alike:
                message += ", by the same program and the same reader"
            metrics = tuple(sorted({key[0] for key in both}))
            yield Failed(message, environment, label, Severity.WARNING if alike else None, metrics=metrics)
        else:
            yield f"{label} in {environment}: ratios in {unit} from {min(ratios):.3g} to {max(ratios):.3g}"


def levels(measurements: tuple[Measurement, ...]) -> dict[tuple[str, str, str, str], dict[Series, float]]:
    """(environment, benchmark, label, unit) -> series -> median."""
    values: dict[tuple[str, str, str, str], dict[Series, list[float]]] = {}
    for one in measurements:
        if not one.warmup and one.kind in UNIFORM_KINDS and one.value > 0:
            group = values.setdefault((one.environment, one.benchmark, one.label, one.unit), {})
            group.setdefault((one.metric, tuple(sorted(one.labels.items()))), []).append(one.value)
    return {where: {key: median(found) for key, found in series.items()} for where, series in values.items()}


def one_program(evidence: Evidence, benchmark: str, environments: tuple[str, str]) -> bool:
    """Whether one version of a tool wrote both sides, and one reader read them: by the packages of all nodes, or by the
    reader and the versions of each log."""
    if evidence.plan.origin is Origin.RUN:
        every = [values_of(evidence, name, "packages_sha256") for name in environments]
        return all(every) and len({canonical(v) for nodes in every for values in nodes.values() for v in values}) == 1
    seen: dict[str, set[str]] = {name: set() for name in environments}
    for trial in evidence.trials:
        if trial.environment in seen and trial.benchmark == benchmark and trial.imported is not None:
            versions = {
                name: facts[name]
                for facts in evidence.facts_of(trial)
                for name in sorted(facts)
                if name.endswith("_version")
            }
            seen[trial.environment].add(f"{trial.imported.reader} {canonical(versions)}" if versions else "")
    found = set().union(*seen.values())
    return all(seen.values()) and len(found) == 1 and "" not in found


def common_factor(ratios: Sequence[float], unit: str) -> str:
    """The factor between units that all ratios share; "" when there is none, or too few ratios."""
    large = {**(OF_BITS if unit.partition("/")[0] in BITS else {}), **FACTORS}
    for factors, near in ((large, NEAR), (SMALL_FACTORS, VERY_NEAR)):
        for name, factor in factors.items():
            for wanted, said in ((factor, name), (1 / factor, f"1/{name}")):
                if len(ratios) >= SEVERAL and all(abs(ratio / wanted - 1) <= near for ratio in ratios):
                    return said
    return ""


@row(
    "U02",
    Severity.BLOCKER,
    "a metric without a direction, or with another unit or kind in another environment",
    short="a metric declared differently",
    why="it is then unclear which value is better, or different things are compared under one name",
    remedy="declare the metric's unit and kind in its benchmark, once",
    source="the measurements, whose unit, kind and direction come from the benchmark",
)
def declarations(evidence: Evidence) -> Iterator[Result]:
    """U02: one unit, kind and direction for each metric."""
    seen: dict[tuple[str, str], set[tuple[str, Kind, Direction]]] = {}
    primary: dict[tuple[str, str], bool] = {}
    for one in evidence.measurements:
        where = (one.label, one.metric)
        seen.setdefault(where, set()).add((one.unit, one.kind, one.direction))
        primary[where] = primary.get(where, False) or one.primary
    for (label, metric), found in seen.items():
        if len(found) > 1:
            listed = shown(sorted(f"{unit} ({kind}, {direction})" for unit, kind, direction in found))
            yield Failed(f"{metric} of {label} is {listed}", entry=label, metrics=(metric,))
        elif primary[label, metric] and any(direction is Direction.NONE for _, _, direction in found):
            message = f"{metric} of {label} is primary, and it is not declared whether more is better"
            yield Failed(message, entry=label, metrics=(metric,))
    yield f"{len(seen)} metrics have one unit, kind and direction each"


@row(
    "U03",
    Severity.BLOCKER,
    "two runs have the same output or values, or a file was given twice or is named after another test",
    short="values given twice",
    why="no two runs are equal: a file was copied, or an old one was read again",
    remedy="check both files; leave out the copy",
    source="the raw output of all runs; in imported logs also the values, and the names of files",
)
def reused(evidence: Evidence) -> Iterator[Result]:
    """U03: raw output that occurs twice; in logs, whose text may have been edited, also values.

    Of vtax's own runs the text decides, where it says enough: round-trip times of a few microseconds, printed in
    microseconds, are equal by chance, and so is the one line with four digits that xhpl prints, in one of fifty runs.
    """
    imported = evidence.plan.origin is Origin.IMPORTED
    if imported:
        for problem in evidence.plan.problems:
            yield Failed(problem.message, severity=Severity.WARNING, remedy="keep every result once")
        yield from wrong_names(evidence)
    outputs: dict[str, TrialRecord] = {}
    values: dict[tuple[str, tuple[float, ...]], TrialRecord] = {}
    count = 0
    for trial in evidence.trials:
        mine = evidence.measured.get(trial.id, [])
        if not mine:
            continue
        count += 1
        digest, key = evidence.raw_sha256(trial), (trial.benchmark, exact(mine))
        telling = digest and (imported or lines_with_exact_values(evidence.readings[trial.id]) >= FEWEST_LINES)
        other = outputs.setdefault(digest, trial) if telling else trial
        if imported and other is trial and len(set(key[1])) >= SEVERAL:
            other = values.setdefault(key, trial)
        if other is not trial:
            names = evidence.name_of(trial), evidence.name_of(other)
            message = f"{names[0]} has the same numbers as {names[1]}, to the last digit"
            yield Failed(message, trial.environment, trial.label)
    if count:
        yield f"{count} runs differ from each other"
    elif evidence.trials:
        yield Undecided("no run has a number")


def wrong_names(evidence: Evidence) -> Iterator[Failed]:
    """Of logs: a file whose name says another test than the one that ran."""
    for trial in evidence.trials:
        tool = tool_of(trial.benchmark)
        if trial.imported is None or tool is None:
            continue
        words = set(re.split(r"[^a-z0-9]+", PurePosixPath(trial.imported.file).name.lower()))
        for parameter, claims in tool.file_names.items():
            ran = trial.params.get(parameter)
            claimed = next((claim for word, claim in claims.items() if word in words and claim != ran), "")
            if ran and claimed:
                message = (
                    f"{evidence.name_of(trial)} is named after a {claimed} test, but a {ran} test ran: it is filed "
                    "under what ran"
                )
                remedy = "check whether the other test is missing"
                yield Failed(message, trial.environment, trial.label, Severity.WARNING, remedy)


def exact(measurements: list[Measurement]) -> tuple[float, ...]:
    """The values of a run that have enough digits to differ between runs. A count, such as HPL's residual, is the same
    in every run of the same work."""
    measured = (one for one in measurements if one.kind is not Kind.COUNT)
    return tuple(one.value for one in measured if _digits(one.value) >= DIGITS)


def lines_with_exact_values(reading: TrialReading) -> int:
    """How many lines of a run's output have a number that differs between runs: what follows from it is on its line."""
    exact_values = (one for one in reading.values if one.kind is not Kind.COUNT and _digits(one.value) >= DIGITS)
    return len({(one.file, one.line) for one in exact_values})


def _digits(value: float) -> int:
    """Significant digits: 1 of 5e-06, 4 of 0.01234."""
    return len(f"{value:.11e}".partition("e")[0].replace(".", "").strip("0-"))
