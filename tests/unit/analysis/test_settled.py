"""When a campaign may end: every primary metric has its verdict, at a look."""

from __future__ import annotations

import pytest

from builders.measurements import analysed, rounds
from vtax.analysis.records import Analysis, Verdict, settled, waiting
from vtax.model.metric import Kind


def at_a_look(verdicts: list[Verdict], *, look: int | None = 6, primary: bool = True, n: int = 6) -> Analysis:
    found = [
        analysed(rounds([1.0] * n, [1.0] * n, metric=f"m{i}", primary=primary, kind=Kind.COST)).comparisons[0]
        for i in range(len(verdicts))
    ]
    made = tuple(one.model_copy(update={"verdict": word}) for one, word in zip(found, verdicts, strict=True))
    return analysed(rounds([1.0], [1.0])).model_copy(update={"comparisons": made, "look": look})


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([Verdict.FASTER], True),
        ([Verdict.EQUIVALENT, Verdict.SLOWER, Verdict.TRIVIAL], True),
        ([Verdict.EQUIVALENT, Verdict.INCONCLUSIVE], False),
        ([Verdict.UNADJUSTED], False),
        ([Verdict.PILOT], False),
        ([Verdict.DATA_ONLY, Verdict.FASTER], False),
        ([Verdict.NOT_COMPARABLE, Verdict.FASTER], True),
        ([Verdict.DIFFERENCE_ONLY], True),
        ([], False),
    ],
)
def test_all_primary_verdicts_end_it(verdicts: list[Verdict], expected: bool) -> None:
    assert settled(at_a_look(verdicts)) is expected


def test_before_the_first_look_nothing_is_settled() -> None:
    assert not settled(at_a_look([Verdict.FASTER], look=None))


def test_exploratory_metrics_and_the_control_arm_end_nothing() -> None:
    assert not settled(at_a_look([Verdict.FASTER], primary=False))
    made = at_a_look([Verdict.FASTER, Verdict.INCONCLUSIVE])
    control = made.comparisons[1].model_copy(update={"control": True})
    assert settled(made.model_copy(update={"comparisons": (made.comparisons[0], control)}))


@pytest.mark.parametrize("planned", [True, False])
def test_a_metric_that_is_not_planned_in_both_is_not_waited_for(planned: bool) -> None:
    made = at_a_look([Verdict.FASTER, Verdict.DATA_ONLY])
    lacking = made.comparisons[1].model_copy(update={"n": 0, "planned": planned})
    analysis = made.model_copy(update={"comparisons": (made.comparisons[0], lacking)})
    assert settled(analysis) is not planned
    assert waiting(analysis).startswith(f"1 of {1 + planned} primary comparisons")
