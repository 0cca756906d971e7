"""What a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from vtax.analysis.records import Analysis
from vtax.model import CellRecord, Plan, Record, TrialRecord


class ReportInput(Record):
    """A campaign after its analysis.

    `trials` need no texts; `versions` are of packages in the image; `meanings` maps benchmark -> metric -> what the
    metric is, in the order in which the benchmark declares its metrics.
    """

    analysis: Analysis
    plan: Plan
    cells: tuple[CellRecord, ...]
    trials: tuple[TrialRecord, ...]
    versions: Mapping[str, str] = Field(default_factory=dict)
    host_facts: Mapping[str, Any] = Field(default_factory=dict)
    meanings: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
