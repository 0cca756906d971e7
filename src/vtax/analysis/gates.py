"""Gates for CI: what a campaign must not show. Pure.

A gate about an effect fails only when the whole interval lies beyond its limit and the verdict is confirmed, and it
holds only when the whole interval lies on this side of it. Everything else is "not resolved": it is reported, and the
gate "inconclusive" turns it into a failure. So neither a pass nor a failure rests on noise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vtax.analysis.campaigns.records import CampaignComparison, Change, ChangeTimeouts, Outcome, RatioInterval
from vtax.analysis.estimate.context import Declared
from vtax.analysis.estimate.paired import LEVEL
from vtax.analysis.records import Analysis, Comparison, TimeoutBounds, Verdict
from vtax.errors import UsageError
from vtax.model.finding import Finding, Severity
from vtax.model.metric import Direction
from vtax.model.study import Study

GRAMMAR = """\
LABEL.METRIC[@ENVIRONMENT] slower than P%         (also: LABEL:METRIC)
LABEL.METRIC[@ENVIRONMENT] faster than P%
LABEL.METRIC[@ENVIRONMENT] differs by more than P%
any primary slower than P%       (also: faster, differs by more)
blocker                          a blocker of the audit
inconclusive                     a primary metric without a verdict, or another gate that is not resolved
for example: "hpcc.HPL slower than 5%", "ping.rtt_avg@container slower than 20%\""""
EFFECT = re.compile(
    r"^(?:(?P<any>any\s+primary)|(?P<label>[a-z][a-z0-9-]*)[.:](?P<metric>[^@\s]+)(?:@(?P<environment>\S+))?)\s+"
    r"(?P<claim>slower|faster|differs(?:\s+by\s+more)?)\s+than\s+(?P<percent>\d{1,9}(?:\.\d{1,9})?)\s*%"
)

Ends = tuple[float | None, float | None]


class Claim(StrEnum):
    SLOWER = "slower"
    FASTER = "faster"
    DIFFERS = "differs"


class Result(StrEnum):
    HOLDS = "holds"
    FAILED = "failed"
    NOT_RESOLVED = "not resolved"


@dataclass(frozen=True)
class Gate:
    """One `--fail-on`. `claim` is None for "blocker" and "inconclusive"; `label` "" is any primary metric."""

    text: str
    claim: Claim | None = None
    limit: float = 0.0  # 0.05 for 5 %
    label: str = ""
    metric: str = ""
    environment: str = ""


@dataclass(frozen=True)
class Subject:
    """A comparison as a gate sees it. `refuses` is why it has no verdict, "" when it has one or needs none;
    `confirmed` says whether it may claim a difference."""

    name: str
    label: str
    metric: str
    environment: str
    primary: bool
    low: float | None
    high: float | None
    confirmed: bool
    settled: bool
    refuses: str
    sentence: str


@dataclass(frozen=True)
class Case:
    """One comparison (or finding) under one gate."""

    name: str
    result: Result
    message: str


@dataclass(frozen=True)
class GateResult:
    """A gate and its result."""

    gate: Gate
    result: Result
    cases: tuple[Case, ...]


def parse_gates(texts: Iterable[str]) -> tuple[Gate, ...]:
    """The gates of a command line. Raises UsageError with the grammar."""
    return tuple(map(_parsed, dict.fromkeys(texts)))


def _parsed(text: str) -> Gate:
    words = " ".join(text.split())
    if words in ("blocker", "inconclusive"):
        return Gate(words)
    match = EFFECT.fullmatch(words)
    if match is None:
        raise UsageError(f"--fail-on {text!r} is not a gate", detail=GRAMMAR)
    limit = float(match["percent"]) / 100
    claim = Claim(match["claim"].split()[0])
    if limit >= 1 and claim is not Claim.FASTER:
        raise UsageError(f"--fail-on {text!r}: nothing can be slower by 100 % or more", detail=GRAMMAR)
    return Gate(words, claim, limit, match["label"] or "", match["metric"] or "", match["environment"] or "")


def check_gates(gates: Sequence[Gate], study: Study, declared: Declared, *, baseline: bool = False) -> None:
    """Raise UsageError for a name that the study does not have, before anything runs.

    `declared` are the metrics that entries may report, by label. `baseline` allows the baseline too: two campaigns
    compare it as well.
    """
    known = {
        label: {one.name: one for one in metrics if one.direction is not Direction.NONE}
        for label, metrics in declared.items()
    }
    places = [spec.name for spec in study.environments if baseline or spec.name != study.baseline]
    for gate in gates:
        if gate.environment and gate.environment not in places:
            _refuse(gate, "environment", gate.environment, places)
        if gate.label and gate.label not in known:
            _refuse(gate, "benchmark entry", gate.label, known)
        if gate.label and gate.metric not in known[gate.label]:
            _refuse(gate, f"metric of {gate.label}", gate.metric, known[gate.label])
        kind = known[gate.label][gate.metric].kind if gate.label else None
        if kind is not None and not kind.has_ratio:
            raise UsageError(
                f"--fail-on {gate.text!r}: {gate.metric} is {kind.with_article}, which has no ratio",
                remedy="gates are for rates, times and ratios",
            )


def _refuse(gate: Gate, what: str, name: str, known: Iterable[str]) -> None:
    raise UsageError(f"--fail-on {gate.text!r}: there is no {what} {name!r}", remedy=f"there are {', '.join(known)}")


def judge(gates: Sequence[Gate], subjects: Sequence[Subject], findings: Sequence[Finding]) -> tuple[GateResult, ...]:
    """The result of every gate; "inconclusive" is judged last, because it depends on the others."""
    judged = {gate: _effect(gate, subjects) for gate in gates if gate.claim is not None}
    for gate in gates:
        if gate.text == "blocker":
            judged[gate] = _blocker(gate, findings)
        elif gate.text == "inconclusive":
            judged[gate] = _inconclusive(gate, subjects, [one for one in judged.values() if one.gate.claim])
    return tuple(judged[gate] for gate in gates)


def _effect(gate: Gate, subjects: Sequence[Subject]) -> GateResult:
    cases = tuple(_case(gate, subject) for subject in subjects if _meant(gate, subject))
    if not cases:
        where = f" in {gate.environment}" if gate.environment else ""
        what = f"{gate.label}.{gate.metric}" if gate.label else "any primary metric"
        cases = (Case(gate.text, Result.NOT_RESOLVED, f"there is no comparison of {what}{where}"),)
    return GateResult(gate, _worst(cases), cases)


def _meant(gate: Gate, subject: Subject) -> bool:
    if gate.environment not in ("", subject.environment):
        return False
    return subject.primary if not gate.label else (gate.label, gate.metric) == (subject.label, subject.metric)


def _case(gate: Gate, subject: Subject) -> Case:
    low, high = subject.low, subject.high
    if subject.refuses or low is None or high is None:
        return Case(subject.name, Result.NOT_RESOLVED, subject.refuses or subject.sentence)
    below, above = 1 - gate.limit, 1 + gate.limit
    slower, faster = gate.claim is not Claim.FASTER, gate.claim is not Claim.SLOWER
    if (slower and high < below) or (faster and low > above):
        result = Result.FAILED if subject.confirmed else Result.NOT_RESOLVED
    elif (not slower or low >= below) and (not faster or high <= above):
        result = Result.HOLDS
    else:
        result = Result.NOT_RESOLVED
    return Case(subject.name, result, subject.sentence)


def _blocker(gate: Gate, findings: Sequence[Finding]) -> GateResult:
    blockers = [finding for finding in findings if finding.severity is Severity.BLOCKER]
    cases = tuple(Case(finding.id, Result.FAILED, f"{finding.id}: {finding.message}") for finding in blockers)
    return GateResult(gate, Result.FAILED if cases else Result.HOLDS, cases)


def _inconclusive(gate: Gate, subjects: Sequence[Subject], others: Sequence[GateResult]) -> GateResult:
    open_ = [Case(s.name, Result.FAILED, s.sentence) for s in subjects if s.primary and not s.settled]
    for other in others:
        if other.result is Result.NOT_RESOLVED:
            open_.append(Case(other.gate.text, Result.FAILED, f'the gate "{other.gate.text}" is not resolved'))
    if not any(subject.primary for subject in subjects):
        open_.append(Case(gate.text, Result.FAILED, "there is no primary comparison"))
    return GateResult(gate, Result.FAILED if open_ else Result.HOLDS, tuple(open_))


def _worst(cases: Sequence[Case]) -> Result:
    results = {case.result for case in cases}
    return next(result for result in (Result.FAILED, Result.NOT_RESOLVED, Result.HOLDS) if result in results)


# --- what gates judge -----------------------------------------------------------------------------------------------


DIFFERS: frozenset[str] = frozenset({Verdict.FASTER, Verdict.SLOWER, Outcome.DIFFERS})
INSIDE: frozenset[str] = frozenset({Verdict.TRIVIAL, Outcome.WITHIN})  # may be beyond the limit of a strict gate
SETTLED: frozenset[str] = DIFFERS | INSIDE | {Verdict.EQUIVALENT, Verdict.DIFFERENCE_ONLY}
JUDGED: frozenset[str] = (
    DIFFERS
    | INSIDE
    | {
        Verdict.EQUIVALENT,
        Verdict.INCONCLUSIVE,
        Verdict.UNADJUSTED,
        Outcome.NOT_RESOLVED,
    }
)


def subjects_of(analysis: Analysis) -> tuple[Subject, ...]:
    """The comparisons of a campaign, without the control arm. One that is not with the baseline names the other."""
    base = analysis.baseline
    return tuple(
        _subject(item, item.verdict, _reach(item, item.timeouts), "" if item.baseline == base else item.baseline)
        for item in analysis.comparisons
        if not item.control
    )


def subjects_of_changes(compared: CampaignComparison) -> tuple[Subject, ...]:
    """The changes between two campaigns."""
    return tuple(_subject(item, item.outcome, _reach(item.change, item.timeouts)) for item in compared.changes)


def _reach(found: Comparison | RatioInterval | None, late: TimeoutBounds | ChangeTimeouts | None) -> Ends:
    """The interval, as wide as rounds leave it in which one of the two hit its time limit."""
    if found is None or found.low is None or found.high is None or late is None:
        return (None, None) if found is None else (found.low, found.high)
    return 0.0 if late.low is None else late.low, math.inf if late.high is None else late.high


def _subject(item: Comparison | Change, word: Verdict | Outcome, ends: Ends, against: str = "") -> Subject:
    proven = item.p_adjusted is not None and item.p_adjusted <= LEVEL
    where = " ".join(f"{key}={value}" for key, value in item.series.labels)
    more = ([f"({where})"] if where else []) + ([f"vs {against}"] if against else [])
    return Subject(
        name=" ".join([f"{item.label}.{item.metric}@{item.environment}", *more]),
        label=item.label,
        metric=item.metric,
        environment=item.environment,
        primary=item.primary,
        low=ends[0],
        high=ends[1],
        confirmed=word in DIFFERS or (word in INSIDE and proven),
        settled=word in SETTLED,
        refuses="" if word in JUDGED else item.sentence,
        sentence=item.sentence,
    )


def blockers_of_changes(compared: CampaignComparison) -> tuple[Finding, ...]:
    """What makes numbers of two campaigns incomparable, as findings."""
    named: Mapping[str, Finding] = {
        item.sentence: Finding(
            id=f"{item.label}.{item.metric}",
            severity=Severity.BLOCKER,
            message=f"{item.environment}: {item.sentence}",
            remedy="",
        )
        for item in compared.changes
        if item.outcome is Outcome.NOT_COMPARABLE
    }
    return tuple(named.values())
