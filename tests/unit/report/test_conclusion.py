"""The answer and the conclusion: what is said for which verdicts, and that no cause is made up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from vtax.report.document.answers import answers, clause, percent, resolution

from builders.measurements import analysed, rounds
from builders.pages import report_input, whole
from builders.synthetic import campaign
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis, Comparison, Ladder, LadderStep, Verdict, waiting
from vtax.audit import CATALOGUE
from vtax.model.finding import Finding, Severity
from vtax.report.document.audit_phrases import WORDS, cause, named
from vtax.report.document.compose import document_of
from vtax.report.document.conclusion import conclusion
from vtax.report.document.groups import Group
from vtax.report.figures.waterfall import steps_of, supported, waterfall
from vtax.report.records import ReportInput


@pytest.fixture(scope="module")
def judged() -> ReportInput:
    return report_input(campaign(("host", "container"), 6, failing=False))


def comparisons(judged: ReportInput, *verdicts: Verdict) -> list[Comparison]:
    """Made-up comparisons with these verdicts, of ratios 0.5, 0.6, ..."""
    one = next(item for item in judged.analysis.comparisons if item.metric == "HPL")
    return [
        one.model_copy(
            update={
                "verdict": verdict,
                "ratio": 0.5 + i / 10,
                "low": 0.4,
                "high": 0.7,
                "ruled_out_by": "C05" if verdict is Verdict.NOT_COMPARABLE else "",
            }
        )
        for i, verdict in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("verdicts", "word", "text"),
    [
        ((Verdict.SLOWER,), "slower", "slower: 0.500 [0.400, 0.700] of host in HPL"),
        (
            (Verdict.SLOWER, Verdict.SLOWER, Verdict.EQUIVALENT),
            "slower",
            "slower in 2 of 3 (0.500 to 0.600 of host) and equivalent in 1 of 3",
        ),
        ((Verdict.EQUIVALENT,) * 2, "equivalent", "equivalent in all 2 (0.500 to 0.600 of host) primary metrics"),
        (
            (Verdict.NOT_COMPARABLE,) * 2,
            "not comparable",
            "not comparable (CPU time stolen, C05); measured 0.500 to 0.600 of host",
        ),
        (
            (Verdict.UNADJUSTED, Verdict.INCONCLUSIVE),
            "unadjusted",
            "not confirmed (unadjusted) in 1 of 2 (0.500 of host) and undecided (inconclusive) in 1 of 2 "
            "(0.600 of host)",
        ),
        ((Verdict.PILOT,), "pilot only", "0.500 of host over 6 rounds; no verdict before 6"),
    ],
)
def test_a_clause_counts_verdicts(judged: ReportInput, verdicts: Sequence[Verdict], word: str, text: str) -> None:
    found = clause(judged.analysis, 1, "container", comparisons(judged, *verdicts))
    assert (found.verdicts, found.text) == ((word,), text)


def test_a_clause_names_every_reason_the_most_frequent_first(judged: ReportInput) -> None:
    several = comparisons(judged, *(Verdict.NOT_COMPARABLE,) * 3)
    several[0] = several[0].model_copy(update={"ruled_out_by": "T04"})
    found = clause(judged.analysis, 1, "container", several)
    assert found.text.startswith("not comparable (CPU time stolen, C05; software emulation, T04); measured 0.500 to")


def test_a_part_that_is_ruled_out_stands_behind_what_is_known(judged: ReportInput) -> None:
    several = comparisons(judged, Verdict.SLOWER, Verdict.NOT_COMPARABLE, Verdict.NOT_COMPARABLE)
    found = clause(judged.analysis, 1, "container", several)
    assert found.verdicts == ("slower", "not comparable")
    assert found.text == (
        "slower in 1 of 3 (0.500 of host); "
        "not comparable in 2 of 3 (CPU time stolen, C05; measured 0.600 to 0.700 of host)"
    )
    pilot = clause(judged.analysis, 1, "container", comparisons(judged, Verdict.PILOT, Verdict.NOT_COMPARABLE))
    assert pilot.verdicts == ("pilot only", "not comparable")
    assert pilot.text == (
        "0.500 of host in 1 of 2 over 6 rounds; no verdict before 6; "
        "not comparable in 1 of 2 (CPU time stolen, C05; measured 0.600 of host)"
    )


def lone(item: Comparison) -> Comparison:
    """A comparison with an environment that has nothing of it."""
    word = item.verdict if item.verdict is Verdict.NOT_COMPARABLE else Verdict.DATA_ONLY
    gone = dict.fromkeys(("ratio", "low", "high", "effect"))
    return item.model_copy(update={**gone, "n": 0, "verdict": word, "planned": False})


def test_what_the_baseline_lacks_has_no_counterpart_whatever_rules_it_out(judged: ReportInput) -> None:
    several = comparisons(judged, Verdict.NOT_COMPARABLE, Verdict.NOT_COMPARABLE)
    none = clause(judged.analysis, 1, "container", [lone(item) for item in several])
    assert (none.verdicts, none.text) == (("data only",), "no counterpart in host to compare with")
    some = clause(judged.analysis, 1, "container", [several[0], lone(several[1])])
    assert some.text == (
        "not comparable (CPU time stolen, C05); measured 0.500 of host; 1 without a counterpart in host"
    )


def test_every_row_of_the_audit_has_words_for_a_sentence() -> None:
    assert {row.id for row in CATALOGUE} == set(WORDS)
    assert all(len(words.split()) < 12 for words in WORDS.values())
    assert (cause("C05"), cause("no row")) == ("CPU time stolen, C05", "no row")
    assert [named("C05"), named("C05", 3)] == ["CPU time stolen (C05)", "CPU time stolen (C05, 3 times)"]
    assert [named("x"), named("x", 3)] == ["x", "x (3 times)"]


def test_there_is_one_answer_for_each_part_of_the_machine(judged: ReportInput) -> None:
    found = answers(judged.analysis)
    assert [answer.group for answer in found] == [Group.COMPUTE, Group.MEMORY, Group.STORAGE, Group.NETWORK]
    assert all([clause.name for clause in answer.clauses] == ["container"] for answer in found)


def test_the_resolution_is_that_of_the_intervals(judged: ReportInput) -> None:
    one = comparisons(judged, Verdict.SLOWER)[0].model_copy(update={"low": 0.81, "high": 1.21})
    analysis = judged.analysis.model_copy(update={"comparisons": (one,)})
    assert resolution(analysis).startswith("Resolution: half of the 1 intervals are no wider than ±22\u00a0%")
    assert percent(0.2222) == "22"
    assert percent(0.0123) == "1.2"
    assert "at least three rounds" in resolution(analysed(rounds([1.0], [1.0])))


def test_without_a_valid_comparison_the_resolution_is_unknown_for_that_reason(judged: ReportInput) -> None:
    ruled = comparisons(judged, Verdict.NOT_COMPARABLE)
    update = {"comparisons": tuple(ruled)}
    assert resolution(judged.analysis.model_copy(update=update)) == (
        "Resolution: unknown, because no comparison is valid."
    )
    update = {"comparisons": (lone(ruled[0]),)}
    assert resolution(judged.analysis.model_copy(update=update)) == (
        "Resolution: unknown, because there is nothing to compare."
    )


def paragraphs(report: ReportInput) -> dict[str, str]:
    return {paragraph.title: " ".join(paragraph.sentences) for paragraph in conclusion(report)}


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


def test_a_finding_about_everything_explains_nothing_but_stands_at_the_end(judged: ReportInput) -> None:
    found = paragraphs(judged)
    assert "T05" not in found["container against host"]
    assert "T05: the host is itself a virtual machine" in found["What this does not say"]


def test_too_few_rounds_are_said() -> None:
    text = paragraphs(report_input(campaign(("host", "container"), 3)))["What this does not say"]
    assert "have too few rounds, or nothing to compare with, for a verdict" in text
    assert "1 trial failed" in text


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
    compute = next(answer for answer in answers(found) if answer.group is Group.COMPUTE)
    assert compute.clauses[0].verdicts == ("inconclusive", "not comparable")
    assert "; not comparable in 1 of 3 (misplaced ranks, M01; measured " in compute.clauses[0].text


def test_the_conclusion_names_what_rules_out_and_what_would_and_what_to_do() -> None:
    made = campaign(("host", "container"), 6)

    def block(id: str, environment: str, remedy: str, metrics: tuple[str, ...] = ()) -> Finding:
        return Finding(
            id=id,
            severity=Severity.BLOCKER,
            message=id,
            remedy=remedy,
            environment=environment,
            benchmark="hpcc",
            metrics=metrics,
        )

    findings = [
        block("C05", "container", "a quiet host"),
        block("C05", "host", "a quiet host"),
        block("H06", "host", "raise N", ("StarSTREAM_Triad",)),
        block("H02", "host", "look", ("no such metric",)),
    ]
    found = analyse(made.measurements, plan=made.plan, findings=findings, trials=made.trials)
    text = paragraphs(report_input(made, found))["container against host"]
    assert "4 not comparable. " in text
    assert "CPU time stolen (C05) rules out 4: a quiet host." in text
    assert "STREAM inside the cache (H06) would rule out 1 as well: raise N." in text
    assert "H02" not in text


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
    assert document_of(report).caution.startswith(f"Of {many} comparisons of primary metrics:")
    text = paragraphs(report)["container against host"]
    assert text.startswith(f"Of {many} comparisons of primary metrics:")
    assert "6 results have no counterpart in host." in text


def test_a_clause_with_both_claims_shows_both_signs(judged: ReportInput) -> None:
    both = comparisons(judged, Verdict.FASTER, Verdict.SLOWER, Verdict.INCONCLUSIVE)
    assert clause(judged.analysis, 1, "container", both).verdicts == ("slower", "faster")
