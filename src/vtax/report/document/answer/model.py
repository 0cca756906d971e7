"""The parts of the answer. No markup; every format spells them alike."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vtax.analysis.records import Comparison, Verdict
from vtax.report.document.groups import Group
from vtax.report.document.model import Message, Table


class Standing(StrEnum):
    """What the primary metrics of one resource come to in one environment."""

    SLOWER = "slower"
    FASTER = "faster"
    MIXED = "slower and faster"
    EQUAL = "no difference"
    SMALL = "negligible difference"
    UNDECIDED = "undecided"
    EARLY = "no verdict"  # too few rounds, or runs that were imported
    RULED_OUT = "not comparable"
    ALONE = "nothing to compare with"


@dataclass(frozen=True)
class Line:
    """One resource in one environment. `word` is the result in words, `size` the number with its interval.

    `comparisons` are those that the line covers, `missing` how many more were planned and have no round with results on
    both sides.
    `started` is how long a node takes until it is ready, in words, where the line is about start-up.
    """

    group: Group
    environment: str
    place: int  # of the environment in the plan
    baseline: str
    standing: Standing
    word: str
    size: str
    verdicts: tuple[Verdict, ...] = ()  # that the result comes from
    comparisons: tuple[Comparison, ...] = ()
    missing: int = 0
    started: str = ""
    substitute: bool = False  # the baseline is not the study's, which has no such metric
    machine: str = ""  # what it certainly cost the machine besides, in words

    @property
    def result(self) -> str:
        """`no difference (within 2 %), but 38 % more CPU time`."""
        if not self.machine:
            return self.word
        worse = self.standing is Standing.SLOWER
        return f"{self.word}, {'and' if worse else 'but'} {self.machine}"

    @property
    def planned(self) -> int:
        """Of how many comparisons the result could be true."""
        return len(self.comparisons) + self.missing

    @property
    def resource(self) -> str:
        """`CPU`, or `Network (against container)` where the study's baseline has no such metric."""
        return f"{self.group.shown} (against {self.baseline})" if self.substitute else self.group.shown


@dataclass(frozen=True)
class Limit:
    """A condition that limits the answer: one line, and what is behind it.

    `kind` is "blocker", "warning", "open" (what more rounds could settle) or "scope". `row` is the row of the audit
    that found it, `id` the same where links to the row lead here.
    """

    kind: str
    text: str
    messages: tuple[Message, ...] = ()
    remedies: tuple[str, ...] = ()
    id: str = ""
    row: str = ""

    @property
    def anchor(self) -> str:
        """Its place in the page; "" where nothing leads to it."""
        return f"finding-{self.id}" if self.id else ""


@dataclass(frozen=True)
class Lines:
    """The lines against one baseline; `table` has them for formats without a layout."""

    baseline: str
    lines: tuple[Line, ...]
    table: Table

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All that the lines cover."""
        return tuple(item for line in self.lines for item in line.comparisons)

    @property
    def plotted(self) -> tuple[Comparison, ...]:
        """Those on the axis of ratios. Start-up is not: its ratios are so far from 1 that all others would be at it."""
        return tuple(item for line in self.lines if not line.started for item in line.comparisons)


@dataclass(frozen=True)
class Answer(Lines):
    """All that a reader sees first. `against` has the lines against other environments, which is exploratory."""

    headline: str
    question: str
    subject: str
    decide: tuple[str, ...]  # what would decide what is undecided
    limits: tuple[Limit, ...]
    emulated: Table | None  # values of emulated environments
    emulated_text: str  # that they are not compared
    against: tuple[Lines, ...] = ()
