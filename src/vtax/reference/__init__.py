"""Published results: what others printed about virtual machines and containers, and what they expected.

One TOML file per report, in base units. `printed` is the text of the report; where its own logs or numbers prove
the unit wrong, `value` is the correct one and `corrected` says why. `caution` says how not to read a figure.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import Field, model_validator

from vtax.errors import UsageError
from vtax.model.record import Labels, Record
from vtax.tools import alike

MUST_AGREE = (
    *("stressor", "protocol", "direction", "operation", "file_bytes", "record_bytes", "test"),
    *("workload", "connections", "depth", "jobs", "pattern", "block", "sockets", "side"),
)


class Figure(Record):
    """One published result, in base units: a value (with its standard deviation over `n` runs) or a range.

    Where only a ratio was published, it is that, and `relative_to` is what it is a ratio to.
    """

    environment: str
    benchmark: str
    metric: str
    unit: str
    value: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    relative_to: str = ""
    labels: Labels = Field(default_factory=dict)
    place: str
    printed: str
    corrected: str = ""
    caution: str = ""

    @model_validator(mode="after")
    def _says_something(self) -> Figure:
        if self.value is None and self.low is None and self.high is None:
            raise ValueError("neither a value nor a range")
        return self


class Report(Record):
    """One report: who measured on what, and every figure that it printed as a number.

    `baseline` is the environment that it compares others with. `remarks` say what is wrong with it as a whole.
    """

    key: str
    title: str
    author: str
    published: str
    source: str
    repository: str = ""
    commit: str = ""
    machine: str
    baseline: str = ""
    remarks: tuple[str, ...] = ()
    environments: Mapping[str, str]
    figures: tuple[Figure, ...]

    def ratio(self, figure: Figure) -> float | None:
        """A figure as a multiple of what its baseline has under the same conditions; None where it has no such figure,
        or is it."""
        if figure.value is None or figure.environment == self.baseline:
            return None
        same = ("benchmark", "metric", "labels", "unit")
        found = [
            other.value
            for other in self.figures
            if other.environment == self.baseline and all(getattr(other, key) == getattr(figure, key) for key in same)
        ]
        return figure.value / found[0] if len(found) == 1 and found[0] else None


@cache
def reports() -> tuple[Report, ...]:
    """All reports, by key."""
    found = [entry for entry in files("vtax.reference").iterdir() if entry.name.endswith(".toml")]
    read = (Report.model_validate(tomllib.loads(entry.read_text(encoding="utf-8"))) for entry in found)
    return tuple(sorted(read, key=lambda report: report.key))


def report(key: str) -> Report:
    """One report. Raises UsageError with all known keys."""
    for known in reports():
        if known.key == key:
            return known
    raise UsageError(f"there is no report {key!r}", remedy=f"one of {', '.join(known.key for known in reports())}")


def figures(benchmark: str, metric: str, labels: Labels | None = None) -> tuple[tuple[Report, Figure], ...]:
    """What the reports say of one metric: figures whose labels do not contradict `labels`.

    Labels that only name a node of that report are ignored; a stressor, a protocol or a record size must agree.
    Benchmarks of one tool that do the same work, such as HPL alone and in a suite, find each other's figures.
    """
    names = alike(benchmark, metric)
    mine = labels or {}
    return tuple(
        (known, figure)
        for known in reports()
        for figure in known.figures
        if figure.benchmark in names
        and figure.metric == metric
        and "load" not in figure.labels
        and all(figure.labels.get(name, mine.get(name)) == mine.get(name) for name in MUST_AGREE)
    )
