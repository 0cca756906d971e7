"""The conclusion and the limits: what is said of findings, and that no cause is made up."""

from __future__ import annotations

import math

import pytest

from builders.pages import report_input, whole
from builders.synthetic import campaign
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis, Comparison, Ladder, LadderStep, Verdict, waiting
from vtax.audit import CATALOGUE
from vtax.model.finding import Finding, Severity
from vtax.report.document.answer.compose import answer_of
from vtax.report.document.audit_phrases import WORDS, cause, named
from vtax.report.document.compose import document_of
from vtax.report.document.conclusion import conclusion
from vtax.report.document.groups import Group
from vtax.report.figures.waterfall import steps_of, supported, waterfall
from vtax.report.records import ReportInput


@pytest.fixture(scope="module")
def judged() -> ReportInput:
    return report_input(campaign(("host", "container"), 6, failing=False))


def test_every_row_of_the_audit_has_words_for_a_sentence() -> None:
    assert {row.id for row in CATALOGUE} == set(WORDS)
    assert all(len(words.split()) < 12 for words in WORDS.values())
    assert (cause("C05"), cause("no row")) == ("CPU time stolen, C05", "no row")
    assert [named("C05"), named("C05", 3)] == ["CPU time stolen (C05)", "CPU time stolen (C05, 3 times)"]
    assert [named("x"), named("x", 3)] == ["x", "x (3 times)"]


def paragraphs(report: ReportInput) -> dict[str, str]:
    found = conclusion(report, answer_of(report).comparisons)
    return {paragraph.title: " ".join(paragraph.sentences) for paragraph in found}


def test_no_cause_is_named_without_support(judged: ReportInput) -> None:
    text = paragraphs(judged)["container against host"]
    assert "so no cause is given" in text
    assert "the audit found" not in text
    assert "The largest costs:" in text


def test_a_finding_about_the_same_benchmark_is_a_possible_cause() -> None:
    text = paragraphs(whole())
    assert (
        "For hpcc the audit found: T03 (the guest lacks avx2). This may explain the difference, at least in part."
        in text["vm against host"]
    )
    assert "T03" not in text["container against host"]


def test_a_finding_about_everything_explains_nothing_and_limits_the_answer(judged: ReportInput) -> None:
    assert not any("T05" in text for text in paragraphs(judged).values())
    assert "T05" in [limit.row for limit in answer_of(judged).limits]


def test_failures_limit_the_answer() -> None:
    limits = answer_of(report_input(campaign(("host", "container"), 3))).limits
    (failed,) = [limit for limit in limits if "failed" in limit.text]
    assert failed.text == "1 trial failed; the numbers come from those that did not"
    assert "no answer within 32 s" in failed.messages[0].text


def rung(
    previous: str, environment: str, ratio: float, low: float | None, high: float | None, blocker: str = ""
) -> LadderStep:
    effect = math.log(ratio)
    return LadderStep(
        previous=previous, environment=environment, effect=effect, ratio=ratio, low=low, high=high, blocker=blocker
    )


def with_ladder(judged: ReportInput, *rungs: LadderStep) -> Analysis:
    """The analysis with one ladder, of HPL."""
    one = next(item for item in judged.analysis.comparisons if item.metric == "HPL")
    ladder = Ladder(
        benchmark="hpcc",
        label="hpcc",
        metric="HPL",
        unit=one.unit,
        kind=one.kind,
        direction=one.direction,
        primary=True,
        n=6,
        rungs=rungs,
        total=rungs[-1],
    )
    return judged.analysis.model_copy(update={"ladder": (ladder,)})


def test_a_step_of_the_ladder_is_named_where_its_interval_supports_it(judged: ReportInput) -> None:
    first, second = rung("host", "container", 0.99, 0.95, 1.03), rung("container", "vm", 0.8, 0.75, 0.85)
    analysis = with_ladder(judged, first, second)
    assert steps_of(analysis, "container") == []
    (step,) = steps_of(analysis, "vm")
    assert step.sentence == "On the ladder of hpcc HPL the largest step is from container to vm: 0.800 [0.750, 0.850]."
    assert not supported(rung("a", "b", 0.5, None, None))
    assert not supported(rung("a", "b", 0.5, 0.4, 0.6, blocker="T04"))


def test_the_waterfall_multiplies_the_steps(judged: ReportInput) -> None:
    figure = waterfall(with_ladder(judged, rung("host", "box", 0.5, 0.4, 0.6), rung("box", "vm", 0.8, 0.7, 0.9)))
    assert figure is not None
    rows = figure.of("step")
    assert [(row["to"], row["before"], row["after"], row["step"]) for row in rows] == [
        ("host", 0.0, 100.0, "total"),
        ("box", 100.0, 50.0, "loss"),
        ("vm", 50.0, 40.0, "loss"),
    ]
    assert [row["label"] for row in rows] == ["100 %", "× 0.500\n[0.400, 0.600]", "× 0.800\n[0.700, 0.900]"]
    assert waterfall(judged.analysis) is None


def test_a_blocker_of_one_benchmark_is_said_where_it_is() -> None:
    made = campaign(("host", "container"), 6)
    block = Finding(id="M01", severity=Severity.BLOCKER, message="one node", remedy="look", benchmark="hpcc")
    found = analyse(made.measurements, plan=made.plan, findings=[block], trials=made.trials)
    answer = answer_of(report_input(made, found))
    cpu = next(line for line in answer.lines if line.group is Group.COMPUTE)
    assert cpu.verdicts == ("inconclusive",)
    assert {item.verdict for item in cpu.comparisons} == {"inconclusive", "not comparable"}
    assert cpu.word.startswith("undecided in 2 of 3: ")
    many = sum(item.ruled_out_by == "M01" for item in answer.comparisons)
    assert answer.limits[0].text == f"One node: rules out {many} of {len(answer.comparisons)} comparisons"


def test_the_numbers_of_comparisons_agree(judged: ReportInput) -> None:
    """Those without a counterpart, and the baseline against itself, are no comparisons anywhere."""
    items = tuple(
        lone(item) if item.label == "ping" else item.model_copy(update={"control": item.label == "iperf3-tcp"})
        for item in judged.analysis.comparisons
    )
    analysis = judged.analysis.model_copy(update={"comparisons": items})
    report = judged.model_copy(update={"analysis": analysis})
    many = len([item for item in items if item.primary and item.label not in ("ping", "iperf3-tcp")])
    assert f"of {many} primary comparisons" in waiting(analysis)
    assert document_of(report).reading.startswith(f"Of {many} comparisons of primary metrics:")
    texts = [limit.text for limit in answer_of(report).limits]
    assert "6 primary results have nothing to compare with" in texts


def lone(item: Comparison) -> Comparison:
    """A comparison with an environment that has nothing of it."""
    gone = dict.fromkeys(("ratio", "low", "high", "effect"))
    return item.model_copy(update={**gone, "n": 0, "verdict": Verdict.DATA_ONLY, "planned": False})
