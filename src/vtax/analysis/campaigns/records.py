"""What a comparison of two campaigns says. Their rounds are not paired, so its words are weaker than verdicts."""

from __future__ import annotations

from enum import StrEnum

from vtax.model.finding import Severity
from vtax.model.metric import SeriesRecord
from vtax.model.record import FORMAT, Record


class Outcome(StrEnum):
    """What may be said of a difference between two campaigns. Never why they differ."""

    DIFFERS = "differs"
    WITHIN = "within the margin"
    NOT_RESOLVED = "not resolved"
    PILOT = "pilot only"  # fewer than six rounds in one of them
    DATA_ONLY = "data only"  # fewer than three, or none: no interval
    NOT_COMPARABLE = "not comparable"


class SetupDifference(Record):
    """Something that is not the same in both campaigns. A blocker makes the numbers of `label` ("" is all) of
    `environment` ("" is all) incomparable."""

    what: str
    a: str
    b: str
    severity: Severity
    environment: str = ""
    label: str = ""


class RatioInterval(Record):
    """A Welch interval at 95 % of a ratio above 1 for better; bounds absent below three rounds on either side."""

    ratio: float
    low: float | None = None
    high: float | None = None


class ChangeTimeouts(Record):
    """Cells of either campaign without a number because runs hit their time limit: slower by an unknown factor.

    `low` and `high` are the interval of the change, widened until it holds the rank-sum bounds that count these cells
    at infinity. One is absent where they leave the ratio open on that side, both below six cells with a number.
    """

    a: int
    b: int
    low: float | None = None
    high: float | None = None


class Change(SeriesRecord):
    """One metric of one environment in campaign B against the same in campaign A.

    `tax` is the change of the environment's ratio to its baseline: both are paired inside their campaigns, so what
    moved the whole machine is not in it. Absent for the baseline itself. What is planned in both campaigns and gave
    no number in one of them has neither.
    """

    environment: str
    n_a: int
    n_b: int
    typical_a: float | None = None
    typical_b: float | None = None
    change: RatioInterval | None = None
    tax: RatioInterval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    outcome: Outcome
    sentence: str
    tax_sentence: str = ""
    timeouts: ChangeTimeouts | None = None  # absent without any


class Side(Record):
    """One of the two campaigns."""

    directory: str
    campaign: str
    plan_sha256: str
    created: str
    rounds_complete: int


class CampaignComparison(Record):
    """Two campaigns side by side: what differs between them first, then the numbers.

    `pairing_gain` is how many times narrower pairing by rounds made intervals inside these campaigns (the median
    over their metrics): what a comparison of two campaigns does without.
    """

    format: int = FORMAT
    a: Side
    b: Side
    margin: float
    unlike: tuple[SetupDifference, ...]
    caution: tuple[str, ...]
    pairing_gain: float | None = None
    family: int
    changes: tuple[Change, ...]
