"""K01 to K03: what makes times of short paths and of wake-ups mean something else."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.campaign import Evidence, against_first, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity

USUAL = "SCHED_OTHER"
STEPS = 10  # of the clock that half of the wake-ups are late at least
ABOUT = ("kernel-paths",)
SLEEPS = "wakeup_late_p50"
PROCESS = Needs("the scheduling policy and the CPU of the process", facts=("policy",))


@row(
    "K01",
    Severity.BLOCKER,
    "another scheduling policy, or not on one CPU, in some environments only",
    short="unequal scheduling",
    why="a real-time process wakes up before all others; a switch between two CPUs is a message, not a switch",
    remedy="start it with the same policy everywhere, and let it choose its CPU (sched_setaffinity)",
    source="what the program says of itself",
    note="a note where all environments have it alike, and it is not the usual policy on one CPU",
    benchmarks=ABOUT,
    needs=PROCESS,
)
def scheduling(evidence: Evidence) -> Iterator[Result]:
    """K01: the policy that was obtained, and whether the process stayed on one CPU."""
    usual = f"{USUAL}, on one CPU"
    ways = _ways(evidence)
    unequal = {label for _, label, *_ in against_first(evidence, ways)}
    for name, label, theirs, first, its in against_first(evidence, ways):
        yield Failed(f"{label}: {theirs} in {name}, {its} in {first}", name, label, against=first)
    for (name, label), how in ways.items():
        if label not in unequal and how != usual:
            yield Failed(f"{label}: {how} in {name}", name, label, Severity.INFO)
        elif label not in unequal:
            yield f"{label} in {name}: {how}"


def _ways(evidence: Evidence) -> dict[tuple[str, str], str]:
    """(environment, label) -> how its runs were scheduled."""
    found = {}
    for key, trials in evidence.entries().items():
        said = evidence.facts(trials, "policy", "pinned")
        ways = dict.fromkeys(f"{one['policy']}, {'on one CPU' if one['pinned'] else 'on any CPU'}" for one in said)
        found[key] = " or ".join(ways)
    return found


@row(
    "K02",
    Severity.WARNING,
    "the timer slack differs",
    short="unequal timer slack",
    why="without a real-time policy the kernel may end every sleep later by this time, in order to wake up less often",
    remedy="set the same slack everywhere: it is inherited from what starts the process",
    source="prctl(PR_GET_TIMERSLACK) of the process",
    benchmarks=ABOUT,
    needs=Needs("the timer slack of the process", facts=("timer_slack_s",)),
)
def timer_slack(evidence: Evidence) -> Iterator[Result]:
    """K02: what the kernel may add to every sleep."""
    slack = {
        key: shown(
            list(dict.fromkeys(f"{one['timer_slack_s'] * 1e6:g} µs" for one in evidence.facts(trials, "timer_slack_s")))
        )
        for key, trials in evidence.entries().items()
    }
    unequal = list(against_first(evidence, slack))
    for name, label, theirs, first, its in unequal:
        yield Failed(f"{label}: {theirs} in {name}, {its} in {first}", name, label, against=first)
    yield from (f"{label} in {name}: {said}" for (name, label), said in slack.items() if not unequal)


@row(
    "K03",
    Severity.BLOCKER,
    "the clock is too coarse for what it measures",
    short="a coarse clock",
    why="then a time is a count of the clock's steps; a clock that is emulated may make steps of milliseconds",
    remedy="use another clock source (tsc, kvm-clock)",
    source="the smallest step that the program saw; batches that are too short for it are refused by the reader",
    benchmarks=ABOUT,
    needs=Needs("the step of the clock", facts=("clock_step_s",)),
)
def coarse_clock(evidence: Evidence) -> Iterator[Result]:
    """K03: wake-ups that are hardly later than the clock can tell."""
    for (environment, label), trials in evidence.entries().items():
        step = max(float(facts["clock_step_s"]) for facts in evidence.facts(trials, "clock_step_s"))
        late = evidence.values(environment, label, SLEEPS)
        said = f"{label} in {environment}: the clock makes steps of {step * 1e9:.0f} ns"
        if late and min(late) < STEPS * step:
            message = f"{said}, and half of the wake-ups are at most {min(late) * 1e9:.0f} ns late"
            yield Failed(message, environment, label)
        else:
            yield said
