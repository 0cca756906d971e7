"""E01 and E02: rates of OpenSSL by CPU time, and settings that hide instructions from it."""

from __future__ import annotations

from collections.abc import Iterator

from vtax.evidence.alike import A_NOTE, Condition, judged, same
from vtax.evidence.campaign import Evidence, shown
from vtax.evidence.needs import Needs
from vtax.evidence.row import Result, row
from vtax.model.finding import Severity
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord

PROGRAM, BY_THE_CLOCK = "openssl", "-elapsed"
HIDING = "OPENSSL_ia32cap="
ABOUT = ("openssl-speed",)
COMMAND = Needs("the command of openssl", programs=(PROGRAM,), origin=Origin.RUN)


@row(
    "E01",
    Severity.WARNING,
    "openssl speed divides by CPU time, and not by the clock",
    short="rates by CPU time",
    why="the time in which the process did not have a CPU is left out, so the rate hides what others take from it",
    remedy="give it -elapsed",
    source="the command",
    note=A_NOTE,
    benchmarks=ABOUT,
    needs=COMMAND,
)
def cpu_time(evidence: Evidence) -> Iterator[Result]:
    """E01: whether it measures by the clock."""
    found = {}
    for key, trials in evidence.entries().items():
        hidden = not all(BY_THE_CLOCK in words for trial in trials for words in _commands(trial))
        found[key] = Condition("rates by CPU time" if hidden else "rates by the clock", hidden)
    yield from judged(evidence, found, Severity.WARNING)


@row(
    "E02",
    Severity.BLOCKER,
    "OpenSSL was told to use other instructions in some environments",
    short="instructions hidden from OpenSSL",
    why="with and without the instructions for AES and for wide vectors its rates differ by more than ten times",
    remedy="set OPENSSL_ia32cap everywhere or nowhere; T03 says which instructions the CPUs of the nodes have",
    source="the variables that the command sets",
    benchmarks=ABOUT,
    needs=COMMAND,
)
def instructions(evidence: Evidence) -> Iterator[Result]:
    """E02: whether the variable that hides instructions is set alike."""
    known = {}
    for key, trials in evidence.entries().items():
        words = [word for trial in trials for one in _commands(trial) for word in one if word.startswith(HIDING)]
        known[key] = shown(list(dict.fromkeys(words))) or f"{HIDING.removesuffix('=')} is not set"
    yield from same(evidence, known)


def _commands(trial: TrialRecord) -> list[tuple[str, ...]]:
    return [step.argv for step in trial.steps if PROGRAM in step.argv]
