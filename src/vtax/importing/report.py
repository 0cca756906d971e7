"""What an import found: files, the runs in them, the values that were taken and those that were refused, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vtax.importing.accounting import Account
from vtax.model.trial import TrialRecord
from vtax.tools.reading import Reading


@dataclass
class Run:
    """One run found in a file. `place` is where its text waits until the campaign takes it."""

    environment: str
    file: str
    sha256: str
    raw: str
    section: tuple[str, int, int]  # reader, first line, last line
    reading: Reading
    place: Path
    values: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    trial: str = ""
    left_out: str = ""
    record: TrialRecord | None = None  # of a table, which says all that a record needs
    source: str = ""  # the node that a prefix of its lines names
    pieces: tuple[tuple[int, int], ...] = ()  # first line and number of lines of its parts, where it has several
    labels: Mapping[str, str] = field(default_factory=dict)  # that were stated, or that its path says
    unit: str = ""  # that was stated
    table: tuple[str, ...] = ()  # that was stated of its columns

    @property
    def work(self) -> tuple[str, ...]:
        """What makes two runs repetitions of each other."""
        return self.environment, self.reading.label, self.reading.direction, self.source, labels_text(self.labels)

    @property
    def label(self) -> str:
        """The benchmark and its parameters, or its name in the table."""
        return self.record.label if self.record else self.reading.label

    @property
    def stated(self) -> dict[str, str]:
        """Everything that whoever imports it stated."""
        more = {"unit": self.unit, "table": "; ".join(self.table)}
        return {**self.labels, **{name: text for name, text in more.items() if text}}

    @property
    def where(self) -> str:
        return f"{self.file} {'row' if self.record else 'line'} {self.section[1]}"


@dataclass
class FileReport:
    """What became of one file. `reason` says why it was not read."""

    file: str
    environment: str = ""
    sha256: str = ""
    reason: str = ""
    damaged_lines: list[int] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    account: Account = field(default_factory=Account)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def taken(self) -> int:
        return sum(run.count for run in self.runs if not run.left_out)


@dataclass
class Report:
    """What became of everything that was found."""

    directory: Path
    files: list[FileReport]
    origin: str = ""

    @property
    def runs(self) -> list[Run]:
        return [run for file in self.files for run in file.runs]

    @property
    def taken(self) -> int:
        return sum(file.taken for file in self.files)

    @property
    def yielded(self) -> int:
        """Files of which at least one value was taken."""
        return sum(file.taken > 0 for file in self.files)


def labels_text(labels: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def table_of(report: Report, *, values: bool = True) -> dict[str, Any]:
    """The whole report for other programs: files, runs, values (those in the campaign are left out) and refusals."""
    return {
        "format": 1,
        "directory": str(report.directory),
        "values_taken": report.taken,
        "origin": report.origin,
        "files_with_values": report.yielded,
        "files": [
            {
                "file": file.file,
                "environment": file.environment,
                "sha256": file.sha256,
                "not_read": file.reason,
                "damaged_lines": file.damaged_lines,
                "lines": _lines(file.account),
                "runs": [_run_row(run, values) for run in file.runs],
            }
            for file in report.files
        ],
    }


def _lines(account: Account) -> dict[str, Any]:
    """How many lines of a file were what."""
    return {
        "all": account.lines,
        "with_values": account.values,
        "refused": account.refused,
        "not_taken": [{"what": n, "lines": one.lines, "first": one.first} for n, one in account.rest.items()],
        "prose": account.prose,
    }


def _run_row(run: Run, values: bool) -> dict[str, Any]:
    refused = [{"line": r.line, "what": r.what, "reason": r.reason, "values": r.values} for r in run.reading.refusals]
    return {
        "benchmark": run.reading.benchmark,
        "label": run.label,
        "reader": run.section[0],
        "stated": run.stated,
        "lines": [run.section[1], run.section[2]],
        "node": run.source,
        "ranks": run.reading.ranks,
        "trial": run.trial,
        "left_out": run.left_out,
        "values_taken": 0 if run.left_out else run.count,
        **({"values": [] if run.left_out else run.values} if values else {}),
        "facts": run.reading.facts,
        "refused": refused,
    }
