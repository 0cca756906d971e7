"""Verdicts: each word from a case that can be followed by hand, and the corrections for many claims."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from builders.measurements import analysed, rounds
from builders.synthetic import campaign, plan
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Comparison, Verdict
from vtax.analysis.sequential.forecast import rounds_needed
from vtax.analysis.sequential.group_sequential import calibration
from vtax.analysis.sequential.sequential_test import benjamini_hochberg, holm
from vtax.model.finding import Finding, Severity
from vtax.model.metric import Kind
from vtax.model.nodes import Scope
from vtax.model.plan import Origin
from vtax.model.study import BenchmarkSpec
from vtax.model.trial import Status

SPREAD = (-1.0, 1.0, -1.0, 1.0, 0.0, 0.0)  # standard deviation sqrt(4/5), t(5) = 2.5706: half width 0.939


def rates(effect: float, noise: float, n: int = 6, metric: str = "rate", primary: bool = True) -> Comparison:
    """A rate whose paired log differences are `effect` plus `noise` times SPREAD."""
    other = [math.exp(effect + noise * SPREAD[i % 6]) for i in range(n)]
    made = rounds([1.0] * n, other, metric=metric, unit="op/s", kind=Kind.RATE_FIXED_WORK, primary=primary)
    (found,) = analysed(made).comparisons
    return found


@pytest.mark.parametrize(
    ("effect", "noise", "verdict", "sentence"),
    [
        (0.0, 0.01, Verdict.EQUIVALENT, "equivalent within 2 %: +0.0 % [-0.9, +0.9], for this one boot"),
        (
            0.01,
            0.005,
            Verdict.TRIVIAL,
            "differs by +1.0 % [+0.5, +1.5], practically equivalent (within 2 %), for this one boot",
        ),
        (0.1, 0.01, Verdict.FASTER, "faster by 10.5 % [9.5, 11.6], for this one boot"),
        (-0.1, 0.01, Verdict.SLOWER, "slower by 9.5 % [8.7, 10.4], for this one boot"),
        (-2.0, 0.01, Verdict.SLOWER, "slower: 0.135 times the baseline [0.134, 0.137], for this one boot"),
        (0.0, 0.1, Verdict.INCONCLUSIVE, "inconclusive: +0.0 % [-9.0, +9.8]"),
        (
            0.015,
            0.01,
            Verdict.FASTER,
            "faster by 1.5 % [0.6, 2.5], for this one boot",
        ),  # 0 is out, but so is the margin
    ],
)
def test_six_rounds_get_a_verdict(effect: float, noise: float, verdict: Verdict, sentence: str) -> None:
    found = rates(effect, noise)
    assert (found.verdict, found.sentence) == (verdict, sentence)


@pytest.mark.parametrize(
    ("n", "verdict"), [(1, Verdict.DATA_ONLY), (2, Verdict.DATA_ONLY), (3, Verdict.PILOT), (5, Verdict.PILOT)]
)
def test_fewer_than_six_rounds_get_none(n: int, verdict: Verdict) -> None:
    found = rates(-2.0, 1e-6, n=n)
    assert found.verdict is verdict
    assert (found.low is None) == (n < 3)
    assert found.p_value is None


def test_pilot_is_said_in_words() -> None:
    assert rates(0.1, 0.0, n=3).sentence == "pilot only (3 rounds): +10.5 % [+10.5, +10.5]"


def test_inconclusive_tells_how_many_rounds_could_decide() -> None:
    found = rates(0.0, 0.03)
    # the margin is ln 1.02; t(n-1) * 0.026833 / sqrt(n) falls below it first at n = 10 (0.019195)
    assert found.remark.startswith("a new campaign needs 10 to ")


def test_a_new_campaign_needs_more_rounds_than_were_not_enough() -> None:
    """The t interval of six rounds is inside the margin; the Hodges-Lehmann interval, which is not, kept the verdict
    away."""
    other = [math.exp(each) for each in (0.0205, 0.0, 0.001, -0.001, 0.0005, -0.0005)]
    (found,) = analysed(rounds([1.0] * 6, other, metric="rate", unit="op/s", kind=Kind.RATE_FIXED_WORK)).comparisons
    assert found.low is not None
    assert found.high is not None
    assert 1 / 1.02 < found.low < found.high < 1.02
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.new_campaign is not None
    assert found.new_campaign[0] == 7


@pytest.mark.parametrize(("sd", "expected"), [(10.0, (None, None)), (1e-9, (6, 6))])
def test_rounds_needed_at_the_ends(sd: float, expected: tuple[int | None, int | None]) -> None:
    assert (
        rounds_needed(0.0, sd, 5, math.log1p(0.02), calibration((6,), adjusted=False).critical, range(6, 61))
        == expected
    )


def several(count: int, effect: float, noise: float, primary: bool) -> tuple[Comparison, ...]:
    made = []
    for i in range(count):
        other = [math.exp((effect if i == 0 else 0.0) + noise * x) for x in SPREAD]
        made += rounds([1.0] * 6, other, metric=f"m{i}", unit="op/s", kind=Kind.RATE_FIXED_WORK, primary=primary)
    return analysed(made).comparisons


def test_a_claim_that_holm_does_not_confirm_is_unadjusted() -> None:
    # t = 0.11 / (0.1 * sqrt(0.8 / 6)) = 3.01: p = 0.030, of two 0.059
    found = several(2, 0.11, 0.1, primary=True)[0]
    assert found.p_value is not None
    assert found.p_value == pytest.approx(0.0297, abs=1e-4)
    assert found.p_adjusted == pytest.approx(2 * found.p_value)
    assert (found.verdict, found.remark) == (Verdict.UNADJUSTED, "not confirmed after correction for 2 comparisons")
    assert found.sentence.startswith("leans faster: +11.6 %")


def test_the_same_claim_alone_is_confirmed() -> None:
    assert several(1, 0.11, 0.1, primary=True)[0].verdict is Verdict.FASTER


def test_equivalence_is_corrected_too() -> None:
    # standard error 0.00712, margin 0.0198: t = 2.78, p = .039 alone, .078 in a family of two
    alone, *_ = several(1, 0.0, 0.0195, primary=True)
    first, *_ = several(2, 0.0, 0.0195, primary=True)
    assert (alone.verdict, first.verdict) == (Verdict.EQUIVALENT, Verdict.UNADJUSTED)
    assert first.sentence.startswith("leans equivalent")


def test_exploratory_metrics_say_so_and_are_no_part_of_the_family() -> None:
    found = several(2, 0.11, 0.1, primary=False)[0]
    assert found.sentence.endswith("(exploratory)")
    assert found.verdict is Verdict.UNADJUSTED  # q = 2 * 0.03
    made = rounds([1.0] * 6, [1.0] * 6) + rounds([1.0] * 6, [2.0] * 6, metric="other", primary=False)
    assert analysed(made).family == 1


@pytest.mark.parametrize(
    ("environment", "benchmark", "touches"),
    [("", "", True), ("host", "", True), ("container", "tool", True), ("vm", "", False), ("", "hpl", False)],
)
def test_a_blocker_forbids_what_it_touches(environment: str, benchmark: str, touches: bool) -> None:
    finding = Finding(
        id="C01",
        severity=Severity.BLOCKER,
        message="limits not applied",
        remedy="",
        environment=environment,
        benchmark=benchmark,
    )
    (found,) = analysed(rounds([1.0] * 6, [2.0] * 6), findings=[finding]).comparisons
    assert (found.verdict is Verdict.NOT_COMPARABLE) is touches
    assert (found.sentence == "not comparable: limits not applied") is touches


def blocked(id: str, environment: str = "", benchmark: str = "", metrics: tuple[str, ...] = ()) -> Finding:
    return Finding(
        id=id,
        severity=Severity.BLOCKER,
        message=f"{id} of {environment}",
        remedy="",
        environment=environment,
        benchmark=benchmark,
        metrics=metrics,
    )


@pytest.mark.parametrize(
    ("findings", "first"),
    [
        ([blocked("C05", "host"), blocked("M01", "container")], "M01"),
        ([blocked("C05", "host", "tool"), blocked("C05", "container", "tool"), blocked("T04", "container")], "T04"),
        ([blocked("C05", "container"), blocked("T04", "host")], "T04"),
        ([blocked("T04", "host"), blocked("T04", "container")], "T04 of container"),
        ([blocked("H06", "container", "tool", ("elapsed",)), blocked("U01", "container", "tool")], "U01"),
        ([blocked("C05", "container", "tool"), blocked("R02")], "R02"),
        ([blocked("C01", "container"), blocked("C03", "container")], "C01"),
    ],
)
def test_of_several_blockers_the_most_fundamental_is_named(findings: list[Finding], first: str) -> None:
    (found,) = analysed(rounds([1.0] * 6, [2.0] * 6), findings=findings).comparisons
    assert found.ruled_out_by == first[:3]
    assert found.sentence.startswith(f"not comparable: {first}")


def test_what_is_comparable_is_ruled_out_by_nothing() -> None:
    (found,) = analysed(rounds([1.0] * 6, [2.0] * 6), findings=[blocked("C01", "vm")]).comparisons
    assert found.ruled_out_by == ""


def of_entries(*labels: str, about: str) -> dict[str, str]:
    """What rules out each of some entries of iperf3 where a finding is about one name: its id, "" for nothing."""
    made = plan(("host", "container"))
    entries = tuple(BenchmarkSpec(name="iperf3", label=label, scopes=(Scope.PAIRS,)) for label in labels)
    made = made.model_copy(update={"study": made.study.model_copy(update={"benchmarks": entries})})
    items = [
        item.model_copy(update={"benchmark": "iperf3", "label": label, "trial": f"{item.trial}-{label}"})
        for label in labels
        for item in rounds([1.0] * 3, [2.0] * 3)
    ]
    found = analyse(items, plan=made, findings=[blocked("C05", "container", about)], trials=())
    return {item.label: item.ruled_out_by for item in found.comparisons}


def test_a_finding_about_one_entry_is_not_about_another_of_the_same_benchmark() -> None:
    assert of_entries("iperf3", "iperf3-udp", about="iperf3") == {"iperf3": "C05", "iperf3-udp": ""}
    assert of_entries("iperf3", "iperf3-udp", about="iperf3-udp") == {"iperf3": "", "iperf3-udp": "C05"}


def test_a_finding_by_the_name_of_a_benchmark_is_about_all_its_entries_where_none_is_called_so() -> None:
    assert of_entries("tcp", "udp", about="iperf3") == {"tcp": "C05", "udp": "C05"}


def test_of_imported_logs_a_finding_about_a_tool_is_about_all_its_entries() -> None:
    made = plan()
    study = made.study.model_copy(update={"benchmarks": (BenchmarkSpec(name="iozone", label="iozone", scopes=()),)})
    assert made.model_copy(update={"study": study}).names_of("iozone", "iozone 4") == ("iozone 4",)
    foreign = made.model_copy(update={"study": study, "origin": Origin.IMPORTED})
    assert set(foreign.names_of("iozone", "iozone 4")) == {"iozone", "iozone 4"}


@pytest.mark.parametrize(("severity", "id"), [(Severity.WARNING, "C01"), (Severity.BLOCKER, "R01")])
def test_warnings_and_few_rounds_forbid_nothing(severity: Severity, id: str) -> None:
    finding = Finding(id=id, severity=severity, message="m", remedy="")
    (found,) = analysed(rounds([1.0] * 3, [2.0] * 3), findings=[finding]).comparisons
    assert found.verdict is Verdict.PILOT


def test_holm_by_hand() -> None:
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
    assert holm(np.empty(0)).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(deadline=None)
def test_benjamini_hochberg_agrees_with_scipy(p_values: list[float]) -> None:
    assert benjamini_hochberg(np.array(p_values)).tolist() == pytest.approx(false_discovery_control(p_values).tolist())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(deadline=None)
def test_holm_is_never_below_the_raw_value_nor_above_bonferroni(p_values: list[float]) -> None:
    corrected = holm(np.array(p_values)).tolist()
    for raw, adjusted in zip(p_values, corrected, strict=True):
        assert raw <= adjusted <= min(1.0, len(p_values) * raw) or adjusted == max(corrected)


def test_a_campaign_counts_its_rounds_and_lists_its_failures() -> None:
    made = campaign(rounds=3)
    found = analyse(made.measurements, plan=made.plan, findings=made.findings, trials=made.trials)
    assert (found.rounds_planned, found.rounds_complete) == (3, 2)
    assert (found.trials_planned, found.trials_recorded) == (48, 48)
    (failure,) = found.failures
    assert (failure.trial, failure.status, failure.reason) == (
        "r03-container-ping-1",
        Status.TIMED_OUT,
        "no answer within 32 s",
    )
    assert {item.remark for item in found.comparisons if item.label == "ping" and item.n} == {"among successful runs"}
    assert found.environments == ("host", "container")
