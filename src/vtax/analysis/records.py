"""What the analysis says: levels, comparisons, verdicts, failures. Written as `analysis.json`, read by the report."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from vtax.model import FORMAT, Direction, Finding, Kind, Labels, Record, Status

VERDICT_FROM = 6  # rounds: no distribution-free 95 % interval exists for fewer pairs


class Verdict(StrEnum):
    """The words of METHOD 1.9, and three for what has no verdict."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    TRIVIAL = "trivial"
    UNADJUSTED = "unadjusted"  # its interval says so, the correction for many comparisons does not
    INCONCLUSIVE = "inconclusive"
    PILOT = "pilot only"  # 3 to 5 rounds
    DATA_ONLY = "data only"  # fewer than 3 rounds: no interval
    DIFFERENCE_ONLY = "difference only"  # a proportion: never a ratio, no verdict
    NOT_COMPARABLE = "not comparable"


class CellValue(Record):
    """The one number of a cell: a round counts once, however many iterations it had."""

    round: int
    value: float
    iterations: int
    sources: tuple[str, ...]


class Level(Record):
    """One metric in one environment over the rounds. `mean` and `sd` are arithmetic, `typical` follows the kind."""

    environment: str
    benchmark: str
    label: str
    metric: str
    unit: str
    kind: Kind
    direction: Direction
    primary: bool
    labels: Labels = Field(default_factory=dict)
    n: int
    mean: float
    sd: float | None = None  # absent for one round
    median: float
    minimum: float
    maximum: float
    typical: float  # METHOD 1.6: harmonic mean of rates for fixed work, geometric of ratios, ...
    cells: tuple[CellValue, ...]


class Comparison(Record):
    """One metric of an environment against the baseline, over the rounds in which both have it.

    `effect` is the mean of s * (ln environment - ln baseline), s = +1 for rates and -1 for costs, so above zero is
    better than the baseline; `ratio`, `low` and `high` are its exponential and that of its 95 % t interval. A
    proportion has a difference instead. `p_value` and `p_adjusted` are of the claim "differs", from six rounds on.
    """

    environment: str
    baseline: str
    benchmark: str
    label: str
    metric: str
    unit: str
    kind: Kind
    direction: Direction
    primary: bool
    labels: Labels = Field(default_factory=dict)
    n: int
    effect: float | None = None
    sd: float | None = None  # of the paired log differences (proportion: of the differences)
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    verdict: Verdict
    sentence: str
    remark: str = ""  # what to add to the sentence, such as the rounds that could decide


class Rung(Record):
    """One step of the ladder: an environment against the one before it, as in `Comparison`, but without a verdict.

    `low` and `high` are absent below three rounds. `blocker` is why the two do not compare, "" when nothing says so.
    """

    environment: str
    previous: str
    effect: float
    sd: float | None = None
    ratio: float
    low: float | None = None
    high: float | None = None
    blocker: str = ""


class Ladder(Record):
    """What each step of the study's ladder costs in one metric, over the rounds in which all steps have it.

    `total` is the last step against the first; its effect is the sum of the rungs' effects, its ratio their product.
    """

    benchmark: str
    label: str
    metric: str
    unit: str
    kind: Kind
    direction: Direction
    primary: bool
    labels: Labels = Field(default_factory=dict)
    n: int
    rungs: tuple[Rung, ...]
    total: Rung


class Failure(Record):
    """A trial without a result, and why."""

    trial: str
    environment: str
    round: int
    benchmark: str
    label: str
    warmup: bool
    status: Status
    reason: str


class Analysis(Record):
    """Everything that the report says about the numbers. `family` counts the comparisons that Holm adjusts over."""

    format: int = FORMAT
    campaign: str
    plan_sha256: str
    baseline: str
    environments: tuple[str, ...]
    margin: float
    rounds_planned: int
    rounds_complete: int
    trials_planned: int
    trials_recorded: int
    family: int
    levels: tuple[Level, ...]
    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    ladder: tuple[Ladder, ...] = ()  # empty without one in the study
