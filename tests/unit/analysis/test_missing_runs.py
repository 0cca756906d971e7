"""Runs that gave no number: an environment that never succeeds does not disappear, and one that ran into its time limit
counts as slower, by an unknown factor."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from builders.measurements import only, simulated_rounds
from vtax.analysis.analyse import analyse
from vtax.analysis.estimate.summary import late_summary
from vtax.analysis.gates import Result, judge, parse_gates, subjects_of
from vtax.analysis.records import Analysis, Comparison, Verdict, settled, waiting
from vtax.cli.analyse import lines_of
from vtax.model.metric import Kind
from vtax.model.study import ScoreSpec
from vtax.model.trial import Status
from vtax.report.document.answer.lines import lines_of as answer_lines
from vtax.report.document.compose import document_of
from vtax.report.formats.latex import tables
from vtax.report.formats.typst import source
from vtax.report.records import ReportInput
from vtax.selftest.objects import Simulated

made = partial(simulated_rounds, noise=0.001, n=10, looks=(6, 10))
SLOWER_5 = "any primary slower than 5%"


def results(analysis: Analysis, *gates: str) -> list[Result]:
    return [one.result for one in judge(parse_gates(gates), subjects_of(analysis), ())]


def note(found: Comparison) -> str:
    (message,) = [one.message for one in found.notes if one.id == "TIMEOUTS"]
    return message


# --- an environment that never succeeds ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [Status.FAILED, Status.TIMED_OUT, Status.NOT_RUN])
@pytest.mark.parametrize("name", ["base", "other"])
def test_an_environment_that_never_succeeds_is_compared_and_holds_no_gate(status: Status, name: str) -> None:
    analysis = made().ended(status, lambda trial: trial.environment == name).analysis
    found = only(analysis)
    assert (found.n, found.verdict, found.ratio, found.low, found.effect) == (0, Verdict.DATA_ONLY, None, None, None)
    assert found.sentence == f"data only: no round has a result in {name} (10 {status})"
    assert found.planned
    assert {level.environment for level in analysis.levels} == {"base", "other"} - {name}
    assert results(analysis, SLOWER_5, "inconclusive") == [Result.NOT_RESOLVED, Result.FAILED]
    assert not settled(analysis)
    assert waiting(analysis).startswith("0 of 1 primary comparisons have their verdict")


def test_what_always_ran_into_its_time_limit_is_bounded() -> None:
    found = only(made().ended(Status.TIMED_OUT, lambda trial: trial.environment == "other").analysis)
    assert "10 rounds of other and 0 of the baseline hit their time limit" in note(found)
    assert "slower by more than the time limit can show; sign test p 0.002" in note(found)  # 2 / 1024
    assert found.timeouts is not None
    assert (found.timeouts.environment, found.timeouts.baseline) == (10, 0)


def test_few_rounds_without_an_end_bound_nothing() -> None:
    found = only(made(n=5).ended(Status.TIMED_OUT, lambda trial: trial.environment == "other").analysis)
    assert "too few rounds for bounds" in note(found)


def test_an_entry_that_failed_everywhere_is_told_by_the_metrics_that_its_benchmark_declares() -> None:
    analysis = made().ended(Status.FAILED, lambda _: True).analysis
    found = only(analysis)
    assert (found.label, found.metric, found.n) == ("sysbench-cpu", "events_rate", 0)
    assert found.sentence == (
        "data only: no round has a result in other (10 failed); no round has a result in base (10 failed)"
    )
    assert results(analysis, "inconclusive") == [Result.FAILED]


def test_what_the_plan_does_not_run_in_an_environment_stays_absent() -> None:
    whole = made().ended(Status.FAILED, lambda trial: trial.environment == "other")
    plan = whole.plan.model_copy(update={"work": tuple(w for w in whole.plan.work if w.environment == "base")})
    analysis = analyse(whole.measurements, plan=plan, findings=(), trials=whole.trials)
    assert analysis.comparisons == ()


def test_every_format_shows_it() -> None:
    lost = made().ended(Status.FAILED, lambda trial: trial.environment == "other")
    analysis = lost.analysis
    assert any("other against base: data only: no round has a result" in line for line in lines_of(analysis))
    document = document_of(ReportInput(analysis=analysis, plan=lost.plan, cells=(), trials=lost.trials))
    assert r" & -- $\cdot$ \\" in tables(document)
    assert r"$\cdot$ data only" in tables(document)
    assert '#text("–") #emph[#text("data only")]' in source(document)
    (line,) = answer_lines(analysis)
    assert line.word == "no round has results for both other and base"


def test_an_answer_counts_what_it_does_not_know() -> None:
    analysis = made().analysis
    one = only(analysis)
    lost = only(made().ended(Status.FAILED, lambda trial: trial.environment == "other").analysis)
    (line,) = answer_lines(analysis.model_copy(update={"comparisons": (one, lost)}))
    assert (line.verdicts, line.missing) == (("equivalent",), 1)
    assert line.word.startswith("no difference in 1 of 2 (within ")


# --- rounds that ran into their time limit -------------------------------------------------------------------------


def test_an_equivalence_does_not_outlive_rounds_without_an_end() -> None:
    assert only(made().analysis).verdict is Verdict.EQUIVALENT
    analysis = made().ended(Status.TIMED_OUT, lambda t: t.environment == "other" and t.round in (1, 2, 4, 5)).analysis
    found = only(analysis)
    assert (found.n, found.verdict) == (6, Verdict.INCONCLUSIVE)
    assert found.low is not None
    assert found.low > 0.98, "the interval is of the rounds with a number"
    assert found.timeouts is not None
    assert found.timeouts.low is None, "nothing bounds it below"
    assert found.timeouts.high == pytest.approx(1.0, abs=0.01)
    assert found.companion is not None
    assert found.companion.low is None
    assert found.remark.startswith("excluding 4 rounds in which other hit its time limit")
    assert found.more_rounds is None
    assert results(analysis, SLOWER_5, "any primary faster than 5%", "inconclusive") == [
        Result.NOT_RESOLVED,
        Result.HOLDS,
        Result.FAILED,
    ]
    assert not settled(analysis)


def test_a_slower_environment_is_still_slower_with_rounds_without_an_end() -> None:
    whole = made(0.2)
    analysis = whole.ended(Status.TIMED_OUT, lambda t: t.environment == "other" and t.round in (1, 2, 4, 5)).analysis
    assert only(analysis).verdict is Verdict.SLOWER
    assert results(analysis, SLOWER_5) == [Result.FAILED]


def test_a_baseline_without_an_end_bounds_from_the_other_side() -> None:
    analysis = made().ended(Status.TIMED_OUT, lambda t: t.environment == "base" and t.round in (1, 2, 4, 5)).analysis
    late = only(analysis).timeouts
    assert late is not None
    assert (late.environment, late.baseline, late.high) == (0, 4, None)
    assert results(analysis, SLOWER_5, "any primary faster than 5%") == [Result.HOLDS, Result.NOT_RESOLVED]


def test_a_round_without_an_end_on_both_sides_says_nothing() -> None:
    found = only(made().ended(Status.TIMED_OUT, lambda trial: trial.round == 4).analysis)
    assert (found.n, found.dropped, found.timeouts, found.verdict) == (9, 1, None, Verdict.EQUIVALENT)


def test_a_score_does_not_outlive_rounds_without_an_end() -> None:
    def scored(whole: Simulated) -> Verdict:
        spec = ScoreSpec(name="all", weights={"sysbench-cpu.work_time": 1.0})
        study = whole.plan.study.model_copy(update={"scores": (spec,)})
        (score,) = replace(whole, plan=whole.plan.model_copy(update={"study": study})).analysis.scores
        return score.verdict

    assert scored(made()) is Verdict.EQUIVALENT
    late = made().ended(Status.TIMED_OUT, lambda t: t.environment == "other" and t.round in (1, 2, 4, 5))
    assert scored(late) is Verdict.INCONCLUSIVE


# --- iterations that ran into their time limit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "late", "kind", "expected"),
    [
        ([1.0, 2.0], 1, Kind.COST, 2.0),  # the middle of 1, 2, endless
        ([1.0, 2.0], 1, Kind.RATE_FIXED_WORK, 1.0),  # the middle of nothing, 1, 2
        ([1.0], 2, Kind.COST, None),
        ([3.0], 2, Kind.RATE_FIXED_WORK, None),
        ([1.0, 2.0, 3.0], 1, Kind.COST, 2.5),  # four: the middle two
        ([1.0, 2.0], 2, Kind.COST, None),
        ([2.0, 6.0, 9.0], 1, Kind.RATE_FIXED_WORK, 3.0),  # work over time of 2 and 6
        ([1.0, 2.0], 1, Kind.RATE_FIXED_TIME, None),  # a mean has no end
        ([1.0], 1, Kind.COST, None),  # and so has that of two iterations
    ],
)
def test_a_cell_counts_an_iteration_without_an_end_as_the_slowest(
    values: list[float], late: int, kind: Kind, expected: float | None
) -> None:
    assert late_summary(np.array(values), late, kind) == expected


def test_an_iteration_without_an_end_is_part_of_its_cell() -> None:
    whole = made(iterations=3)
    one = whole.ended(Status.TIMED_OUT, lambda t: t.environment == "other" and t.iteration == 1).analysis
    level = next(level for level in one.levels if level.environment == "other")
    left = sorted(m.value for m in whole.measurements if m.round == 1 and m.environment == "other" and m.iteration > 1)
    assert level.cells[0].value == left[1]
    assert (level.cells[0].timed_out, level.cells[0].iterations, level.cells[0].mean) == (1, 2, None)
    assert only(one).n == 10
    assert (only(one).mean_ratio, only(one).mean_without) == (None, "a run that hit its time limit has no total time")
    two = whole.ended(Status.TIMED_OUT, lambda t: t.environment == "other" and t.iteration < 3).analysis
    assert only(two).n == 0
    assert "10 rounds of other and 0 of the baseline hit their time limit" in note(only(two))


# --- one record that is missing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r001-base", "r005-other", "r010-base", "r010-other"])
def test_a_record_that_is_missing_is_a_round_that_is_dropped_and_undoes_no_look(name: str) -> None:
    whole = made()
    kept = tuple(trial for trial in whole.trials if trial.cell != name)
    found = replace(whole, trials=kept, measurements=tuple(m for m in whole.measurements if m.cell != name)).analysis
    assert (found.look, found.rounds_complete) == (10, 9)
    assert (only(found).n, only(found).dropped) == (9, 1)
