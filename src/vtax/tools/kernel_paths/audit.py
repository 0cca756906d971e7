"""K02 and K03: what makes times of short paths and of wake-ups mean something else."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.alike import same
from vtax.evidence.campaign import Evidence, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Failed, Result, row
from vtax.model.finding import Severity

STEPS = 10  # of the clock that half of the wake-ups are late at least
ABOUT = ("kernel-paths",)
SLEEPS = "wakeup_late_p50"


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
    yield from same(evidence, slack)


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
