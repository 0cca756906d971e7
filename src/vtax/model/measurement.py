"""One number of a trial, with everything needed to find where it came from."""

from __future__ import annotations

from pydantic import Field

from vtax.model.metric import Metric, SeriesRecord
from vtax.model.nodes import target_label
from vtax.model.record import Labels, is_empty
from vtax.model.trial import TrialRecord


class Measurement(SeriesRecord):
    """One number, with everything needed to find where it came from."""

    environment: str
    round: int
    cell: str
    trial: str
    iteration: int
    warmup: bool
    value: float
    machine: str = Field(default="", exclude_if=is_empty)  # that its nodes were on; "": this one
    source: str  # file in the campaign, relative to its directory

    @classmethod
    def of(
        cls, record: TrialRecord, metric: Metric, value: float, labels: Labels | None = None, source: str = ""
    ) -> Measurement:
        """A measurement of `record`; `source` is a file that the record names, by default its last standard output."""
        return cls(
            environment=record.environment,
            round=record.round,
            cell=record.cell,
            trial=record.id,
            iteration=record.iteration,
            warmup=record.warmup,
            machine=record.machine,
            benchmark=record.benchmark,
            label=record.label,
            metric=metric.name,
            value=value,
            unit=metric.unit,
            kind=metric.kind,
            direction=metric.direction,
            primary=metric.primary,
            labels={"target": target_label(record.scope, record.nodes), **(labels or {})},
            source=f"trials/{record.id}/{source or record.steps[-1].stdout}",
        )
