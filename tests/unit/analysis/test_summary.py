"""Cells and levels: numbers that can be checked on paper."""

from __future__ import annotations

import pytest

from builders.measurements import levels, measurement
from vtax.analysis.estimate.summary import cell_summary, typical
from vtax.errors import ParseError
from vtax.model.metric import Kind


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (Kind.COST, [2.0, 4.0], 3.0),
        (Kind.COST, [2.0, 4.0, 90.0], 4.0),
        (Kind.RATE_FIXED_WORK, [40.0, 60.0], 48.0),  # 2 / (1/40 + 1/60): there and back
        (Kind.RATE_FIXED_WORK, [1.0, 40.0, 60.0], 40.0),
        (Kind.RATE_FIXED_TIME, [1.0, 40.0, 61.0], 34.0),
        (Kind.RATIO, [0.5, 2.0], 1.0),
        (Kind.LATENCY_QUANTILE, [2.0, 4.0], 3.0),
        (Kind.PROPORTION, [0.0, 0.5], 0.25),
        (Kind.AMOUNT, [0.0, 0.0, 30.0], 10.0),
        (Kind.COUNT, [0.0, 3.0, 30.0], 11.0),
    ],
)
def test_a_cell_is_summarised_by_its_kind(kind: Kind, values: list[float], expected: float) -> None:
    assert cell_summary(values, kind) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(Kind.RATE_FIXED_WORK, 48.0), (Kind.RATIO, 2400**0.5), (Kind.COST, 50.0), (Kind.LATENCY_QUANTILE, 50.0)],
)
def test_the_typical_level_follows_the_kind(kind: Kind, expected: float) -> None:
    assert typical([40.0, 60.0], kind) == pytest.approx(expected)


def test_a_level_has_one_value_a_round_and_leaves_warm_ups_out() -> None:
    found = levels(
        [
            measurement(5.0, round=1),
            measurement(7.0, round=2, iteration=1),
            measurement(9.0, round=2, iteration=2),
            measurement(1e9, round=1, iteration=0, warmup=True),
        ]
    )
    (level,) = found.values()
    assert [(cell.round, cell.value, cell.iterations) for cell in level.cells] == [(1, 5.0, 1), (2, 8.0, 2)]
    assert (level.n, level.mean, level.median, level.minimum, level.maximum) == (2, 6.5, 6.5, 5.0, 8.0)
    assert level.sd == pytest.approx(4.5**0.5)


def test_one_round_has_no_deviation() -> None:
    (level,) = levels([measurement(5.0)]).values()
    assert level.sd is None


def test_labels_tell_series_apart() -> None:
    items = [measurement(5.0, labels={"node": "a"}), measurement(6.0, labels={"node": "b"})]
    assert len(levels(items)) == 2
    one, other = levels(items).values()
    assert one.series != other.series


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_cost_that_cannot_be_names_its_file(value: float) -> None:
    item = measurement(value, source="trials/t7/out.txt")
    with pytest.raises(ParseError, match=r"trials/t7/out\.txt"):
        levels([item])


@pytest.mark.parametrize("kind", [Kind.PROPORTION, Kind.AMOUNT, Kind.COUNT])
def test_a_proportion_an_amount_and_a_count_may_be_zero(kind: Kind) -> None:
    (level,) = levels([measurement(0.0, kind=kind)]).values()
    assert level.mean == 0


def test_two_values_for_one_thing_are_refused() -> None:
    with pytest.raises(ParseError, match="two values"):
        levels([measurement(5.0), measurement(6.0)])


def test_two_units_for_one_metric_are_refused() -> None:
    items = [measurement(5.0), measurement(5.0, environment="vm", unit="byte/s", kind=Kind.RATE_FIXED_WORK)]
    with pytest.raises(ParseError, match="byte/s"):
        levels(items)
