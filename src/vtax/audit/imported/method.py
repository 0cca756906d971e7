"""U and R: units, files that are not what they seem, and what kind of evidence runs in a folder are."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from statistics import fmean

from vtax.analysis.records import VERDICT_FROM
from vtax.audit.imported.evidence import environments, runs, where
from vtax.evidence.campaign import Evidence, blocker, shown, warning
from vtax.model.finding import Finding

FACTORS = (1024.0, 1.048576, 1.073741824, 1000.0, 1e6)
OF_BITS = (8.0,)  # only of figures that count bits or bytes
BITS = frozenset({"bit", "byte"})
EXACT = 0.001  # a unit error repeats in every value; a coincidence does not
MANY = 3  # values that must share a factor
HOUR = 3600.0
TESTS = {  # what a name may claim -> what sysbench then says
    "seqwr": "sequential write (creation)",
    "seqrewr": "sequential rewrite",
    "seqrd": "sequential read",
    "rndrd": "random read",
    "rndwr": "random write",
    "rndrw": "random r/w",
}
PROTOCOLS = ("tcp", "udp")


def unit_factors(evidence: Evidence) -> Iterator[Finding]:
    """U01: the same factor of units between two environments in several values of one benchmark."""
    means: dict[tuple[str, str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in evidence.measurements:
        if one.kind.has_ratio:
            series = one.benchmark, one.metric, str(sorted(one.labels.items())), one.unit
            means[series][one.environment].append(one.value)
    ratios: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    for (benchmark, _, _, unit), found in means.items():
        ours = found.get(evidence.reference)
        for environment, theirs in found.items():
            if ours and environment != evidence.reference:
                ratios[benchmark, environment].append((fmean(theirs) / fmean(ours), unit.partition("/")[0] in BITS))
    for (benchmark, environment), every in ratios.items():
        for factor in (one for each in (*FACTORS, *OF_BITS) for one in (each, 1 / each)):
            seen = [ratio for ratio, bits in every if bits or not {factor, 1 / factor}.intersection(OF_BITS)]
            hits = [ratio for ratio in seen if abs(ratio / factor - 1) < EXACT]
            if len(seen) >= MANY and len(hits) > len(seen) / 2:
                message = (
                    f"{len(hits)} of {len(seen)} values of {benchmark} in {environment} are {factor:g} times those in "
                    f"{evidence.reference}: this looks like a unit, not like a difference"
                )
                said = warning if one_program(evidence, benchmark, environment) else blocker
                yield said("U01", message, "look at the units in both logs", environment, benchmark)


def one_program(evidence: Evidence, benchmark: str, environment: str) -> bool:
    """Whether one reader took all values of a benchmark, in two environments, from logs of one version of the tool."""
    told: dict[str, set[str]] = {environment: set(), evidence.reference: set()}
    for trial, facts in runs(evidence, benchmark):
        if trial.environment in told and trial.imported is not None:
            versions = {name: facts[name] for name in sorted(facts) if name.endswith("_version")}
            told[trial.environment].add(f"{trial.imported.reader} {versions}" if versions else "")
    every = set().union(*told.values())
    return all(told.values()) and len(every) == 1 and "" not in every


def reused(evidence: Evidence) -> Iterator[Finding]:
    """U03: files that were given twice, and runs that are alike to the last digit."""
    for problem in evidence.plan.problems:
        yield warning("U03", problem.message, "keep every result once")
    values: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    for one in evidence.measurements:
        values[one.trial].append((one.metric, str(sorted(one.labels.items())), one.value))
    seen: dict[tuple[str, str], str] = {}
    for trial, _ in runs(evidence):
        mine = sorted(values.get(trial.id, ()))
        if len({value for _, _, value in mine if value > 0}) < MANY:
            continue  # two runs of ping may well agree in a digit or two
        key = (trial.label, str([(metric, value) for metric, _, value in mine]))
        if key in seen:
            message = f"{where(trial)} in {trial.environment} has the same values as {seen[key]}, to the last digit"
            yield blocker("U03", message, "one of them is a copy: import the real one", trial.environment, trial.label)
        else:
            seen[key] = f"{where(trial)} in {trial.environment}"


def wrong_names(evidence: Evidence) -> Iterator[Finding]:
    """U03: a file whose name says another test than the one that ran."""
    for trial, facts in runs(evidence, "sysbench-fileio", "iperf3"):
        if trial.imported is None:
            continue
        words = set(re.split(r"[^a-z0-9]+", PurePosixPath(trial.imported.file).name.lower()))
        ran, claimed = "", ""
        if trial.benchmark == "sysbench-fileio":
            ran = str(trial.params.get("test", ""))
            claimed = next((test for word, test in TESTS.items() if word in words and test != ran), "")
        elif facts.get("protocol"):
            ran = str(facts["protocol"])
            claimed = next((name for name in PROTOCOLS if name in words and name != ran), "")
        if claimed:
            message = (
                f"{where(trial)} in {trial.environment} is named after a {claimed} test, but a {ran} test ran: it is "
                "filed under what ran"
            )
            yield warning("U03", message, "look whether the other test is missing", trial.environment, trial.label)


def few_runs(evidence: Evidence) -> Iterator[Finding]:
    """R01: runs are not rounds."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for trial, _ in runs(evidence):
        counts[trial.environment][trial.label] = max(counts[trial.environment].get(trial.label, 0), trial.round)
    most = {name: max(found.values(), default=0) for name, found in counts.items()}
    if not most:
        return
    said = shown([f"at most {count} in {name}" for name, count in most.items()])
    message = (
        f"these are runs of the same work ({said}), not fresh instances in randomised rounds; a verdict needs "
        f"{VERDICT_FROM} of those, so this is a pilot"
    )
    yield blocker("R01", message, "`vtax run` makes fresh clusters in randomised rounds")


def windows(evidence: Evidence) -> Iterator[Finding]:
    """R02: environments that were measured one after the other, or nobody knows when."""
    spans: dict[str, list[float]] = defaultdict(list)
    for trial, facts in runs(evidence):
        if isinstance(facts.get("started"), float):
            spans[trial.environment].append(facts["started"])
    names = [name for name in environments(evidence) if name in spans]
    apart = [
        f"{one} {_day(min(spans[one]))} to {_day(max(spans[one]))}, {two} {_day(min(spans[two]))} to "
        f"{_day(max(spans[two]))}"
        for one in names
        for two in names
        if one < two and (min(spans[two]) > max(spans[one]) + HOUR or min(spans[one]) > max(spans[two]) + HOUR)
    ]
    remedy = "measure environments in turns: what changes with time is otherwise part of the difference"
    if apart:
        yield blocker("R02", f"environments were measured in separate windows of time: {shown(apart)}", remedy)
    elif len(environments(evidence)) > 1:
        yield blocker("R02", "the logs do not show that environments were measured in turns", remedy)


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment))
