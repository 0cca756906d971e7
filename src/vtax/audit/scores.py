"""S: scores of stress-ng and sysbench, which mean something only against the very same test."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vtax.audit.limits import THROTTLED
from vtax.evidence import logs
from vtax.evidence.campaign import Evidence, against_first, blocker, shown, unknown, warning
from vtax.evidence.row import row
from vtax.evidence.stolen import STOLEN, stolen
from vtax.model.finding import Finding, Severity
from vtax.model.trial import TrialRecord

STRESS_VERSION = re.compile(r"^stress-ng: debug: +\[\d+\] (?:invoked.*\n.*)?stress-ng (\d[\w.]*)", re.MULTILINE)
STRESS_SETTING = re.compile(
    r"^stress-ng: \w+: +\[\d+\] "
    r"(?:(dispatching hogs: [^\r\n]+)|setting to a (\d+ ?\w+) run|[\w-]+: using method '([^']+)')",
    re.MULTILINE,
)
INSTANCES = re.compile(r"(\d+) ([a-z][\w-]*)")
SYSBENCH_VERSION = re.compile(r"^sysbench (\d[\w.-]*)", re.MULTILINE)
SYSBENCH_SETTING = re.compile(
    r"^ *(Number of threads: \d+|Prime numbers limit: \d+|block size: \w+|total size: \w+|operation: \w+|scope: \w+"
    r"|Block size \w+|[\d.]+\w+ total file size|Doing .+ test|Periodic FSYNC .*|Extra file open flags: .*)\s*$",
    re.MULTILINE,
)
SYSBENCH = ("sysbench-cpu", "sysbench-memory", "sysbench-fileio")


@row(
    "S01",
    Severity.BLOCKER,
    "bogo operations of different versions, methods, instances or durations of stress-ng",
    why="a bogo operation is whatever one stressor's loop does in one version; stress-ng is no precise benchmark and "
    "says so",
    remedy="give all environments the same stress-ng, stressor, method, number of workers and time",
    source="stress-ng's log (the version needs --verbose) and the plan's parameters; also in imported logs",
    benchmarks=("stress-ng",),
)
def bogo_operations(evidence: Evidence) -> Iterator[Finding | str]:
    """S01: whether every environment ran the same stressors."""
    told = {}
    for (environment, label), trials in evidence.entries("stress-ng").items():
        versions = sorted({version for trial in trials for version in logs.found(STRESS_VERSION, trial)})
        settings = sorted({line for trial in trials for line in settings_of(trial)})
        if not versions:
            yield unknown("S01", f"the log of {label} names no version of stress-ng", environment, label)
        if settings or versions:
            told[environment, label] = "; ".join([f"version {shown(versions) or 'unknown'}", *settings])
    for environment, label, theirs, first, ours in against_first(evidence, told):
        message = f"{label} is {theirs} in {environment}, and {ours} in {first}"
        yield blocker("S01", message, "", environment, label)
    yield from (f"{label} in {environment}: {said}" for (environment, label), said in told.items())


def settings_of(record: TrialRecord) -> Iterator[str]:
    """Stressors with their instances, durations and methods, from stress-ng's log."""
    for hogs, duration, method in STRESS_SETTING.findall(logs.text_of(record)):
        if hogs:
            yield ", ".join(sorted(f"{count} {name}" for count, name in INSTANCES.findall(hogs)))
        elif duration:
            yield re.sub(r"(\d+) ?s\w*", r"\1 s", duration)
        elif method:
            yield f"method {method}"


@row(
    "S02",
    Severity.WARNING,
    "operations per CPU second where the CPU was taken away",
    why="the rate by CPU time leaves out the time in which a worker did not run, so it hides what virtualization costs",
    remedy="compare `bogo_ops_rate_real`, the rate by wall time",
    source="steal on the machine and in the nodes, and throttling, around every trial; imported logs do not tell",
    benchmarks=("stress-ng",),
)
def cpu_time_rate(evidence: Evidence) -> Iterator[Finding | str]:
    """S02: rates by CPU time with steal or throttling."""
    for (environment, label), trials in evidence.entries("stress-ng").items():
        lost = stolen(evidence, trials)
        counted = [node for trial in trials for node in evidence.counters.get(trial.id, {}).values()]
        periods = sum(node.get("cpu_periods", 0.0) for node in counted)
        stopped = sum(node.get("cpu_throttled_periods", 0.0) for node in counted) / periods if periods else 0.0
        if lost is None:
            yield unknown("S02", f"nothing counted steal during {label}", environment, label)
        elif lost > STOLEN or stopped > THROTTLED:
            message = f"{label} in {environment}: {lost:.1%} of the CPU time stolen, {stopped:.1%} of periods throttled"
            yield warning("S02", message, "", environment, label, metrics=("bogo_ops_rate_cpu",))
        else:
            yield f"{label} in {environment}: {lost:.1%} stolen, {stopped:.1%} throttled"


@row(
    "S03",
    Severity.BLOCKER,
    "sysbench of another version, or with other settings",
    why="0.x counts other things under the same names, and events of another prime limit or block size are other "
    "work; 1.x "
    "runs for a time, so its total time is constant",
    remedy="fix one version and one set of options, and compare events per second",
    source="sysbench's banner and its list of options; also in imported logs",
    benchmarks=SYSBENCH,
)
def sysbench_settings(evidence: Evidence) -> Iterator[Finding | str]:
    """S03: whether every environment ran the same sysbench."""
    told = {}
    for (environment, label), trials in evidence.entries(*SYSBENCH).items():
        versions = sorted({version for trial in trials for version in logs.found(SYSBENCH_VERSION, trial)})
        settings = sorted({line for trial in trials for line in logs.found(SYSBENCH_SETTING, trial)})
        if not versions:
            yield unknown("S03", f"the output of {label} has no banner", environment, label)
            continue
        told[environment, label] = "; ".join([f"version {shown(versions)}", *settings])
        if any(version.startswith("0.") for version in versions):
            yield blocker("S03", f"{label} in {environment} is sysbench {shown(versions)}", "", environment, label)
    for environment, label, theirs, first, ours in against_first(evidence, told):
        yield blocker("S03", f"{label} is {theirs} in {environment}, and {ours} in {first}", "", environment, label)
    yield from (f"{label} in {environment}: {said}" for (environment, label), said in told.items())
