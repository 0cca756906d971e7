"""The order in which environments run: balanced over places, precedence and neighbours, random, repeatable."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vtax.analysis.order import benchmark_order, environment_orders, zigzag


@given(st.integers(2, 7), st.integers(0, 2**63 - 1))
@settings(max_examples=40, deadline=None)
def test_of_two_environments_each_is_first_in_half_of_the_rounds(environments: int, seed: int) -> None:
    rounds = environments * (1 + environments % 2)
    first = Counter(
        (a, b)
        for order in environment_orders(seed, rounds, environments)
        for a in range(environments)
        for b in range(environments)
        if order.index(a) < order.index(b)
    )
    assert set(first.values()) == {rounds // 2}


@pytest.mark.parametrize("environments", [2, 3, 4, 5, 6])
def test_each_environment_follows_each_other_equally_often(environments: int) -> None:
    rounds = environments * (1 + environments % 2)
    follows = Counter(pair for order in environment_orders(1, rounds, environments) for pair in pairwise(order))
    assert len(follows) == environments * (environments - 1)
    assert set(follows.values()) == {1 + environments % 2}


def test_two_environments_run_as_ab_ba_or_ba_ab() -> None:
    blocks = set()
    for seed in range(20):
        a, b, c, d = (tuple(order) for order in environment_orders(seed, 4, 2))
        assert a == b[::-1]
        assert c == d[::-1]
        blocks |= {a, c}
    assert blocks == {(0, 1), (1, 0)}


def test_the_same_seed_gives_the_same_order_and_more_rounds_only_add() -> None:
    assert environment_orders(5, 12, 3) == environment_orders(5, 12, 3)
    assert environment_orders(5, 24, 3)[:12] == environment_orders(5, 12, 3)
    assert environment_orders(5, 12, 3) != environment_orders(6, 12, 3)
    assert sorted(benchmark_order(5, 2, 9)) == list(range(9))
    assert benchmark_order(5, 2, 9) == benchmark_order(5, 2, 9)


def test_zigzag() -> None:
    assert zigzag(4) == [0, 1, 3, 2]
    assert zigzag(5) == [0, 1, 4, 2, 3]
    assert zigzag(1) == [0]
