"""What a benchmark can report, and how its values combine."""

from __future__ import annotations

from enum import StrEnum

from vtax.model.record import Record


class Kind(StrEnum):
    """How values of a metric combine (METHOD 1.6): decides the summary of a cell and the sign of an effect."""

    COST = "cost"
    RATE_FIXED_WORK = "rate, fixed work"
    RATE_FIXED_TIME = "rate, fixed time"
    RATIO = "ratio"
    LATENCY_QUANTILE = "latency quantile"
    PROPORTION = "proportion"
    COUNT = "count"


class Direction(StrEnum):
    HIGHER = "higher is better"
    LOWER = "lower is better"
    NONE = "neither"


LOWER_KINDS = frozenset({Kind.COST, Kind.LATENCY_QUANTILE, Kind.PROPORTION})


class Metric(Record):
    """What a benchmark can report under one name. `unit` is a base unit: flop/s, byte/s, bit/s, update/s, 1/s, s, 1."""

    name: str
    unit: str
    kind: Kind
    primary: bool = False
    meaning: str = ""

    @property
    def direction(self) -> Direction:
        if self.kind is Kind.COUNT:
            return Direction.NONE
        return Direction.LOWER if self.kind in LOWER_KINDS else Direction.HIGHER
