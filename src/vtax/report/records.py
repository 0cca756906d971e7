"""What a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from vtax.analysis.claims import Compared
from vtax.analysis.records import Analysis
from vtax.model.cluster import CellRecord, Workload
from vtax.model.plan import Plan
from vtax.model.reading import TrialReading
from vtax.model.record import Labels, Record
from vtax.model.trial import TrialRecord


class Reference(Record):
    """A value from elsewhere, or a range, to show next to a metric: of every series of it that has these labels.

    In base units; of a range one end may be open.
    """

    benchmark: str
    metric: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str
    source: str  # who measured it, where and on what, in a few words
    labels: Labels = Field(default_factory=dict)
    environment: str = ""  # the kind of environment it is of, where the source says so
    n: int | None = None  # runs
    ratio: float | None = None  # to the baseline of the same source
    corrected: str = ""  # why it is not the number that was printed
    caution: str = ""  # what it is not

    @property
    def ends(self) -> tuple[float, ...]:
        """The numbers there are: one, or the ends of the range."""
        return tuple(number for number in (self.value, self.low, self.high) if number is not None)


class ReportInput(Record):
    """A campaign after its analysis.

    `readings` hold, by trial, the time series that figures show; `versions` are of packages in the image;
    `meanings` maps label of an entry -> metric -> what the metric is, in the order in which it declares its metrics;
    `references` are shown where they are given, `asked` names the reports that they are from; `image_sha256` is of the
    root file system's archive.
    """

    analysis: Analysis
    plan: Plan
    cells: tuple[CellRecord, ...]
    trials: tuple[TrialRecord, ...]
    readings: Mapping[str, TrialReading] = Field(default_factory=dict)
    versions: Mapping[str, str] = Field(default_factory=dict)
    host_facts: Mapping[str, Any] = Field(default_factory=dict)
    meanings: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    asked: tuple[str, ...] = ()  # the published reports that were asked for
    imports: tuple[Mapping[str, Any], ...] = ()  # what each `vtax import` into the campaign found, file by file
    claims: tuple[Compared, ...] = ()  # published numbers against the imported logs
    image_sha256: str = ""
    directory: str = "DIR"  # of the campaign, as a command names it
    image_recipe: str = ""
    workload: Workload | None = None  # the user's own image
    against: tuple[Analysis, ...] = ()  # the same campaign against other environments than the study's baseline
    plan_frozen: str = "unknown"  # before the first run: "yes", "no" or "unknown", by the hashes that the files name
