"""Gates: what makes them fail, what lets them hold, and that neither rests on noise. JUnit XML of both."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.measurements import analysed, rounds
from builders.small import study
from vtax.analysis.gates import (
    Case,
    Claim,
    Gate,
    GateResult,
    Result,
    Subject,
    check_gates,
    judge,
    parse_gates,
    subjects_of,
)
from vtax.analysis.records import Verdict
from vtax.errors import UsageError
from vtax.export.junit import clean, junit
from vtax.model.finding import Finding, Severity
from vtax.tools import declared_metrics

BLOCKER = Finding(id="C01", severity=Severity.BLOCKER, message="no limit", remedy="")
WARNING = Finding(id="T05", severity=Severity.WARNING, message="virtual", remedy="")


def subject(
    low: float | None,
    high: float | None,
    *,
    confirmed: bool = True,
    settled: bool = True,
    refuses: str = "",
    primary: bool = True,
    name: str = "hpl.HPL@box",
    environment: str = "box",
) -> Subject:
    return Subject(name, "hpl", "HPL", environment, primary, low, high, confirmed, settled, refuses, "as it is")


def one(text: str, *subjects: Subject, findings: Sequence[Finding] = ()) -> GateResult:
    return judge(parse_gates([text]), subjects, findings)[0]


# --- words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("hpcc.HPL slower than 5%", Gate("hpcc.HPL slower than 5%", Claim.SLOWER, 0.05, "hpcc", "HPL")),
        (
            "ping.rtt_avg@box  faster than 2.5 %",
            Gate("ping.rtt_avg@box faster than 2.5 %", Claim.FASTER, 0.025, "ping", "rtt_avg", "box"),
        ),
        ("any primary differs by more than 1%", Gate("any primary differs by more than 1%", Claim.DIFFERS, 0.01)),
        ("any primary differs than 1%", Gate("any primary differs than 1%", Claim.DIFFERS, 0.01)),
        (" blocker ", Gate("blocker")),
        ("inconclusive", Gate("inconclusive")),
    ],
)
def test_gates_are_read(text: str, gate: Gate) -> None:
    assert parse_gates([text]) == (gate,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hpcc.HPL",
        "hpcc slower than 5%",
        "hpcc.HPL slower than 5",
        "hpcc.HPL slower than -5%",
        "hpcc.HPL slower than 100%",
        "HPCC.HPL slower than 5%",
        "hpcc.HPL@ slower than 5%",
        "blockers",
    ],
)
def test_what_is_no_gate_is_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_gates([text])
    assert caught.value.exit_code == 2
    assert "LABEL.METRIC[@ENVIRONMENT] slower than P%" in caught.value.detail


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sysbench.events_rate slower than 5%", "there are sysbench-cpu"),
        ("sysbench-cpu.rate slower than 5%", "events_rate"),
        ("sysbench-cpu.events_rate@jail slower than 5%", "there are box"),
        ("sysbench-cpu.events_rate@host slower than 5%", "there are box"),
    ],
)
def test_a_name_that_the_study_lacks_is_refused_with_those_that_it_has(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_gates(parse_gates([text]), study(), declared_metrics(study().benchmarks))
    assert said in caught.value.remedy


def test_names_that_the_study_has_are_fine_and_two_campaigns_compare_the_baseline_too() -> None:
    check_gates(
        parse_gates(["sysbench-cpu.events_rate@box slower than 5%", "blocker"]),
        study(),
        declared_metrics(study().benchmarks),
    )
    check_gates(
        parse_gates(["sysbench-cpu.events_rate@host slower than 5%"]),
        study(),
        declared_metrics(study().benchmarks),
        baseline=True,
    )


# --- results -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "slower", "faster", "differs"),
    [
        (0.90, 0.94, Result.FAILED, Result.HOLDS, Result.FAILED),
        (0.93, 0.96, Result.NOT_RESOLVED, Result.HOLDS, Result.NOT_RESOLVED),
        (0.95, 1.05, Result.HOLDS, Result.HOLDS, Result.HOLDS),
        (0.96, 1.04, Result.HOLDS, Result.HOLDS, Result.HOLDS),
        (0.80, 1.20, Result.NOT_RESOLVED, Result.NOT_RESOLVED, Result.NOT_RESOLVED),
        (1.06, 1.20, Result.HOLDS, Result.FAILED, Result.FAILED),
        (1.01, 1.20, Result.HOLDS, Result.NOT_RESOLVED, Result.NOT_RESOLVED),
    ],
)
def test_a_gate_follows_the_whole_interval(
    low: float, high: float, slower: Result, faster: Result, differs: Result
) -> None:
    """The limits of 5 % are the ratios 0.95 and 1.05."""
    found = [one(f"hpl.HPL {claim} than 5%", subject(low, high)).result for claim in Claim]
    assert found == [slower, faster, differs]


def test_an_interval_beyond_the_limit_without_a_confirmed_verdict_is_not_resolved() -> None:
    assert one("hpl.HPL slower than 5%", subject(0.8, 0.9, confirmed=False)).result is Result.NOT_RESOLVED


def test_a_pilot_neither_fails_nor_holds() -> None:
    for low, high in ((0.5, 0.6), (0.99, 1.01)):
        made = one("hpl.HPL slower than 5%", subject(low, high, refuses="pilot only (3 rounds)"))
        assert (made.result, made.cases[0].message) == (Result.NOT_RESOLVED, "pilot only (3 rounds)")


def test_no_comparison_at_all_is_not_resolved() -> None:
    made = one("hpl.HPL@vm slower than 5%", subject(0.99, 1.01))
    assert made.result is Result.NOT_RESOLVED
    assert made.cases[0].message == "there is no comparison of hpl.HPL in vm"


def test_the_worst_of_several_comparisons_decides() -> None:
    good, open_, bad = subject(0.99, 1.01), subject(0.9, 1.0), subject(0.8, 0.9)
    assert one("any primary slower than 5%", good, open_).result is Result.NOT_RESOLVED
    assert one("any primary slower than 5%", open_, good, bad).result is Result.FAILED
    assert one("any primary slower than 5%", good, subject(0.8, 0.9, primary=False)).result is Result.HOLDS


def test_a_blocker_fails_its_gate_and_a_warning_does_not() -> None:
    assert one("blocker", findings=[WARNING]).result is Result.HOLDS
    made = one("blocker", findings=[WARNING, BLOCKER])
    assert (made.result, [case.message for case in made.cases]) == (Result.FAILED, ["C01: no limit"])


def test_inconclusive_fails_for_a_missing_verdict_and_for_a_gate_that_is_not_resolved() -> None:
    assert one("inconclusive", subject(0.99, 1.01)).result is Result.HOLDS
    assert one("inconclusive", subject(0.9, 1.1, settled=False)).result is Result.FAILED
    assert one("inconclusive", subject(0.9, 1.1, settled=False, primary=False)).result is Result.FAILED
    both = judge(parse_gates(["inconclusive", "hpl.HPL slower than 5%"]), [subject(0.9, 1.0)], ())
    assert [judged.result for judged in both] == [Result.FAILED, Result.NOT_RESOLVED], "in the order given"


@given(st.floats(0.2, 5), st.floats(0.2, 5), st.floats(0.001, 0.9))
def test_a_gate_never_fails_and_holds_by_the_same_interval(one_end: float, other: float, limit: float) -> None:
    low, high = sorted((one_end, other))
    made = one(f"hpl.HPL slower than {100 * limit:.4f}%", subject(low, high))
    if made.result is Result.FAILED:
        assert high < 1 - made.gate.limit
    if made.result is Result.HOLDS:
        assert low >= 1 - made.gate.limit


def test_a_real_analysis_under_gates() -> None:
    """Six rounds; the container takes a tenth longer in each: 1/1.1 is 9.1 % less."""
    base = [10.0, 10.1, 9.9, 10.05, 9.95, 10.02]
    analysis = analysed(rounds(base, [value * (1.1 + 0.001 * (i % 2)) for i, value in enumerate(base)]))
    assert analysis.comparisons[0].verdict is Verdict.SLOWER
    subjects = subjects_of(analysis)
    gates = ("tool.elapsed slower than 5%", "tool.elapsed slower than 20%", "tool.elapsed faster than 5%")
    assert [judged.result for judged in judge(parse_gates(gates), subjects, ())] == [
        Result.FAILED,
        Result.HOLDS,
        Result.HOLDS,
    ]
    pilot = subjects_of(analysed(rounds(base[:3], [11.0, 11.1, 10.9])))
    assert one(gates[0], *pilot).result is Result.NOT_RESOLVED


# --- JUnit ---------------------------------------------------------------------------------------------------------

JUDGED = (
    GateResult(Gate("hpl.HPL slower than 5%", Claim.SLOWER, 0.05, "hpl", "HPL"), Result.FAILED, (
        Case("hpl.HPL@box", Result.FAILED, "slower by 8 %"),
        Case("hpl.HPL@vm", Result.NOT_RESOLVED, "inconclusive"),
        Case("hpl.HPL@jail", Result.HOLDS, "equivalent"),
    )),
    GateResult(Gate("blocker"), Result.HOLDS, ()),
)  # fmt: skip


def test_a_document_as_ci_servers_read_it() -> None:
    top = xml.fromstring(junit("mine", JUDGED, [subject(1, 1), subject(1, 1, settled=False, name="open")]))
    assert top.tag == "testsuites"
    assert {name: top.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "1",
        "errors": "0",
        "skipped": "2",
    }
    gates, verdicts = top
    assert (gates.get("name"), gates.get("tests"), gates.get("failures")) == ("mine gates", "4", "1")
    assert [(case.get("classname"), case.get("name"), [child.tag for child in case]) for case in gates] == [
        ("gate: hpl.HPL slower than 5%", "hpl.HPL@box", ["failure"]),
        ("gate: hpl.HPL slower than 5%", "hpl.HPL@vm", ["skipped"]),
        ("gate: hpl.HPL slower than 5%", "hpl.HPL@jail", ["system-out"]),
        ("gate: blocker", "blocker", ["system-out"]),
    ]
    assert gates[0][0].get("message") == "slower by 8 %"
    assert [[child.tag for child in case] for case in verdicts] == [["system-out"], ["skipped"]]
    for suite in top:
        assert {"name", "tests", "failures", "errors", "skipped", "time"} == set(suite.keys())


def test_without_gates_there_are_verdicts_only() -> None:
    top = xml.fromstring(junit("mine", (), [subject(1, 1)]))
    assert [suite.get("name") for suite in top] == ["mine verdicts"]


@given(st.text(), st.text())
def test_hostile_names_give_a_document_that_can_be_read(name: str, message: str) -> None:
    judged = [GateResult(Gate(name), Result.FAILED, (Case(name, Result.FAILED, message),))]
    top = xml.fromstring(junit(name, judged, ()))
    assert top[0][0].get("name") == clean(name)
    assert top[0][0][0].get("message") == clean(message)


def test_characters_that_xml_cannot_hold_are_replaced() -> None:
    assert clean('a\0b\x1b<&>"\ud800é\U0001f600') == 'a\ufffdb\ufffd<&>"\ufffdé\U0001f600'
