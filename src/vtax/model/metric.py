"""What a benchmark can report, how its values combine, and what makes two of them comparable."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import Field

from vtax.model.record import Labels, Record


class Kind(StrEnum):
    """How values of a metric combine: decides the summary of a cell and the sign of an effect."""

    COST = "cost"
    RATE_FIXED_WORK = "rate, fixed work"
    RATE_FIXED_TIME = "rate, fixed time"
    RATIO = "ratio"
    LATENCY_QUANTILE = "latency quantile"
    PROPORTION = "proportion"
    AMOUNT = "amount"
    COUNT = "count"

    @property
    def with_article(self) -> str:
        return f"{'an' if self.value[0] in 'aeiou' else 'a'} {self.value}"

    @property
    def has_ratio(self) -> bool:
        """Whether its values are always above zero, so that two of them have a ratio; the others may be zero."""
        return self not in (Kind.PROPORTION, Kind.AMOUNT, Kind.COUNT)


class Direction(StrEnum):
    HIGHER = "higher is better"
    LOWER = "lower is better"
    NONE = "neither"


LOWER_KINDS = frozenset({Kind.COST, Kind.LATENCY_QUANTILE, Kind.PROPORTION, Kind.AMOUNT})
OPEN_KINDS = frozenset({Kind.RATIO, Kind.PROPORTION})  # of a user's own metrics: a loss or a hit rate


class Metric(Record):
    """What a benchmark can report under one name. `unit` is a base unit: flop/s, byte/s, bit/s, update/s, 1/s, s, byte,
    1; or one of a user's own metric that is none of these. `better` is the direction where the kind leaves it open.
    """

    name: str
    unit: str
    kind: Kind
    primary: bool = False
    meaning: str = ""
    better: Direction | None = None

    @property
    def direction(self) -> Direction:
        if self.better is not None:
            return self.better
        if self.kind is Kind.COUNT:
            return Direction.NONE
        return Direction.LOWER if self.kind in LOWER_KINDS else Direction.HIGHER


class Series(NamedTuple):
    """What makes two numbers comparable: the same metric of the same benchmark entry, with the same labels.

    A key to sort and group by; `labels` are sorted pairs.
    """

    benchmark: str
    label: str
    metric: str
    labels: tuple[tuple[str, str], ...]


class SeriesRecord(Record):
    """What records about one series have in common: a measurement, a level, a comparison, a change, a ladder.

    `label` names the entry of the study; `labels` tell nodes, operations and sizes apart.
    """

    benchmark: str
    label: str
    metric: str
    unit: str
    kind: Kind
    direction: Direction
    primary: bool
    labels: Labels = Field(default_factory=dict)

    @property
    def series(self) -> Series:
        return Series(self.benchmark, self.label, self.metric, tuple(sorted(self.labels.items())))

    @property
    def series_fields(self) -> dict[str, Any]:
        """What another record about the same series is made with."""
        return {name: getattr(self, name) for name in SeriesRecord.model_fields}
