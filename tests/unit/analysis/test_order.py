"""The order in which environments run: balanced over places, precedence and neighbours, random, repeatable."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vtax.analysis.order import benchmark_order, environment_orders, exchangeable, orders_of_rounds, zigzag


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


ROUNDS = st.lists(st.integers(1, 12), min_size=1, max_size=5)


@given(ROUNDS, st.integers(0, 2**63 - 1))
@settings(max_examples=60, deadline=None)
def test_environments_take_part_in_their_first_rounds(rounds: list[int], seed: int) -> None:
    orders = orders_of_rounds(seed, rounds)
    assert len(orders) == max(rounds)
    for number, order in enumerate(orders, start=1):
        assert sorted(order) == [i for i, own in enumerate(rounds) if own >= number]


@given(st.integers(1, 4), st.lists(st.integers(1, 11), max_size=3), st.integers(0, 2**63 - 1))
@settings(max_examples=60, deadline=None)
def test_environments_of_fewer_rounds_change_nothing_for_the_others(full: int, fewer: list[int], seed: int) -> None:
    orders = orders_of_rounds(seed, [12] * full + fewer)
    assert [[one for one in order if one < full] for order in orders] == environment_orders(seed, 12, full)


@given(st.integers(0, 2**63 - 1))
@settings(max_examples=40, deadline=None)
def test_an_environment_of_fewer_rounds_is_before_all_others_in_half_of_them(seed: int) -> None:
    places = [order.index(2) for order in orders_of_rounds(seed, [12, 12, 6])[:6]]
    assert sorted(places) == [0, 0, 0, 2, 2, 2]
    assert all({one, other} == {0, 2} for one, other in zip(places[::2], places[1::2], strict=True))


def test_two_environments_change_places_within_the_square_that_both_are_in() -> None:
    rounds = [12, 12, 12, 6, 6, 1]
    assert exchangeable(12, 12, rounds) == 3
    assert exchangeable(6, 6, rounds) == 2
    assert exchangeable(12, 6, rounds) == 2  # the smaller group comes before or after the others
