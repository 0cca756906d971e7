"""Pairs of nodes: all of few nodes, a balanced sample of many; and workers that may share CPUs."""

from __future__ import annotations

from collections import Counter

import pytest

from vtax.model.nodes import Scope
from vtax.model.study import BenchmarkSpec
from vtax.planning.pairs import number_of_pairs, pairs_of, sentence

BOTH_WAYS = BenchmarkSpec(name="ping", label="ping", scopes=(Scope.PAIRS,))
ONE_WAY = BOTH_WAYS.model_copy(update={"one_way": True})
ALL = BOTH_WAYS.model_copy(update={"all_pairs": True})


def test_few_nodes_have_all_pairs() -> None:
    assert pairs_of(BOTH_WAYS, "abc", 1) == (
        *(("a", "b"), ("a", "c"), ("b", "a")),
        *(("b", "c"), ("c", "a"), ("c", "b")),
    )
    assert pairs_of(ONE_WAY, "abc", 1) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert len(pairs_of(BOTH_WAYS, range(8), 1)) == 56


@pytest.mark.parametrize(
    ("nodes", "both_ways"),
    [
        (9, 54),  # 28 // 9 = 3 neighbours
        (12, 48),  # 2
        (14, 56),  # 2
        (15, 30),  # 1 from here on
        (64, 128),
        (65, 130),
    ],
)
def test_a_sample_is_balanced(nodes: int, both_ways: int) -> None:
    """Every node is client as often as server, and as often as every other; no pair comes twice, none is a loop."""
    for spec, count in ((BOTH_WAYS, both_ways), (ONE_WAY, both_ways // 2)):
        found = pairs_of(spec, range(nodes), 7)
        assert len(set(found)) == len(found) == count == number_of_pairs(spec, nodes)
        times = count // nodes
        assert Counter(client for client, _ in found) == dict.fromkeys(range(nodes), times)
        assert Counter(server for _, server in found) == dict.fromkeys(range(nodes), times)
        assert all(client != server for client, server in found)
        assert list(found) == sorted(found)


def test_a_sample_in_both_ways_has_the_way_back_of_every_pair() -> None:
    found = set(pairs_of(BOTH_WAYS, range(64), 7))
    assert {(server, client) for client, server in found} == found


def test_a_sample_leaves_no_part_of_the_nodes_apart() -> None:
    pairs = pairs_of(ONE_WAY, range(64), 7)
    reached = {0}
    for _ in range(64):
        reached |= {server for client, server in pairs if client in reached}
    assert reached == set(range(64))


def test_the_seed_chooses_and_nothing_else() -> None:
    assert pairs_of(BOTH_WAYS, range(64), 7) == pairs_of(BOTH_WAYS, range(64), 7)
    assert pairs_of(BOTH_WAYS, range(64), 7) != pairs_of(BOTH_WAYS, range(64), 8)


def test_all_pairs_on_demand() -> None:
    assert len(pairs_of(ALL, range(12), 1)) == 132 == number_of_pairs(ALL, 12)


def test_what_the_plan_says_of_a_sample() -> None:
    assert sentence(BOTH_WAYS, 64) == (
        "ping runs between 128 of 4032 pairs of 64 nodes: a balanced sample, in which each node is client of 2 and "
        "server of 2 (`all_pairs = true` measures all)"
    )
    assert sentence(ONE_WAY, 12).startswith("ping runs between 24 of 66 pairs of 12 nodes")
