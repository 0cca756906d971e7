"""What a comparison of two campaigns says. Their rounds are not paired, so its words are weaker than verdicts."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from vtax.model.finding import Severity
from vtax.model.metric import Direction, Kind
from vtax.model.record import FORMAT, Labels, Record


class Outcome(StrEnum):
    """What may be said of a difference between two campaigns. Never why they differ."""

    DIFFERS = "differs"
    WITHIN = "within the margin"
    NOT_RESOLVED = "not resolved"
    PILOT = "pilot only"  # fewer than six rounds in one of them
    DATA_ONLY = "data only"  # fewer than three: no interval
    NOT_COMPARABLE = "not comparable"


class Unlike(Record):
    """Something that is not the same in both campaigns. A blocker makes the numbers of `label` ("" is all) of
    `environment` ("" is all) incomparable."""

    what: str
    a: str
    b: str
    severity: Severity
    environment: str = ""
    label: str = ""


class Interval(Record):
    """A Welch interval at 95 % of a ratio above 1 for better; bounds absent below three rounds on either side."""

    ratio: float
    low: float | None = None
    high: float | None = None


class Change(Record):
    """One metric of one environment in campaign B against the same in campaign A.

    `tax` is the change of the environment's ratio to its baseline: both are paired inside their campaigns, so what
    moved the whole machine is not in it. Absent for the baseline itself.
    """

    environment: str
    benchmark: str
    label: str
    metric: str
    unit: str
    kind: Kind
    direction: Direction
    primary: bool
    labels: Labels = Field(default_factory=dict)
    n_a: int
    n_b: int
    typical_a: float
    typical_b: float
    change: Interval | None = None
    tax: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    outcome: Outcome
    sentence: str
    tax_sentence: str = ""


class Side(Record):
    """One of the two campaigns."""

    directory: str
    campaign: str
    plan_sha256: str
    created: str
    rounds_complete: int


class Across(Record):
    """Two campaigns side by side: what differs between them first, then the numbers.

    `pairing_gain` is how many times narrower pairing by rounds made intervals inside these campaigns (the median
    over their metrics): what a comparison of two campaigns does without.
    """

    format: int = FORMAT
    a: Side
    b: Side
    margin: float
    unlike: tuple[Unlike, ...]
    caution: tuple[str, ...]
    pairing_gain: float | None = None
    family: int
    changes: tuple[Change, ...]
