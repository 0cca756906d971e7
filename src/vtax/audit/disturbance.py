"""O01, O02, O05, R09: memory pressure, huge pages, runs too short to tell, and what looking itself costs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vtax.evidence import logs
from vtax.evidence.campaign import Evidence, blocker, differences, shown, unknown, values_of, warning
from vtax.evidence.row import row
from vtax.model.finding import Finding, Severity
from vtax.model.trial import Status, TrialRecord

SHORTEST_S = 1.0
SHORT_BY_NATURE = frozenset({"ping"})  # its result is of single packets, not of the run's length
PRESSURE = {
    "oom_kills": "processes were killed for lack of memory",
    "swap_in_pages": "pages came back from swap",
    "swap_out_pages": "pages were swapped out",
    "balloon_pages": "pages went to or from a balloon",
}
HUGE_PAGES = {"thp": "transparent_hugepage", "huge_pages": "nr_hugepages"}
KILLED = re.compile(r"killed by OOM killer|Out of memory: Killed|OOM restarts: [1-9]|oom-kill:")
GRANULARITY = re.compile(r"clock granularity/precision appears to be (\d{1,9}) microseconds", re.MULTILINE)


@row(
    "O01",
    Severity.BLOCKER,
    "swapping, processes killed for lack of memory, or ballooning",
    why="memory pressure distorted the runs, and killed workers did no work",
    remedy="give the nodes more memory, or the benchmark a smaller size",
    source="/proc/vmstat and control groups of the nodes around every trial; stress-ng's own log, also an imported one",
)
def memory_pressure(evidence: Evidence) -> Iterator[Finding | str]:
    """O01: swapping or processes killed for lack of memory, in any trial."""
    ran = [trial for trial in evidence.trials if trial.status is not Status.NOT_RUN]
    for label, environment in dict.fromkeys((one.label, one.environment) for one in ran):
        killed = sum(
            len(KILLED.findall(logs.text_of(one)))
            for one in ran
            if (one.label, one.environment) == (label, environment)
        )
        if killed:
            message = f"{label} in {environment}: its log tells of {killed} processes killed for lack of memory"
            yield blocker("O01", message, "", environment, label)
    if ran and not any(evidence.counters.get(trial.id) for trial in ran):
        yield unknown("O01", "no counters were read around the trials, so swapping and OOM kills cannot be excluded")
        return
    for label, environment in dict.fromkeys((trial.label, trial.environment) for trial in ran):
        trials = [trial for trial in ran if (trial.label, trial.environment) == (label, environment)]
        words = [
            f"{total:.0f} {text}"
            for name, text in PRESSURE.items()
            if (total := sum(counted(evidence, trials, name))) > 0
        ]
        if words:
            message = f"{label} in {environment}: {shown(words)}; memory pressure distorted the runs"
            remedy = "give the nodes more memory, or the benchmark a smaller size"
            yield blocker("O01", message, remedy, environment, label)
        else:
            yield f"{label} in {environment}: no swapping, nothing killed"


def counted(evidence: Evidence, trials: list[TrialRecord], name: str) -> Iterator[float]:
    """What each trial counted. Nodes may share a kernel and all show its counters: the largest stands for all."""
    for trial in trials:
        nodes = evidence.counters.get(trial.id, {}).values()
        yield max((node[name] for node in nodes if name in node), default=0.0)


@row(
    "O02",
    Severity.WARNING,
    "huge pages are set otherwise",
    why="pages of 2 MiB save address translation, doubly so in a guest: 10 % and more for large arrays",
    remedy="set transparent_hugepage and nr_hugepages alike in all environments, and on the host",
    source="/sys and /proc of every node and of the host; imported logs do not tell",
)
def huge_pages(evidence: Evidence) -> Iterator[Finding | str]:
    """O02: transparent and reserved huge pages."""
    for fact, name in HUGE_PAGES.items():
        for one in differences(evidence, fact):
            message = (
                f"{name} is {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in {evidence.reference}"
            )
            yield warning("O02", message, "", one.environment)
    for environment in evidence.environments:
        values = values_of(evidence, environment, "thp")
        if values:
            said = shown(sorted({str(value) for every in values.values() for value in every}))
            taken = sum(
                node.get("huge_page_faults", 0.0)
                for trial in evidence.trials
                if trial.environment == environment
                for node in evidence.counters.get(trial.id, {}).values()
            )
            yield f"{environment}: transparent huge pages {said}, {taken:.0f} taken during its trials"
        else:
            yield unknown("O02", "no node told its huge pages", environment)


@row(
    "O05",
    Severity.WARNING,
    "runs shorter than a second, or too short for the timer",
    why="starting up is a large part of such a run",
    remedy="give it more work, so that it runs for ten seconds or more",
    source="how long every command took; the timer's own warning in STREAM's output; imported logs have the latter",
)
def too_short(evidence: Evidence) -> Iterator[Finding | str]:
    """O05: runs shorter than a second, of which starting up is a large part; timers too coarse for STREAM."""
    for (environment, label), trials in evidence.entries("hpcc").items():
        coarse = [int(ticks) for trial in trials for ticks in logs.found(GRANULARITY, trial) if int(ticks) > 1000]
        if coarse:
            message = f"the timer of {label} in {environment} has steps of {max(coarse)} µs"
            yield warning("O05", message, "", environment, label)
    runs: dict[tuple[str, str], list[float]] = {}
    for trial in evidence.trials:
        timed = trial.steps and duration_s(trial) > 0  # an imported log has no command that could be timed
        if trial.status is Status.OK and not trial.warmup and timed and trial.benchmark not in SHORT_BY_NATURE:
            runs.setdefault((trial.environment, trial.label), []).append(duration_s(trial))
    for (environment, label), times in runs.items():
        short = [time for time in times if time < SHORTEST_S]
        message = f"{len(short)} of {len(times)} runs of {label} in {environment} took less than {SHORTEST_S:g} s"
        if short:
            message += f" (shortest {min(times):.2f} s): starting up is a large part of that"
            yield warning("O05", message, "", environment, label)
        else:
            yield f"{label} in {environment}: {min(times):.1f} s and more"
    if evidence.trials and not runs:
        yield unknown("O05", "nobody timed the commands")


def duration_s(trial: TrialRecord) -> float:
    """How long the measured step took: the longest that does not run beside others (some only prepare or clean up)."""
    return max((step.elapsed_s for step in trial.steps if not step.background), default=trial.elapsed_s)


@row(
    "R09",
    Severity.WARNING,
    "looking costs more than 0.5 % of a core while a benchmark runs, or happens in some environments only",
    why="an agent inside one environment takes time from that environment alone",
    remedy="read the counters in all environments or in none",
    source="the CPU time that reading the counters took, by the shell's own `times`; it runs before and after a trial, "
    "never during one; imported logs have no such reading",
)
def collector(evidence: Evidence) -> Iterator[Finding | str]:
    """R09: the observer's effect."""
    runs = {name: [t for t in evidence.runs() if t.environment == name] for name in evidence.environments}
    read = {name: [t for t in trials if evidence.counters.get(t.id)] for name, trials in runs.items() if trials}
    blind = [name for name, trials in read.items() if not trials]
    if blind and len(blind) < len(read):
        others = [name for name in read if name not in blind]
        yield warning("R09", f"counters were read in {shown(others)}, and not in {shown(blind)}")
    elif blind or not read:
        yield unknown("R09", "no counters were read")
    for name, trials in read.items():
        costs = [node.get("collector_cpu_s") for t in trials for node in evidence.counters[t.id].values()]
        known = [cost for cost in costs if cost is not None]
        if known:
            yield f"{name}: {sum(known) / len(known):.3f} s of CPU time around a trial on each node, none during it"
