"""Which pairs of nodes a benchmark between two nodes measures: all of few nodes, a balanced sample of many. Pure.

The pairs grow with the square of the nodes: 64 have 4,032. Above `EVERY_PAIR` nodes, each is paired with its next
neighbours in a random ring, so that every node is client as often as it is server, and as often as every other, and no
part of the nodes is apart from the rest.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, permutations
from typing import TypeVar

from vtax.model.nodes import EVERY_PAIR
from vtax.model.study import BenchmarkSpec

UNORDERED = EVERY_PAIR * (EVERY_PAIR - 1) // 2  # pairs of so many nodes; a sample has about as many, or one per node
T = TypeVar("T")


def is_sampled(spec: BenchmarkSpec, nodes: int) -> bool:
    """Whether an entry measures a sample of the pairs of so many nodes."""
    return nodes > EVERY_PAIR and not spec.all_pairs


def pairs_of(spec: BenchmarkSpec, nodes: Sequence[T], seed: int) -> tuple[tuple[T, T], ...]:
    """The (client, server) pairs of an entry, in the order of the nodes."""
    if not is_sampled(spec, len(nodes)):
        return tuple(combinations(nodes, 2) if spec.one_way else permutations(nodes, 2))
    ring = random.Random(seed).sample(range(len(nodes)), len(nodes))
    found = [
        (client, ring[(place + distance) % len(ring)])
        for distance in range(1, neighbours(len(nodes)) + 1)
        for place, client in enumerate(ring)
    ]
    if not spec.one_way:
        found += [(server, client) for client, server in found]
    return tuple((nodes[client], nodes[server]) for client, server in sorted(found))


def number_of_pairs(spec: BenchmarkSpec, nodes: int) -> int:
    """How many `pairs_of` so many nodes there are."""
    unordered = nodes * neighbours(nodes) if is_sampled(spec, nodes) else nodes * (nodes - 1) // 2
    return unordered * (1 if spec.one_way else 2)


def neighbours(nodes: int) -> int:
    """How many of the next nodes in the ring each is paired with."""
    return max(1, UNORDERED // nodes)


def sentence(spec: BenchmarkSpec, nodes: int) -> str:
    """What the plan says of a sample."""
    times = number_of_pairs(spec, nodes) // nodes
    ways = nodes * (nodes - 1) // (2 if spec.one_way else 1)
    return (
        f"{spec.label} runs between {number_of_pairs(spec, nodes)} of {ways} pairs of {nodes} nodes: a balanced "
        f"sample, in which each node is client of {times} and server of {times} (`all_pairs = true` measures all)"
    )
