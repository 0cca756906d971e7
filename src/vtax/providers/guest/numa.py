"""The host's NUMA nodes: memory is taken on the node of the CPU that touches it first, and is slower for all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from vtax.facts.cpu import cpu_list
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape

NODES = Path("/sys/devices/system/node")
Nodes = Mapping[int, tuple[int, ...]]  # NUMA node -> its CPUs


def nodes() -> Nodes:
    """Of this machine; none where the kernel does not show them."""
    found = {int(path.name.removeprefix("node")): path / "cpulist" for path in NODES.glob("node[0-9]*")}
    return {number: cpu_list(path.read_text()) for number, path in sorted(found.items())}


def holding(cpus: Iterable[int], known: Nodes) -> tuple[int, ...]:
    """The NUMA nodes to which any of these CPUs belongs."""
    wanted = set(cpus)
    return tuple(number for number, its in known.items() if wanted & set(its))


def near(cpus: Iterable[int], known: Nodes, usable: Iterable[int]) -> tuple[int, ...]:
    """All usable CPUs of the NUMA nodes of `cpus`; none when that is all usable ones: no choice."""
    allowed = set(usable)
    close = allowed & {cpu for number in holding(cpus, known) for cpu in known[number]}
    return () if close == allowed else tuple(sorted(close))


def spanned(shape: ClusterShape, known: Nodes) -> Iterator[Problem]:
    """Cluster nodes whose CPUs belong to several NUMA nodes, which the kernel of a virtual machine cannot see."""
    for node in shape.nodes:
        numbers = holding(node.cpu_ids, known)
        if len(numbers) > 1:
            yield Problem.warning(
                f"{node.name} has CPUs of the NUMA nodes {', '.join(map(str, numbers))}: part of its memory is "
                "remote, and its kernel cannot know",
                "use fewer CPUs per node, so that each fits into one NUMA node",
            )
