"""Pairs of nodes: all of few nodes, a balanced sample of many; and workers that may share CPUs."""

from __future__ import annotations

from collections import Counter

import pytest

from vtax.cli.plan_summary import _nodes
from vtax.model.nodes import ClusterShape, HostCapacity, Scope
from vtax.model.study import BenchmarkSpec
from vtax.planning.pairs import number_of_pairs, pairs_of, sentence
from vtax.planning.shape import cluster_shape
from vtax.planning.study import parse

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


# --- nodes that share CPUs -------------------------------------------------------------------------------------------

TWO_CPUS = HostCapacity(cpu_ids=(0, 1), memory_bytes=64 * 2**30)


def shaped(workers: int, nodes: str) -> tuple[ClusterShape, list[tuple[str, str]]]:
    text = 'name = "s"\nbaseline = "host"\n[environments.host]\nprovider = "host"\n[[benchmarks]]\nname = "ping"\n'
    shape, problems = cluster_shape(parse(f"{text}[nodes]\nworkers = {workers}\n{nodes}", "(test)"), TWO_CPUS)
    return shape, [(problem.severity.value, problem.message) for problem in problems]


def test_sixty_four_nodes_share_two_cpus_where_the_study_says_so() -> None:
    shape, problems = shaped(63, "share_cpus = true\n")
    assert Counter(node.cpu_ids for node in shape.nodes) == {(0,): 32, (1,): 32}
    assert {node.cpus for node in shape.nodes} == {1}
    assert problems == [("warning", "64 nodes share 2 CPUs (`share_cpus`), with one rank each")]


def test_without_that_key_they_do_not() -> None:
    _, problems = shaped(63, "")
    assert problems == [("blocker", "the workers need 63 CPUs together, but this machine offers 2")]


def test_nodes_that_share_cpus_have_one_each() -> None:
    _, problems = shaped(3, "share_cpus = true\ncpus = 2\n")
    assert problems == [("blocker", "nodes that share CPUs have one CPU each, and master has 2")]


def test_a_study_without_the_keys_has_no_trace_of_them() -> None:
    entry = BOTH_WAYS.model_dump(mode="json")
    assert "all_pairs" not in entry
    assert ALL.model_dump(mode="json")["all_pairs"] is True


def test_many_nodes_in_a_line() -> None:
    shape, _ = shaped(63, 'share_cpus = true\nmemory = "256 MiB"\n')
    assert _nodes(shape.nodes) == ("64 on 2 CPUs: master, worker1 and 62 more (1 CPU and 256 MiB each)")
    assert _nodes(shape.nodes[:2]) == "master (CPU 1, 256 MiB) and worker1 (CPU 0, 256 MiB)"
