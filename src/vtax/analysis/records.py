"""What the analysis says: levels, comparisons, verdicts, failures. Written as `analysis.json`, read by the report."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field

from vtax.model.finding import Finding
from vtax.model.metric import SeriesRecord
from vtax.model.record import FORMAT, Record, is_empty
from vtax.model.study import Equivalence, Interleave
from vtax.model.trial import Status

VERDICT_FROM = 6  # rounds: no distribution-free 95 % interval exists for fewer pairs


class Verdict(StrEnum):
    """What may be said of a comparison; four words are for what has no verdict (docs/method.md, "Verdicts")."""

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
    """The one number of a cell: a round counts once, however many iterations it had. `machine` is where it was, if
    there are several that have rounds alone."""

    round: int
    machine: str = Field(default="", exclude_if=is_empty)
    value: float
    mean: float | None = None  # of the iterations, total work over total time; absent where one ran out of time
    iterations: int  # that gave a number
    timed_out: int = 0  # iterations that hit their time limit; `value` counts them as slower than all others
    started: float | None = None  # Unix time of the first measured iteration, s
    sources: tuple[str, ...]


class Level(SeriesRecord):
    """One metric in one environment over the rounds. `mean` and `sd` are arithmetic, `typical` follows the kind. Of
    several machines `sd` and `cv` are from round to round on each of them."""

    environment: str
    n: int
    mean: float
    sd: float | None = None  # absent for one round
    median: float
    minimum: float
    maximum: float
    cv: float | None = None  # deviation of the logarithms from round to round, with its 95 % interval
    cv_low: float | None = None
    cv_high: float | None = None
    outliers: int | None = None  # runs more than five deviations away; they are kept; absent for proportions, counts
    runs: int = 0  # measured iterations
    typical: float  # harmonic mean of rates for fixed work, geometric of ratios, ...
    cells: tuple[CellValue, ...]


class Note(Record):
    """What the numbers of one comparison say besides the verdict, under a fixed name."""

    id: str
    message: str


class Companion(Record):
    """The Hodges-Lehmann estimate with its signed-rank interval: it assumes symmetry only. Ratios."""

    ratio: float | None = None  # these are absent where censored rounds leave them open
    low: float | None = None
    high: float | None = None


class TimeoutBounds(Record):
    """Rounds in which only one of the two hit its time limit: it was slower there, by an unknown factor.

    `low` and `high` are the ratio's interval, widened until it holds the Hodges-Lehmann bounds that count these rounds
    at infinity. One is absent where they leave the ratio open on that side, both below six rounds in all or six with a
    number. `p_sign` is of the sign test over all these rounds.
    """

    environment: int
    baseline: int
    low: float | None = None
    high: float | None = None
    p_sign: float


class Randomisation(Record):
    """The randomisation test over `orders` that the plan could have drawn: all of them where `exact`, else at random.

    `p` is two-sided, of "no difference"; `smallest` is the smallest that it can be.
    """

    p: float
    orders: int
    exact: bool
    smallest: float


class RoundDifference(Record):
    """The difference of one round, where trials alternated: the median of so many `pairs` of iterations.

    Logarithms, above zero is better than the baseline.
    """

    round: int
    difference: float
    pairs: int


class MachineEffect(Record):
    """The effect on one of several machines, in its own `n` rounds, as in `Comparison`. Its interval is no claim.

    `covered`: the comparison is about this machine. One that has too few rounds for a verdict, where others have
    enough, is not.
    """

    machine: str
    n: int
    covered: bool = True
    effect: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    difference: float | None = None  # of a proportion
    difference_low: float | None = None
    difference_high: float | None = None


class MachineSpread(Record):
    """Whether machines differ: `p_same` is of "the effect is the same on all of them", by Welch's test.

    `low` and `high` are an interval of the ratio on machines of which these are a sample, absent below three machines.
    `contradict`: one of them alone contradicts the verdict that their mean would have, so there is none.
    """

    p_same: float
    contradict: bool = Field(default=False, exclude_if=is_empty)
    low: float | None = None
    high: float | None = None


class Comparison(SeriesRecord):
    """One metric of an environment against its baseline, over the rounds in which both have it.

    `baseline` is the study's; for what that cannot have, the first environment of the study that has it.
    `effect` is the mean of s * (ln environment - ln baseline), s = +1 for rates and -1 for costs, so above zero is
    better than the baseline, adjusted for the order in a round where `order_adjusted` says so; `ratio`, `low` and
    `high` are its exponential and that of its t interval. The interval is at 1 - `a_look`, so that at whatever planned
    look the campaign stopped, it misses in 5 % of campaigns. A proportion has a difference instead. `p_value` is of
    the claim "differs" at this look, `p_sequential` over the looks so far, `p_adjusted` over the family too.
    `interleave` says what the difference of a round is: "cell", of the two cells' numbers; "trial", the median of
    paired iterations, which `by_round` has then. Where several machines each have whole rounds, the effect is the mean
    over `machines` of the effect on each, and the interval is about these machines alone.
    """

    environment: str
    baseline: str
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
    ruled_out_by: str = ""  # id of the blocker that makes it not comparable, the most fundamental of several
    sentence: str
    remark: str = ""  # what to add to the sentence, such as the rounds that could decide
    caveat: str = ""  # what must accompany every number of it: software emulation that the study allowed
    a_look: float | None = None
    order_adjusted: bool = False
    carry_over: float | None = None  # what running second in a round costs, on the log scale
    p_sequential: float | None = None
    dropped: int = 0  # rounds of the plan's so far in which one of the two has no value
    mean_ratio: float | None = None  # the same ratio from total work over total time: mean, not typical performance
    mean_low: float | None = None  # its 95 % interval, by a bootstrap of rounds and iterations
    mean_high: float | None = None
    mean_without: str = ""  # why it has none
    companion: Companion | None = None
    randomisation: Randomisation | None = None  # from twelve rounds on
    more_rounds: tuple[int, int | None] | None = (
        None  # at best and at worst until a verdict; None: beyond the last look
    )
    new_campaign: tuple[int, int | None] | None = None  # rounds in all of a new campaign that could decide, likewise
    control: bool = False  # the baseline against itself
    over: bool = False  # the environment has fewer rounds than the campaign, and the plan has no more of them
    planned: bool = False  # in both environments, so that each round in which one of them has no number lost it
    timeouts: TimeoutBounds | None = None  # absent without any
    notes: tuple[Note, ...] = ()
    interleave: Interleave = "cell"
    by_round: tuple[RoundDifference, ...] = ()
    machines: tuple[MachineEffect, ...] = Field(default=(), exclude_if=is_empty)
    spread: MachineSpread | None = Field(default=None, exclude_if=is_empty)


class FailureRate(Record):
    """How often the measured trials of one entry failed in one environment: Wilson's 95 % interval of the share.

    `p_mcnemar` is the exact p of "fails in as many rounds as in the baseline", absent where no round differs.
    """

    environment: str
    label: str
    failed: int
    trials: int
    low: float
    high: float
    p_mcnemar: float | None = None


def contradicted(one: Comparison) -> bool:
    """Whether the machines leave no verdict about their mean, however many rounds there are."""
    return one.spread is not None and one.spread.contradict


CONCLUSIVE = frozenset({Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT, Verdict.TRIVIAL})
BEYOND_ROUNDS = frozenset({Verdict.NOT_COMPARABLE, Verdict.DIFFERENCE_ONLY})  # more rounds would not change them


class LadderStep(Record):
    """An environment of the ladder against the one before it, as in `Comparison`, but without a verdict.

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

    @property
    def bounds(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


class Ladder(SeriesRecord):
    """What each step of the study's ladder costs in one metric, over the rounds in which all steps have it.

    `total` is the last step against the first; its effect is the sum of theirs, its ratio the product. Where trials
    alternated, that holds approximately: each of them rests on the medians of its own pairs.
    """

    n: int
    rungs: tuple[LadderStep, ...]
    total: LadderStep


class Score(Record):
    """A composite score of an environment against the baseline: the weighted geometric mean of ratios of metrics, of
    which a metric with several series (nodes, operations, sizes) counts once. Exploratory. Numbers as in `Comparison`.
    """

    name: str
    environment: str
    baseline: str
    weights: Mapping[str, float]  # LABEL.METRIC -> weight, as in the plan
    n: int
    effect: float | None = None
    sd: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p_adjusted: float | None = None
    verdict: Verdict
    sentence: str
    caveat: str = ""
    dropped: int = 0  # rounds so far in which some of it is missing


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
    """Everything that the report says about the numbers. `family` counts the comparisons that Holm adjusts over.

    `look` is the last planned look that the complete rounds have reached; None before the first. `a_look` is the
    level of each look's interval, `a_look_adjusted` that of intervals adjusted for the order. `emulated` environments
    have levels and no comparison. `exploratory` says that `baseline` is not the one that was planned.
    """

    format: int = FORMAT
    campaign: str
    plan_sha256: str
    baseline: str
    environments: tuple[str, ...]
    emulated: tuple[str, ...] = ()
    exploratory: str = ""
    margin: float
    rounds_planned: int
    rounds_complete: int
    round_s: float | None = None  # what a round takes, or is planned to take before the first; absent when unknown
    ended: str = ""  # when and why the campaign ended; "" while it may go on, and where no look was noted
    look: int | None = None
    looks: tuple[int, ...] = ()
    a_look: float | None = None
    a_look_adjusted: float | None = None
    a_look_source: str = ""  # "simulated", "union bound" where no simulation was possible, "anytime-valid", ...
    anytime_wider: float | None = None  # than intervals of six planned looks: what a look after every round costs
    order_adjusted: bool = False
    control: str | None = None  # the environment that repeats the baseline
    resolution: float | None = None  # the widest half-width of the control arm's primary intervals, as ratio - 1
    trials_planned: int
    trials_recorded: int
    family: int
    levels: tuple[Level, ...]
    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    failure_rates: tuple[FailureRate, ...] = ()
    one_boot: tuple[str, ...] = ()  # environments that were one instance for the whole campaign: claims are about it
    advice: tuple[str, ...] = ()  # for the next campaign
    scores: tuple[Score, ...] = ()  # empty without weights in the study
    ladder: tuple[Ladder, ...] = ()  # empty without one in the study
    machines: tuple[str, ...] = Field(default=(), exclude_if=is_empty)  # of the study; () where it is this one

    @property
    def equivalence(self) -> Equivalence:
        return Equivalence.of(self.margin)


def waiting(analysis: Analysis) -> str:
    """How many of the primary comparisons have their verdict, in words."""
    judged = _awaited(analysis)
    done = sum(c.verdict in CONCLUSIVE for c in judged)
    never = sum(c.verdict in BEYOND_ROUNDS or (c.over and c.n < VERDICT_FROM) for c in judged)
    beyond = f", and {never} can have none" if never else ""
    return (
        f"{done} of {len(judged)} primary comparisons have their verdict after {analysis.rounds_complete} complete "
        f"rounds{beyond}"
    )


def settled(analysis: Analysis) -> bool:
    """Whether every primary metric has its verdict, so that the campaign may end at this look.

    What more rounds cannot change does not keep it open: a blocker, a proportion, a metric that the plan does not have
    in both, or in no later round. One that is planned in both and failed in every round so far does. The control arm
    has no verdict to wait for. Without a single verdict there is nothing to end on.
    """
    if analysis.look is None:
        return False
    judged = _awaited(analysis)
    open_ = [c for c in judged if c.verdict not in CONCLUSIVE | BEYOND_ROUNDS and not c.over]
    return bool(judged) and not open_


def _awaited(analysis: Analysis) -> list[Comparison]:
    """The comparisons that may get a verdict in some round."""
    return [c for c in analysis.comparisons if c.primary and not c.control and (c.n > 0 or c.planned)]
