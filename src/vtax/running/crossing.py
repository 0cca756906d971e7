"""What is verified between machines: that packets of the planned size cross whole, from every node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from vtax.model.cluster import NodeFacts
from vtax.model.nodes import ClusterShape
from vtax.providers.base import Cluster
from vtax.transport.parallel import each

CHECK_S = 60.0
HEADERS = 28  # bytes of IPv4 and ICMP before what ping sends
PINGS = 3  # the first finds the neighbour
ANSWERED = re.compile(r"^[0-9]+ packets transmitted, ([0-9]+) received", re.MULTILINE)
Outcome = tuple[list[str], list[str]]  # sentences of checks that passed, and of checks that failed


def crosses(cluster: Cluster, facts: Sequence[NodeFacts], lost: Sequence[str]) -> Outcome:
    """Interfaces have the planned size of packets, and none was `lost`."""
    if cluster.link is None:
        return [], []
    mtu, addresses = cluster.link.mtu, cluster.link.places
    wrong = [line for one in facts for line in mtu_differs(one, addresses[one.node], mtu)]
    passed = f"packets of {mtu} bytes cross unfragmented: " + ", ".join(f"{a} to {b}" for a, b in across(cluster.shape))
    return ([] if wrong or lost else [passed]), wrong or list(lost)


def lost_between(cluster: Cluster) -> list[str]:
    """Every node sends packets of the planned size, which may not be fragmented, to one node on another machine: those
    that do not arrive."""
    if cluster.link is None:
        return []
    mtu = cluster.link.mtu

    def lost(pair: tuple[str, str]) -> str:
        here, there = pair
        words = ("ping", "-n", "-q", "-c", str(PINGS), "-i", "0.2", "-W", "2", "-M", "do")
        result = cluster.node(here).transport.run((*words, "-s", str(mtu - HEADERS), there), timeout_s=CHECK_S)
        answered = ANSWERED.search(result.stdout)
        if answered and int(answered[1]) > 0:
            return ""
        why = (result.stderr.strip() or result.stdout.strip()).splitlines()
        return f"packets of {mtu} bytes from {here} do not reach {there}: {why[-1] if why else 'no answer'}"

    return [line for line in each(lost, across(cluster.shape)) if line]


def across(shape: ClusterShape) -> list[tuple[str, str]]:
    """For each node the next one, in their order, that is on another machine: so that every machine both sends and
    receives. Nothing where all are on one."""
    if len(shape.machines) < 2:
        return []
    nodes = shape.nodes
    chosen = []
    for number, one in enumerate(nodes):
        later = (*nodes[number + 1 :], *nodes[:number])
        chosen.append((one.name, next(other.name for other in later if other.machine != one.machine)))
    return chosen


def mtu_differs(facts: NodeFacts, address: str, mtu: int) -> list[str]:
    """What is wrong with the MTU of the interface that has a node's address."""
    listed: Sequence[Mapping[str, object]] = facts.values.get("interfaces", ())
    for link in listed:
        own = link.get("addresses", ())
        if isinstance(own, list) and address in (str(text).partition("/")[0] for text in own):
            seen = link.get("mtu")
            return [] if seen == mtu else [f"{facts.node}: {link.get('name')} has MTU {seen}, but the plan has {mtu}"]
    return [f"{facts.node}: no interface has the address {address}"]
