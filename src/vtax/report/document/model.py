"""The document: what a report says, in order, before it is HTML, Markdown, LaTeX, typst or a workbook. No markup.

    Document  the answer (answer/model.py) -> overview, ladder, scores
              -> sections (one for each part of the machine) -> conclusion -> what happened, failures -> set-up, plan
    Section   a part of the machine: its entries
    Entry     one benchmark entry of the study: tables, matrices, findings, notes, raw files
    Table     columns and rows of cells, a title and a note
    Cell      text that every format shows alike, and what it stands for: a number, a ratio, a verdict, a link

`document_of` (compose.py) builds it once for a command; a format only spells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vtax.analysis.estimate.summary import Series
from vtax.model.finding import Finding, Severity
from vtax.report.document.groups import Group
from vtax.report.document.results import Results
from vtax.report.records import ReportInput

if TYPE_CHECKING:
    from vtax.report.document.answer.model import Answer


@dataclass(frozen=True)
class Number:
    """A value in the unit of its row, and its standard deviation where it has one."""

    value: float
    sd: float | None = None


@dataclass(frozen=True)
class Ratio:
    """A ratio to the baseline with the ends of its interval, where it has one. `against` is what takes the baseline's
    place."""

    value: float
    low: float | None = None
    high: float | None = None
    against: str = ""


@dataclass(frozen=True)
class Cell:
    """Text, a line of smaller text, and the verdict; `value` is what a cell with numbers stands for.

    `raw` is the anchor of the raw files that the number comes from, `file` one of the campaign that the text links to,
    `environment` a place in the plan, which has a colour; `scaled` text is a number in the unit of its row.
    """

    text: str
    note: str = ""
    meaning: str = ""  # of a metric, before its note where there is room
    verdict: str = ""  # or how facts compare: equal, different, unknown
    value: Number | Ratio | None = None
    environment: int | None = None
    raw: str = ""
    scaled: bool = False
    file: str = ""

    @property
    def smaller(self) -> str:
        """The line of smaller text."""
        return f"{self.meaning}; {self.note}" if self.meaning and self.note else self.meaning or self.note


@dataclass(frozen=True)
class Row:
    cells: tuple[Cell, ...]  # the first names the row; a heading has no other
    heading: bool = False
    unit: str = ""  # of its scaled cells
    inside: bool = False  # belongs to the heading above it


@dataclass(frozen=True)
class Column:
    title: str
    environment: int | None = None  # its place in the plan: the colour of its swatch


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""


def pairs_table(title: str, pairs: Sequence[tuple[str, str]], columns: tuple[str, str]) -> Table:
    rows = tuple(Row((Cell(name), Cell(value))) for name, value in pairs)
    return Table(title, tuple(Column(name) for name in columns), rows)


@dataclass(frozen=True)
class Paragraph:
    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Message:
    """One message of the audit, the environments that it is about, and the entry of the study; both may be missing."""

    environments: tuple[str, ...]
    benchmark: str
    text: str


@dataclass(frozen=True)
class Box:
    """All findings of one row of the audit with one severity."""

    id: str
    severity: Severity
    count: int
    messages: tuple[Message, ...]
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class Sources:
    """Raw files of one target: of each environment (round, file) in order. `anchor` is where numbers link to."""

    anchor: str
    target: str
    files: tuple[tuple[tuple[int, str], ...], ...]


@dataclass(frozen=True)
class Entry:
    """One benchmark entry of the study in one part of the machine."""

    label: str
    benchmark: str
    series: tuple[Series, ...]
    table: Table | None
    counts: Table | None  # what has no better and worse
    matrices: tuple[Table, ...]
    sources: tuple[Sources, ...]
    findings: tuple[Box, ...]  # that name this entry, and metrics of this part of the machine if any
    tally: str  # how many they are
    notes: tuple[str, ...]  # what its numbers say besides the verdicts
    peak: float | None = None  # of its nodes, flop/s
    published: Table | None = None  # results of other machines, where they were asked for
    published_anchor: str = ""


@dataclass(frozen=True)
class Section:
    """One part of the machine: the tables of its benchmarks."""

    group: Group
    entries: tuple[Entry, ...]

    @property
    def anchor(self) -> str:
        return self.group.anchor

    def anchored(self) -> tuple[tuple[str, Entry], ...]:
        """The entries, each with its id in the page."""
        return tuple((f"{self.anchor}{number}", entry) for number, entry in enumerate(self.entries, 1))


@dataclass(frozen=True)
class Document:
    """The whole report but for its figures, which are drawn from `source` and `results`."""

    source: ReportInput
    results: Results
    title: str  # of the campaign
    answer: Answer
    ended: str
    conclusion: tuple[Paragraph, ...]
    reading: str
    intervals: str  # what the intervals of ratios are, in few words
    quiet: tuple[Finding, ...]  # what the audit notes besides the limits of the answer
    aside: tuple[Finding, ...]  # what it found in emulated environments, which limits nothing
    overview: Table
    scores: Table
    ladder: Table
    machines: Table
    machine_cost: Table
    sections: tuple[Section, ...]
    failures: Table
    matched: Table
    other_facts: Table
    machine: Table
    other_machine: Table
    peaks: Table
    versions: Table
    other_versions: Table
    built: tuple[tuple[str, str], ...]
    plan: Table
    work: Table
    commands: tuple[tuple[str, str], ...]
    image: Table
    cells: Table
    environments: tuple[str, ...]
    baseline: str
    imported: bool = False
    files: Table | None = None  # that were imported
    claims: Table | None = None  # published numbers against them

    @property
    def anchors(self) -> dict[str, str]:
        """For each row of the audit that was found, its place in the page."""
        return {limit.id: limit.anchor for limit in self.answer.limits if limit.anchor}

    @property
    def none_failed(self) -> str:
        """What to say where the table of failures is empty."""
        return "Every run gave a result." if self.imported else "Every recorded trial ran to completion."
