"""The lines that sysbench prints, each found by what it says, and what is refused where they do not fit together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from vtax.model.metric import Kind, Metric
from vtax.tools.reading import Line, Reading, Value, near_miss

N = r"(\d{1,15}\.\d{2})"
SIZE = r"(\d{1,12}(?:\.\d{1,4})?) ?([KMGT]?i?[Bb]?)"
AROUND = ("Creating files for the test", "Removing test files", "Creating file test_file")
SCALE = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
LINES = {
    name: re.compile(f"^{pattern}$")
    for name, pattern in {
        "banner": r"sysbench v? ?(\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)[^(:]{0,40}[(:].*",
        "threads": r"Number of threads: (\d{1,6})",
        "max_prime": r"(?:Primer? numbers limit|Maximum prime number checked in CPU test): (\d{1,12})",
        "block": rf" {{0,4}}(?:Memory block size|block size|Block size):? {SIZE}",
        "total": rf" {{0,4}}(?:Memory transfer size|total size): {SIZE}",
        "operation": r" {0,4}(?:Memory operations type|operation): (\w{1,20})",
        "scope": r" {0,4}(?:Memory scope type|scope): (\w{1,20})",
        "files": r"(\d{1,9}) files, (.{1,20}) each",
        "file_total": rf"{SIZE} total file size",
        "flags": r"Extra file open flags: (.{1,60})",
        "io_mode": r"Using (.{1,40}) I/O mode",
        "fsync_each": r"Periodic FSYNC enabled, calling fsync\(\) each (\d{1,9}) requests\.",
        "fsync_end": r"Calling fsync\(\) at the end of test, Enabled\.",
        "test": r"Doing (.{1,60}) test",
        "end": r" {4}execution time \(avg/stddev\): {1,20}(\d{1,12}\.\d{4})/(\d{1,12}\.\d{2})",
        "fairness": r" {4}events \(avg/stddev\): {1,20}(\d{1,15}\.\d{4})/(\d{1,15}\.\d{2})",
        "time": r" {4}(?:total time|time elapsed): {1,40}(\d{1,12}\.\d{4})s",
        "events": r" {4}total number of events: {1,30}(\d{1,15})",
        "least": rf" {{9}}min: {{1,50}}{N}(?:ms)?",
        "most": rf" {{9}}max: {{1,50}}{N}(?:ms)?",
        "mean": rf" {{9}}avg: {{1,50}}{N}(?:ms)?",
        "quantile": rf" {{9}}(?:approx\. {{1,3}})?(\d{{1,3}})(?:th|st|nd|rd)? percentile: {{1,40}}{N}(?:ms)?",
        "sum": rf" {{9}}sum: {{1,50}}{N}",
        "taken": r" {4}total time taken by event execution: {1,20}(\d{1,12}\.\d{4})s?",
        "speed": r" {4}(?:events per second|events/s \(eps\)): {1,30}(\d{1,12}\.\d{2,4})",
        "blocks": r"(?:Total operations|Operations performed): (\d{1,15})"
        r" \( {0,10}(\d{1,12}\.\d{2}) (?:per second|ops/sec)\)",
        "moved": r"(\d{1,12}\.\d{2}) (?:MiB|MB) transferred \((\d{1,12}\.\d{2}) (?:MiB|MB)/sec\)",
        "reads": rf" {{4}}reads/s: {{1,30}}{N}",
        "writes": rf" {{4}}writes/s: {{1,30}}{N}",
        "fsyncs": rf" {{4}}fsyncs/s: {{1,30}}{N}",
        "MiB read": rf" {{4}}read, MiB/s: {{1,30}}{N}",
        "MiB written": rf" {{4}}written, MiB/s: {{1,30}}{N}",
        "iops": rf" {{1,10}}(read|write): {{1,6}}IOPS={N} {N} MiB/s \(\d{{1,12}}\.\d{{2}} MB/s\)",
        "transactions": rf" {{4}}transactions: {{1,40}}(\d{{1,15}}) {{1,20}}\({N} per sec\.\)",
        "queries": rf" {{4}}(?:queries|read/write requests): {{1,40}}(\d{{1,15}}) {{1,20}}\({N} per sec\.\)",
        "failed": rf" {{4}}(?:ignored errors|deadlocks): {{1,40}}(\d{{1,15}}) {{1,20}}\({N} per sec\.\)",
        "sql reads": r" {8}read: {1,40}(\d{1,15})",
        "sql writes": r" {8}write: {1,40}(\d{1,15})",
        "sql others": r" {8}other: {1,40}(\d{1,15})",
        "report": rf"\[ (\d{{1,9}})s \] thds: \d{{1,6}} tps: {N} qps: {N} \(.{{1,60}}\) lat \(ms,(\d{{1,3}})%\): {N}"
        r" err/s: .{1,60}",
        "old rate": r"Read \d{1,9}(?:\.\d{1,5})?[KMG]?b {1,4}Written \d{1,9}(?:\.\d{1,5})?[KMG]?b {1,4}"
        r"Total transferred \d{1,9}(?:\.\d{1,5})?[KMG]?b {1,4}\((\d{1,9}(?:\.\d{1,5})?)([KMG]?)b/sec\)",
    }.items()
}


FATAL = ("FATAL: ", "ALERT: ")
# More than `sysbench --version`, a line that lists of versions have, prints
FIRST = re.compile(r"^sysbench v?\d{1,2}\.\d{1,3}[\w.+-]{0,40}(?::? \(.{1,80}\)|: {1,4}multi-threaded .{1,60}) *$")


def starts(line: str) -> bool:
    """Whether a run begins with this line of a log."""
    return line.startswith("sysbench ") and FIRST.match(line) is not None


def ends(line: str) -> bool:
    """Whether it is the last line of a test, or of a command that only makes or removes files."""
    return (
        "execution time (avg/stddev):" in line
        or "bytes written in " in line
        or line.startswith(AROUND[1])
        or line.startswith(FATAL[0])
    )


def bytes_of(digits: str, unit: str) -> int:
    """`16`, `KiB` as 16384. sysbench 0.x writes Kb for the same."""
    return round(float(digits) * SCALE[unit[:1].upper() if unit[:1].upper() in SCALE else ""])


class Hit(NamedTuple):
    """A line that was found, and the groups of its pattern."""

    line: int
    rank: str
    groups: tuple[str, ...]

    @property
    def number(self) -> float:
        """What the line is about: its last number."""
        return float(self.groups[-1])


class Run:
    """One run: its lines by what they say, and what has been read from them so far."""

    def __init__(self, lines: tuple[Line, ...]) -> None:
        self.lines = lines
        self.found: dict[str, list[Hit]] = {name: [] for name in LINES}
        for line in lines:
            for name, pattern in LINES.items():
                if match := pattern.match(line.text):
                    self.found[name].append(Hit(line.number, line.rank, match.groups()))
        self.reading = Reading("", ranks=len(self.found["banner"]))

    @property
    def old(self) -> bool:
        """Whether it is sysbench 0.x, which counts other things under the same names."""
        return any(hit.groups[0].startswith("0.") for hit in self.found["banner"])

    def distinct(self, name: str) -> list[str]:
        """What lines of a kind say first, each different text once, in order."""
        return list(dict.fromkeys(hit.groups[0].strip() for hit in self.found[name]))

    def refuse(self, what: str, reason: str, values: int = 1, *, suspects: Sequence[Hit] = (), line: int = 0) -> None:
        """Refuse `what`. The line is that of the only suspect that is zero, or the only one with a word for a number,
        or else `line`; 0 when that is unsure."""
        zero = [hit.line for hit in suspects if hit.number == 0]
        blamed = zero[0] if len(zero) == 1 else near_miss(self.lines, *LINES.values())
        self.reading.refuse(blamed or line, what, reason, values)

    def take(
        self,
        metric: Metric,
        found: list[Hit],
        what: str,
        *,
        scale: float = 1.0,
        per: float = 1.0,
        labels: dict[str, str] | None = None,
    ) -> bool:
        """One value for every rank, its number times `scale` over `per`, or a refusal."""
        if len(found) != self.reading.ranks:
            reason = f"{len(found)} lines with the {what}, but {self.reading.ranks} ranks"
            self.refuse(metric.name, reason, 0, line=found[-1].line if found else 0)
            return False
        if metric.kind is not Kind.COUNT and min(hit.number for hit in found) <= 0:
            reason = "it is zero: too small for the digits that sysbench prints"
            self.refuse(metric.name, reason, len(found), suspects=found, line=found[0].line)
            return False
        self.reading.values += [
            Value(metric, hit.number * scale / per, hit.line, labels or {}, of_ranks=True, ordinal=hit.rank)
            for hit in found
        ]
        return True
