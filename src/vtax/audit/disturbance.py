"""O01, O02, O05, R09: memory pressure, huge pages, runs too short to tell, and what monitoring itself costs."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.audit.subjects import SHORT
from vtax.evidence.alike import weighed
from vtax.evidence.campaign import Evidence, differences, shown, values_of
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, Undecided, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import Status, TrialRecord

SHORTEST_S = 1.0
COARSE_S = 1e-3  # for runs of many seconds
PRESSURE = {
    "oom_kills": "processes were killed for lack of memory",
    "swap_in_pages": "pages came back from swap",
    "swap_out_pages": "pages were swapped out",
    "balloon_pages": "pages went to or from a balloon",
}
SWAPPED = ("swap_in_pages", "swap_out_pages")
PAGE_S = 1e-3  # that a page to or from swap costs at most on a solid-state disk; a disk with heads takes ten times that
HUGE_PAGES = {"thp": "transparent_hugepage", "huge_pages": "nr_hugepages"}


@row(
    "O01",
    Severity.BLOCKER,
    "swapping, processes killed for lack of memory, or ballooning",
    short="memory pressure",
    why="killed workers did no work; a page that went to swap or came from it may have cost as much as a read from a "
    "disk",
    remedy="give the nodes more memory, or the benchmark a smaller size",
    source="/proc/vmstat and control groups of the nodes around every trial; what a tool reports about killed workers",
    note="a few swapped pages are a warning: one that blocks could have cost half the margin of the time of all runs "
    "of an entry, at a millisecond a page",
    needs=(
        Needs("swapping and OOM kills", counters=tuple(PRESSURE), each="environment", origin=Origin.RUN),
        Needs("messages about killed workers", facts=("oom_kills",), each="environment"),
    ),
)
def memory_pressure(evidence: Evidence) -> Iterator[Result]:
    """O01: swapping or processes killed for lack of memory, in any trial."""
    entries: dict[tuple[str, str], list[TrialRecord]] = {}
    for one in evidence.trials:
        if one.status is not Status.NOT_RUN:
            entries.setdefault((one.environment, one.label), []).append(one)
    for (environment, label), trials in entries.items():
        where = f"{label} in {environment}"
        killed = sum(int(facts["oom_kills"]) for facts in evidence.facts(trials, "oom_kills"))
        if killed:
            message = f"{where}: its output reports {killed} workers killed for lack of memory and started again"
            yield Failed(message, environment, label)
        words = [
            f"{total:.0f} {text}"
            for name, text in PRESSURE.items()
            if (total := sum(counted(evidence, trials, name))) > 0
        ]
        if words:
            yield Failed(f"{where}: {shown(words)}", environment, label, pressure(evidence, trials))
        elif not killed:
            yield f"{where}: no swapping, nothing killed"


def pressure(evidence: Evidence, trials: list[TrialRecord]) -> Severity | None:
    """How bad it is: swapping alone is a warning while it can have cost less than half the margin of the time."""
    if any(sum(counted(evidence, trials, name)) > 0 for name in PRESSURE if name not in SWAPPED):
        return None
    pages = sum(sum(counted(evidence, trials, name)) for name in SWAPPED)
    time_s = sum(trial.elapsed_s for trial in trials)
    return Severity.WARNING if pages * PAGE_S < evidence.plan.study.equivalence.delta / 2 * time_s else None


def counted(evidence: Evidence, trials: list[TrialRecord], name: str) -> Iterator[float]:
    """What each trial counted. Nodes may share a kernel and all show its counters: the largest counts for all."""
    for trial in trials:
        nodes = evidence.counters.get(trial.id, {}).values()
        yield max((node[name] for node in nodes if name in node), default=0.0)


@row(
    "O02",
    Severity.WARNING,
    "huge pages are configured differently",
    short="unequal huge pages",
    why="pages of 2 MiB save address translation, doubly so in a guest: 10 % and more for large arrays",
    remedy="set transparent_hugepage and nr_hugepages alike in all environments, and on the host",
    source="/sys and /proc of every node and of the host",
    needs=Needs("the huge pages of its nodes", node=("thp",), origin=Origin.RUN),
)
def huge_pages(evidence: Evidence) -> Iterator[Result]:
    """O02: transparent and reserved huge pages."""
    for fact, name in HUGE_PAGES.items():
        for one in differences(evidence, fact):
            message = f"{name} is {shown(one.theirs)} in {one.environment}, {shown(one.reference)} in "
            yield Failed(message + one.base, one.environment, against=one.base)
    for environment in evidence.environments:
        values = values_of(evidence, environment, "thp").values()
        taken = sum(
            node.get("huge_page_faults", 0.0)
            for trial in evidence.trials
            if trial.environment == environment
            for node in evidence.counters.get(trial.id, {}).values()
        )
        said = shown(sorted({str(value) for every in values for value in every}))
        yield f"{environment}: transparent huge pages {said}, {taken:.0f} taken during its trials"


@row(
    "O05",
    Severity.WARNING,
    "runs shorter than a second, or too short for the timer",
    short="runs that are too short",
    why="starting up is a large part of such a run: in all environments alike it makes intervals wider, in one of "
    "them it is a part of the difference",
    remedy="give it more work, so that it runs for ten seconds or more",
    source="how long every command took, or how long the tool says that it ran; the timer's own warning in STREAM's "
    "output",
    note="a note where an environment and what it is compared with are short alike",
)
def too_short(evidence: Evidence) -> Iterator[Result]:
    """O05: runs shorter than a second, of which starting up is a large part; timers too coarse for STREAM."""
    timed: dict[tuple[str, str], Failed | None] = {}
    coarse: dict[tuple[str, str], Failed | None] = {}
    for (environment, label), trials in evidence.entries().items():
        coarse[environment, label] = None
        ticks = [float(facts["clock_granularity_s"]) for facts in evidence.facts(trials, "clock_granularity_s")]
        if max(ticks, default=0.0) > COARSE_S:
            message = f"the timer of {label} in {environment} has steps of {max(ticks) * 1e6:.0f} µs"
            coarse[environment, label] = Failed(message, environment, label)
        times = [time for trial in trials if (time := duration_s(evidence, trial)) > 0]
        if trials[0].benchmark in SHORT or not times:
            continue
        timed[environment, label] = None
        short = sum(time < SHORTEST_S for time in times)
        if short:
            message = f"{short} of {len(times)} runs of {label} in {environment} took less than {SHORTEST_S:g} s "
            message += f"(shortest {min(times):.2f} s)"
            timed[environment, label] = Failed(message, environment, label)
        else:
            yield f"{label} in {environment}: {min(times):.1f} s and more"
    yield from weighed(evidence, coarse, Severity.WARNING)
    yield from weighed(evidence, timed, Severity.WARNING)
    if evidence.trials and not timed:
        yield Undecided("not recorded: how long the commands took")


def duration_s(evidence: Evidence, trial: TrialRecord) -> float:
    """How long the measured step took: the longest that is not in the background (some only prepare or clean up). A log
    has no command that was timed: what its tool says, or else its own times; 0 where neither is known."""
    if trial.imported is None:
        return max((step.elapsed_s for step in trial.steps if not step.background), default=0.0)
    return next((float(facts["total_time_s"]) for facts in evidence.facts((trial,), "total_time_s")), trial.elapsed_s)


@row(
    "R09",
    Severity.WARNING,
    "monitoring uses more than 0.5 % of a core while a benchmark runs, or happens in some environments only",
    short="monitoring overhead",
    why="an agent inside one environment takes time from that environment alone",
    remedy="read the counters in all environments or in none",
    source="the CPU time that reading the counters took, by the shell's own `times`; it runs before and after a trial, "
    "never during one",
    applies=lambda evidence: "vtax did not run these" if evidence.plan.origin is Origin.IMPORTED else "",
)
def collector(evidence: Evidence) -> Iterator[Result]:
    """R09: the observer's effect."""
    runs = {name: [t for t in evidence.runs() if t.environment == name] for name in evidence.environments}
    read = {name: [t for t in trials if evidence.counters.get(t.id)] for name, trials in runs.items() if trials}
    blind = [name for name, trials in read.items() if not trials]
    if blind and len(blind) < len(read):
        others = [name for name in read if name not in blind]
        yield Failed(f"counters were read in {shown(others)}, and not in {shown(blind)}")
    elif blind or not read:
        yield Undecided("not recorded: counters around the trials")
    for name, trials in read.items():
        costs = [node.get("collector_cpu_s") for t in trials for node in evidence.counters[t.id].values()]
        known = [cost for cost in costs if cost is not None]
        if known:
            yield f"{name}: {sum(known) / len(known):.3f} s of CPU time around a trial on each node, none during it"
